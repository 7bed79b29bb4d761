"""Running from Python: `evaluate` for async code and notebooks, `bench` for plain functions and tests.

    results = await rewoo_bench.evaluate("sample", ["rewoo", "react"], questions=20, out="results/local/mine")
    rewoo_bench.compare(results)

    run = rewoo_bench.bench("rewoo", out=Path("results/local/mine"), questions=20)
    run.rows["total_tokens"].mean()

Both do what `rewoo-bench run` does: the same options, the same checks, and with `out` the same folder. Without `out`
the folder is a temporary one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import anyio

from rewoo_bench.errors import RunStopped, UsageError, unknown
from rewoo_bench.evaluation.folder import Outcome, Result, Results, Task
from rewoo_bench.evaluation.inputs import EXAMPLES, PythonInputs, model_name
from rewoo_bench.evaluation.run import Listeners, run
from rewoo_bench.events import Event
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.options import DEFAULT_MODEL, OPTIONS, RunOptions, as_values
from rewoo_bench.text.argument_checks import abridged, check_kind
from rewoo_bench.text.scoring import Scorer
from rewoo_bench.types import Example, GoldAware, Model

if TYPE_CHECKING:
    from typing import Unpack

    import pandas as pd

    from rewoo_bench.runs.option_keywords import OptionKeywords


async def evaluate(
    dataset: str | Sequence[Example] = "sample",
    architectures: str | Architecture | Sequence[str | Architecture] = (),
    *,
    model: str | Model = DEFAULT_MODEL,
    exemplars: str = "multihop",
    scoring: str | Scorer = "hotpotqa",
    on_result: Callable[[Result], None] | None = None,
    on_event: Callable[[Task, Event], None] | None = None,
    **options: Unpack[OptionKeywords],
) -> Results:
    """Asks questions of architectures; `compare`, `summarise` and `plot` take the results as they are.

    `dataset` is a name as for `--dataset`, or examples; for those `exemplars` is their style and `scoring`
    the metric. `architectures` are names, in one text with commas or in a list, or objects; at least one. `model` is a
    name as for `--model`, or an object. `on_result` gets each result as it ends, `on_event` the events inside each
    question. `options` are the other flags of `rewoo-bench run`, by the names and with the defaults of `RunOptions`,
    which says what each means.

    With `out` the run is written into that new folder, and a run that ends early is returned as incomplete.
    Without, its folder is deleted at its end, and a run that ends early raises `RunStopped`, since nothing can resume
    it. Raises `UsageError` for a wrong argument.
    """
    more = _checked_options(options, {*inspect.signature(evaluate).parameters, "resume"})
    examples = _checked_examples(dataset)
    named = _checked_architectures(architectures)
    check_kind("model", model, (str, Model, GoldAware), "a name or an object with a method complete")
    check_kind("exemplars", exemplars, (str,), "a style of exemplars such as 'multihop'")
    check_kind("scoring", scoring, (str, Scorer), "the name of a scorer")
    if isinstance(dataset, str):
        defaults = inspect.signature(evaluate).parameters
        for name, value in (("exemplars", exemplars), ("scoring", scoring)):
            if value != defaults[name].default:
                raise UsageError(f"{name}: it is for examples; the data set {dataset!r} has its own")
    run_options = RunOptions(
        tuple(each if isinstance(each, str) else each.name for each in named),
        dataset=dataset if isinstance(dataset, str) else EXAMPLES,
        model=model if isinstance(model, str) else model_name(model),
        **more,
    )
    python_inputs = PythonInputs(examples, exemplars, scoring, named, None if isinstance(model, str) else model)
    results: list[Result] = []

    def keep(result: Result) -> None:
        results.append(result)
        if on_result is not None:
            on_result(result)

    listeners = Listeners(keep, on_event)
    if (folder := run_options.out) is not None:
        outcome = await run(run_options, python_inputs, listeners, signals=False)
    else:
        with TemporaryDirectory(prefix="rewoo-bench-") as own:
            deleted = replace(run_options, out=Path(own))
            outcome = await run(deleted, python_inputs, listeners, signals=False, is_kept=False)
        if not outcome.has_asked_all:
            raise RunStopped(str(outcome.reason))
    order = {key: place for place, key in enumerate(outcome.keys)}
    results.sort(key=lambda result: order[result.task.key])
    return Results(results, outcome.columns, folder=folder, status=outcome.status, reason=outcome.reason)


@dataclass(frozen=True)
class BenchRun:
    """A run that ended: `done`, or `incomplete` for the reason given."""

    folder: Path
    status: str
    reason: str | None = None

    @cached_property
    def rows(self) -> pd.DataFrame:
        """questions.parquet."""
        return self.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """`rewoo_bench.load(run.folder)`."""
        return load(self.folder)


def bench(
    architectures: str | Sequence[str] = (), *, out: str | Path, model: str = "oracle", **options: Any
) -> BenchRun:
    """Runs the benchmark into `out`, with the oracle unless `model` says otherwise. Raises `UsageError`.

    `architectures` are names, in one text with commas or in a list; at least one. `options` are the other flags of
    `rewoo-bench run`. It blocks until the run has ended; in a notebook and in async code
    `await evaluate(..., out=...)` instead.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        where = "a notebook, async code"
        raise UsageError(
            f"bench can't run where an event loop runs ({where}); write await rewoo_bench.evaluate(…, out=…)"
        )
    more = _checked_options({"progress": False, **options, "out": out}, {"architectures"})
    wanted = RunOptions(tuple(map(str, _checked_architectures(architectures))), model=model, **more)
    outcome: Outcome = anyio.run(run, wanted)
    return BenchRun(outcome.folder, outcome.status, outcome.reason)


def _checked_options(options: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    """Keywords as options: texts as paths, and texts and lists as tuples, where those are.

    Raises `UsageError` for one that doesn't exist.
    """
    known = OPTIONS.keys() - taken
    for name in options:
        if name not in known:
            raise UsageError(unknown("option", name, known | taken - {"options", "resume"}))
    checked = as_values(options)
    if isinstance(tools := options.get("tools"), str):  # as the flag has it
        checked["tools"] = tuple(map(str.strip, tools.split(",")))
    return checked


def _checked_examples(dataset: Any) -> Sequence[Example] | None:
    """The examples, or None for a name. Raises `UsageError`."""
    if isinstance(dataset, str):
        return None
    if isinstance(dataset, Sequence) and dataset and all(isinstance(each, Example) for each in dataset):
        return dataset
    raise UsageError(f"dataset: expected a name or a list of rewoo_bench.Example, got {abridged(dataset)}")


def _checked_architectures(architectures: Any) -> list[str | Architecture]:
    named = [architectures] if isinstance(architectures, Architecture) else architectures
    if isinstance(named, str):
        named = [name for part in named.split(",") if (name := part.strip())]
    if isinstance(named, Sequence) and named and all(isinstance(each, str | Architecture) for each in named):
        return list(named)
    raise UsageError(f"architectures: expected one name or several, got {abridged(architectures)}")
