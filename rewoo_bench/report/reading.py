"""Finished runs from Python: compare, summarise, plot, check claims, hold against a budget.

    comparison = rewoo_bench.compare("results/local/mine", prices="openai")
    rewoo_bench.plot("results/local/mine", out="figures", only=["ratio"])
    rewoo_bench.check_claims("results/local/mine")
    rewoo_bench.check_gate("results/local/mine", budgets="budgets.toml").code

A run is its folder, its questions.parquet, or what `bench` and `evaluate` return. Nothing here imports what runs
a benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import pandas as pd

from rewoo_bench.analysis.claims import Finding, check, gather, read_claims
from rewoo_bench.analysis.compare import compare as compare_rows
from rewoo_bench.analysis.comparison_tables import Comparison
from rewoo_bench.analysis.prices import Pricing, pricings_of
from rewoo_bench.analysis.summary import Summary, summaries_of
from rewoo_bench.errors import DataError, NothingToDraw, UsageError
from rewoo_bench.gate.check import ComparisonTerms, check_run
from rewoo_bench.gate.verdict import Verdict, verdict_text
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.folder import manifests as read_manifests
from rewoo_bench.runs.manifest import Manifest
from rewoo_bench.text.argument_checks import (
    as_path,
    check_kind,
    check_known,
    check_names,
)


@runtime_checkable
class HasFrame(Protocol):
    """Rows of questions.parquet in another form: `Results` and `BenchRun`."""

    def to_frame(self) -> pd.DataFrame: ...


class HasFolder(Protocol):
    """A run with a folder: `BenchRun`, and `Results` of `evaluate(..., out=...)`."""

    @property
    def folder(self) -> Path | None: ...


def compare(
    *runs: str | Path | pd.DataFrame | HasFrame,
    manifests: Mapping[str, Manifest] | None = None,
    baseline: str | None = None,
    all_pairs: bool = False,
    intersect: bool = False,
    prices: str | Sequence[str] = (),
    price: str | Sequence[str] = (),
) -> Comparison:
    """Compares the architectures of these runs, or of one frame of `load` or results in memory.

    Each is compared with the `baseline` (by default the first that plans ahead, else the first), or with `all_pairs`
    each with each; ratios are of a loop by a plan, whatever order they stand in. Dollars are at `prices` or `price`,
    those of `rewoo-bench compare --prices` and `--price`; by default at the runs' own, else their models', else
    "openai". Of several `prices` the first counts, and `.under` has the dollars under each. Rows without their run's
    folder have the own ones alone, and their conditions are checked where `manifests(...)` are given. Raises
    `UsageError` where rows aren't comparable.
    """
    check_kind("manifests", manifests, (Mapping, type(None)), "what rewoo_bench.manifests returns, or None")
    names, amounts = ([each] if isinstance(each, str) else each for each in (prices, price))
    check_names(prices=names, price=amounts)
    if _is_frame(runs):
        if names or amounts:
            raise UsageError(
                "prices: they are of a run's calls.parquet; give the run's folder in the place of its rows"
            )
        rows, pricings = frame_of(runs[0]), list[Pricing]()
    else:
        paths = list(dict.fromkeys(Path(_folder(run)) for run in runs))
        rows, read = load(*paths), read_manifests(*paths)
        manifests, pricings = manifests or read, pricings_of(paths, rows, read, names, amounts)
    return compare_rows(
        rows,
        manifests=manifests,
        baseline=baseline,
        all_pairs=all_pairs,
        intersect=intersect,
        pricing=pricings[0] if pricings else None,
        under=pricings if len(pricings) > 1 else (),
    )


def summarise(rows: pd.DataFrame | HasFrame) -> list[Summary]:
    """Means of each architecture with their intervals. `rows` as for `compare`."""
    return summaries_of(frame_of(rows))


def plot(
    *runs: str | Path | pd.DataFrame | HasFrame,
    out: str | Path,
    only: Sequence[str] = (),
    formats: Sequence[str] = ("png", "svg"),
    pair: tuple[str, str] = ("react", "rewoo"),
) -> list[Path]:
    """Draws the figures of runs, or of one frame, into the folder `out`, and returns the files.

    A figure that the rows have no data for is left out. Raises `NothingToDraw` where that is every figure, and
    `UsageError` for the name of a figure or a format that doesn't exist.
    """
    # matplotlib, which takes longer than all else here
    from rewoo_bench.report.plots.data import plot_data_of, read
    from rewoo_bench.report.plots.draw import PICTURE_FORMATS, draw, save_figures

    check_names(only=only, formats=formats, pair=pair)
    folder = as_path("out", out)
    if len(pair) != 2:
        raise UsageError(f"pair: expected two architectures, got {pair!r}")
    check_known("format", formats, PICTURE_FORMATS)
    if _is_frame(runs):
        calls = getattr(runs[0], "calls_to_frame", None)
        data = plot_data_of(frame_of(runs[0]), calls() if calls else None)
    else:
        data = read([_folder(run) for run in runs])
    reasons: list[str] = []
    drawn = draw(
        data,
        only=list(only),
        pair=pair,
        on_skip=lambda name, reason: reasons.append(f"{name} {reason}"),
    )
    if files := list(save_figures(drawn, folder, formats)):
        return files
    raise NothingToDraw(f"no figure could be drawn: {'; '.join(reasons) or 'no rows'}")


def check_claims(
    *runs: str | Path | HasFolder, claims: str | Path | None = None, model: str | None = None
) -> list[Finding]:
    """Holds runs against the published claims, or those of the file `claims`: one verdict for each.

    `model` is a part of the name of the model that decides, by default any with 1B parameters or more. Raises
    `DataError` where a run or the file can't be read, or no run is given.
    """
    if not runs:
        raise DataError("no run given")
    wanted = read_claims() if claims is None else read_claims(as_path("claims", claims))
    return check(wanted, gather(*map(_folder, runs)), model)


def check_gate(
    run: str | Path | HasFolder,
    *,
    budgets: str | Path | None = None,
    baseline: str | Path | HasFolder | None = None,
    mode: Literal["exact", "live"] | None = None,
    max_increase: float | None = None,
    accept_prompts: bool = False,
    strict: bool = False,
    allow_incomplete: bool = False,
) -> Verdict:
    """Holds a run against budgets, a baseline or both; `.code` is the exit code of `rewoo-bench gate`.

    `max_increase` is a share (0.02). Relative paths start at the working folder. Raises `UsageError` where a file is
    invalid, or where there is neither a budget nor a baseline.
    """
    terms = ComparisonTerms(mode, max_increase, accept_prompts, strict)
    before = None if baseline is None else _folder(baseline)
    limits = None if budgets is None else as_path("budgets", budgets)
    return check_run(_folder(run), budgets=limits, baseline=before, terms=terms, allow_incomplete=allow_incomplete)


def assert_within_budget(
    run: str | Path | HasFolder,
    budgets: str | Path | None = "budgets.toml",
    *,
    baseline: str | Path | HasFolder | None = None,
    max_increase: float | None = None,
    accept_prompts: bool = False,
) -> None:
    """Raises `AssertionError` with the gate's text where a run exceeds its budget, or is incomplete.

    Arguments and `UsageError` as for `check_gate`.
    """
    __tracebackhide__ = True  # pytest shows the test's line and the gate's text
    verdict = check_gate(
        run, budgets=budgets, baseline=baseline, max_increase=max_increase, accept_prompts=accept_prompts
    )
    if verdict.code:
        raise AssertionError(verdict_text(verdict))


def frame_of(rows: Any) -> pd.DataFrame:
    """The rows as a frame."""
    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, HasFrame):
        return rows.to_frame()
    if isawaitable(rows):
        getattr(rows, "close", lambda: None)()  # so that Python doesn't warn of it, too
        raise UsageError("these rows aren't there yet: write await rewoo_bench.evaluate(…), or use rewoo_bench.bench")
    raise UsageError(f"expected the rows of rewoo_bench.load, evaluate or bench, got {type(rows).__name__}")


def _folder(run: Any) -> str | Path:
    if isinstance(run, str | Path):
        return run
    folder = getattr(run, "folder", None)
    if folder is None:
        raise UsageError(f"expected the folder of a run, got {run!r}; evaluate(..., out=...) writes one")
    return Path(folder)


def _is_frame(runs: Sequence[Any]) -> bool:
    """Whether rows are given, and no run that has a folder."""
    return len(runs) == 1 and not isinstance(runs[0], str | Path) and getattr(runs[0], "folder", None) is None
