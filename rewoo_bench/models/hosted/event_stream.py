"""Server-sent events, as bytes that arrive in pieces of any size.

    stream = EventStream()
    stream.add(b"data: {}\\n\\nda")     # [b"data: {}\\n\\n"]
    stream.rest                       # b"da"

Source: the HTML standard, "Server-sent events".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_END = re.compile(rb"\r?\n\r?\n")  # the blank line behind an event
_LONGEST_END = 4
_DONE = b"[DONE]"  # the last event of a chat
_DEEPEST = 200  # levels of a document: those who read it further call themselves for each


def load_json(data: str | bytes) -> Any:
    """The JSON of a request or of an answer. Raises `ValueError`, also where it is nested too deeply."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels") from None
    level = [value]
    for _ in range(_DEEPEST + 1):
        parts = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [each for inner in parts for each in inner if isinstance(each, dict | list)]
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {_DEEPEST} levels")


class EventStream:
    """Cuts a stream into whole events. Every byte is looked at once, however long an event is."""

    def __init__(self) -> None:
        self._open = bytearray()
        self._searched = 0  # bytes of `_open` in which no event ends

    @property
    def rest(self) -> bytes:
        """The bytes behind the last whole event."""
        return bytes(self._open)

    def add(self, piece: bytes) -> list[bytes]:
        """The events that end in this piece, each with the blank line behind it."""
        self._open += piece
        ends = [match.end() for match in _END.finditer(self._open, self._searched)]
        starts = [0, *ends[:-1]] if ends else []
        events = [bytes(self._open[start:end]) for start, end in zip(starts, ends, strict=True)]
        del self._open[: ends[-1] if ends else 0]
        self._searched = max(0, len(self._open) - _LONGEST_END + 1)
        return events


def documents_of(event: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in an event, or in several whole ones."""
    for block in event.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
        try:
            document = load_json(b"\n".join(lines)) if lines else None
        except ValueError:  # "[DONE]"
            continue
        if isinstance(document, dict):
            yield document


def is_done(event: bytes) -> bool:
    """Whether an event is the mark at the end of a chat's stream."""
    return event.removeprefix(b"data:").strip() == _DONE
