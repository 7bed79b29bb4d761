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

A plan in text without any such step may have steps as they are often written elsewhere, `#E1 = Search("x")` and
`#E1: Search[x]`; a note says that it was read so. Reading is tolerant where the intent is plain: prose and code fences
around the plan, Markdown signs, several steps on a line, numbering that starts anywhere, a bare JSON list. `after #E1`
behind a call (`after $1`) names a step that it waits for without using it.

In the numbered notation (Kim et al. 2023, arXiv 2312.04511, section 3) `$1` stands for the result of task 1, the step
`E1` here. Only an earlier task can be meant, so `$80` in task 3 is money, as are `$1,000` and `$1.50`. A line of the
numbered notation is read without the lines after it, so a task can start while the rest of the plan is being written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

from rewoo_bench.errors import PlanError
from rewoo_bench.runners.notation.arguments import (
    map_strings,
    read_call,
    write_call,
)
from rewoo_bench.runners.notation.plan import Plan, PlanStep, ToolNames, references, spellings_of, with_hash_signs
from rewoo_bench.text.model_output import decode, excerpt, note
from rewoo_bench.types import Tool

Notation = Literal["text", "json", "numbered"]
Entry = PlanStep | str
"""A step, or the fault of form that keeps one from being read."""

_NO_TOOLS: Mapping[str, Tool] = MappingProxyType({})


def read_plan(text: str, notation: Notation = "text", tools: Mapping[str, Tool] = _NO_TOOLS) -> Plan:
    """The plan in a planner's reply, with the inputs of `tools` by name.

    Raises `PlanError` with every fault of form and the steps that were read, and where there is no step.
    """
    entries = list(_READERS[notation](text, tools))
    steps = tuple(each for each in entries if isinstance(each, PlanStep))
    if faults := [each for each in entries if isinstance(each, str)]:
        raise PlanError(faults, steps)
    if not steps:
        raise PlanError([_NO_STEP[notation]])
    return Plan(steps=steps)


def complete_steps(text: str, tools: Mapping[str, Tool] = _NO_TOOLS) -> list[PlanStep]:
    """The steps of a numbered plan that is still being written: those whose line has ended and can be read."""
    whole, _, _ = text.rpartition("\n")
    return [each for each in _numbered_entries(whole, tools) if isinstance(each, PlanStep)]


def write_plan(plan: Plan, notation: Notation = "text", *, bare: bool = False) -> str:
    """The plan as a planner would write it, with thoughts; a `bare` one in JSON without them and `depends_on`."""
    lines: list[str] = []
    for step in plan.steps:
        if notation == "text":
            call = f"{step.tool}[{write_call(map_strings(step.args, with_hash_signs))}]"
            others = ", ".join(f"#{id_}" for id_ in _only_awaited(step))
            lines.append(f"Plan: {step.thought}\n#{step.id} = {call}" + (f" after {others}" if others else ""))
        elif notation == "json":
            fields: dict[str, Any] = {"id": step.id, "thought": step.thought, "tool": step.tool, "args": step.args}
            if bare or not step.thought:
                del fields["thought"]
            more = {} if bare else {"depends_on": step.depends_on}
            lines.append(json.dumps({**fields, **more}, ensure_ascii=False))
        else:
            lines += [f"Thought: {step.thought}"] if step.thought else []
            lines.append(f"{step.number}. {write_task(step)}")
    if notation == "json":
        return '{"steps": [\n' + ",\n".join(lines) + "\n]}"
    if notation == "numbered":
        lines.append(f"{plan.next_number}. join()")
    return "\n".join(lines)


def write_action(step: PlanStep) -> str:
    """A step as the only action of a turn, in the JSON notation."""
    return json.dumps({"action": {"tool": step.tool, "args": step.args}}, ensure_ascii=False)


def write_task(step: PlanStep) -> str:
    """A step's call in the numbered notation: `LLM("Who designed it? Context: $1")`."""

    def dollars(text: str) -> str:  # where it is read back so
        return _WRITTEN.sub(lambda found: f"${found[1]}" if int(found[1]) < step.number else found[0], text)

    def literal(value: Any) -> str:  # a dollar sign that names no task is escaped
        return dollars(json.dumps(value, ensure_ascii=False).replace("$", "\\u0024"))

    written = literal(step.args)
    if isinstance(step.args, dict) and step.args and all(map(_IDENTIFIER.fullmatch, step.args)):
        written = ", ".join(f"{name}={literal(value)}" for name, value in step.args.items())
    others = ", ".join(f"{{{{{id_}}}}}" for id_ in _only_awaited(step))
    return f"{step.tool}({written})" + (f" after {dollars(others)}" if others else "")


def as_numbered(sentence: str) -> str:
    """A sentence about steps in the names of the numbered notation: `$1` for `#E1`."""
    return re.sub(r"#E(\d{1,9})", r"$\1", sentence)


def _only_awaited(step: PlanStep) -> list[str]:
    """The steps that it waits for without using their evidence."""
    used = set(references(step.args))
    return [id_ for id_ in step.depends_on if id_ not in used]


def _ids(after: re.Match[str] | None) -> tuple[str, ...]:
    return tuple(f"E{int(number)}" for number in re.findall(r"\d+", after[1])) if after else ()


_THOUGHT = re.compile(r"\bPlan(?:\s*\d+)?\s*:(.*)", re.DOTALL)
_AFTER = re.compile(r"[ *`]*after((?:[ ,]+#E\d{1,9})+)", re.ASCII)


def _text_entries(text: str, tools: Mapping[str, Tool]) -> Iterator[Entry]:
    names = spellings_of(tuple(tools))
    beginning = rf"(?:^[ *`-]+)?#E(\d{{1,9}})[\s*`]*=[\s*`]*({names.pattern})[\s*`]*\["  # with Markdown's signs or not
    starts = list(re.finditer(beginning, text, re.MULTILINE)) or _other_starts(text, names, tools)
    position = 0
    for index, match in enumerate(starts, start=1):
        if match.start() < position:
            continue  # inside an argument
        limit = starts[index].start() if index < len(starts) else len(text)
        brackets = "[]" if match[0].endswith("[") else "()"
        args, end = read_call(text, match.end(), limit, tools.get(names.spelt(match[2])), brackets)
        id_ = f"E{int(match[1])}"
        if end == len(text):
            yield f"the plan ends in the middle of #{id_}"
            return
        thought = _THOUGHT.search(text[position : match.start()])
        position = limit if end == limit else end + 1
        after = _AFTER.match(text, position)
        position = after.end() if after else position
        yield PlanStep(id=id_, tool=match[2], args=args, depends_on=_ids(after), thought=thought[1] if thought else "")


def _other_starts(text: str, names: ToolNames, tools: Mapping[str, Tool]) -> list[re.Match[str]]:
    """Where calls of known tools begin in the forms of others, with a colon or a parenthesis."""
    beginning = rf"(?:^[ *`-]+)?#E(\d{{1,9}})[\s*`]*[=:][\s*`]*({names.pattern})[\s*`]*[\[(]"
    found = re.finditer(beginning, text, re.MULTILINE)
    starts = [match for match in found if not tools or names.spelt(match[2]) in tools]
    if starts:
        note("the plan was written with colons or parentheses")
    return starts


_OPENING = re.compile(r'\[\s{0,9}[\[{]|\{\s{0,9}"')
_MOST_OPENINGS = 1000  # that are tried; a plan comes earlier
_PLAN = re.compile(r'\[\s{0,9}\{|\{\s{0,9}"(?:steps|plan|action)"|\[\s{0,9}\[')
_TOOL_KEYS = ("tool", "name", "action")
_ARGS_KEYS = ("args", "arguments", "input")
_ID = re.compile(r"\s*#?[Ee]?(\d{1,9})\s*", re.ASCII)


def _json_entries(text: str, tools: Mapping[str, Tool]) -> Iterator[Entry]:
    """The first plan in a text: a list of objects, bare or in an object, or one object that names a tool.

    That one may be alone in an object: `{"action": {"tool": …}}`.
    """
    for match in islice(_OPENING.finditer(text), _MOST_OPENINGS):
        try:
            steps, _ = decode(text, match.start())
        except ValueError as error:
            if _PLAN.match(text, match.start()):  # and not the first whole piece of it
                yield f"the JSON can't be read: {error}"
                return
            continue
        if isinstance(steps, dict):
            action = steps.get("action")
            alone = action if isinstance(action, dict) else steps
            steps = steps.get("steps", steps.get("plan", [alone] if _first(alone, _TOOL_KEYS) else None))
        if isinstance(steps, list) and steps and all(isinstance(item, dict) for item in steps):
            for position, item in enumerate(steps, start=1):
                try:
                    yield _read_item(item, position)
                except ValueError as error:
                    yield f"step {position}: {error}"
            return


def _first(item: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def _read_item(item: dict[str, Any], position: int) -> PlanStep:
    """One step. Raises `ValueError` for what can't be meant as one."""

    def read_id(value: Any) -> str:
        match = _ID.fullmatch(str(value)) if isinstance(value, str | int) else None
        if not match:
            raise ValueError(f"{excerpt(value)!r} is no step; steps are named E1, E2, …")
        return f"E{int(match[1])}"

    tool, args, thought = _first(item, _TOOL_KEYS), _first(item, _ARGS_KEYS), item.get("thought")
    if not isinstance(tool, str) or not tool.strip():
        raise ValueError("it names no tool")
    if not isinstance(args, str | dict | None):
        raise ValueError(f"its args are {excerpt(args)}, not an object")
    needs = item.get("depends_on") or []
    return PlanStep(
        id=read_id(item.get("id", position)),
        tool=tool.strip(),
        args="" if args is None else args,
        depends_on=tuple(map(read_id, needs if isinstance(needs, list) else [needs])),
        thought=thought if isinstance(thought, str) else "",
    )


def _with_slots(text: str, number: int) -> str:
    """A text of step `number` with `$1` as `{{E1}}` where an earlier step can be meant."""

    def as_slot(found: re.Match[str]) -> str:
        named = int(found[1] or found[2])
        return f"{{{{E{named}}}}}" if named < number else found[0]

    return _REFERENCE.sub(as_slot, text)


_MARKS = r"[ \t*`>-]*+"  # of Markdown
_NUMBER = rf"\$?(\d{{1,9}})[ \t*`]*+[.):=]{{1,2}}{_MARKS}"
_JOIN = re.compile(rf"{_MARKS}(?:{_NUMBER})?join[ \t*`]*+(?:\(.*)?$", re.IGNORECASE)
_NUMBERED_THOUGHT = re.compile(rf"{_MARKS}Thought[\s*]*+:(.*)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:(\d{1,2})(?!\d|[.,]\d)|\{(\d{1,2})\})", re.ASCII)
_WRITTEN = re.compile(r"\{\{E(\d{1,2})\}\}(?!\d|[.,]\d)", re.ASCII)
_NUMBERED_AFTER = re.compile(r"\)[ *`]*+after((?:[ ,]++\{\{E\d{1,9}\}\})++)", re.ASCII)
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def _numbered_entries(text: str, tools: Mapping[str, Tool]) -> Iterator[Entry]:
    """The tasks up to `join()`."""
    names = spellings_of(tuple(tools))
    task = re.compile(rf"{_MARKS}{_NUMBER}({names.pattern})[ \t*`]*+\(")
    thought = ""
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if _JOIN.match(line):
            return
        if match := _NUMBERED_THOUGHT.match(line):
            thought = match[1]
        elif match := task.match(line):
            yield _read_task(line, match, thought, tools.get(names.spelt(match[2])))
            thought = ""


def _read_task(line: str, match: re.Match[str], thought: str, tool: Tool | None) -> Entry:
    """The step of a line."""
    number = int(match[1])
    rest = _with_slots(line[match.end() :], number)
    args, end = read_call(rest, 0, len(rest), tool, "()")
    if end == len(rest):
        return f"#E{number}: its parenthesis isn't closed"
    after = _NUMBERED_AFTER.match(rest, end)
    return PlanStep(id=f"E{number}", tool=match[2], args=args, depends_on=_ids(after), thought=thought)


_READERS: Mapping[Notation, Callable[[str, Mapping[str, Tool]], Iterator[Entry]]] = {
    "text": _text_entries,
    "json": _json_entries,
    "numbered": _numbered_entries,
}
_NO_STEP: Mapping[Notation, str] = {
    "text": "no step found; a step is a line such as '#E1 = Search[title]'",
    "json": 'no plan found; it is JSON such as {"steps": [{"id": "E1", "tool": …, "args": {…}, "depends_on": []}]}',
    "numbered": "no task found; a task is a line such as '1. Search(\"title\")'",
}
