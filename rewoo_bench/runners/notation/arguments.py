"""The text between a call's brackets: a text, or inputs by position, by name or as JSON.

    Search[Kuala Lumpur Tower]                      "Kuala Lumpur Tower"
    Search["a title [with brackets"]                "a title [with brackets"
    Search[{"query": "tower", "country": "MY"}]     {"query": "tower", "country": "MY"}
    flights[city=Oslo, seats=3]                     {"city": "Oslo", "seats": 3}; also flights[Oslo, 3]

Text is the whole value of a tool with one input that is a text. For any other tool it is read where its schema
leaves one way to do so (schemas.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from rewoo_bench.runners.notation import schemas
from rewoo_bench.runners.notation.schemas import ToolInput, ToolInputs, inputs, is_one_of, literal, unquoted
from rewoo_bench.text.model_output import LARGEST_CALL, decode, excerpt
from rewoo_bench.types import Tool

Arguments = str | dict[str, Any]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_JSON = re.compile(r"\s*+[{\"]")
_MARK = re.compile(r"""[\[\](){},:="']|[^\s\[\](){},:="']+""")
_QUOTED = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"(?=\s*+(?:[\],:)}=]|$))', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'(?=\s*+(?:[\],:)}=]|$))", re.DOTALL),
}
_NAMED = re.compile(r"""\s*+(?P<quote>["'`]?)([^\s"'`=:,\[\](){}]{1,100})(?P=quote)\s*+(=(?!=)|:)""")


class Misfit(ValueError):
    """Arguments that a tool can't be called with. Says why."""


def read_call(
    text: str, start: int, limit: int, tool: Tool | None = None, brackets: str = "[]"
) -> tuple[Arguments, int]:
    """The arguments that begin at `start`, after an opening bracket, and where their closing one is.

    Brackets inside them are balanced; where they aren't, the line's last closing one counts, or its end. JSON
    that is too deep or too long to be arguments (model_output.py) is read as text.
    """
    about = inputs(tool.arguments) if tool else None
    written = _read_json(text, start, limit, brackets[1])
    if written is not None and (isinstance(written[0], dict) or about is None or about.is_text):
        return written
    has_strings = brackets == "()" or (about is not None and not about.is_text)
    end = end_of_call(text, start, limit, brackets) if has_strings else None
    if end is None:
        end = closing_bracket(text, start, limit, brackets)
    inner = text[start:end]
    if brackets == "()" and (about is None or about.is_text) and (quoted := unquoted(inner.strip())) is not None:
        return quoted, end
    return read_arguments(inner, about) if about else " ".join(inner.split()), end


def read_input(text: str, tool: Tool | None = None) -> Arguments:
    """The arguments that a whole text is, which may be quoted."""
    return read_call(f"{text})", 0, len(text) + 1, tool, "()")[0]


def read_arguments(text: str, about: ToolInputs) -> Arguments:
    """What is between a call's brackets, by input; as text where it can't be read, or is that of the only input."""
    name = about.items[0].name if about.is_text else ""
    plain = " ".join(text.split())
    if about.is_text and not re.match(rf"""\s*+{re.escape(name)}\s*+=\s*+["']""", text):
        return plain
    try:
        found = _reading(text, about)
    except Misfit:  # said again by `to_fields`, which a call's faults come from
        return plain
    if found is None or (about.is_text and unquoted(text.partition("=")[2].strip()) is None):
        return plain
    fields: dict[str, Any] = schemas.convert(about.schema, found)
    return fields


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
    """The tool's own arguments, validated. Raises `Misfit`."""
    try:
        return tool.arguments.model_validate(to_fields(tool, arguments))
    except ValidationError as error:
        first = error.errors()[0]
        place = f"{excerpt(first['loc'][0])}: " if isinstance(arguments, dict) and first["loc"] else ""
        raise Misfit(f"{place}{first['msg']}") from None


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


def _split(text: str) -> list[str]:
    """The parts of a text between its commas, without those in strings and in brackets."""
    parts: list[str] = []
    start = depth = 0
    for position, mark in _marks(text, 0, len(text)):
        if mark == ",":
            if depth <= 0:
                parts.append(text[start:position])
                start = position + 1
        else:
            depth += 1 if mark in "[({" else -1
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
        return found[0]
    if not text or not about.items:
        return {}
    parts = _split(text)
    if (named := _by_name(parts, about)) is not None:
        return named
    by_position = {name: _value(raw, each) for (name, each), raw in zip(about.by_name.items(), parts, strict=False)}
    as_one = {about.items[0].name: _value(text, about.items[0])}
    fits_in = len(parts) <= len(about.items)
    for values in (by_position, as_one) if fits_in else (as_one,):
        if schemas.fault(about.schema, values, pending=True) is None:
            return values
    return by_position if fits_in and len(parts) > 1 else None  # whose fault says more


def _by_name(parts: Sequence[str], about: ToolInputs) -> dict[str, Any] | None:
    """Inputs by name; None where the first part names none. Raises `Misfit`."""
    names = {name.casefold(): name for name in about.by_name}
    fields: dict[str, str] = {}
    last = ""
    for part in parts:
        match = _NAMED.match(part)
        if match and (name := names.get(match[2].casefold())):
            if name in fields:
                raise Misfit(f"{excerpt(name)!r} is given twice")
            last, fields[name] = name, part[match.end() :]
        elif not fields:
            return None
        elif match and match[3] == "=" and match[2].isidentifier():
            raise Misfit(f"there is no field {excerpt(match[2])!r}; the fields are: {', '.join(about.by_name)}")
        else:
            fields[last] += f",{part}"
    return {name: _value(raw, about.by_name[name]) for name, raw in fields.items()}


def _value(raw: str, each: ToolInput) -> Any:
    """The value of one input as it is written: quoted or bare text, or JSON."""
    raw = raw.strip()
    value: Any = unquoted(raw)
    if value is None:
        value, found, kinds = " ".join(raw.split()), literal(raw), schemas.kinds(each.schema)
        is_left_out = found == (None,) and not each.required
        if found and (is_left_out or kinds is None or is_one_of(kinds, found[0])):
            value = found[0]
    return schemas.convert(each.schema, value)


def _read_json(text: str, start: int, limit: int, bracket: str) -> tuple[Arguments, int] | None:
    """A JSON object or string that fills the brackets; None where there is none."""
    if (opening := _JSON.match(text, start, limit)) is None:
        return None
    begin = opening.end() - 1
    try:
        # Not the whole text: many calls in a row would each be read to its end.
        value, size = decode(text[begin : begin + 2 * LARGEST_CALL])
    except ValueError:
        return None
    closing = re.compile(rf"\s*+\{bracket}").match(text, begin + size)
    return (value, closing.end() - 1) if closing else None


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
