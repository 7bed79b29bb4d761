"""The notation of LLMCompiler's plans: numbered calls, one a line, and `join()` at the end.

    Thought: The tower's page names its architect.
    1. Search("Kuala Lumpur Tower")
    2. LLM("Who designed it? Context: $1")
    3. join()

`$1` stands for the result of task 1, which is the step `E1` here; only an earlier task can be meant, so `$80` in task 3
is money, as are `$1,000` and `$1.50`. A line is read without the lines after it, so a task can start while the rest of
the plan is being written.
Source of the idea: Kim et al. 2023, arXiv 2312.04511, section 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from rewoo_bench.errors import PlanError
from rewoo_bench.notation.arguments import Arguments, end_of_call, read_inputs
from rewoo_bench.notation.plan import Plan, PlanStep, references
from rewoo_bench.notation.schemas import Inputs, inputs
from rewoo_bench.notation.tool_names import NO_TOOLS, name_pattern, odd_names, spellings, spelt
from rewoo_bench.text.model_output import check_argument, check_fields, decode
from rewoo_bench.types import Tool

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
    return f"{step.tool}({_write_arguments(step.args, number)})" + (
        f" after {_dollars(others, number)}" if others else ""
    )


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
    rest = _REFERENCE.sub(lambda found: _slot(found, number), line[match.end() :])
    args, end = _read_arguments(rest, inputs(tool.arguments) if tool else None)
    after = _NUMBERED_AFTER.match(rest, end)
    needs = tuple(f"E{int(number)}" for number in re.findall(r"\d+", after[1])) if after else ()
    return PlanStep(id=f"E{number}", tool=match[2], args=args, depends_on=needs, thought=thought)


def _slot(found: re.Match[str], number: int) -> str:
    """`$1` as `{{E1}}` in a task with a later number; else as it is."""
    named = int(found[1] or found[2])
    return f"{{{{E{named}}}}}" if named < number else found[0]


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
            return check_argument(_unquoted(string[0])), rest.index(")", string.end())
    for read in (_read_object, _read_fields):
        if (found := read(rest, start)) is not None:
            return _checked(found[0]), found[1]
    end = _closing(rest)
    text = " ".join(rest[:end].split())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return check_argument(text), end


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    try:
        return check_fields(fields)
    except ValueError as error:
        raise _Fault(f"its arguments can't be read: {error}") from None


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
            value, end = (_unquoted(string[0]), string.end()) if string else decode(rest, match.end())
        except ValueError:
            return None
        fields[match[1]] = value
        position = end + len(rest[end:]) - len(rest[end:].lstrip()) + 1
        if rest[position - 1 : position] == ")":
            return fields, position - 1
        if rest[position - 1 : position] != ",":
            return None
    return None


def _unquoted(literal: str) -> str:
    """The text of a string in double or single quotes; one with unknown escapes stays as it is."""
    inner = literal[1:-1]
    if literal[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        return inner


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


def _write_arguments(args: Arguments, number: int) -> str:
    if isinstance(args, dict) and args and all(_IDENTIFIER.fullmatch(name) for name in args):
        return ", ".join(f"{name}={_literal(value, number)}" for name, value in args.items())
    return _literal(args, number)


def _literal(value: Any, number: int) -> str:
    """A value as JSON, with `$1` for an earlier task; a dollar sign that isn't one is escaped."""
    return _dollars(json.dumps(value, ensure_ascii=False).replace("$", "\\u0024"), number)


def _dollars(text: str, number: int) -> str:
    """`{{E1}}` as `$1` where it is read back so in the task `number`."""
    return _WRITTEN.sub(lambda found: f"${found[1]}" if int(found[1]) < number else found[0], text)
