"""What planning ahead could have saved: the model calls of a loop that a plan makes superfluous.

A plan is written by a model call that the loop made, from the same prompt. The loop's later calls of the segment fall
away as long as each asks for what the plan could have: values that are known, constant or copied from results of the
plan, and a choice that no result made necessary. Then a new plan begins with the next call of the loop. The call that
answers the user stays.

    plan-ahead         the whole segment in one plan, or the loop as it was
    lazy replanning    as few plans as its calls allow
    plans as code      the same, and a program decides after errors, empty results and branches, and picks among items

A text plan takes one of several items, and any plan a value out of a longer text, with one more model call whose prompt
is that result: who writes the plan hasn't seen it. No plan takes more model calls than the loop did: a turn that would
need two of these begins a new plan, and a whole plan that needs too many leaves the segment as it was.

It is a bound and no forecast: prompts and outputs are the loop's own, a plan has no faults, and costs what its calls
cost to write. What prompts share is the loop's, too: the prefix that two calls share is the shortest of those that each
call between them shares with the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rewoo_bench.analysis.plannable.steps import Source, ToolStep, TracedTask

Horizon = Literal["loop", "plan-ahead", "lazy replanning", "plans as code"]
HORIZONS: tuple[Horizon, ...] = ("loop", "plan-ahead", "lazy replanning", "plans as code")
EXTRACTION_TOKENS = 40
"""Tokens of the prompt that asks for a value in a text, beside the text."""


class Kept(NamedTuple):
    """A model call that remains: the position of the loop's own one, and of those whose output it writes."""

    call: int
    writes: tuple[int, ...]


class Extraction(NamedTuple):
    """A model call that takes values out of the result of a step, for the steps of a turn from `needed_by` on."""

    step: int
    needed_by: int
    value: str


@dataclass(frozen=True, slots=True)
class Work:
    """The model calls of a task under a horizon, and how many of its tool calls are planned before the loop's turn."""

    kept: tuple[Kept, ...]
    extractions: tuple[Extraction, ...] = ()
    planned: int = 0


def works(task: TracedTask, turns: Sequence[int]) -> dict[Horizon, Work]:
    """What remains of a task's model calls. `turns` are the turn numbers of its model calls, in their order."""
    loop = tuple(Kept(place, (place,)) for place in range(len(turns)))
    asked: dict[int, list[int]] = {}
    for position, step in enumerate(task.steps):
        asked.setdefault(step.turn, []).append(position)
    segments: dict[int, list[int]] = {}
    for place, turn in enumerate(turns):
        segments.setdefault(task.segment_of_turn.get(turn, -1), []).append(place)
    found: dict[Horizon, Work] = {"loop": Work(loop)}
    for horizon in HORIZONS[1:]:
        kept: list[Kept] = []
        extractions: list[Extraction] = []
        planned = 0
        for places in segments.values():
            own = _segment(task, [(place, asked.get(turns[place], [])) for place in places], horizon)
            kept += own.kept
            extractions += own.extractions
            planned += own.planned
        found[horizon] = Work(tuple(sorted(kept)), tuple(extractions), planned)
    return found


def _segment(task: TracedTask, calls: Sequence[tuple[int, list[int]]], horizon: Horizon) -> Work:
    """One segment: the loop's model calls, each with the steps that it asks for."""
    kept: list[Kept] = []
    extractions: dict[Extraction, None] = {}
    planned = position = 0
    while position < len(calls):
        place, steps = calls[position]
        writes, after = [place], position + 1
        if steps:
            start = steps[0]
            while after < len(calls) and calls[after][1]:
                needed = _needs(task, calls[after][1], start, steps[-1] + 1, horizon)
                if needed is None or (len(needed) > 1 and horizon != "plan-ahead"):  # the loop's own call is one
                    break
                extractions |= dict.fromkeys(needed)
                writes.append(calls[after][0])
                planned += len(calls[after][1])
                after += 1
        kept.append(Kept(place, tuple(writes)))
        position = after
    asks = dict(calls)
    plans = sum(bool(asks[each.call]) for each in kept)
    if horizon == "plan-ahead" and (plans > 1 or len(kept) + len(extractions) > len(calls)):
        return Work(tuple(Kept(place, (place,)) for place, _ in calls))
    return Work(tuple(kept), tuple(extractions), planned)


def _needs(
    task: TracedTask, steps: Sequence[int], start: int, written: int, horizon: Horizon
) -> list[Extraction] | None:
    """The extractions that a plan made before the step `start` needs for these steps; None where it can't have them.

    Its writer knows what it wrote into the steps before `written`.
    """
    needed: dict[int, list[str]] = {}  # by the step whose result has them
    read = ("part",) if horizon == "plans as code" else ("choice", "part")
    for position in steps:
        step = task.steps[position]
        if horizon != "plans as code" and step.choice != "unconditional":
            return None
        for value in step.values:
            if value.kind(start, written) == "derived":
                return None
            for source in value.copied_from(start):
                if source.how in read:
                    needed.setdefault(source.step, []).append(str(value.value))
    return [Extraction(place, steps[0], " ".join(found)) for place, found in needed.items()]


def graph(task: TracedTask) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """The plan graph: each step, the steps that it copies from, and its depth in the segment, from 1."""
    depths: list[int] = []
    for position, step in enumerate(task.steps):
        needs = sorted({source.step for source in sources(task, step)})
        depths.append(1 + max((depths[each] for each in needs), default=0))
        yield position, tuple(needs), depths[-1]


def sources(task: TracedTask, step: ToolStep) -> list[Source]:
    """The results of its segment that a step copies from."""
    start = task.starts[step.segment]
    return [found for value in step.values for found in value.copied_from(start)]


def depth_and_width(task: TracedTask) -> tuple[int, int]:
    """The longest chain of steps that copy from each other, and the most steps at one depth of a segment."""
    levels: dict[tuple[int, int], int] = {}
    for position, _, depth in graph(task):
        key = task.steps[position].segment, depth
        levels[key] = levels.get(key, 0) + 1
    return max((depth for _, depth in levels), default=0), max(levels.values(), default=0)


def shares(kept: Sequence[Kept], shared: Mapping[int, float]) -> dict[int, float]:
    """The tokens that each remaining call shares with an earlier one: the least of the calls since the one before."""
    found, before = {}, -1
    for each in kept:
        found[each.call] = min(shared[place] for place in range(before + 1, each.call + 1))
        before = each.call
    return found
