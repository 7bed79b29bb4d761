"""A plan: steps, what they wait for, and how evidence takes its place in them. Knows no model.

    PlanStep(id="E2", tool="LLM", args="Where was {{E1}} born?", depends_on=("E1",))

A step's reference to an earlier one is written `{{E1}}` here, whatever the notation was
(plan_formats.py). A `Plan` may be unsound: plan_checks.py says how. Source of the idea: Xu et al. 2023,
arXiv 2305.18323, section 2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from rewoo_bench.runners.notation.arguments import Arguments, map_strings, show_call
from rewoo_bench.types import Tool, sees_state

# `#E1` isn't a prefix of `#E10`, nor is a number too long for a step.
_ANY_REFERENCE = re.compile(r"\{\{\s?E(\d{1,9})\s?\}\}|\{E(\d{1,9})\}|#E(\d{1,9})(?!\d)", re.ASCII)
_REFERENCE = re.compile(r"\{\{E(\d{1,9})\}\}", re.ASCII)


class PlanStep(BaseModel):
    """One tool call of a plan. `args` is text, the value of the tool's only field, or fields by name.

    `depends_on` holds every step whose evidence is waited for: those that `args` names, and any
    others that were asked for.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    tool: str
    args: Arguments
    depends_on: tuple[str, ...] = ()
    thought: str = ""

    @model_validator(mode="before")
    @classmethod
    def _canonical(cls, values: dict[str, Any]) -> dict[str, Any]:
        args = map_strings(values.get("args", ""), canonical)
        needs = {*values.get("depends_on", ()), *references(args)}
        thought = " ".join(str(values.get("thought", "")).split())
        return {**values, "args": args, "depends_on": tuple(sorted(needs, key=_number)), "thought": thought}

    @property
    def number(self) -> int:
        return int(self.id.removeprefix("E"))

    @property
    def call(self) -> str:
        """The step as a reader wants it: `LLM[Where was #E1 born?]`."""
        return f"{self.tool}[{with_hash_signs(show_call(self.args))}]"


class Plan(BaseModel):
    """The planner's steps, in the order written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: tuple[PlanStep, ...]

    @property
    def next_number(self) -> int:
        """The number of the first step of a plan that goes on from here."""
        return 1 + max((step.number for step in self.steps), default=0)

    def then(self, more: Plan) -> Plan:
        """The steps of both."""
        return Plan(steps=(*self.steps, *more.steps))

    def as_json(self) -> list[dict[str, Any]]:
        """The steps as traces have them."""
        return [step.model_dump(mode="json") for step in self.steps]

    def dependencies(self) -> dict[str, set[str]]:
        """Step id -> ids of the steps it waits for."""
        return {step.id: set(step.depends_on) for step in self.steps}

    def levels(self) -> dict[str, int]:
        """Step id -> length of the longest chain of steps that it waits for. Raises `CycleError`."""
        return levels_of(self.dependencies())

    def leaves(self) -> list[str]:
        """Ids of the steps that no other step waits for: the aim of the plan."""
        needed = {before for step in self.steps for before in step.depends_on}
        return [step.id for step in self.steps if step.id not in needed]


def levels_of(dependencies: Mapping[str, set[str]]) -> dict[str, int]:
    """Id -> length of the longest chain that it waits for. Raises `CycleError`."""
    depth: dict[str, int] = {}
    for id_ in TopologicalSorter(dependencies).static_order():
        depth[id_] = max((depth[before] + 1 for before in dependencies[id_]), default=0)
    return depth


def in_state_order(dependencies: Mapping[str, set[str]], called: Mapping[str, Tool | None]) -> dict[str, set[str]]:
    """What each call waits for, so that state is changed by one call at a time, in the order in which they are written.

    A call that changes state waits for all calls before it that see state, and these for the last change before them,
    but for calls that themselves wait for it. `called` has the tool of each call, in that order.
    """
    tools = {id_: tool for id_, tool in called.items() if tool is not None and sees_state(tool)}
    ordered = {id_: set(needs) for id_, needs in dependencies.items()}
    if not any(getattr(tool, "changes_state", False) for tool in tools.values()):
        return ordered
    before: list[str] = []  # the last change, and the calls since

    def waits_for(id_: str, other: str) -> bool:
        to_see, seen = [id_], set[str]()
        while to_see:
            for need in ordered.get(to_see.pop(), set()) - seen:
                seen.add(need)
                to_see.append(need)
        return other in seen

    for id_, tool in tools.items():
        changes = getattr(tool, "changes_state", False)
        for earlier in before if changes else before[:1]:
            is_change = getattr(tools[earlier], "changes_state", False)
            if (changes or is_change) and not waits_for(earlier, id_):
                ordered[id_].add(earlier)
        before = [id_] if changes else [*before, id_]
    return ordered


def canonical(text: str) -> str:
    """A text with its references (`#E1`, `{E1}`, `{{ E1 }}`) as `{{E1}}`; again, it stays as it is."""
    return _ANY_REFERENCE.sub(lambda match: f"{{{{E{int(match[match.lastindex or 0])}}}}}", text)


def with_hash_signs(text: str) -> str:
    """A text with its references as `#E1`, but where a digit follows."""
    return re.sub(r"\{\{(E\d{1,9})\}\}(?!\d)", r"#\1", text)


def references(value: Any) -> list[str]:
    """Ids of the steps that a canonical JSON value names, in order, as often as it names them."""
    if isinstance(value, str):
        return [f"E{number}" for number in _REFERENCE.findall(value)]
    items = list(value.values()) if isinstance(value, dict) else value
    return [id_ for item in items for id_ in references(item)] if isinstance(items, list) else []


def substitute(args: Arguments, evidence: Mapping[str, str]) -> Arguments:
    """`args` with every reference replaced by its evidence, once, nested values included.

    Evidence is data: a reference inside it stays as it is.
    """
    filled: Arguments = map_strings(
        args, lambda text: _REFERENCE.sub(lambda match: evidence.get(f"E{match[1]}", match[0]), text)
    )
    return filled


def _number(id_: str) -> tuple[int, str]:
    digits = id_.removeprefix("E")
    return (int(digits) if digits.isdecimal() else 0, id_)


_NAME = r"[^\W\d][^\s*`\[\](){}=#\"',;<>|]{0,199}+"


class ToolNames:
    """Names of tools in what a model writes: `Search`, and as servers have them `web-search`, `fs.read`, `ns/tool`."""

    def __init__(self, names: Sequence[str]) -> None:
        odd = [name for name in names if not re.fullmatch(_NAME, name)]
        self.pattern = "|".join([*map(re.escape, sorted(odd, key=len, reverse=True)), _NAME])
        """A regular expression for names, known or not; `3d` is one only where it is known."""
        folded = Counter(map(_fold, names))
        self._names = frozenset(names)
        self._spellings = {_fold(name): name for name in names if folded[_fold(name)] == 1}

    def spelt(self, written: str) -> str:
        """The tool's own spelling of a name, or the name as it is written, also where it may mean either of two."""
        return written if written in self._names else self._spellings.get(_fold(written), written)


@lru_cache(maxsize=64)
def spellings_of(names: tuple[str, ...]) -> ToolNames:
    """The same for the same names, since every reply is read with them."""
    return ToolNames(names)


def _fold(name: str) -> str:
    """`web-search` and `Web_Search` are meant alike."""
    return re.sub(r"\W+", "_", name).casefold()
