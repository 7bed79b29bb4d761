"""The lines of traces.jsonl, read one at a time from where they begin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from pydantic_core import from_json

from rewoo_bench.report.call_rows import RowKey

_PREFIX = 4096  # bytes of a trace in which its keys are


def places(file: IO[bytes]) -> Iterator[tuple[RowKey, int]]:
    """Where each trace begins; one whose keys can't be read is left out."""
    start = 0
    for line in file:
        if (key := _key(line)) is not None:
            yield key, start
        start += len(line)


def trace_at(file: IO[bytes], place: int) -> dict[str, Any]:
    """The trace that begins there; empty where it is damaged."""
    file.seek(place)
    return _parsed(file.readline())


def _key(line: bytes) -> RowKey | None:
    """Architecture, example and trial of a trace, as a rule from its first bytes; None where it can't be read."""
    for part in (line[:_PREFIX], line):
        trace = _parsed(part, partial=True)
        try:
            return str(trace["architecture"]), str(trace["example_id"]), int(trace["trial"])
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _parsed(line: bytes, *, partial: bool = False) -> dict[str, Any]:
    """A line of traces.jsonl; empty where it is damaged. Half of a surrogate pair, which pydantic refuses, is read."""
    try:
        trace = from_json(line, allow_partial=partial)
    except ValueError:
        try:
            trace = json.loads(line)
        except (ValueError, RecursionError):
            return {}
    return trace if isinstance(trace, dict) else {}
