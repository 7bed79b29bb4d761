"""Measure what an agent architecture costs and what it buys.

    rows = rewoo_bench.load("results/local/20261122-093000-rewoo")
    rewoo_bench.score("the Eiffel Tower", ["Eiffel Tower"], dataset="hotpotqa")
    results = await rewoo_bench.evaluate("sample", ["rewoo", "react"], model="local/smollm2-135m")

Imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from rewoo_bench.analysis.compare import compare
    from rewoo_bench.analysis.summary import summarise
    from rewoo_bench.api import evaluate
    from rewoo_bench.bench import assert_within_budget
    from rewoo_bench.errors import RewooBenchError
    from rewoo_bench.events import Event, listening
    from rewoo_bench.runs.folder import load
    from rewoo_bench.scoring import Score, score
    from rewoo_bench.testing.scripted_model import ScriptedModel
    from rewoo_bench.types import (
        Completion,
        Document,
        Example,
        Message,
        Model,
        Runner,
        Step,
        Tool,
        Trajectory,
        Usage,
    )

_MODULES = {
    "Completion": "types",
    "Document": "types",
    "Event": "events",
    "Example": "types",
    "Message": "types",
    "Model": "types",
    "RewooBenchError": "errors",
    "Runner": "types",
    "Score": "scoring",
    "ScriptedModel": "testing.scripted_model",
    "Step": "types",
    "Tool": "types",
    "Trajectory": "types",
    "Usage": "types",
    "assert_within_budget": "bench",
    "compare": "analysis.compare",
    "evaluate": "api",
    "listening": "events",
    "load": "runs.folder",
    "score": "scoring",
    "summarise": "analysis.summary",
}

__all__ = [
    "Completion",
    "Document",
    "Event",
    "Example",
    "Message",
    "Model",
    "RewooBenchError",
    "Runner",
    "Score",
    "ScriptedModel",
    "Step",
    "Tool",
    "Trajectory",
    "Usage",
    "assert_within_budget",
    "compare",
    "evaluate",
    "listening",
    "load",
    "score",
    "summarise",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rewoo-bench")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
