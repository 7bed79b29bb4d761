"""Trajectories of traces.jsonl and calls of calls.parquet, question by question, for the page.

Of each question, only the number of its line, and the places of its traces and calls are in memory: 24 bytes a system.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
from pydantic_core import from_json

from rewoo_bench.report.rows import Line, QuestionTable
from rewoo_bench.runs.columns import CALLS
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, damage_of, open_table
from rewoo_bench.runs.manifest import MANIFEST, read_manifest

_NO_WORDS = re.compile(r"[\W_]+")
_LONGEST = 300  # characters of an argument; an LLM tool's has whole pages in it
_SHORTEST_EVIDENCE = 40  # characters of a paragraph; "No results." is no evidence

StepKey = tuple[Hashable, ...]


def align_steps(trajectories: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[int]]:
    """The row of every step on the same question, from 0, so that the same look-ups are in one row.

    Two steps are in one row where they call the same tool with the same normalised argument, or where the same tool
    showed them the same first paragraph ("Volga" and "Volga River" lead to one page). Rows are in the order of the
    first trajectory; the others' steps follow the step that they come after. A trajectory has at most one step in a
    row: the second same call is another row.
    """
    order: list[StepKey] = []
    placed: list[list[StepKey]] = []
    first_of: dict[StepKey, StepKey] = {}
    for number, steps in enumerate(trajectories):
        seen: Counter[StepKey] = Counter()
        keys: list[StepKey] = []
        after = -1
        for position, step in enumerate(steps):
            common = _common_key(step, first_of) or ("", number, position)
            key = (*common, seen[common])
            seen[common] += 1
            if key in order:
                after = order.index(key)
            else:
                after += 1
                order.insert(after, key)
            keys.append(key)
        placed.append(keys)
    rows = {key: row for row, key in enumerate(order)}
    return [[rows[key] for key in keys] for keys in placed]


def _common_key(step: Mapping[str, Any], first_of: dict[StepKey, StepKey]) -> StepKey | None:
    """The key of the first step with this argument or this evidence; None for a turn without a tool."""
    tool = step.get("tool")
    if not tool:
        return None
    argument = str(step.get("argument", ""))[:_LONGEST]
    keys: list[StepKey] = [(tool, _NO_WORDS.sub(" ", argument.casefold()).strip())]
    paragraph = str(step.get("observation") or "").partition("\n")[0].strip()
    if not step.get("failed") and len(paragraph) >= _SHORTEST_EVIDENCE:
        keys.append((tool, "showed", paragraph))
    first = next((first_of[key] for key in keys if key in first_of), keys[0])
    for key in keys:
        first_of.setdefault(key, first)
    return first


CALL = (
    *("call_index", "kind", "name", "role", "place", "status", "attempts", "finish_reason"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"),
    *("context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"),
    *("latency_s", "waiting_s", "replayed", "started_at"),
)
RowKey = tuple[str, str, int]  # architecture, example, trial
_KEY = ["architecture", "example_id", "trial"]
_PIECE = 512  # rows
_PIECES = 64  # kept as Python's values
_GROUPS = 16  # row groups of the file, kept as Arrow's; a run writes one for every 1,000 rows of questions.parquet
_BATCH = 10_000  # keys


class CallRows:
    """A calls.parquet, read in pieces. A context manager: the file stays open in it. Raises `DataError` for damage.

    The calls of a question are next to each other, and a report takes the questions in about the order in which they
    were written. So a piece is read once, as a rule, and memory doesn't grow with the number of questions.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_table(path, CALLS)
        there = set(self._file.schema_arrow.names)
        self._names = [name for name in CALL if name in there]
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = list(accumulate(sizes, initial=0))
        self._piece = lru_cache(_PIECES)(self._read_piece)
        self._group = lru_cache(_GROUPS)(self._read_group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def places(self) -> Iterator[tuple[RowKey, range]]:
        """The rows of each question."""
        last, start, row = None, 0, 0
        with damage_of(self._path):
            for batch in self._file.iter_batches(_BATCH, columns=_KEY):
                for key in zip(*(batch[name].to_pylist() for name in _KEY), strict=True):
                    if key != last:
                        if last is not None:
                            yield last, range(start, row)
                        last, start = key, row
                    row += 1
        if last is not None:
            yield last, range(start, row)

    def at(self, rows: range) -> list[dict[str, Any]]:
        """The calls in these rows."""
        calls: list[dict[str, Any]] = []
        while len(calls) < len(rows):
            number, place = divmod(rows[len(calls)], _PIECE)
            calls += self._piece(number)[place : place + len(rows) - len(calls)]
        return calls

    def _read_piece(self, number: int) -> list[dict[str, Any]]:
        first, end = number * _PIECE, (number + 1) * _PIECE
        parts = [
            self._group(group).slice(max(0, first - start), end - max(first, start))
            for group, start in enumerate(self._starts[:-1])
            if start < end and self._starts[group + 1] > first
        ]
        with damage_of(self._path):
            calls: list[dict[str, Any]] = pa.concat_tables(parts).to_pylist()
        return calls

    def _read_group(self, number: int) -> pa.Table:
        with damage_of(self._path):
            return self._file.read_row_group(number, columns=self._names)


_PREFIX = 4096  # bytes of a trace in which its keys are


def places(file: IO[bytes]) -> Iterator[tuple[RowKey, int]]:
    """Where each trace begins; one whose keys can't be read is left out."""
    start = 0
    for line in file:
        if (key := _key(line)) is not None:
            yield key, start
        start += len(line)


def trace_at(file: IO[bytes], place: int) -> dict[str, Any]:
    """The trace that begins there; empty where it is damaged."""
    file.seek(place)
    return _parsed(file.readline())


def _key(line: bytes) -> RowKey | None:
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


UNKNOWN_TOOL = "unknown tool"
_FINISH = "Finish"  # an action of every ReAct, which no manifest lists


def trajectory_of(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Steps, plan, answer and notes of a trace in the form that the page and the terminal show.

    They come from people's own runners, which may write other values into them: a text where a list is expected, or a
    number where a text is. What can be shown is shown as text, and the rest is left out.
    """
    notes = _object(trace.get("notes"))
    drafts = [
        {"text": _text(draft.get("text")), "faults": _texts(draft.get("faults"))}
        for draft in _objects(notes.get("drafts"), "text")
    ]
    steps = [
        {
            "id": _text(step.get("id", number)),
            "thought": _text(step.get("thought")),
            "tool": _text_or_none(step.get("tool")),
            "argument": _text(step.get("argument")),
            "observation": _text(step.get("observation")),
            "failed": bool(step.get("failed")),
        }
        for number, step in enumerate(_objects(trace.get("steps"), "observation"), start=1)
    ]
    plan = [
        {
            "id": _text(step.get("id", number)),
            "tool": _text(step.get("tool")),
            "args": _text(step.get("args")),
            "depends_on": _texts(step.get("depends_on")),
        }
        for number, step in enumerate(_objects(trace.get("plan"), "tool"), start=1)
    ]
    return {
        "steps": steps,
        "plan": plan or None,
        "answer": _text_or_none(trace.get("answer")),
        "error": _text_or_none(trace.get("error")),
        "replans": max(0, len(drafts) - 1),
        "drafts": drafts,
        "notes": {name: value for name, value in _notes(notes).items() if value},
    }


def without_texts(trajectory: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any]:
    """A trajectory without texts of a data set, a tool or a model: tools, outcomes and counts stay.

    A tool that isn't one of `tools` is a text of the model, which made up its name.
    """

    def shown(tool: str | None) -> str | None:
        return tool if tool is None or tool == _FINISH or tool in tools else UNKNOWN_TOOL

    kept = {name: trajectory[name] for name in ("rows", "replans", "calls")}
    steps = [{"id": step["id"], "tool": shown(step["tool"]), "failed": step["failed"]} for step in trajectory["steps"]]
    plan = [
        {"id": step["id"], "tool": shown(step["tool"]), "depends_on": step["depends_on"]}
        for step in trajectory["plan"] or ()
    ]
    return {**kept, "steps": steps, "plan": plan or None, "answer": None, "error": None, "drafts": [], "notes": {}}


def _notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    citations = {name: _texts(_object(notes.get("citations")).get(name)) for name in ("cited", "unknown")}
    dropped = notes.get("dropped_steps")
    return {
        "citations": citations if any(citations.values()) else None,
        "partial_answer": bool(notes.get("partial_answer")),
        "fallback": _text(notes.get("fallback") or None),
        "dropped_steps": dropped if isinstance(dropped, int) else None,
        "repaired": _texts(notes.get("repaired")),
        "gateway": [f"{name}: {count}" for name, count in _object(notes.get("gateway")).items()],
        "stderr": _text(notes.get("stderr")),
    }


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any, shown_as: str) -> list[Mapping[str, Any]]:
    """A list of objects; of a value that is none, an object with it in the field `shown_as`."""
    return [each if isinstance(each, dict) else {shown_as: each} for each in _listed(value)]


def _listed(value: Any) -> list[Any]:
    """A list as it is; nothing is an empty one, and any other value is alone in it."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in _listed(value)]


def _text(value: Any) -> str:
    return _text_or_none(value) or ""


def _text_or_none(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


TraceKey = tuple[str, str, str, int]  # run, architecture, example, trial
Prompts = Callable[[TraceKey], list[dict[str, Any]]]
"""Model calls of a question: place, texts of the prompt, completion."""
_NOWHERE = -1


class Trajectories:
    """The traces and calls of a table's questions. A context manager: the files stay open in it."""

    def __init__(self, runs: Sequence[Path], table: QuestionTable, prompts: Prompts | None = None) -> None:
        self._runs = runs
        self._table = table
        self.numbers = {line: number for number, line in enumerate(table.lines)}
        """The number of each question's line in the table."""
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
        with ExitStack() as stack:
            for folder in self._runs:
                if (folder / MANIFEST).is_file():
                    self._open(folder, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
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

    def _open(self, folder: Path, stack: ExitStack) -> None:
        """Opens the files of a run, and keeps where the trace and the calls of each question are."""
        manifest = read_manifest(folder)
        run = manifest.run_id
        self._tools[run] = {tool for each in manifest.architectures for tool in each.tools}
        if (folder / TRACES_FILE).is_file():  # a published run has none
            file = self._traces[run] = stack.enter_context((folder / TRACES_FILE).open("rb"))
            self._keep(run, self._trace_places, places(file))
        if (folder / CALLS_FILE).is_file():
            rows = self._calls[run] = stack.enter_context(CallRows(folder / CALLS_FILE))
            ends = ((key, (each.start, each.stop)) for key, each in rows.places())
            self._keep(run, self._call_places, ends)

    def _keep(
        self,
        run: str,
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
                if (line := self.numbers.get(Line(dataset, example_id, trial))) is not None:
                    into[system, line] = place


def _with_starts(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of a question, with seconds since its first one and without empty values."""
    began = min((call["started_at"] for call in calls if call.get("started_at")), default=None)
    shown = []
    for call in calls:
        moment = call.get("started_at")
        start_s = round((moment - began).total_seconds(), 4) if moment and began else None
        kept = {name: value for name, value in call.items() if value and name != "started_at"}
        shown.append(kept if start_s is None else {**kept, "start_s": start_s})
    return shown
