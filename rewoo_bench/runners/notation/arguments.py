"""The text between a call's brackets: a text, or inputs by position, by name or as JSON.

    Search[Kuala Lumpur Tower]                      "Kuala Lumpur Tower"
    Search["a title [with brackets"]                "a title [with brackets"
    Search[{"query": "tower", "country": "MY"}]     {"query": "tower", "country": "MY"}
    flights[Oslo, 3]                                {"city": "Oslo", "seats": 3}
    flights[city=Oslo, seats=3]                     {"city": "Oslo", "seats": 3}

Text is the whole value of a tool with one input that is a text. For any other tool it is read where its schema
leaves one way to do so (schemas.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from rewoo_bench.runners.notation import schemas
from rewoo_bench.runners.notation.schemas import ToolInput, ToolInputs, inputs, is_one_of, literal, unquoted
from rewoo_bench.text.model_output import LARGEST_CALL, check_argument, check_fields, decode, excerpt, note
from rewoo_bench.types import Tool

Arguments = str | dict[str, Any]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_JSON = re.compile(r"\s*+[{\"]")
_CLOSING = re.compile(r"\s*+\]")
_MARK = re.compile(r"""[\[\](){},:="']|[^\s\[\](){},:="']+""")
_QUOTED = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"(?=\s*+(?:[\],:)}=]|$))', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'(?=\s*+(?:[\],:)}=]|$))", re.DOTALL),
}
_NAMED = re.compile(r"""\s*+(?P<quote>["'`]?)([^\s"'`=:,\[\](){}]{1,100})(?P=quote)\s*+(=(?!=)|:)""")
_PARTS = 200  # that are looked at


class Misfit(ValueError):
    """Arguments that a tool can't be called with. Says why."""


def read_call(text: str, start: int, limit: int, tool: Tool | None = None) -> tuple[Arguments, int]:
    """The arguments that begin at `start`, after an opening bracket, and where their closing one is.

    Brackets inside them are balanced; where they aren't, the line's last `]` closes, or its end. JSON
    that is too deep or too long to be arguments (model_output.py) is read as text.
    """
    about = inputs(tool.arguments) if tool else None
    written = _read_json(text, start, limit)
    if written is not None and (isinstance(written[0], dict) or about is None or about.is_text):
        return written
    end = end_of_call(text, start, limit, "[]") if about and not about.is_text else None
    if end is None:
        end = closing_bracket(text, start, limit)
    return read_arguments(text[start:end], about) if about else check_argument(" ".join(text[start:end].split())), end


def read_parenthesised(text: str, start: int, limit: int, tool: Tool | None = None) -> tuple[Arguments, int]:
    """The same behind an opening parenthesis: `Search("Oslo")`, `flights(city="Oslo", seats=2)`."""
    end = closing_parenthesis(text, start, limit)
    return read_input(text[start:end], tool), end


def closing_parenthesis(text: str, start: int, limit: int) -> int:
    """Where a call's parenthesis closes: not in a string, else where `closing_bracket` says."""
    end = end_of_call(text, start, limit, "()")
    return closing_bracket(text, start, limit, "()") if end is None else end


def read_input(text: str, tool: Tool | None = None) -> Arguments:
    """The arguments that a whole text is, which may be quoted."""
    about = inputs(tool.arguments) if tool else None
    plain = unquoted(text.strip()) if about is None or about.is_text else None
    if plain is not None:
        return check_argument(plain)
    return read_call(f"{text}]", 0, len(text) + 1, tool)[0]


def read_arguments(text: str, about: ToolInputs) -> Arguments:
    """What is between a call's brackets, by input; as text where it can't be read, or is that of the only input."""
    name = about.items[0].name if about.is_text else ""
    if about.is_text and not re.match(rf"""\s*+{re.escape(name)}\s*+=\s*+["']""", text):
        return check_argument(" ".join(text.split()))
    try:
        found = _reading(text, about)
        if found is not None and not (about.is_text and unquoted(text.partition("=")[2].strip()) is None):
            return check_fields(schemas.convert(about.schema, found))
    except ValueError:  # said again by `to_fields`, which a call's faults come from
        pass
    return check_argument(" ".join(text.split()))


def write_call(arguments: Arguments) -> str:
    """Arguments as the text between brackets; `read_call` reads them back equal."""
    if isinstance(arguments, str) and _is_plain(arguments):
        return arguments
    # Brackets inside strings are escaped, so that none is taken for the call's own.
    return _STRING.sub(
        lambda string: string[0].replace("[", "\\u005b").replace("]", "\\u005d"),
        json.dumps(arguments, ensure_ascii=False),
    )


def show_call(arguments: Arguments) -> str:
    """Arguments as a reader wants them: a single value without its field's name, and none as no text."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        (value,) = arguments.values()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False) if arguments else ""


def to_model(tool: Tool, arguments: Arguments) -> BaseModel:
    """The tool's own arguments, validated. Raises pydantic's `ValidationError`, or `Misfit`."""
    return tool.arguments.model_validate(to_fields(tool, arguments))


def to_fields(tool: Tool, arguments: Arguments) -> Mapping[str, Any]:
    """Arguments by input, of the types that the schema asks for where they can be converted. Raises `Misfit`."""
    about = inputs(tool.arguments)
    if isinstance(arguments, str):
        if about.is_text and arguments:
            return {about.items[0].name: arguments}
        found = _reading(arguments, about)
        arguments = {about.items[0].name: arguments} if found is None and about.items else found or {}
    fields: dict[str, Any] = schemas.convert(about.schema, arguments)
    return fields


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every string in it changed; the names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: map_strings(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [map_strings(item, change) for item in value]
    return value


def split_inputs(text: str) -> list[str]:
    """The parts of a text between its commas, without those in strings and in brackets."""
    parts: list[str] = []
    start = depth = 0
    for position, mark in _marks(text, 0, len(text)):
        if mark in ("[", "(", "{"):
            depth += 1
        elif mark in ("]", ")", "}"):
            depth -= 1
        elif mark == "," and depth <= 0 and len(parts) < _PARTS:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def end_of_call(text: str, start: int, limit: int, brackets: str) -> int | None:
    """Where the closing one of the two brackets is, brackets in strings left aside; None where it isn't closed."""
    depth = 1
    for position, mark in _marks(text, start, limit):
        depth += (mark == brackets[0]) - (mark == brackets[1])
        if not depth:
            return position
    return None


def _marks(text: str, start: int, limit: int) -> Iterator[tuple[int, str]]:
    """The commas and brackets of a text that are in no string. A string begins where a value does."""
    begins, position, unclosed = True, start, set[str]()
    while match := _MARK.search(text, position, limit):
        mark, position = match[0], match.end()
        if mark in _QUOTED and begins and mark not in unclosed:
            if string := _QUOTED[mark].match(text, match.start(), limit):
                begins, position = False, string.end()
                continue
            unclosed.add(mark)
        begins = mark in "[({,=:"
        if mark in "[](){},":
            yield match.start(), mark


def _reading(text: str, about: ToolInputs) -> dict[str, Any] | None:
    """The inputs by name, or None where the text is no reading of them. Raises `Misfit`."""
    text = text.strip()
    if text.startswith("{") and (found := literal(text)) and isinstance(found[0], dict):
        if not about.items or found[0].keys() <= about.by_name.keys():
            return found[0]
        whole = {about.items[0].name: found[0]}  # the value of the first input, where it fits
        return whole if "object" in (schemas.kinds(about.items[0].schema) or ()) and _fits(whole, about) else found[0]
    if not text or not about.items:
        return {}
    parts = split_inputs(text)
    if (named := _by_name(parts, about)) is not None:
        return named
    by_position = {name: _value(raw, each) for (name, each), raw in zip(about.by_name.items(), parts, strict=False)}
    fits_in = len(parts) <= len(about.items)
    if fits_in and _fits(by_position, about):
        return by_position
    first = about.items[0]
    as_one = {first.name: _value(text, first)}
    # The fault of several values says more than that of the whole text.
    return as_one if _fits(as_one, about) else by_position if fits_in and len(parts) > 1 else None


def _by_name(parts: Sequence[str], about: ToolInputs) -> dict[str, Any] | None:
    """Inputs by name, those before the first name by position; None where none is named. Raises `Misfit`."""
    names = {**{name.casefold(): name for name in about.by_name}, **{name: name for name in about.by_name}}
    positional: list[str] = []
    named: dict[str, str] = {}
    last = ""
    for part in parts:
        match = _NAMED.match(part)
        name = names.get(match[2], names.get(match[2].casefold())) if match else None
        if match and name:
            if name in named:
                raise Misfit(f"{excerpt(name)!r} is given twice")
            last, named[name] = name, part[match.end() :]
        elif match and match[3] == "=" and named and match[2].isidentifier():
            raise Misfit(f"there is no field {excerpt(match[2])!r}; the fields are: {', '.join(about.by_name)}")
        elif named:
            named[last] += f",{part}"
        else:
            positional.append(part)
    if not named:
        return None
    before = dict(zip(about.by_name, positional, strict=False))
    if twice := next((name for name in before if name in named), None):
        raise Misfit(f"{excerpt(twice)!r} is given twice")
    return {name: _value(raw, about.by_name[name]) for name, raw in {**before, **named}.items()}


def _value(raw: str, each: ToolInput) -> Any:
    """The value of one input as it is written: quoted or bare text, or JSON."""
    raw = raw.strip()
    kinds = schemas.kinds(each.schema)
    value: Any = unquoted(raw)
    if value is None:
        value = " ".join(raw.split())
        found = literal(raw) if kinds is None or kinds - {"string"} or raw in ("null", "None") else None
        if found and found[0] is None and not each.required:
            value = None
        elif found and (kinds is None or is_one_of(kinds, found[0])):
            value = found[0]
    if kinds and "array" in kinds and schemas.fault(each.schema, value, pending=True):
        several = literal(f"[{raw}]")  # the brackets of the call may be meant as those of the list
        if several and schemas.fault(each.schema, several[0], pending=True) is None:
            value = several[0]
    return schemas.convert(each.schema, value)


def _fits(values: Mapping[str, Any], about: ToolInputs) -> bool:
    by_name = about.by_name
    return set(about.required) <= set(values) and not any(
        schemas.fault(by_name[name].schema, value, pending=True)
        for name, value in values.items()
        if value is not None or by_name[name].required
    )


def _read_json(text: str, start: int, limit: int) -> tuple[Arguments, int] | None:
    """A JSON object or string that fills the brackets; None where there is none."""
    if (opening := _JSON.match(text, start, limit)) is None:
        return None
    begin = opening.end() - 1
    try:
        # Not the whole text: many calls in a row would each be read to its end.
        value, size = decode(text[begin : begin + 2 * LARGEST_CALL])
    except ValueError:
        return None
    if (closing := _CLOSING.match(text, begin + size)) is None:
        return None
    try:
        return (check_argument(value) if isinstance(value, str) else check_fields(value)), closing.end() - 1
    except ValueError as error:
        note(f"the arguments of a call were read as text: {error}")
        return None


def closing_bracket(text: str, start: int, limit: int, brackets: str = "[]") -> int:
    """Where the closing one of the two brackets is: the one that balances, else the line's last, else its end."""
    depth = 1
    for bracket in re.compile(rf"[\{brackets[0]}\{brackets[1]}]").finditer(text, start, limit):
        depth += 1 if bracket[0] == brackets[0] else -1
        if depth == 0:
            return bracket.start()
    line_end = text.find("\n", start, limit)
    line_end = limit if line_end < 0 else line_end
    last = text.rfind(brackets[1], start, line_end)
    return last if last >= 0 else line_end


def _is_plain(text: str) -> bool:
    """Whether the text reads back as itself: one line, balanced, no call inside, not taken for JSON."""
    if text != " ".join(text.split()) or text.startswith(("{", '"')) or re.search(r"#E\d+[\s*`]*=", text):
        return False
    # A bracket left open inside would be closed by one in a later line.
    return text.count("[") == text.count("]") and closing_bracket(f"{text}]", 0, len(text) + 1) == len(text)
