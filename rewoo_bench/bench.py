"""A run from Python with its folder kept, and the gate as an assertion.

run = bench("rewoo", out=Path("results/local/mine"), dataset="sample", model="oracle", limit=20)
run.rows["total_tokens"].mean()
assert_within_budget(run, "budgets.toml", baseline="baseline.json")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.errors import UsageError, unknown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BenchRun:
    """A run that ended: `done`, or `incomplete` for the reason given."""

    folder: Path
    status: str
    reason: str | None = None

    @cached_property
    def rows(self) -> pd.DataFrame:
        """questions.parquet."""
        from rewoo_bench.runs.folder import load

        return load(self.folder)


def bench(arch: str | Sequence[str], *, out: Path, model: str = "oracle", **options: Any) -> BenchRun:
    """Runs the benchmark into `out`, with the oracle unless `model` says otherwise. Raises `UsageError`.

    `options` are the other flags of `rewoo-bench run`.
    """
    import anyio

    from rewoo_bench.evaluation.run import run
    from rewoo_bench.runs.options import RunOptions

    names = arch.split(",") if isinstance(arch, str) else arch
    known = {field.name for field in fields(RunOptions)} - {"architectures"}
    for name in options:
        if name not in known:
            raise UsageError(unknown("option", name, known))
    architectures = tuple(name.strip() for name in names if name.strip())
    wanted = RunOptions(architectures, model=model, out=out, progress=False, **options)
    outcome = anyio.run(run, wanted)
    return BenchRun(outcome.folder, outcome.status, outcome.reason)


def assert_within_budget(
    run: BenchRun | str | Path,
    budgets: str | Path | None = "budgets.toml",
    *,
    baseline: str | Path | None = None,
    max_increase: float | None = None,
    accept_prompts: bool = False,
) -> None:
    """Raises AssertionError with the gate's text where a run breaks its budget, or is incomplete.

    `run` is a run, or its folder; a relative path of a file starts at the working folder. With
    `baseline` it is held against that too. Raises `UsageError` where a file is wrong.
    """
    from rewoo_bench.gate.check import ComparisonTerms, check_run
    from rewoo_bench.gate.render import text

    __tracebackhide__ = True  # pytest shows the test's line and the gate's text
    terms = ComparisonTerms(max_increase=max_increase, accept_prompts=accept_prompts)
    folder = run.folder if isinstance(run, BenchRun) else run
    verdict = check_run(folder, budgets=budgets, baseline=baseline, terms=terms)
    if verdict.code:
        raise AssertionError(text(verdict))
