"""Trajectories of traces.jsonl and calls of calls.parquet, question by question, for the page.

Read in the order of the page's table with an index of where each trace begins, so that memory doesn't grow with the
number of questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow.parquet as pq
from pydantic_core import from_json

from rewoo_bench.analysis.comparison_pairs import Key
from rewoo_bench.report.alignment import align_steps
from rewoo_bench.report.rows import Line, QuestionTable
from rewoo_bench.report.trace_values import trajectory_of, without_texts
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    import pyarrow as pa

_PREFIX = 4096  # bytes of a trace in which its keys are
CALL = (
    *("call_index", "kind", "name", "role", "place", "level", "status", "attempts", "finish_reason"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"),
    *("context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"),
    *("latency_s", "waiting_s", "replayed", "started_at"),
)
TraceKey = tuple[str, str, str, int]  # run, architecture, example, trial
Prompts = Callable[[TraceKey], list[dict[str, Any]]]
"""Model calls of a question: call site, texts of the prompt, completion."""


class Trajectories:
    """The traces and calls of some runs. A context manager: the trace files stay open in it."""

    def __init__(self, runs: Sequence[Path], prompts: Prompts | None = None) -> None:
        self._runs = runs
        self._prompts = prompts
        self._files: dict[str, IO[bytes]] = {}
        self._places: dict[TraceKey, int] = {}
        self._calls: dict[TraceKey, tuple[pa.Table, int, int]] = {}
        self._tools: dict[str, set[str]] = {}
        self._stack = ExitStack()
        self._reading = Lock()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for folder in self._runs:
                if (folder / MANIFEST).is_file():
                    manifest = read_manifest(folder)
                    run = manifest.run_id
                    self._tools[run] = {tool for each in manifest.architectures for tool in each.tools}
                    self._index_traces(run, folder / TRACES_FILE, stack)
                    self._index_calls(run, folder / CALLS_FILE)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def question(self, table: QuestionTable, number: int, *, texts: bool = True) -> dict[str, Any]:
        """Everything about line `number` of the table: a trajectory for each system that answered it."""
        line = table.lines[number]
        trajectories = [self._trajectory(key, line) for key in table.systems]
        aligned = iter(align_steps([trajectory["steps"] for trajectory in trajectories if trajectory]))
        systems = [trajectory and {**trajectory, "rows": next(aligned)} for trajectory in trajectories]
        if not texts:
            tools = [self._tools.get(key.run_id, ()) for key in table.systems]
            systems = [each and without_texts(each, known) for each, known in zip(systems, tools, strict=True)]
        return {"systems": systems}

    def _trajectory(self, key: Key, line: Line) -> dict[str, Any] | None:
        trace_key = (key.run_id, key.architecture, line.example_id, line.trial)
        if key.dataset != line.dataset or not (trace_key in self._places or trace_key in self._calls):
            return None
        return {
            **trajectory_of(self._trace(trace_key)),
            "calls": self._calls_of(trace_key),
            "prompts": self._prompts(trace_key) if self._prompts else [],
        }

    def _trace(self, key: TraceKey) -> dict[str, Any]:
        if key not in self._places:
            return {}
        file = self._files[key[0]]
        with self._reading:  # `view` asks from several threads
            file.seek(self._places[key])
            line = file.readline()
        return _parsed(line)

    def _index_traces(self, run: str, path: Path, stack: ExitStack) -> None:
        if not path.is_file():
            return  # a published run has none
        file = self._files[run] = stack.enter_context(path.open("rb"))
        for start, line in _lines(file):
            if (key := _key(line)) is not None:
                self._places[run, *key] = start

    def _index_calls(self, run: str, path: Path) -> None:
        """Where the calls of each question begin and end; they are in one piece, as they were written."""
        if not path.is_file():
            return
        there = set(pq.read_schema(path).names)
        names = [name for name in CALL if name in there]
        table = pq.read_table(path, columns=["architecture", "example_id", "trial", *names])
        keys = [table[name].to_numpy(zero_copy_only=False) for name in ("architecture", "example_id", "trial")]
        if not len(table):
            return
        new = np.any([each[1:] != each[:-1] for each in keys], axis=0)
        starts = np.concatenate(([0], np.flatnonzero(new) + 1, [len(table)]))
        calls = table.select(names)
        for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            key = (run, str(keys[0][start]), str(keys[1][start]), int(keys[2][start]))
            self._calls[key] = (calls, start, end)

    def _calls_of(self, key: TraceKey) -> list[dict[str, Any]]:
        """The calls of a question, with seconds since its first one."""
        if key not in self._calls:
            return []
        table, start, end = self._calls[key]
        calls: list[dict[str, Any]] = table.slice(start, end - start).to_pylist()
        began = min((call["started_at"] for call in calls if call.get("started_at")), default=None)
        for call in calls:
            moment = call.pop("started_at", None)
            call["start_s"] = round((moment - began).total_seconds(), 4) if moment and began else None
        return [{name: value for name, value in call.items() if value not in (None, "", False)} for call in calls]


def _key(line: bytes) -> tuple[str, str, int] | None:
    """Architecture, example and trial of a trace, as a rule from its first bytes; None where it can't be read."""
    for part in (line[:_PREFIX], line):
        trace = _parsed(part, partial=True)
        try:
            return str(trace["architecture"]), str(trace["example_id"]), int(trace["trial"])
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _parsed(line: bytes, *, partial: bool = False) -> dict[str, Any]:
    """A line of traces.jsonl; empty where it is damaged. Half of a surrogate pair, which pydantic refuses, is read."""
    try:
        trace = from_json(line, allow_partial=partial)
    except ValueError:
        try:
            trace = json.loads(line)
        except (ValueError, RecursionError):
            return {}
    return trace if isinstance(trace, dict) else {}


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    start = 0
    for line in file:
        yield start, line
        start += len(line)
