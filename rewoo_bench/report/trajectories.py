"""Trajectories of traces.jsonl and calls of calls.parquet, question by question, for the page, and what of a run's
loops could have been planned.

Of each question, only the number of its line, and the places of its traces and calls are in memory: 24 bytes a system.

    planned = read_planned([Path("results/local/mine")])
    planned.shown                 # of each loop: sentences, tables, and tasks by what they save
    planned.graph(key)            # of a trajectory: its tool calls, and where each value comes from
"""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate, groupby
from pathlib import Path
from threading import Lock
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
from pydantic_core import from_json

from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.run import HORIZONS, Plannable, graph, plannable
from rewoo_bench.analysis.plannable.steps import CHOICES, KINDS, TracedTask
from rewoo_bench.analysis.plannable.values import How
from rewoo_bench.errors import DataError
from rewoo_bench.report.alignment import align_steps, lookups
from rewoo_bench.report.rows import QuestionKey, QuestionTable
from rewoo_bench.runs.columns import CALLS, PARTS
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, damage_of, open_table
from rewoo_bench.runs.manifest import MANIFEST, read_manifest

CALL = (
    *("call_index", "kind", "name", "role", "place", "status", "attempts", "finish_reason"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"),
    *PARTS,
    *("latency_s", "waiting_s", "replayed", "started_at"),
)
RowKey = tuple[str, str, int]  # architecture, example, trial
_GROUPS = 16  # row groups of the file in memory; a run writes one for every 1,000 rows of questions.parquet
_BATCH = 10_000  # keys


class CallRows:
    """A calls.parquet, read in its row groups. A context manager: the file stays open in it. Raises
    `DataError` for damage.

    The calls of a question are next to each other, and a report takes the questions in about the order in which they
    were written. So a group is read once, as a rule, and memory doesn't grow with the number of questions.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_table(path, CALLS)
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = list(accumulate(sizes, initial=0))
        self._group = lru_cache(_GROUPS)(lambda group: self._file.read_row_group(group, columns=list(CALL)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def places(self) -> Iterator[tuple[RowKey, range]]:
        """The rows of each question."""
        names = ["architecture", "example_id", "trial"]
        start = 0
        with damage_of(self._path):
            batches = self._file.iter_batches(_BATCH, columns=names)
            keys = (key for batch in batches for key in zip(*(batch[name].to_pylist() for name in names), strict=True))
            for key, same in groupby(keys):
                end = start + sum(1 for _ in same)
                yield key, range(start, end)
                start = end

    def at(self, rows: range) -> list[dict[str, Any]]:
        """The calls in these rows."""
        first, last = (bisect_right(self._starts, row) - 1 for row in (rows[0], rows[-1]))
        with damage_of(self._path):
            groups = pa.concat_tables(self._group(group) for group in range(first, last + 1))
            calls: list[dict[str, Any]] = groups.slice(rows.start - self._starts[first], len(rows)).to_pylist()
        return calls


_PREFIX = 4096  # bytes of a trace in which its keys are, as a rule


def _trace_places(file: IO[bytes]) -> Iterator[tuple[RowKey, int]]:
    """Where each trace begins; one whose architecture, example and trial can't be read is left out."""
    start = 0
    for line in file:
        for part in (line[:_PREFIX], line):
            trace = _parsed(part, partial=True)
            try:
                key = str(trace["architecture"]), str(trace["example_id"]), int(trace["trial"])
            except (KeyError, TypeError, ValueError):
                continue
            yield key, start
            break
        start += len(line)


def _parsed(line: bytes, *, partial: bool = False) -> dict[str, Any]:
    """A line of traces.jsonl; empty where it is damaged. Half of a surrogate pair, which pydantic refuses, is read."""
    try:
        trace = from_json(line, allow_partial=partial)
    except ValueError:
        try:
            trace = json.loads(line)
        except ValueError:
            return {}
    return trace if isinstance(trace, dict) else {}


UNKNOWN_TOOL = "unknown tool"
_FINISH = "Finish"  # an action of every ReAct, which no manifest lists


def _listed(value: Any) -> list[Any]:
    """A list as it is; nothing is an empty one, and any other value is alone in it."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _text_or_none(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return _text_or_none(value) or ""


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in _listed(value)]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# The fields of each object that are shown, and how they are read.
_Fields = dict[str, Callable[[Any], Any]]
_STEP: _Fields = {
    "id": _text, "thought": _text, "tool": _text_or_none, "argument": _text, "observation": _text, "failed": bool
}  # fmt: skip
_PLANNED: _Fields = {"id": _text, "tool": _text, "args": _text, "depends_on": _texts}
_DRAFT: _Fields = {"text": _text, "faults": _texts}


def _objects(value: Any, fields: _Fields, shown_as: str) -> list[dict[str, Any]]:
    """A list of objects, numbered where they have no `id`; a value that is no object is in the field `shown_as`."""
    found = []
    for number, each in enumerate(_listed(value), start=1):
        given = {"id": number, **(each if isinstance(each, dict) else {shown_as: each})}
        found.append({name: read(given.get(name)) for name, read in fields.items()})
    return found


_PROGRAM = re.compile(r"```\w*\n(.*?)(?:\n?```|$)", re.DOTALL)
_STEP_OF_PLAN = re.compile(r'#?E(\d+)\s*=|"id":\s*"E?(\d+)"|^\s*(\d+)\.\s(?!join\()', re.MULTILINE)


def _block(at: int, end: int, title: str, text: str, faults: Iterable[str] = (), output: str = "") -> dict[str, Any]:
    return {"at": at, "end": end, "title": title, "text": text, "output": output, "faults": [*filter(None, faults)]}


def _blocks(
    notes: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], calls: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Programs, unusable plans and the beginnings of new plans, each at the position of the first step after it.

    `end` is the position after the last step that a program made.
    """
    if notes.get("turns"):
        return list(_turns(notes, calls, len(steps)))
    drafts = _objects(notes.get("drafts"), _DRAFT, "text")
    if "program" in notes or any("```python" in draft["text"] for draft in drafts):
        found = [
            _block(0, 0, "a program that can't be run", _program(draft["text"]), draft["faults"])
            for draft in drafts
            if draft["faults"]
        ]
        if program := _text(notes.get("program")):
            found.append(
                _block(0, len(steps), "program", program, [_text(notes.get("fault"))], _text(notes.get("output")))
            )
        return found
    return _plans(drafts, [step["id"].lstrip("#E") for step in steps])


def _said(turns: object, size: int) -> Iterator[dict[str, Any]]:
    """What a user said later in an imported conversation, at the step before which it was said."""
    for turn in map(_object, _listed(turns)):
        place = turn.get("before_step")
        at = min(size, max(0, place)) if isinstance(place, int) else 0
        yield _block(at, at, "the user", _text(turn.get("text")))


def _program(text: str) -> str:
    found = _PROGRAM.search(text)
    return found[1] if found else text


def _turns(notes: Mapping[str, Any], calls: Iterable[Mapping[str, Any]], size: int) -> Iterator[dict[str, Any]]:
    """The program of each turn, whose calls have its number in their place: `turn 2/line 1`."""
    made = Counter(str(call.get("place")).partition("/")[0] for call in calls if call.get("kind") == "tool")
    at = 0
    for number, turn in enumerate(map(_object, _listed(notes.get("turns"))), start=1):
        end = min(size, at + made[f"turn {number}"])
        if "output" in turn:
            text, fault, output = (_text(turn.get(name)) for name in ("text", "fault", "output"))
            yield _block(at, end, f"program of turn {number}", _program(text), [fault], output)
        at = end


def _plans(drafts: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> list[dict[str, Any]]:
    """Where each plan but the first begins, with the steps of the plan before it that weren't run."""
    found: list[dict[str, Any]] = []
    begin, unread = 0, list(drafts)
    planned: dict[str, str] = {}  # of the plan before: number of a step -> its line
    usable = 0

    def left(end: int) -> str:
        return "\n".join(line for number, line in planned.items() if number not in ids[begin:end])

    for draft in drafts:
        if draft["faults"]:
            continue
        own = _steps_of_plan(draft["text"])
        at = next((i for i in range(begin, len(ids)) if ids[i] in own), len(ids)) if usable else 0
        while unread and unread[0] is not draft:
            found.append(_unusable(at, unread.pop(0)))
        unread = unread[1:]
        if usable:
            text = left(at)
            title = "a new plan begins; these steps of the one before weren't run:" if text else "a new plan begins"
            found.append(_block(at, at, title, text))
        begin, planned, usable = at, own, usable + 1
    found += [_unusable(len(ids) if usable else 0, draft) for draft in unread]
    if ids and (text := left(len(ids))):
        found.append(_block(len(ids), len(ids), "the plan ended early; these steps weren't run:", text))
    return found


def _unusable(at: int, draft: Mapping[str, Any]) -> dict[str, Any]:
    return _block(at, at, "an unusable plan", draft["text"], draft["faults"])


def _steps_of_plan(text: str) -> dict[str, str]:
    """The number of each step in a plan's text, and its first line."""
    matches = list(_STEP_OF_PLAN.finditer(text))
    starts = [match.start() for match in matches]
    lines = [text[a:b].strip().partition("\n")[0] for a, b in zip(starts, [*starts[1:], None], strict=False)]
    return {next(filter(None, match.groups())): line for match, line in zip(matches, lines, strict=True)}


def trajectory_of(trace: Mapping[str, Any], calls: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Steps, plan, answer and notes of a trace in the form that the page and the terminal show.

    They come from people's own runners, which may write other values into them: a text where a list is expected, or a
    number where a text is. What can be shown is shown as text, and the rest is left out.
    """
    notes = _object(trace.get("notes"))
    steps = _objects(trace.get("steps"), _STEP, "observation")
    citations = {name: _texts(_object(notes.get("citations")).get(name)) for name in ("cited", "unknown")}
    dropped = notes.get("dropped_steps")
    shown = {
        "citations": citations if any(citations.values()) else None,
        "partial_answer": bool(notes.get("partial_answer")),
        "fallback": _text(notes.get("fallback") or None),
        "dropped_steps": dropped if isinstance(dropped, int) else None,
        "repaired": _texts(notes.get("repaired")),
        "gateway": [f"{name}: {count}" for name, count in _object(notes.get("gateway")).items()],
        "stderr": _text(notes.get("stderr")),
    }
    return {
        "steps": steps,
        "plan": _objects(trace.get("plan"), _PLANNED, "tool") or None,
        "answer": _text_or_none(trace.get("answer")),
        "error": _text_or_none(trace.get("error")),
        "replans": max(0, len(_listed(notes.get("drafts"))) - 1),
        "blocks": [*_said(trace.get("turns"), len(steps)), *_blocks(notes, steps, calls)],
        "notes": {name: value for name, value in shown.items() if value},
    }


def without_texts(trajectory: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any]:
    """A trajectory without texts of a data set, a tool or a model: tools, outcomes and counts stay.

    A tool that isn't one of `tools` is a text of the model, which made up its name.
    """

    def kept(steps: Iterable[Mapping[str, Any]], field: str) -> list[dict[str, Any]]:
        known = {None, _FINISH, *tools}
        return [
            {"id": step["id"], "tool": step["tool"] if step["tool"] in known else UNKNOWN_TOOL, field: step[field]}
            for step in steps
        ]

    return {
        **{name: trajectory[name] for name in ("rows", "path", "replans", "calls")},
        "planned": trajectory.get("planned"),
        "steps": kept(trajectory["steps"], "failed"),
        "plan": kept(trajectory["plan"] or (), "depends_on") or None,
        "answer": None,
        "error": None,
        "blocks": [_block(each["at"], each["end"], each["title"], "") for each in trajectory["blocks"]],
        "notes": {},
    }


TraceKey = tuple[str, str, str, int]  # run, architecture, example, trial
PromptsOf = Callable[[TraceKey], list[dict[str, Any]]]
"""Model calls of a question: place, texts of the prompt, completion."""
_NOWHERE = -1


class Trajectories:
    """The traces and calls of a table's questions. A context manager: the files stay open in it."""

    def __init__(
        self,
        runs: Sequence[Path],
        table: QuestionTable,
        prompts: PromptsOf | None = None,
        planned: Planned | None = None,
    ) -> None:
        self._runs = runs
        self._table = table
        self.numbers = {line: number for number, line in enumerate(table.lines)}
        """The number of each question's line in the table."""
        self._prompts = prompts
        self._planned = planned or Planned()
        self._traces: dict[str, IO[bytes]] = {}
        self._calls: dict[str, CallRows] = {}
        self._tools: dict[str, set[str]] = {}
        shape = (len(table.systems), len(table.lines))
        self._trace_places = np.full(shape, _NOWHERE, dtype=np.int64)
        self._call_places = np.full((*shape, 2), _NOWHERE, dtype=np.int64)
        self._stack = ExitStack()
        self._reading = Lock()  # `report --live` asks from several threads

    def __enter__(self) -> Self:
        """Opens the files of the runs, and keeps where the trace and the calls of each question are."""
        with ExitStack() as stack:
            for folder in self._runs:
                if not (folder / MANIFEST).is_file():
                    continue
                manifest = read_manifest(folder)
                run = manifest.run_id
                self._tools[run] = {tool for each in manifest.architectures for tool in each.tools}
                if (folder / TRACES_FILE).is_file():  # a published run has none
                    file = self._traces[run] = stack.enter_context((folder / TRACES_FILE).open("rb"))
                    self._keep(run, self._trace_places, _trace_places(file))
                if (folder / CALLS_FILE).is_file():
                    rows = self._calls[run] = stack.enter_context(CallRows(folder / CALLS_FILE))
                    ends = ((key, (each.start, each.stop)) for key, each in rows.places())
                    self._keep(run, self._call_places, ends)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

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
                if (line := self.numbers.get(QuestionKey(dataset, example_id, trial))) is not None:
                    into[system, line] = place

    def question(self, number: int, *, texts: bool = True) -> dict[str, Any]:
        """Everything about line `number` of the table: a trajectory for each system that answered it."""
        line, prompts = self._table.lines[number], self._prompts
        found: dict[int, dict[str, Any]] = {}
        for system, key in enumerate(self._table.systems):
            place = int(self._trace_places[system, number])
            first, end = self._call_places[system, number].tolist()
            if place == first == _NOWHERE:
                continue
            trace, calls = {}, []
            with self._reading:
                if place != _NOWHERE:
                    self._traces[key.run_id].seek(place)
                    trace = _parsed(self._traces[key.run_id].readline())
                if first != _NOWHERE:
                    calls = self._calls[key.run_id].at(range(first, end))
            own = key.run_id, key.architecture, line.example_id, line.trial
            found[system] = {
                **trajectory_of(trace, calls),
                "calls": _with_starts(calls),
                "planned": self._planned.graph(own),
                "prompts": prompts(own) if prompts else [],
            }
        aligned = align_steps([trajectory["steps"] for trajectory in found.values()])
        for (system, trajectory), rows in zip(found.items(), aligned, strict=True):
            path = lookups(trajectory["steps"], rows)
            found[system] = trajectory = {**trajectory, "rows": rows, "path": path}
            if not texts:
                found[system] = without_texts(trajectory, self._tools.get(self._table.systems[system].run_id, ()))
        return {"systems": [found.get(system) for system in range(len(self._table.systems))]}


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


# What of a run's loops could have been planned: sentences and tables, and the plan graph of a trajectory.
#
# Constants and branches are found between all traces, so all graphs are made at once, and kept compressed.


MOST = 1_000
"""Trajectories of a loop that are read, so that a page of ten thousand questions waits some seconds for them."""
_MOST_STEPS, _MOST_VALUES, _LONGEST = 300, 40, 120
"""Tool calls of a graph, values of a call, characters of a value or a path."""
_HOWS: tuple[How, ...] = ("whole", "field", "choice", "part")
_EDGES = np.linspace(0, 1, 11)
BINS = ("more", "0", *(f"{edge:.0%}" for edge in _EDGES[1:]))
"""Tasks by the part of their model calls that they save: more calls, as many, up to 10% saved, up to 20%, …"""


@dataclass(slots=True)
class Planned:
    """`shown` is of each loop, JSON-ready."""

    shown: list[dict[str, Any]] = field(default_factory=list)
    _graphs: dict[TraceKey, bytes] = field(default_factory=dict)

    def graph(self, key: TraceKey) -> list[dict[str, Any]] | None:
        """The tool calls of a trajectory; None where it has none, or wasn't read."""
        packed = self._graphs.get(key)
        return json.loads(zlib.decompress(packed)) if packed else None

    def keep(self, run: str, task: TracedTask, *, texts: bool) -> None:
        """Keeps the graph of a trajectory."""
        steps = list(_graph(task, texts=texts))
        self._graphs[run, task.architecture, task.example_id, task.trial] = zlib.compress(json.dumps(steps).encode())


def read_planned(runs: Sequence[Path], *, texts: bool = True) -> Planned:
    """Reads runs; those without traces or without tool calls of a loop have nothing to show.

    `texts` False leaves out the values and their paths.
    """
    planned = Planned()
    for run in runs:
        if not (run / MANIFEST).is_file() or not (run / TRACES_FILE).is_file():
            continue
        name = read_manifest(run).run_id
        try:
            found = plannable(run, most=MOST, on_task=partial(planned.keep, name, texts=texts))
        except DataError:
            continue
        planned.shown += _shown(found, name if len(runs) > 1 else "")
    return planned


def _shown(found: Plannable, run: str) -> Iterator[dict[str, Any]]:
    for architecture in found.architectures():
        calls = found.calls[found.calls["architecture"] == architecture]
        if architecture in found.measured:  # the page's first sentences say what the planner took
            continue
        saved = tables.saved_by_task(found, architecture)
        of_loop = (
            *(tables.horizons_table(found, architecture), tables.trust_table(found.prices)),
            *(tables.values_table(calls), tables.calls_table(calls)),
        )
        yield {
            "label": f"{architecture} in {run}" if run else architecture,
            "sentences": list(filter(None, (tables.verdict(found, architecture, price) for price in found.prices))),
            "notes": [*tables.notes(found), tables.AHEAD],
            "trust": tables.trust_note(),
            "tables": [{"head": head, "rows": rows} for head, *rows in of_loop],
            "bins": BINS,
            "tasks": [[horizon, _counts(saved[horizon].to_numpy())] for horizon in HORIZONS[1:]],
        }


def _counts(saved: np.ndarray[Any, np.dtype[np.float64]]) -> list[int]:
    """Tasks in each of the `BINS`."""
    rounded = saved.round(9)
    up_to, _ = np.histogram(-rounded[rounded > 0], bins=-_EDGES[::-1])  # a bin has its upper edge
    return [int((rounded < 0).sum()), int((rounded == 0).sum()), *map(int, up_to[::-1])]


def _graph(task: TracedTask, *, texts: bool) -> Iterator[dict[str, Any]]:
    """A step for each tool call; kinds, choices and ways to have a value are positions in their lists.

    A value is `[path, text, kind]`; a copied one also has a `[step, how, path of its field]` for each source.
    """
    for (_, _, depth), step in zip(graph(task), task.steps[:_MOST_STEPS], strict=False):
        start = task.starts[step.segment]
        values = []
        for value in step.values[:_MOST_VALUES]:
            text = _value_text(value.value)
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


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # too many digits
        return "…"
