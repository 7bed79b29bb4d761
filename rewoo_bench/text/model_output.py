"""Cleans model output: text that every file can hold, JSON of limited depth and size.

    check_text("\\ud800 x")                   "\\ufffd x"
    decode('{"query": "Oslo"} …', 0)         ({"query": "Oslo"}, 17)
    check_value({"query": float("nan")})     ValueError: nan is no number of JSON
    check_call(ToolCall("1", 5, [1]))        ToolCall("1", "5", {"__raw__": "[1]"})

A reply may hold anything: half of a surrogate pair, arguments nested 600 deep, a tool's name that
is a number. The meter checks each reply (`check_reply`), and `decode` each JSON value that is read out of one; nobody
else has to. Every change is noted in the trajectory, and so in
traces.jsonl:

    notes["repaired"] = [{"place": "turn 1", "repair": "a lone surrogate became U+FFFD"}]
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from rewoo_bench.events import current_place
from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.types import Completion, ToolCall

DEEPEST = 32  # levels of lists and objects in the arguments of a call
LARGEST_CALL = 100_000  # characters of all the arguments of a call, as JSON; of a longer text the beginning is kept
LONGEST_SHOWN = 80  # characters of a name or value that a message repeats
# The only argument of a tool call if its arguments aren't a JSON object: their text, unchanged. No tool
# has an argument of that name, so its schema refuses the call and the model sees its own text.
RAW_ARGUMENTS = "__raw__"

_MOST_NOTES = 100  # of one question
_MOST_BITS = 4096  # of a whole number; far fewer than Python refuses to print

_notes: ContextVar[list[dict[str, str]] | None] = ContextVar("repairs", default=None)


def check_reply(completion: Completion) -> Completion:
    """A completion with sound texts and sound tool calls."""
    text, thoughts = check_text(completion.text), check_text(completion.thoughts)
    calls = tuple(check_call(call) for call in completion.tool_calls)
    if text is completion.text and thoughts is completion.thoughts and calls == completion.tool_calls:
        return completion
    return replace(completion, text=text, thoughts=thoughts, tool_calls=calls)


@contextmanager
def noting_repairs() -> Iterator[list[dict[str, str]]]:
    """Collects the repairs inside its `with`: the place and the change."""
    collected: list[dict[str, str]] = []
    token = _notes.set(collected)
    try:
        yield collected
    finally:
        _notes.reset(token)


def note(repair: str) -> None:
    """Notes a repair, once for each place, if repairs are collected."""
    collected = _notes.get()
    entry = {"place": current_place().name, "repair": repair}
    if collected is not None and len(collected) < _MOST_NOTES and entry not in collected:
        collected.append(entry)


def check_text(text: str) -> str:
    """A text that every file can hold; the same object where it is one already."""
    if text.isascii() or (sound := replace_surrogates(text)) == text:
        return text
    note("a lone surrogate became U+FFFD")
    return sound


def check_value(value: Any, levels: int = DEEPEST) -> Any:
    """A JSON value with sound texts. Raises `ValueError` for one that is too deep, or no JSON."""
    if isinstance(value, str):
        return check_text(value)
    if isinstance(value, Mapping | list | tuple) and not levels:
        raise ValueError(f"nested more than {DEEPEST} deep")
    if isinstance(value, Mapping):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise ValueError(f"{excerpt(strange[0])} is no name of a field")
        return {check_text(key): check_value(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [check_value(item, levels - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"a number of {value.bit_length()} bits, at most {_MOST_BITS} are read")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError(f"{type(value).__name__} is no value of JSON")


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by field. Raises `ValueError` as `check_value`, and where they are too long together."""
    checked: dict[str, Any] = check_value(fields)
    size = len(json.dumps(checked, ensure_ascii=False))
    if size > LARGEST_CALL:
        raise ValueError(f"{size} characters, at most {LARGEST_CALL} are read")
    return checked


def check_call(call: ToolCall) -> ToolCall:
    """A tool call with texts for its id and name, and JSON for its arguments; others stay text (`RAW_ARGUMENTS`)."""

    def checked(name: object, what: str) -> str:
        if isinstance(name, str):
            return check_text(name)
        note(f"the {what} of a tool call was no text but {type(name).__name__}")
        return excerpt(name)

    name = checked(call.name, "name")
    try:
        arguments = check_fields(call.arguments) if isinstance(call.arguments, Mapping) else _raw(call.arguments)
    except ValueError as error:
        note(f"the arguments of {name!r} were read as text: {error}")
        arguments = _raw(call.arguments)
    return replace(call, id=checked(call.id, "id"), name=name[:LARGEST_CALL], arguments=arguments)


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at `start`, as `check_value` has it, and where it ends. Raises `ValueError`."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return check_value(value), end


def excerpt(value: object) -> str:
    """A value that a model wrote, short enough to be repeated in a message."""
    try:
        text = value if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # a whole number of too many digits
        text = type(value).__name__
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{excerpt(text)} is no number of JSON")
    return value


_DECODER = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=_finite)  # lines in texts


def _raw(arguments: object) -> dict[str, Any]:
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    except (TypeError, ValueError):
        text = excerpt(arguments)
    return {RAW_ARGUMENTS: check_text(text[:LARGEST_CALL])}


# Parts of JSON that somebody else wrote.


def as_object(value: Any) -> Mapping[str, Any]:
    """The value, if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def objects_in(value: Any) -> list[Any]:
    """The objects of a list; none where it is no list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
