"""A recorded trajectory as tool calls whose values are known, copied, constant or derived.

A segment is the work between two turns of the user. What was said and found before it is known in it:

    known       the value stands in the task, the instructions, or in what was said, asked or found before the segment;
                a number below 1,000, yes or no has to stand elsewhere than in the instructions
    copied      it stands in an earlier result of the segment: a placeholder would do
    constant    it is a choice or a default of the tool's schema or of a part of it, or empty, or true or false, or
                most tasks that give the argument, three others at least, give it this value
    derived     it stands nowhere: a model made it up from what it read

The first that fits counts. A sum such as 152 + 103 is what the least known of its numbers is, and a single digit in it
is a constant at least: a plan can write a sum of placeholders.

A call's choice is conditional where a trace shows that a result made it necessary: the turn before it ended with an
error or an empty result, as it was recorded or as the result says (text/results.py), apart from tools that never return
anything, or another trial of the task, after the same calls, went on with another tool.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from rewoo_bench.analysis.plannable.values import (
    How,
    Index,
    Leaf,
    forms,
    index_of,
    is_empty,
    is_weak,
    leaves,
    numbers_in,
)
from rewoo_bench.text.model_output import as_object, objects_in
from rewoo_bench.text.results import says_error, says_nothing

Kind = Literal["known", "copied", "constant", "derived"]
Choice = Literal["unconditional", "after an error", "after an empty result", "branch"]
KINDS: tuple[Kind, ...] = ("known", "copied", "constant", "derived")
_BEST: tuple[How, ...] = ("whole", "field", "choice", "part")
_LEAST_KNOWN: tuple[Kind, ...] = ("known", "constant", "copied", "derived")
CHOICES: tuple[Choice, ...] = ("unconditional", "after an error", "after an empty result", "branch")
_OTHER_TASKS = 3  # that give an argument the same value, which makes it a constant
_MOST_TASKS = 2 / 3  # of those that give the argument
_FINISH = "Finish"  # the answer of some architectures; it calls nothing
_DEEPEST = 8  # levels of a tool's schema


@dataclass(frozen=True, slots=True)
class Source:
    """Where an earlier result has a value: the position of its step, and how."""

    step: int
    how: How
    path: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """A single value of a tool call. `sources` are the earlier results that have it, in all segments.

    `asked` is the first earlier step with the same value among its arguments, None where there is none.
    """

    path: str
    value: Any
    is_known: bool
    """Whether it stands in what was said before the segment."""
    is_constant: bool
    sources: tuple[Source, ...] = ()
    asked: int | None = None
    parts: tuple[ArgumentValue, ...] = ()
    """The numbers of a sum."""

    def kind(self, start: int, written: int | None = None) -> Kind:
        """What it is for a plan that is made before the step `start` and has written the steps before `written`."""
        if self.is_known or any(source.step < start for source in self.sources):
            return "known"
        if self.asked is not None and self.asked < (start if written is None else written):
            return "known"
        if self.parts:
            return max((part.kind(start, written) for part in self.parts), key=_LEAST_KNOWN.index)
        if self.sources:
            return "copied"
        return "constant" if self.is_constant else "derived"

    def copied_from(self, start: int) -> list[Source]:
        """The results that placeholders of such a plan stand for: of each value the last one, best as a whole."""
        if self.kind(start) != "copied":
            return []
        if self.parts:
            return [source for part in self.parts for source in part.copied_from(start)]
        return [min(self.sources, key=lambda each: (_BEST.index(each.how), -each.step))]


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A tool call of a trajectory: the step at the position `at` of its trace, asked for by the model call `turn`."""

    at: int
    turn: int
    segment: int
    tool: str
    leaves: tuple[Leaf, ...]
    """The single values of its arguments; `values` says where each comes from."""
    result: str
    failed: bool
    values: tuple[ArgumentValue, ...] = ()
    choice: Choice = "unconditional"


@dataclass(frozen=True, slots=True)
class TracedTask:
    """A trajectory: its tool calls, the first step of each segment, and the segment of each turn."""

    architecture: str
    example_id: str
    trial: int
    steps: tuple[ToolStep, ...]
    starts: tuple[int, ...]
    segment_of_turn: Mapping[int, int]
    question: str = ""
    instructions: str = ""
    """As they were recorded: those of bundled architectures aren't."""
    tools: str = ""
    """The schemas of its tools as JSON, where they were recorded."""
    unknown: str = ""
    """Why the kinds of its values aren't known; empty where they are."""


def traced_tasks(traces: Iterable[Mapping[str, Any]]) -> Iterator[TracedTask]:
    """The trajectories of lines of traces.jsonl, all those of one architecture in a run.

    What is constant and where trials part is found in all of them together.
    """
    lines = [_Line(trace) for trace in traces]
    between = _Between(lines)
    return (_traced(line, between) for line in lines)


class _Line:
    """A line of traces.jsonl, read."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self.architecture, self.task, self.trial = trace["architecture"], trace["example_id"], trace["trial"]
        turns = list(trace.get("turns", ()))
        self.instructions = trace.get("system") or ""
        self.said: list[list[str]] = [[trace["question"] or ""]]  # by the user, at the start of each segment
        self.replies: list[list[str]] = [[]]
        self.calls: list[ToolStep] = []
        self.starts = [0]
        self.segment_of_turn: dict[int, int] = {}
        self.constants = _schema_constants(trace.get("tools", ()))
        self.tools: str = json.dumps(trace["tools"], sort_keys=True) if trace.get("tools") else ""
        for position, step in enumerate(trace["steps"]):
            while turns and turns[0]["before_step"] <= position:
                self._begin(turns.pop(0)["text"])
            turn = _number(step["id"], position + 1)
            self.segment_of_turn[turn] = len(self.said) - 1
            self.replies[-1].append(step["thought"])  # known from the next segment on
            tool, result = step["tool"], step["observation"]
            if tool is None or tool == _FINISH:
                continue
            failed, found = step["failed"] or says_error(result), tuple(leaves(step["argument"]))
            self.calls.append(ToolStep(position, turn, len(self.said) - 1, tool, found, result, failed))
        for each in turns:
            self._begin(each["text"])
        self.unknown = self._unknown(trace["notes"])

    def _unknown(self, notes: Mapping[str, Any]) -> str:
        """Why the kinds of its values aren't known; `notes` are those of an import (imports/write.py)."""
        if notes.get("without_texts"):
            return "it was written without texts"
        if notes.get("without_arguments"):
            return "the arguments of its tool calls weren't recorded"
        is_task_known = self.instructions or any(text for said in self.said for text in said)
        return "" if is_task_known or not self.calls else "what the user said wasn't recorded"

    def _begin(self, text: str) -> None:
        """A turn of the user begins a segment, unless nothing was done since the last one."""
        if self.starts[-1] == len(self.calls) and not any(
            segment == len(self.said) - 1 for segment in self.segment_of_turn.values()
        ):
            self.said[-1].append(text)
            return
        self.said.append([text])
        self.replies.append([])
        self.starts.append(len(self.calls))


def _number(id_: str, default: int) -> int:
    """The turn of a step from its id: `3`, `E3`."""
    found = re.search(r"\d{1,9}", id_)
    return int(found.group()) if found else default


def _schema_constants(tools: Sequence[Any]) -> set[tuple[str, str, str]]:
    """Values that the schemas of tools name: the tool, the place of the argument, and the canonical text."""
    found = set()
    for tool in objects_in(tools):
        function = as_object(tool.get("function", tool))
        names = ("parameters", "input_schema", "inputSchema")
        schema = as_object(next((function[name] for name in names if function.get(name)), {}))
        defined = as_object(schema.get("$defs") or schema.get("definitions"))
        for path, value in _named_in(schema, "", defined, _DEEPEST):
            found |= {(str(function.get("name")), _place(path), text) for _, text in forms(value)}
    return found


def _named_in(part: Any, path: str, defined: Mapping[str, Any], levels: int) -> Iterator[Leaf]:
    """The choices and defaults of a JSON Schema and of its parts, each with the path of its argument."""
    if not isinstance(part, Mapping) or not levels:  # a part may refer to one that it is in
        return
    choices = part.get("enum")
    for value in [*(choices if isinstance(choices, list) else ()), part.get("const"), part.get("default")]:
        yield from leaves(value, path)
    parts = [(path, each) for name in ("anyOf", "oneOf", "allOf") for each in objects_in(part.get(name))]
    parts += [(path, defined.get(str(part.get("$ref")).rpartition("/")[2])), (f"{path}[]", part.get("items"))]
    parts += [(f"{path}.{name}" if path else name, each) for name, each in as_object(part.get("properties")).items()]
    for where, each in parts:
        yield from _named_in(each, where, defined, levels - 1)


def _place(path: str) -> str:
    """The path of an argument without positions in lists: `flights[0].date` as `flights[].date`."""
    return re.sub(r"\[\d+\]", "[]", path)


class _Between:
    """What is known of all trajectories together: constants, branches, and tools that never return anything."""

    def __init__(self, lines: Iterable[_Line]) -> None:
        self._tasks: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)  # of arguments, and of their values
        self._tools: defaultdict[int, set[frozenset[str]]] = defaultdict(set)  # of the next turn, by what came before
        self._heard: set[str] = set()
        for line in lines:
            for prefix, calls in _turns(line):
                self._tools[prefix].add(frozenset(call.tool for call in calls))
                for call in calls:
                    for path, text in _texts(call):
                        self._tasks[call.tool, _place(path)].add(line.task)
                        self._tasks[call.tool, _place(path), text].add(line.task)
                    if not says_nothing(call.result):
                        self._heard.add(call.tool)

    def is_constant(self, line: _Line, call: ToolStep, path: str, value: Any) -> bool:
        if is_empty(value):
            return True
        given = self._tasks[call.tool, _place(path)]
        for _, text in forms(value):
            same = self._tasks[call.tool, _place(path), text]
            is_usual = len(same - {line.task}) >= _OTHER_TASKS and len(same) >= _MOST_TASKS * len(given)
            if is_usual or (call.tool, _place(path), text) in line.constants:
                return True
        return False

    def choices(self, line: _Line) -> Iterator[Choice]:
        """Why each call of a trajectory was made."""
        for prefix, calls in _turns(line):
            first = calls[0]
            earlier = [each for each in line.calls if each.segment == first.segment and each.turn < first.turn]
            heard = [each for each in earlier if each.failed or each.tool in self._heard]
            last = [each for each in heard if each.turn == heard[-1].turn]
            choice: Choice = "branch" if earlier and len(self._tools[prefix]) > 1 else "unconditional"
            if any(each.failed for each in last):
                choice = "after an error"
            elif any(says_nothing(each.result) for each in last):
                choice = "after an empty result"
            yield from [choice] * len(calls)


def _turns(line: _Line) -> Iterator[tuple[int, list[ToolStep]]]:
    """The calls of each turn, and a hash of the task, the calls and what the user said before it."""
    prefix = hash(line.task)
    for (segment, _), group in groupby(line.calls, key=lambda call: (call.segment, call.turn)):
        calls = [*group]
        yield hash((prefix, *(text for said in line.said[1 : segment + 1] for text in said))), calls
        prefix = hash((prefix, *sorted((call.tool, *sorted(text for _, text in _texts(call))) for call in calls)))


def _texts(call: ToolStep) -> list[tuple[str, str]]:
    """The paths of a call's values, and their canonical texts."""
    return [(path, text) for path, value in call.leaves for _, text in forms(value)]


def _traced(line: _Line, between: _Between) -> TracedTask:
    instructions = index_of(line.instructions)
    said: list[Index] = []
    results: list[Index] = []
    asked: dict[Any, int] = {}
    steps = []
    segment = -1
    for position, (call, choice) in enumerate(zip(line.calls, between.choices(line), strict=True)):
        while segment < call.segment:
            segment += 1
            texts = [*line.said[segment], *(line.replies[segment - 1] if segment else ())]
            said += [index_of(text) for text in texts if text]

        def found(path: str, value: Any, call: ToolStep = call, said: Sequence[Index] = tuple(said)) -> ArgumentValue:
            is_known = any(index.find(value) for index in said)
            is_known = is_known or (not is_weak(value) and instructions.find(value) is not None)
            sources = []
            for place, index in enumerate(results):
                # A call sees the results of earlier turns alone.
                if line.calls[place].turn < call.turn and not is_known and (how := index.find(value)):
                    sources.append(Source(place, *how))
            constant = not is_known and between.is_constant(line, call, path, value)
            parts = tuple(found(path, number) for number in numbers_in(value))
            parts = tuple(replace(part, is_constant=True) if len(str(part.value)) == 1 else part for part in parts)
            before = asked.get(forms(value)) if forms(value) else None
            return ArgumentValue(path, value, is_known, constant, tuple(sources), before, parts)

        values = [found(path, value) for path, value in call.leaves]
        for _, value in call.leaves:
            asked.setdefault(forms(value), position)
        results.append(index_of(call.result))
        steps.append(replace(call, values=tuple(values), choice=choice))
    places = tuple(line.starts), dict(line.segment_of_turn)
    asked_for = "\n".join(line.said[0]), line.instructions, line.tools
    return TracedTask(line.architecture, line.task, line.trial, tuple(steps), *places, *asked_for, line.unknown)
