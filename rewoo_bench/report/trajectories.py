"""The trajectories of a question for the page and the terminal, from traces.jsonl and calls.parquet.

    trajectories = Trajectories([Path("results/local/mine")], question_table(rows))
    trajectories.question(0)["systems"]      # of each system its steps, plan, answer, notes and calls; None without any

In memory are the calls, and where the trace of each question begins.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic_core import from_json

from rewoo_bench.report.alignment import align_steps, lookups
from rewoo_bench.report.planned import Planned, TraceKey
from rewoo_bench.report.rows import QuestionTable
from rewoo_bench.runs.columns import CALLS, PARTS
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, read_table
from rewoo_bench.runs.manifest import MANIFEST, read_manifest

_KEY = ("architecture", "example_id", "trial")
_CALL = (
    *("call_index", "kind", "name", "role", "place", "status", "changes_state", "attempts", "finish_reason"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"),
    *PARTS,
    *("latency_s", "waiting_s", "replayed", "started_at"),
)
_TIMES = ("latency_s", "waiting_s", "started_at")
"""What says nothing of the calls of a system that wasn't timed: an oracle, or a replay."""
_PREFIX = 4096  # bytes of a trace in which its keys are

PromptsOf = Callable[[TraceKey], list[dict[str, Any]]]
"""Model calls of a question: place, texts of the prompt, completion."""


class Trajectories:
    """The traces and calls of a table's questions. Raises `DataError` for a damaged calls.parquet."""

    def __init__(
        self,
        runs: Sequence[Path],
        table: QuestionTable,
        prompts: PromptsOf = lambda key: [],
        planned: Planned | None = None,
    ) -> None:
        self._table = table
        self._prompts = prompts
        self._planned = planned or Planned()
        self._traces: dict[TraceKey, tuple[Path, int]] = {}
        self._calls: dict[TraceKey, pa.Table] = {}
        self._tools: dict[str, set[str]] = {}
        self._is_timed = [any(each is not None for each in of["latency"]) for of in table.columns["systems"]]
        for folder in runs:
            if not (folder / MANIFEST).is_file():
                continue
            manifest = read_manifest(folder)
            run = manifest.run_id
            self._tools[run] = {tool for each in manifest.architectures for tool in each.tools}
            if (folder / TRACES_FILE).is_file():  # a published run has none
                self._traces |= dict(_trace_places(folder / TRACES_FILE))
            if (folder / CALLS_FILE).is_file():
                calls = read_table(folder / CALLS_FILE, CALLS, columns=[*_KEY, *_CALL])
                self._calls |= {(run, *key): own for key, own in _by_question(calls)}

    def question(self, number: int, *, texts: bool = True) -> dict[str, Any]:
        """Everything about line `number` of the table: a trajectory for each system that answered it."""
        line = self._table.lines[number]
        found: dict[int, dict[str, Any]] = {}
        for system, of in enumerate(self._table.systems):
            key = of.run_id, of.architecture, line.example_id, line.trial
            if of.dataset != line.dataset or not (key in self._traces or key in self._calls):
                continue
            calls = self._calls[key].to_pylist() if key in self._calls else []
            if not self._is_timed[system]:
                calls = [{**call, **dict.fromkeys(_TIMES)} for call in calls]
            found[system] = {
                **trajectory_of(self._trace(key), calls),
                "calls": _with_starts(calls),
                "planned": self._planned.graphs.get(key),
                "prompts": self._prompts(key),
            }
        aligned = align_steps([trajectory["steps"] for trajectory in found.values()])
        for (system, trajectory), rows in zip(found.items(), aligned, strict=True):
            trajectory |= {"rows": rows, "path": lookups(trajectory["steps"], rows)}
            if not texts:
                found[system] = without_texts(trajectory, self._tools.get(self._table.systems[system].run_id, ()))
        return {"systems": [found.get(system) for system in range(len(self._table.systems))]}

    def _trace(self, key: TraceKey) -> dict[str, Any]:
        """The trace of a question; empty where there is none, as in a published run."""
        if key not in self._traces:
            return {}
        path, start = self._traces[key]
        with path.open("rb") as file:  # anew each time: `report --live` asks from several threads
            file.seek(start)
            trace: dict[str, Any] = from_json(file.readline())
        return trace


def _trace_places(path: Path) -> Iterator[tuple[TraceKey, tuple[Path, int]]]:
    """Where each trace begins."""
    start = 0
    with path.open("rb") as file:
        for line in file:
            trace = from_json(line[:_PREFIX], allow_partial=True)
            yield (trace["run_id"], trace["architecture"], trace["example_id"], trace["trial"]), (path, start)
            start += len(line)


def _by_question(calls: pa.Table) -> Iterator[tuple[tuple[str, str, int], pa.Table]]:
    """The calls of each question, which are next to each other."""
    start, shown = 0, calls.select(_CALL)
    for key, same in groupby(zip(*(calls[name].to_pylist() for name in _KEY), strict=True)):
        size = sum(1 for _ in same)
        yield key, shown.slice(start, size)
        start += size


def _with_starts(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of a question, with seconds since its first one and without empty values."""
    began = min((call["started_at"] for call in calls if call["started_at"]), default=None)
    shown = []
    for call in calls:
        moment = call["started_at"]
        start = {"start_s": round((moment - began).total_seconds(), 4)} if moment else {}
        shown.append({name: value for name, value in call.items() if value and name != "started_at"} | start)
    return shown


_STEP = {"id": "", "thought": "", "tool": None, "argument": "", "observation": "", "failed": False, "written": ""}
_NOTES: dict[str, type] = {
    **dict.fromkeys(("turns", "drafts", "repaired"), list),
    **dict.fromkeys(("citations", "gateway"), dict),
    **dict.fromkeys(("program", "output", "fault", "stderr"), str),
}
"""Those of the runners here: one of somebody's own may have another note by such a name."""


_ATTACK = {
    "shown": "attacker's text",
    "new_calls": "attacker's call",
    "changed_arguments": "attacker's value",
}
"""What an attack is to a step, by the lists of a trace that have its position."""


def trajectory_of(trace: Mapping[str, Any], calls: Collection[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Steps, plan, answer and notes of a trace in the form that the page and the terminal show.

    A step `changes_state` where its tool does, by the calls, and it hasn't failed. `attack` says what an attacker's
    text has to do with it.
    """
    notes: dict[str, Any] = trace.get("notes", {})
    notes = {name: note for name, note in notes.items() if isinstance(note, _NOTES.get(name, object))}
    changing = {call["name"] for call in calls if call.get("changes_state")}
    attack: Mapping[str, Any] = trace.get("attack", {})
    steps = [
        {
            **step,
            "changes_state": step["tool"] in changing and not step["failed"],
            "attack": [words for name, words in _ATTACK.items() if at in attack.get(name, ())],
        }
        for at, step in enumerate({**_STEP, **each} for each in trace.get("steps", ()))
    ]
    citations = {name: notes.get("citations", {}).get(name, []) for name in ("cited", "unknown")}
    shown = {
        "citations": citations if any(citations.values()) else None,
        "partial_answer": bool(notes.get("partial_answer")),
        "fallback": _text(notes.get("fallback") or None),
        "dropped_steps": notes.get("dropped_steps"),
        "repaired": notes.get("repaired"),
        "gateway": [f"{name}: {count}" for name, count in notes.get("gateway", {}).items()],
        "stderr": notes.get("stderr"),
    }
    plan = [
        {
            **{name: each.get(name, "") for name in ("id", "tool")},
            **{"args": _text(each.get("args")), "depends_on": each.get("depends_on", [])},
        }
        for each in trace.get("plan") or ()
    ]
    return {
        "steps": steps,
        "plan": plan or None,
        "answer": trace.get("answer"),
        "attackers_words": attack.get("words"),
        "answer_attacked": bool(attack.get("changed_answer")),
        "error": trace.get("error"),
        "replans": max(0, len(notes.get("drafts", ())) - 1),
        "blocks": [*_said(trace.get("turns", ()), len(steps)), *_blocks(notes, steps, calls)],
        "notes": {name: value for name, value in shown.items() if value},
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


# Programs, unusable plans, the beginnings of new plans and what a user said: each at the position of the first step
# after it.

_PROGRAM = re.compile(r"```\w*\n(.*?)(?:\n?```|$)", re.DOTALL)
_STEP_OF_PLAN = re.compile(r'#?E(\d+)\s*=|"id":\s*"E?(\d+)"|^\s*(\d+)\.\s(?!join\()', re.MULTILINE)


def _block(at: int, end: int, title: str, text: str, faults: Iterable[str] = (), output: str = "") -> dict[str, Any]:
    """`end` is the position after the last step that a program made."""
    return {"at": at, "end": end, "title": title, "text": text, "output": output, "faults": [*filter(None, faults)]}


def _blocks(
    notes: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], calls: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    if notes.get("turns"):
        return list(_turns(notes["turns"], calls))
    drafts = [{"text": "", "faults": (), **each} for each in notes.get("drafts", ())]
    if "program" not in notes and not any("```python" in draft["text"] for draft in drafts):
        return _plans(drafts, [step["id"].lstrip("#E") for step in steps])
    found = [
        _block(0, 0, "a program that can't be run", _program(draft["text"]), draft["faults"])
        for draft in drafts
        if draft["faults"]
    ]
    if program := notes.get("program"):
        output = notes.get("output") or ""
        found.append(_block(0, len(steps), "program", program, [notes.get("fault") or ""], output))
    return found


def _said(turns: Iterable[Mapping[str, Any]], size: int) -> Iterator[dict[str, Any]]:
    """What a user said later in an imported conversation, at the step before which it was said."""
    for turn in turns:
        at = min(size, turn["before_step"])
        yield _block(at, at, "the user", turn["text"])


def _program(text: str) -> str:
    found = _PROGRAM.search(text)
    return found[1] if found else text


def _turns(turns: Iterable[Mapping[str, Any]], calls: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The program of each turn, whose calls have its number in their place: `turn 2/line 1`."""
    made = Counter(str(call["place"]).partition("/")[0] for call in calls if call["kind"] == "tool")
    at = 0
    for number, turn in enumerate(turns, start=1):
        end = at + made[f"turn {number}"]
        if "output" in turn:
            title, fault = f"program of turn {number}", turn.get("fault") or ""
            yield _block(at, end, title, _program(turn["text"]), [fault], turn["output"] or "")
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


UNKNOWN_TOOL = "unknown tool"
_FINISH = "Finish"  # an action of every ReAct, which no manifest lists


def without_texts(trajectory: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any]:
    """A trajectory without texts of a data set, a tool or a model: tools, outcomes and counts stay.

    A tool that isn't one of `tools` is a text of the model, which made up its name.
    """

    def kept(steps: Iterable[Mapping[str, Any]], *fields: str) -> list[dict[str, Any]]:
        known = {None, _FINISH, *tools}
        return [
            {"id": step["id"], "tool": step["tool"] if step["tool"] in known else UNKNOWN_TOOL}
            | {field: step[field] for field in fields}
            for step in steps
        ]

    return {
        **{name: trajectory[name] for name in ("rows", "path", "replans", "calls")},
        "planned": trajectory.get("planned"),
        "steps": kept(trajectory["steps"], "failed", "changes_state", "attack"),
        "plan": kept(trajectory["plan"] or (), "depends_on") or None,
        "answer": None,
        "attackers_words": None,
        "answer_attacked": trajectory["answer_attacked"],
        "error": None,
        "blocks": [_block(each["at"], each["end"], each["title"], "") for each in trajectory["blocks"]],
        "notes": {},
    }
