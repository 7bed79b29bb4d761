"""The notations of a plan, read and written; a plan written in any of them reads back equal.

text    Plan: Find who designed the tower.
        #E1 = Search[Kuala Lumpur Tower]
        Plan: Find where that architect was born.
        #E2 = LLM[Where was the architect born? Context: #E1]

json    {"steps": [{"id": "E1", "thought": "Find who …", "tool": "Search",
                    "args": {"query": "Kuala Lumpur Tower"}, "depends_on": []}, …]}

numbered (numbered.py)
        1. Search("Kuala Lumpur Tower")
        2. LLM("Where was the architect born? Context: $1")
        3. join()

Reading is tolerant where the intent is plain: prose and code fences around the plan, Markdown
signs, several steps on a line, numbering that starts anywhere, a bare JSON list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from rewoo_bench.errors import PlanError
from rewoo_bench.notation.arguments import Arguments, map_strings, read_call, write_call
from rewoo_bench.notation.numbered import read_numbered, write_numbered
from rewoo_bench.notation.plan import Plan, PlanStep, as_text, references
from rewoo_bench.notation.tool_names import NO_TOOLS, name_pattern, odd_names, spellings, spelt
from rewoo_bench.text.model_output import check_argument, check_fields, check_text, decode, shown
from rewoo_bench.types import Tool

Notation = Literal["text", "json", "numbered"]

_THOUGHT = re.compile(r"\bPlan(?:\s*\d+)?\s*:(.*)", re.DOTALL)
_AFTER = re.compile(r"[ *`]*after((?:[ ,]+#E\d{1,9})+)", re.ASCII)
_ID = re.compile(r"\s*#?[Ee]?(\d{1,9})\s*", re.ASCII)

_OPENING = re.compile(r'\[\s{0,9}[\[{]|\{\s{0,9}"')
_MOST_OPENINGS = 1000  # that are tried; a plan comes earlier
_MOST_STEPS = 10_000  # that are read; no architecture runs nearly as many
_PLAN = re.compile(r'\[\s{0,9}\{|\{\s{0,9}"(?:steps|plan)"|\[\s{0,9}\[')
_THOUGHT_KEYS = ("thought", "plan", "reason", "description")
_TOOL_KEYS = ("tool", "name", "action")
_ARGS_KEYS = ("args", "arguments", "input", "argument")


def read_plan(text: str, notation: Notation = "text", tools: Mapping[str, Tool] = NO_TOOLS) -> Plan:
    """The plan in a planner's reply, with the inputs of `tools` by name.

    Raises `PlanError` where there is no step in it, or half of one.
    """
    return _READERS[notation](text, tools)


def write_plan(plan: Plan, notation: Notation = "text") -> str:
    """The plan as a planner would write it."""
    return _WRITERS[notation](plan)


def read_text(text: str, tools: Mapping[str, Tool] = NO_TOOLS) -> Plan:
    """A plan in the text notation. Raises `PlanError`."""
    known = spellings(tools)
    steps: list[PlanStep] = []
    starts = list(islice(_step_pattern(odd_names(tools)).finditer(text), _MOST_STEPS + 1))
    _check_size(len(starts))
    position = 0
    for index, match in enumerate(starts):
        if match.start() < position:
            continue  # inside an argument
        limit = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        args, end = read_call(text, match.end(), limit, tools.get(spelt(match[2], known)))
        if end == len(text):
            raise PlanError([f"the plan ends in the middle of #E{int(match[1])}"], steps)
        thought = _THOUGHT.search(text[position : match.start()])
        position = limit if end == limit else end + 1
        after = _AFTER.match(text, position)
        if after:
            position = after.end()
        steps.append(
            PlanStep(
                id=f"E{int(match[1])}",
                tool=match[2],
                args=args,
                depends_on=tuple(f"E{int(number)}" for number in re.findall(r"\d+", after[1])) if after else (),
                thought=thought[1] if thought else "",
            )
        )
    if not steps:
        raise PlanError(["no step found; a step is a line such as '#E1 = Search[title]'"])
    return Plan(steps=tuple(steps))


def write_text(plan: Plan) -> str:
    """A plan in the text notation; `after #E1` names a step that it waits for without using it."""
    return "\n".join(f"Plan: {step.thought}\n#{step.id} = {_call(step)}" for step in plan.steps)


def read_json(text: str, tools: Mapping[str, Tool] = NO_TOOLS) -> Plan:
    """A plan in the JSON notation. Raises `PlanError` with every fault of form."""
    items = _find_steps(text)
    _check_size(len(items))
    steps: list[PlanStep] = []
    faults: list[str] = []
    for position, item in enumerate(items, start=1):
        try:
            steps.append(_read_item(item, position))
        except ValueError as error:
            faults.append(f"step {position}: {error}")
    if faults:
        raise PlanError(faults, steps)
    return Plan(steps=tuple(steps))


def write_json(plan: Plan) -> str:
    """A plan in the JSON notation, a line a step."""
    lines = []
    for step in plan.steps:
        thought = {"thought": step.thought} if step.thought else {}
        fields = {"id": step.id, **thought, "tool": step.tool, "args": step.args, "depends_on": step.depends_on}
        lines.append(json.dumps(fields, ensure_ascii=False))
    return '{"steps": [\n' + ",\n".join(lines) + "\n]}"


@lru_cache(maxsize=16)
def _step_pattern(odd: tuple[str, ...]) -> re.Pattern[str]:
    """The beginning of a step, with or without Markdown's signs."""
    return re.compile(rf"(?:^[ *`-]+)?#E(\d{{1,9}})[\s*`]*=[\s*`]*({name_pattern(odd)})[\s*`]*\[", re.MULTILINE)


def _check_size(steps: int) -> None:
    if steps > _MOST_STEPS:
        raise PlanError([f"the plan has more than {_MOST_STEPS} steps"])


def _call(step: PlanStep) -> str:
    args = map_strings(step.args, as_text)
    used = references(step.args)
    others = [f"#{id_}" for id_ in step.depends_on if id_ not in used]
    return f"{step.tool}[{write_call(args)}]" + (f" after {', '.join(others)}" if others else "")


def _find_steps(text: str) -> list[dict[str, Any]]:
    """The first plan in a text: a list of objects, bare or in an object, or one object that names a tool."""
    for match in islice(_OPENING.finditer(text), _MOST_OPENINGS):
        try:
            value, _ = decode(text, match.start())
        except ValueError as error:
            if _PLAN.match(text, match.start()):  # and not the first whole piece of it
                raise PlanError([f"the JSON can't be read: {error}"]) from None
            continue
        steps = _as_list(value)
        if isinstance(steps, list) and steps and all(isinstance(item, dict) for item in steps):
            return steps
    raise PlanError(
        ['no plan found; it is JSON such as {"steps": [{"id": "E1", "tool": …, "args": {…}, "depends_on": []}]}']
    )


def _as_list(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if any(key in value for key in ("steps", "plan")):
        return value.get("steps", value.get("plan"))
    return [value] if any(key in value for key in _TOOL_KEYS) else None


def _read_item(item: dict[str, Any], position: int) -> PlanStep:
    """One step. Raises `ValueError` for what can't be meant as one."""
    known = {"id", "depends_on", *_THOUGHT_KEYS, *_TOOL_KEYS, *_ARGS_KEYS}
    if unknown := [key for key in item if key not in known]:
        raise ValueError(f"unknown key {shown(unknown[0])!r}")
    tool = _first(item, _TOOL_KEYS)
    if not isinstance(tool, str) or not tool.strip():
        raise ValueError("it names no tool")
    args = _first(item, _ARGS_KEYS)
    needs = item.get("depends_on") or []
    thought = _first(item, _THOUGHT_KEYS)
    return PlanStep(
        id=_read_id(item.get("id", position)),
        tool=check_text(tool.strip()),
        args=_read_args(args),
        depends_on=tuple(_read_id(need) for need in (needs if isinstance(needs, list) else [needs])),
        thought=thought if isinstance(thought, str) else "",
    )


def _read_args(args: Any) -> Arguments:
    if args is None or isinstance(args, str):
        return check_argument(args or "")
    if not isinstance(args, dict):
        raise ValueError(f"its args are {shown(args)}, not an object")
    try:
        return check_fields(args)
    except ValueError as error:
        raise ValueError(f"its args can't be read: {error}") from None


def _first(item: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def _read_id(value: Any) -> str:
    match = _ID.fullmatch(str(value)) if isinstance(value, str | int) else None
    if not match:
        raise ValueError(f"{shown(value)!r} is no step; steps are named E1, E2, …")
    return f"E{int(match[1])}"


_READERS: dict[Notation, Callable[[str, Mapping[str, Tool]], Plan]] = {
    "text": read_text,
    "json": read_json,
    "numbered": read_numbered,
}
_WRITERS: dict[Notation, Callable[[Plan], str]] = {"text": write_text, "json": write_json, "numbered": write_numbered}
