"""The text between a call's brackets: plain, or the tool's arguments as JSON.

    Search[Kuala Lumpur Tower]                      "Kuala Lumpur Tower"
    Search["a title [with brackets"]                "a title [with brackets"
    Search[{"query": "tower", "country": "MY"}]     {"query": "tower", "country": "MY"}

Text is the value of the tool's first field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from rewoo_bench.text.model_output import LARGEST_CALL, check_argument, check_fields, decode, note
from rewoo_bench.types import Tool

Arguments = str | dict[str, Any]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPACE = re.compile(r"\s*")
_BRACKET = re.compile(r"[\[\]]")


def read_call(text: str, start: int, limit: int) -> tuple[Arguments, int]:
    """The arguments that begin at `start`, after an opening bracket, and where their closing one is.

    Brackets inside them are balanced; where they aren't, the line's last `]` closes, or its end. JSON
    that is too deep or too long to be arguments (model_output.py) is read as text.
    """
    quoted = _read_json(text, start, limit)
    if quoted is not None:
        return quoted
    end = _closing_bracket(text, start, limit)
    return check_argument(" ".join(text[start:end].split())), end


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
    """Arguments as a reader wants them: a single value without its field's name."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        (value,) = arguments.values()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def to_model(tool: Tool, arguments: Arguments) -> BaseModel:
    """The tool's own arguments, validated. Raises pydantic's `ValidationError`."""
    return tool.arguments.model_validate(to_fields(tool, arguments))


def to_fields(tool: Tool, arguments: Arguments) -> Mapping[str, Any]:
    """Arguments by field name; text is the first field's."""
    if isinstance(arguments, str):
        return {next(iter(tool.arguments.model_fields)): arguments}
    return arguments


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every string in it changed; the names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: map_strings(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [map_strings(item, change) for item in value]
    return value


def _read_json(text: str, start: int, limit: int) -> tuple[Arguments, int] | None:
    """A JSON object or string that fills the brackets; None where there is none."""
    begin = _skip_space(text, start, limit)
    if text[begin : begin + 1] not in ("{", '"'):
        return None
    try:
        # Not the whole text: many calls in a row would each be read to its end.
        value, size = decode(text[begin : begin + 2 * LARGEST_CALL])
    except ValueError:
        return None
    end = _skip_space(text, begin + size, len(text))
    if text[end : end + 1] != "]":
        return None
    try:
        return (check_argument(value) if isinstance(value, str) else check_fields(value)), end
    except ValueError as error:
        note(f"the arguments of a call were read as text: {error}")
        return None


def _skip_space(text: str, start: int, limit: int) -> int:
    match = _SPACE.match(text, start, limit)
    return match.end() if match else start


def _closing_bracket(text: str, start: int, limit: int) -> int:
    depth = 1
    for bracket in _BRACKET.finditer(text, start, limit):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            return bracket.start()
    line_end = text.find("\n", start, limit)
    line_end = limit if line_end < 0 else line_end
    last = text.rfind("]", start, line_end)
    return last if last >= 0 else line_end


def _is_plain(text: str) -> bool:
    """Whether the text reads back as itself: one line, balanced, no call inside, not taken for JSON."""
    if text != " ".join(text.split()) or text.startswith(("{", '"')) or re.search(r"#E\d+[\s*`]*=", text):
        return False
    # A bracket left open inside would be closed by one in a later line.
    return text.count("[") == text.count("]") and _closing_bracket(f"{text}]", 0, len(text) + 1) == len(text)
