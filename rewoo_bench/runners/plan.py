"""A plan: its reading, its validation and its order. Knows no model.

    Plan: Find who designed the tower.
    #E1 = Search[Kuala Lumpur Tower]
    Plan: Find where that architect was born.
    #E2 = LLM[Where was the architect born? Context: #E1]

reads as

    Plan(steps=(Step(id="E1", tool="Search", argument="Kuala Lumpur Tower", thought=…), …))

Reading is tolerant where the intent is plain; validation after it is strict and finds all
faults at once. Source of the notation: Xu et al. 2023, arXiv 2305.18323, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rewoo_bench.errors import PlanError
from rewoo_bench.types import Tool

REFERENCE = re.compile(r"#E(\d{1,9})(?!\d)")
# With or without Markdown's signs.
_STEP = re.compile(r"(?:^[ *`-]+)?#E(\d{1,9})[\s*`]*=[\s*`]*([^\W\d]\w*)[\s*`]*\[", re.MULTILINE)
_THOUGHT = re.compile(r"\bPlan(?:\s*\d+)?\s*:(.*)", re.DOTALL)


class PlanStep(BaseModel):
    """One tool call of a plan. `argument` may hold `#E1` for what step E1 will find."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    tool: str
    argument: str
    thought: str = ""

    @property
    def references(self) -> tuple[str, ...]:
        """Ids of the steps whose evidence the argument needs, each once, in order."""
        return tuple(dict.fromkeys(f"E{int(number)}" for number in REFERENCE.findall(self.argument)))


class Plan(BaseModel):
    """The planner's steps, in the order written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: tuple[PlanStep, ...]

    def dependencies(self) -> dict[str, set[str]]:
        """Step id -> ids of the steps it waits for."""
        return {step.id: set(step.references) for step in self.steps}

    def render(self) -> str:
        """The plan in the text notation; reads back equal."""
        return "\n".join(f"Plan: {step.thought}\n#{step.id} = {step.tool}[{step.argument}]" for step in self.steps)


def parse_plan(text: str) -> Plan:
    """The plan in a planner's text. Raises `PlanError` where there is no step in it."""
    steps = []
    starts = list(_STEP.finditer(text))
    position = 0
    for index, match in enumerate(starts):
        limit = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        end = closing_bracket(text, match.end(), limit)
        if end == len(text):
            raise PlanError([f"the plan ends in the middle of #E{int(match[1])}"])
        thought = _THOUGHT.search(text[position : match.start()])
        steps.append(
            PlanStep(
                id=f"E{int(match[1])}",
                tool=match[2],
                argument=" ".join(text[match.end() : end].split()),
                thought=" ".join(thought[1].split()) if thought else "",
            )
        )
        position = min(end + 1, limit)
    if not steps:
        raise PlanError(["no step found; a step is a line such as '#E1 = Search[title]'"])
    return Plan(steps=tuple(steps))


def closing_bracket(text: str, start: int, limit: int) -> int:
    """Where the argument that starts at `start` ends: its own `]`, else the end of its line.

    Brackets inside the argument are balanced; where they aren't, the line's last `]` is taken.
    """
    depth = 1
    for position in range(start, limit):
        depth += {"[": 1, "]": -1}.get(text[position], 0)
        if depth == 0:
            return position
    line_end = text.find("\n", start, limit)
    line_end = limit if line_end < 0 else line_end
    last = text.rfind("]", start, line_end)
    return last if last >= 0 else line_end


def plan_faults(plan: Plan, tools: Mapping[str, Tool], *, max_steps: int | None = None) -> list[str]:
    """Everything that keeps a plan from being run, a sentence each; empty for a sound plan."""
    ids = [step.id for step in plan.steps]
    faults = [f"#{id_} is defined more than once" for id_ in dict.fromkeys(ids) if ids.count(id_) > 1]
    if max_steps is not None and len(ids) > max_steps:
        faults.append(f"the plan has {len(ids)} steps, at most {max_steps} are allowed")
    for step in plan.steps:
        faults += _step_faults(step, set(ids), tools)
    cycle = _cycle(plan)
    if cycle:
        faults.append(f"steps wait for each other: {' -> '.join(f'#{id_}' for id_ in cycle)}")
    return faults


def _step_faults(step: PlanStep, ids: Collection[str], tools: Mapping[str, Tool]) -> list[str]:
    faults = [f"#{step.id} uses #{ref}, which no step defines" for ref in step.references if ref not in ids]
    if step.tool not in tools:
        return [*faults, f"#{step.id} uses the unknown tool {step.tool!r}; the tools are: {', '.join(tools)}"]
    if not step.argument.strip():
        faults.append(f"#{step.id} has an empty argument")
    elif not step.references:  # an argument that waits for evidence can only be checked with it
        try:
            read_argument(tools[step.tool], step.argument)
        except ValidationError as error:
            faults.append(f"#{step.id}: {step.argument!r} doesn't fit {step.tool}: {error.errors()[0]['msg']}")
    return faults


def _cycle(plan: Plan) -> list[str]:
    try:
        TopologicalSorter(plan.dependencies()).prepare()
    except CycleError as error:
        return [str(node) for node in error.args[1]]
    return []


def read_argument(tool: Tool, argument: str) -> BaseModel:
    """The text between a call's brackets as the tool's arguments: its first field.

    Raises pydantic's `ValidationError`.
    """
    first = next(iter(tool.arguments.model_fields))
    values: dict[str, Any] = {first: argument}
    return tool.arguments.model_validate(values)


def substitute(argument: str, evidence: Mapping[str, str]) -> str:
    """`argument` with every placeholder replaced by its evidence, once.

    Evidence is data: a placeholder inside it stays as it is.
    """
    return REFERENCE.sub(lambda match: evidence.get(f"E{int(match[1])}", match[0]), argument)
