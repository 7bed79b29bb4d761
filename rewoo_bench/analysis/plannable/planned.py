"""What a plan takes for a recorded trajectory: the requests of the law (law.py), with the task's own calls and results.

    tasks = planned(task, loop, "plan")
    tasks.sent          # planner, readers and solver of each segment, in tokens
    tasks.reads         # positions of the results that a model has to read before a later call can be written

A plan is made where the user has spoken, and anew where a result decided which call comes next; a program decides that
itself. Of each later value that a call takes out of a result, one call of a model reads the result, unless the value is
the whole result: a placeholder passes that on. A program also takes fields and items. A value that stands nowhere is
read out of the results of the turn before. A solver answers; a lean plan's sees no result that a step has read. Plans
are those of the bundled architectures, after the agent's own instructions and tools; what they call and find is what
the loop called and found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from rewoo_bench.analysis.law import Sent, Sizes, default_sizes
from rewoo_bench.analysis.plannable.steps import TracedTask
from rewoo_bench.analysis.plannable.values import How
from rewoo_bench.text.tokens import count_tokens

Way = Literal["plan", "plan-unread", "code"]
WAYS: dict[Way, str] = {"plan": "a plan", "plan-unread": "a lean plan", "code": "a program"}
"""The designs that are estimated, and what sentences call them."""
PLACEHOLDER = 4
"""Tokens of `#E12` in place of a value."""
_TAKEN = ("copied", "derived")


@dataclass(frozen=True, slots=True)
class Loop:
    """The model calls of a recorded loop, in their order: the turn of each, and its amounts in tokens."""

    turns: Sequence[int]
    inputs: Sequence[float]
    outputs: Sequence[float]
    shared_before: Sequence[float]
    """Of each input, what an earlier call of the trajectory began with, and below those of other tasks."""
    shared_between: Sequence[float]
    reasoning: float
    """Reasoning tokens of a call, by its mean."""
    is_bundled: bool
    """Whether it is an architecture of this package: its instructions are replaced by the planner's."""


@dataclass(frozen=True, slots=True)
class Read:
    """A call of a model that takes values out of results, for the calls of a turn."""

    turn: int
    results: tuple[int, ...]
    """Positions of their steps."""
    tokens: int
    """Of what it replies."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a way to plan takes for a trajectory."""

    sent: list[Sent]
    in_sequence: int
    reads: list[Read]


def planned(task: TracedTask, loop: Loop, way: Way) -> Planned:
    """The model calls of a trajectory as `way` would make them. Segments without a tool call stay as they are."""
    sizes, sent, reads = default_sizes()[way], list[Sent](), list[Read]()
    in_sequence = 0
    places: dict[int, list[int]] = {}
    segment = 0
    for place, turn in enumerate(loop.turns):  # an answer may stand in no step
        segment = task.segment_of_turn.get(turn, segment)
        places.setdefault(segment, []).append(place)
    for segment, own in places.items():
        steps = [position for position, step in enumerate(task.steps) if step.segment == segment]
        if not steps:
            sent += [_kept(loop, place) for place in own]
            in_sequence += len(own)
            continue
        starts = _starts(task, steps, way)
        own_reads = list(_reads(task, steps, starts, way))
        written = _Segment(task, loop, sizes, own, steps, own_reads)
        sent += written.requests(starts, sent, is_lean=way != "plan")
        in_sequence += len(starts) + len({read.turn for read in own_reads}) + 1
        reads += own_reads
    return Planned(sent, in_sequence, reads)


def _kept(loop: Loop, place: int) -> Sent:
    marked = loop.inputs[place]
    shared = loop.shared_before[place], loop.shared_between[place]
    return Sent("agent", loop.inputs[place], *shared, marked, loop.outputs[place])


def _starts(task: TracedTask, steps: Sequence[int], way: Way) -> list[int]:
    """The first step of each plan of a segment."""
    found = [*steps[:1]]
    for before, step in pairwise(steps):
        is_next_turn = task.steps[step].turn != task.steps[before].turn
        if way != "code" and is_next_turn and task.steps[step].choice != "unconditional":
            found.append(step)
    return found


def _reads(task: TracedTask, steps: Sequence[int], starts: Sequence[int], way: Way) -> Iterator[Read]:
    """The results of a segment that a model has to read before a later call can be written, turn by turn."""
    read: tuple[How, ...] = ("part",) if way == "code" else ("field", "choice", "part")
    needed: dict[tuple[int, tuple[int, ...]], int] = {}
    start = steps[0]  # of the plan
    last, own = tuple[int, ...](), list[int]()  # steps of the turn before, and of this
    for position in steps:
        step = task.steps[position]
        if own and task.steps[own[-1]].turn != step.turn:
            last, own = tuple(own), []
        if position in starts:
            start, last = position, ()
        own.append(position)
        for value in step.values:
            kind, tokens = value.kind(start), count_tokens(str(value.value))
            taken: set[tuple[int, ...]] = {(each.step,) for each in value.copied_from(start) if each.how in read}
            if kind == "derived" and last:
                taken = {last}
            for results in taken:
                needed[step.turn, results] = needed.get((step.turn, results), 0) + tokens
    for (turn, results), tokens in needed.items():
        yield Read(turn, results, tokens)


@dataclass(frozen=True, slots=True)
class _Segment:
    """What was said and done between two turns of the user, to be written as a plan."""

    task: TracedTask
    loop: Loop
    sizes: Sizes
    places: Sequence[int]
    steps: Sequence[int]
    reads: Sequence[Read]

    def requests(self, starts: Sequence[int], before: Sequence[Sent], *, is_lean: bool) -> Iterator[Sent]:
        """`before` are those of earlier segments, which began with the same texts."""
        sizes, earlier = self.sizes, {each.role: each.input for each in before}
        ends = [*starts[1:], self.steps[-1] + 1]
        head, first = self._head(sizes.planner, sizes.tool), earlier.get("planner", 0.0)
        for start, end in zip(starts, ends, strict=True):
            prompt = self._planner_prompt(start)
            plan = sizes.frame
            plan += sum(self._written(each, sizes.step, sizes.next_step) for each in self.steps if start <= each < end)
            turns = {self.task.steps[each].turn for each in self.steps if start <= each < end}
            plan += sizes.read_step * sum(read.turn in turns for read in self.reads)
            yield Sent("planner", prompt, min(first, prompt), head, prompt, plan + self.loop.reasoning)
            first = prompt
        for read in self.reads:
            prompt = sizes.reader + sizes.request + sum(map(self._found, read.results))
            yield Sent("tool", prompt, 0.0, sizes.reader, sizes.reader, sizes.read + read.tokens + self.loop.reasoning)
        yield self._solver(earlier.get("solver", 0.0), is_lean=is_lean)

    def _head(self, instructions: float, tool: float) -> float:
        """What the prompts of all tasks begin with: the agent's own instructions and tools, or this package's."""
        return instructions + (tool if self.loop.is_bundled else self.loop.shared_between[0])

    def _planner_prompt(self, start: int) -> float:
        """The loop's own prompt at this step, with a planner's instructions."""
        if not self.loop.is_bundled:
            turn = self.task.steps[start].turn
            place = next((each for each in self.places if self.loop.turns[each] == turn), self.places[0])
            return self.sizes.planner + self.loop.inputs[place]
        seen = [each for each in self.steps if each < start]
        found = sum(self._shown(each) + self._found(each) for each in seen)
        return self.sizes.planner + self.sizes.tool + count_tokens(self.task.question) + found

    def _solver(self, earlier: float, *, is_lean: bool) -> Sent:
        read = {each for read in self.reads for each in read.results} if is_lean else set[int]()
        question = count_tokens(self.task.question)
        prompt = head = self.sizes.solver
        if self.loop.is_bundled:
            prompt += self.sizes.asked * question
        else:  # what was said so far has the question already
            said = self.loop.inputs[self.places[0]] - count_tokens(self.task.tools)
            prompt += max(said, question) + (self.sizes.asked - 1) * question
            head += count_tokens(self.task.instructions)
        own = min(earlier, prompt)
        prompt += sum(map(self._shown, self.steps))
        prompt += sum(self._found(each) for each in self.steps if each not in read)
        prompt += sum(self.sizes.shown_read + each.tokens for each in self.reads)
        return Sent("solver", prompt, own, head, head, self.loop.outputs[self.places[-1]])

    def _found(self, position: int) -> int:
        return count_tokens(self.task.steps[position].result)

    def _shown(self, position: int) -> float:
        """A call as a solver sees it, without its result."""
        return self._written(position, self.sizes.shown, self.sizes.next_shown)

    def _written(self, position: int, first: float, following: float) -> float:
        """Tokens of a call: `first` is that of a call with one argument without its value, `following` of one that
        takes a result's."""
        step = self.task.steps[position]
        start = self.task.starts[step.segment]
        values = [
            PLACEHOLDER if value.kind(start) in _TAKEN else count_tokens(str(value.value)) for value in step.values
        ]
        if len(values) == 1:
            return following if step.values[0].kind(start) in _TAKEN else first + values[0]
        return first + sum(values) + sum(count_tokens(value.path) for value in step.values)


def graph(task: TracedTask) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """The plan graph: each step, the steps that it copies from, and its depth in the segment, from 1."""
    depths: list[int] = []
    for position, step in enumerate(task.steps):
        start = task.starts[step.segment]
        needs = sorted({source.step for value in step.values for source in value.copied_from(start)})
        depths.append(1 + max((depths[each] for each in needs), default=0))
        yield position, tuple(needs), depths[-1]


def read_results(task: TracedTask) -> set[int]:
    """Positions of the results that a model has to read for a later call: for its arguments, or to choose it."""
    found = set[int]()
    for _, positions in groupby(range(len(task.steps)), key=lambda position: task.steps[position].segment):
        steps = list(positions)
        starts = _starts(task, steps, "plan")
        found |= {each for read in _reads(task, steps, steps[:1], "plan") for each in read.results}
        chosen_after = {task.steps[start - 1].turn for start in starts[1:]}
        found |= {each for each in steps if task.steps[each].turn in chosen_after}
    return found


def passed_on(task: TracedTask) -> set[int]:
    """Positions of the results that a later call takes as a whole, but where its own call had the value already."""
    starts = (task.starts[step.segment] for step in task.steps)
    values = [(value, start) for step, start in zip(task.steps, starts, strict=True) for value in step.values]
    return {
        source.step
        for value, start in values
        for source in value.copied_from(start)
        if source.how == "whole" and (value.asked is None or value.asked > source.step)
    }
