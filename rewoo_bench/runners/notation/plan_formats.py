"""The notations of a plan, read and written; a plan written in any of them reads back equal.

text    Plan: Find who designed the tower.
        #E1 = Search[Kuala Lumpur Tower]
        Plan: Find where that architect was born.
        #E2 = LLM[Where was the architect born? Context: #E1]

json    {"steps": [{"id": "E1", "thought": "Find who …", "tool": "Search",
                    "args": {"query": "Kuala Lumpur Tower"}, "depends_on": []}, …]}

numbered        1. Search("Kuala Lumpur Tower")
        2. LLM("Where was the architect born? Context: $1")
        3. join()

Reading is tolerant where the intent is plain: prose and code fences around the plan, Markdown
signs, several steps on a line, numbering that starts anywhere, a bare JSON list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from rewoo_bench.errors import PlanError
from rewoo_bench.runners.notation.arguments import (
    Arguments,
    end_of_call,
    map_strings,
    read_call,
    read_inputs,
    write_call,
)
from rewoo_bench.runners.notation.plan import (
    NO_TOOLS,
    Plan,
    PlanStep,
    as_text,
    name_pattern,
    odd_names,
    references,
    spellings,
    spelt,
)
from rewoo_bench.runners.notation.schemas import Inputs, inputs, unquoted
from rewoo_bench.text.model_output import check_argument, check_fields, check_text, decode, shown
from rewoo_bench.types import Tool

# In the numbered notation (Kim et al. 2023, arXiv 2312.04511, section 3) `$1` stands for the result of task 1, the step
# `E1` here. Only an earlier task can be meant, so `$80` in task 3 is money, as are `$1,000` and `$1.50`. A line is read
# without the lines after it, so a task can start while the rest of the plan is being written.


_MARKS = r"[ \t*`>-]*+"  # of Markdown
_NUMBER = rf"\$?(\d{{1,9}})[ \t*`]*+[.):=]{{1,2}}{_MARKS}"
_JOIN = re.compile(rf"{_MARKS}(?:{_NUMBER})?join[ \t*`]*+(?:\(.*)?$", re.IGNORECASE)
_NUMBERED_THOUGHT = re.compile(rf"{_MARKS}Thought[\s*]*+:(.*)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:(\d{1,2})(?!\d|[.,]\d)|\{(\d{1,2})\})", re.ASCII)
_WRITTEN = re.compile(r"\{\{E(\d{1,2})\}\}(?!\d|[.,]\d)", re.ASCII)
_NUMBERED_AFTER = re.compile(r"\)[ *`]*+after((?:[ ,]++\{\{E\d{1,9}\}\})++)", re.ASCII)
_STRING = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""")
_FIELD = re.compile(r"\s*+([^\W\d]\w*+)\s*+=\s*+")
_PARENTHESIS = re.compile(r"[()]")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_LONGEST_LINE = 100_000
_MOST_TASKS = 10_000  # that are read; no architecture runs nearly as many


class _Fault(ValueError):
    """What keeps a line from being read."""


def read_numbered(text: str, tools: Mapping[str, Tool] = NO_TOOLS) -> Plan:
    """The plan in a planner's reply. Raises `PlanError` with every fault of form."""
    steps: list[PlanStep] = []
    faults: list[str] = []
    for each in islice(_entries(text, tools), _MOST_TASKS + 1):
        if isinstance(each, PlanStep):
            steps.append(each)
        else:
            faults.append(each)
    if len(steps) + len(faults) > _MOST_TASKS:
        raise PlanError([f"the plan has more than {_MOST_TASKS} steps"])
    if faults:
        raise PlanError(faults)
    if not steps:
        raise PlanError(["no task found; a task is a line such as '1. Search(\"title\")'"])
    return Plan(steps=tuple(steps))


def complete_steps(text: str, tools: Mapping[str, Tool] = NO_TOOLS) -> list[PlanStep]:
    """The steps of a plan that is still being written: those whose line has ended and can be read."""
    whole, _, _ = text.rpartition("\n")
    return [each for each in islice(_entries(whole, tools), _MOST_TASKS) if isinstance(each, PlanStep)]


def write_numbered(plan: Plan) -> str:
    """A plan as a planner would write it, thoughts included.

    `after $1` names a step that a task waits for without using it.
    """
    lines: list[str] = []
    for step in plan.steps:
        if step.thought:
            lines.append(f"Thought: {step.thought}")
        lines.append(f"{step.id.removeprefix('E')}. {write_task(step)}")
    last = max(map(_number, plan.steps), default=0)
    return "\n".join([*lines, f"{last + 1}. join()"])


def write_task(step: PlanStep) -> str:
    """A step's call: `LLM("Who designed it? Context: $1")`."""
    used = references(step.args)
    number = _number(step)
    others = ", ".join(f"{{{{{id_}}}}}" for id_ in step.depends_on if id_ not in used)
    written = _literal(step.args, number)
    if isinstance(step.args, dict) and step.args and all(map(_IDENTIFIER.fullmatch, step.args)):
        written = ", ".join(f"{name}={_literal(value, number)}" for name, value in step.args.items())
    return f"{step.tool}({written})" + (f" after {_dollars(others, number)}" if others else "")


def as_numbered(sentence: str) -> str:
    """A sentence about steps in the names of this notation: `$1` for `#E1`."""
    return re.sub(r"#E(\d{1,9})", r"$\1", sentence)


@lru_cache(maxsize=16)
def _task_pattern(odd: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"{_MARKS}{_NUMBER}({name_pattern(odd)})[ \t*`]*+\(")


def _entries(text: str, tools: Mapping[str, Tool]) -> Iterator[PlanStep | str]:
    """Each task of a plan, or the fault of its line, up to `join()`."""
    known, task = spellings(tools), _task_pattern(odd_names(tools))
    thought = ""
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if _JOIN.match(line):
            return
        if match := _NUMBERED_THOUGHT.match(line):
            thought = match[1]
        elif match := task.match(line):
            try:
                yield _read_task(line, match, thought, tools.get(spelt(match[2], known)))
            except _Fault as fault:
                yield f"#E{int(match[1])}: {fault}"
            thought = ""


def _read_task(line: str, match: re.Match[str], thought: str, tool: Tool | None) -> PlanStep:
    """The step of a line. Raises `_Fault`."""
    if len(line) > _LONGEST_LINE:
        raise _Fault(f"its line has {len(line)} characters, at most {_LONGEST_LINE} are read")
    number = int(match[1])

    def as_slot(found: re.Match[str]) -> str:
        named = int(found[1] or found[2])
        return f"{{{{E{named}}}}}" if named < number else found[0]

    rest = _REFERENCE.sub(as_slot, line[match.end() :])
    args, end = _read_arguments(rest, inputs(tool.arguments) if tool else None)
    after = _NUMBERED_AFTER.match(rest, end)
    needs = tuple(f"E{int(number)}" for number in re.findall(r"\d+", after[1])) if after else ()
    return PlanStep(id=f"E{number}", tool=match[2], args=args, depends_on=needs, thought=thought)


def _read_arguments(rest: str, about: Inputs | None) -> tuple[Arguments, int]:
    """The arguments behind an opening parenthesis, and where the closing one is. Raises `_Fault`."""
    if about and not about.is_text and (end := end_of_call(rest, 0, len(rest), "()")) is not None:
        return read_inputs(rest[:end], about), end
    start = len(rest) - len(rest.lstrip())
    if string := _STRING.match(rest, start):
        following = rest[string.end() :].lstrip()[:1]
        if following == ",":
            raise _Fault('it has more than one argument; write one text, or fields by name: Tool(query="…", limit=3)')
        if following == ")":
            return check_argument(unquoted(string[0]) or ""), rest.index(")", string.end())
    for read in (_read_object, _read_fields):
        if (found := read(rest, start)) is not None:
            try:
                return check_fields(found[0]), found[1]
            except ValueError as error:
                raise _Fault(f"its arguments can't be read: {error}") from None
    end = _closing(rest)
    text = " ".join(rest[:end].split())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return check_argument(text), end


def _read_object(rest: str, start: int) -> tuple[dict[str, Any], int] | None:
    """A JSON object that fills the parentheses."""
    if rest[start : start + 1] != "{":
        return None
    try:
        value, end = decode(rest, start)
    except ValueError:
        return None
    return (value, rest.index(")", end)) if isinstance(value, dict) and rest[end:].lstrip()[:1] == ")" else None


def _read_fields(rest: str, start: int) -> tuple[dict[str, Any], int] | None:
    """Fields by name that fill the parentheses: `query="tower", limit=3`."""
    fields: dict[str, Any] = {}
    position = start
    while match := _FIELD.match(rest, position):
        string = _STRING.match(rest, match.end())
        try:
            value, end = (unquoted(string[0]) or "", string.end()) if string else decode(rest, match.end())
        except ValueError:
            return None
        fields[match[1]] = value
        position = end + len(rest[end:]) - len(rest[end:].lstrip()) + 1
        if rest[position - 1 : position] == ")":
            return fields, position - 1
        if rest[position - 1 : position] != ",":
            return None
    return None


def _closing(rest: str) -> int:
    """The closing parenthesis: the one that balances, else the line's last. Raises `_Fault`."""
    depth = 1
    for parenthesis in _PARENTHESIS.finditer(rest):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            return parenthesis.start()
    if (last := rest.rfind(")")) < 0:
        raise _Fault("its parenthesis isn't closed")
    return last


def _number(step: PlanStep) -> int:
    return int(step.id.removeprefix("E"))


def _literal(value: Any, number: int) -> str:
    """A value as JSON, with `$1` for an earlier task; a dollar sign that isn't one is escaped."""
    return _dollars(json.dumps(value, ensure_ascii=False).replace("$", "\\u0024"), number)


def _dollars(text: str, number: int) -> str:
    """`{{E1}}` as `$1` where it is read back so in the task `number`."""
    return _WRITTEN.sub(lambda found: f"${found[1]}" if int(found[1]) < number else found[0], text)


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
    lines = []
    for step in plan.steps:
        used = references(step.args)
        others = ", ".join(f"#{id_}" for id_ in step.depends_on if id_ not in used)
        call = f"{step.tool}[{write_call(map_strings(step.args, as_text))}]" + (f" after {others}" if others else "")
        lines.append(f"Plan: {step.thought}\n#{step.id} = {call}")
    return "\n".join(lines)


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


def _find_steps(text: str) -> list[dict[str, Any]]:
    """The first plan in a text: a list of objects, bare or in an object, or one object that names a tool."""
    for match in islice(_OPENING.finditer(text), _MOST_OPENINGS):
        try:
            value, _ = decode(text, match.start())
        except ValueError as error:
            if _PLAN.match(text, match.start()):  # and not the first whole piece of it
                raise PlanError([f"the JSON can't be read: {error}"]) from None
            continue
        steps = value
        if isinstance(value, dict):
            alone = [value] if any(key in value for key in _TOOL_KEYS) else None
            steps = value.get("steps", value.get("plan")) if "steps" in value or "plan" in value else alone
        if isinstance(steps, list) and steps and all(isinstance(item, dict) for item in steps):
            return steps
    raise PlanError(
        ['no plan found; it is JSON such as {"steps": [{"id": "E1", "tool": …, "args": {…}, "depends_on": []}]}']
    )


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
