"""What a plan would have taken of a run's loops, for the page: sentences and tables, and the graph of a trajectory.

    planned = read_planned([Path("results/local/mine")])
    planned.shown                 # of each loop: sentences and tables
    planned.graphs[key]           # of a trajectory: its tool calls, and where each value comes from

Constants and branches are found between all traces, so all graphs are made at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.planned import graph
from rewoo_bench.analysis.plannable.run import Plannable, plannable
from rewoo_bench.analysis.plannable.steps import CHOICES, KINDS, TracedTask
from rewoo_bench.analysis.plannable.values import How
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, read_table
from rewoo_bench.runs.manifest import read_manifest

_PLANS = {"planner", "router"}
"""Roles of calls in a run whose first sentences say already what planning ahead takes."""
MOST = 1_000
"""Trajectories of a loop that are read, so that a page of ten thousand questions waits some seconds for them."""
_MOST_STEPS, _MOST_VALUES, _LONGEST = 300, 40, 120
"""Tool calls of a graph, values of a call, characters of a value or a path."""
_HOWS: tuple[How, ...] = ("whole", "field", "choice", "part")

TraceKey = tuple[str, str, str, int]  # run, architecture, example, trial


@dataclass(slots=True)
class Planned:
    """`shown` is of each loop, JSON-ready; `graphs` has the tool calls of each trajectory that was read."""

    shown: list[dict[str, Any]] = field(default_factory=list)
    graphs: dict[TraceKey, list[dict[str, Any]]] = field(default_factory=dict)


def read_planned(runs: Sequence[Path], *, texts: bool = True) -> Planned:
    """Reads runs; where one of them has a planner there is nothing to show, nor where none has a loop with traces.

    `texts` False leaves out the values and their paths.
    """
    planned = Planned()
    if any(map(_has_planner, runs)):
        return planned
    for run in runs:
        if not (run / TRACES_FILE).is_file():
            continue
        name = read_manifest(run).run_id

        def keep(task: TracedTask, name: str = name) -> None:
            key = name, task.architecture, task.example_id, task.trial
            planned.graphs[key] = list(_graph(task, texts=texts))

        try:
            found = plannable(run, most=MOST, on_task=keep)
        except DataError:
            continue
        planned.shown += _shown(found, name if len(runs) > 1 else "")
    return planned


def _has_planner(run: Path) -> bool:
    path = run / CALLS_FILE
    return path.is_file() and bool(_PLANS & {*read_table(path, CALLS, columns=["role"])["role"].unique().to_pylist()})


def _shown(found: Plannable, run: str) -> Iterator[dict[str, Any]]:
    for architecture in found.architectures():
        calls = found.calls[found.calls["architecture"] == architecture]
        of_loop = (
            *(tables.ways_table(found, architecture), tables.errors_table()),
            *(tables.values_table(calls), tables.calls_table(calls)),
        )
        yield {
            "label": f"{architecture} in {run}" if run else architecture,
            "sentences": [tables.reading(found, architecture), *tables.verdicts(found, architecture)],
            "notes": [*tables.notes(found), *tables.OF_WAYS],
            "trust": tables.errors_note(),
            "tables": [{"head": head, "rows": rows} for head, *rows in of_loop],
        }


def _graph(task: TracedTask, *, texts: bool) -> Iterator[dict[str, Any]]:
    """A step for each tool call; kinds, choices and ways to have a value are positions in their lists.

    A value is `[path, text, kind]`; a copied one also has a `[step, how, path of its field]` for each source.
    """
    for (_, _, depth), step in zip(graph(task), task.steps[:_MOST_STEPS], strict=False):
        start = task.starts[step.segment]
        values = []
        for value in step.values[:_MOST_VALUES]:
            text = value.value if isinstance(value.value, str) else json.dumps(value.value, ensure_ascii=False)
            shown = [value.path[:_LONGEST], text[:_LONGEST]] if texts else ["", ""]
            of = [
                [source.step, _HOWS.index(source.how), source.path[:_LONGEST] if texts else ""]
                for source in value.copied_from(start)[:_MOST_VALUES]
            ]
            values.append([*shown, KINDS.index(value.kind(start)), *([of] if of else [])])
        yield {
            **{"at": step.at, "segment": step.segment, "depth": depth, "choice": CHOICES.index(step.choice)},
            **{"values": values, "more": max(0, len(step.values) - _MOST_VALUES)},
        }
