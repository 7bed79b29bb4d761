"""Trajectories of traces.jsonl and calls of calls.parquet, question by question, for the page.

Of each question, only the places of its traces and calls are in memory: 24 bytes for each system.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from rewoo_bench.report.alignment import align_steps
from rewoo_bench.report.call_rows import CallRows, RowKey
from rewoo_bench.report.rows import Line, QuestionTable
from rewoo_bench.report.trace_lines import places, trace_at
from rewoo_bench.report.trace_values import trajectory_of, without_texts
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import MANIFEST, read_manifest

TraceKey = tuple[str, str, str, int]  # run, architecture, example, trial
Prompts = Callable[[TraceKey], list[dict[str, Any]]]
"""Model calls of a question: call site, texts of the prompt, completion."""
_NOWHERE = -1


class Trajectories:
    """The traces and calls of a table's questions. A context manager: the files stay open in it."""

    def __init__(self, runs: Sequence[Path], table: QuestionTable, prompts: Prompts | None = None) -> None:
        self._runs = runs
        self._table = table
        self._prompts = prompts
        self._traces: dict[str, IO[bytes]] = {}
        self._calls: dict[str, CallRows] = {}
        self._tools: dict[str, set[str]] = {}
        shape = (len(table.systems), len(table.lines))
        self._trace_places = np.full(shape, _NOWHERE, dtype=np.int64)
        self._call_places = np.full((*shape, 2), _NOWHERE, dtype=np.int64)
        self._stack = ExitStack()
        self._reading = Lock()  # `view` asks from several threads

    def __enter__(self) -> Self:
        numbers = {line: number for number, line in enumerate(self._table.lines)}
        with ExitStack() as stack:
            for folder in self._runs:
                if (folder / MANIFEST).is_file():
                    self._open(folder, stack, numbers)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def question(self, number: int, *, texts: bool = True) -> dict[str, Any]:
        """Everything about line `number` of the table: a trajectory for each system that answered it."""
        trajectories = [self._trajectory(system, number) for system in range(len(self._table.systems))]
        aligned = iter(align_steps([trajectory["steps"] for trajectory in trajectories if trajectory]))
        systems = [trajectory and {**trajectory, "rows": next(aligned)} for trajectory in trajectories]
        if not texts:
            tools = [self._tools.get(key.run_id, ()) for key in self._table.systems]
            systems = [each and without_texts(each, known) for each, known in zip(systems, tools, strict=True)]
        return {"systems": systems}

    def _trajectory(self, system: int, number: int) -> dict[str, Any] | None:
        key, line = self._table.systems[system], self._table.lines[number]
        place = int(self._trace_places[system, number])
        first, end = self._call_places[system, number].tolist()
        if place == first == _NOWHERE:
            return None
        with self._reading:
            trace = {} if place == _NOWHERE else trace_at(self._traces[key.run_id], place)
            calls = [] if first == _NOWHERE else self._calls[key.run_id].at(range(first, end))
        prompts = self._prompts
        return {
            **trajectory_of(trace),
            "calls": _with_starts(calls),
            "prompts": prompts((key.run_id, key.architecture, line.example_id, line.trial)) if prompts else [],
        }

    def _open(self, folder: Path, stack: ExitStack, numbers: dict[Line, int]) -> None:
        """Opens the files of a run, and keeps where the trace and the calls of each question are."""
        manifest = read_manifest(folder)
        run = manifest.run_id
        self._tools[run] = {tool for each in manifest.architectures for tool in each.tools}
        if (folder / TRACES_FILE).is_file():  # a published run has none
            file = self._traces[run] = stack.enter_context((folder / TRACES_FILE).open("rb"))
            self._keep(run, numbers, self._trace_places, places(file))
        if (folder / CALLS_FILE).is_file():
            rows = self._calls[run] = stack.enter_context(CallRows(folder / CALLS_FILE))
            ends = ((key, (each.start, each.stop)) for key, each in rows.places())
            self._keep(run, numbers, self._call_places, ends)

    def _keep(
        self,
        run: str,
        numbers: dict[Line, int],
        into: np.ndarray[Any, np.dtype[np.int64]],
        placed: Iterable[tuple[RowKey, int | tuple[int, int]]],
    ) -> None:
        """Puts each place in the cell of its system and line."""
        systems = defaultdict(list)
        for number, key in enumerate(self._table.systems):
            if key.run_id == run:
                systems[key.architecture].append((number, key.dataset))
        for (architecture, example_id, trial), place in placed:
            for system, dataset in systems[architecture]:
                if (line := numbers.get(Line(dataset, example_id, trial))) is not None:
                    into[system, line] = place


def _with_starts(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of a question, with seconds since its first one and without empty values."""
    began = min((call["started_at"] for call in calls if call.get("started_at")), default=None)
    shown = []
    for call in calls:
        moment = call.get("started_at")
        start_s = round((moment - began).total_seconds(), 4) if moment and began else None
        values = {**call, "started_at": None, "start_s": start_s}
        kept = {name: value for name, value in values.items() if value or name == "start_s"}  # the first starts at 0
        shown.append({name: value for name, value in kept.items() if value is not None})
    return shown
