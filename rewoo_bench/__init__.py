"""Runs the same questions through different agent designs, and compares cost and accuracy.

    results = await rewoo_bench.evaluate("sample", ["rewoo", "react"], model="oracle", questions=20, out="mine")
    run = rewoo_bench.bench("rewoo,react", model="oracle", questions=20, out="again")  # outside of async code
    rows = rewoo_bench.load("mine")  # a DataFrame: a row for each architecture and question
    conditions = rewoo_bench.manifests("mine")  # by run id: models, options, prompts
    ratio = rewoo_bench.compare("mine").pairs[0]["total_tokens"].interval  # tokens of react by those of rewoo
    files = rewoo_bench.plot("mine", out="figures", only=["ratio"])
    verdict = rewoo_bench.check_gate("mine", baseline="mine")  # code 0: no dearer than the baseline

`rewoo_bench.__all__` has every public name. Each is imported when it is first used, so importing the package costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from rewoo_bench.analysis.law import estimate
    from rewoo_bench.config.functions import changes_state
    from rewoo_bench.errors import RewooBenchError, ToolError, UsageError
    from rewoo_bench.evaluation.api import BenchRun, bench, evaluate
    from rewoo_bench.evaluation.folder import Result, Results
    from rewoo_bench.events import Event, at_place, emit, listening
    from rewoo_bench.loaders.load import load_dataset_examples as load_dataset
    from rewoo_bench.report.reading import (
        assert_within_budget,
        check_claims,
        check_gate,
        compare,
        plot,
        summarise,
    )
    from rewoo_bench.report.terminal import show
    from rewoo_bench.runs.folder import load, manifests
    from rewoo_bench.runs.publish import publish
    from rewoo_bench.testing.scripted_model import ScriptedModel
    from rewoo_bench.text.scoring import Score, score
    from rewoo_bench.types import (
        Completion,
        Document,
        Example,
        Hop,
        Message,
        Model,
        Request,
        Runner,
        Step,
        Tool,
        Trajectory,
        Usage,
    )

_PLACES = {
    "analysis.law": "estimate",
    "config.functions": "changes_state",
    "errors": "RewooBenchError ToolError UsageError",
    "evaluation.api": "BenchRun bench evaluate",
    "evaluation.folder": "Result Results",
    "events": "Event at_place emit listening",
    "loaders.load": "load_dataset",
    "report.reading": "assert_within_budget check_claims check_gate compare plot summarise",
    "report.terminal": "show",
    "runs.folder": "load manifests",
    "runs.publish": "publish",
    "testing.scripted_model": "ScriptedModel",
    "text.scoring": "Score score",
    "types": "Completion Document Example Hop Message Model Request Runner Step Tool Trajectory Usage",
}
"""Each module's names."""
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}
_NAMES_THERE = {"load_dataset": "load_dataset_examples"}
# No name may be that of a module of the package: importing the module would replace the function.

__all__ = [
    "BenchRun", "Completion", "Document", "Event", "Example", "Hop", "Message", "Model", "Request",
    "Result", "Results", "RewooBenchError", "Runner", "Score", "ScriptedModel", "Step",
    "Tool", "ToolError", "Trajectory", "Usage", "UsageError", "assert_within_budget", "at_place", "bench",
    "changes_state", "check_claims", "check_gate", "compare", "emit", "estimate", "evaluate", "listening", "load",
    "load_dataset", "manifests", "plot", "publish", "score", "show", "summarise",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rewoo-bench")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), _NAMES_THERE.get(name, name))


def __dir__() -> list[str]:
    return __all__
