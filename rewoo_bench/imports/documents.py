"""Files -> records, each with its place: what a file of traces consists of, whatever its format.

    for where, record in records_of(Path("results.json")):    # "results.json, record 3"

A file is a log of inspect_ai, or JSON: objects and lists of them, with white space or commas between, so also one
document, or a record or a message a line. It may be compressed by gzip, and be in UTF-8, UTF-16 or UTF-32. None is in
memory as a whole: of a large one, at most one record. A file that is damaged is an error that names the place.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.imports.conversations import conversations_in, with_conversations
from rewoo_bench.imports.inspect_log import is_inspect_log, samples_of
from rewoo_bench.imports.messages import conversation_of
from rewoo_bench.imports.record import Unreadable, object_at

_WHOLE = 64 * 2**20  # characters of a value that is read at once
_PIECE = 1 << 16  # bytes that are read at once
_MOST_UNPACKED = 200  # times its size, for a compressed file that unpacks to more than `_WHOLE`
_LONGEST_WORD = 16  # characters of JSON that may be cut where what was read ends: -Infinity, \ud83d\ude00
_CONTAINERS = ("simulations", "trajectories", "traces", "samples", "results", "examples", "items", "data", "runs")
_SPANS = "resourceSpans"  # of an OTLP document
_FILE_FAULTS = (OSError, EOFError, zlib.error)
_SPACE = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_PLACE = re.compile(r"(?: starting)? at$")  # which json's messages end in, before a place in what was read at once


def files_of(path: Path) -> Iterator[Path]:
    """The file, or those of a folder whose names end as traces do."""
    if not path.is_dir():
        yield path
        return
    names = (".json", ".jsonl", ".ndjson", ".eval", ".json.gz", ".jsonl.gz")
    found = sorted(each for each in path.rglob("*") if each.name.lower().endswith(names) and each.is_file())
    if not found:
        raise UsageError(f"{str(path)!r} has no files of traces: expected names that end in {', '.join(names)}")
    yield from found


def records_of(path: Path, named: Callable[[Any], Any] = lambda message: None) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its place: `runs.jsonl, line 3`. Raises `DataError` where it can't be read.

    Of a single message `named` gives what the user says identifies its task.
    """
    yield from with_conversations(path.name, _read_records(path), named)


def _read_records(path: Path) -> Iterator[tuple[str, Any]]:
    """The records as the file has them. Raises `DataError`."""
    try:
        with ExitStack() as stack:
            if path.exists() and not path.is_file():
                raise OSError("a pipe or a device, where a file was expected")
            file: Any = stack.enter_context(path.open("rb"))
            is_packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if is_packed:
                file = stack.enter_context(gzip.GzipFile(fileobj=file))  # which has what a file has
            start = file.read(4096)
            if not is_inspect_log(path, start.removeprefix(BOM_UTF8)):
                most = max(_WHOLE, _MOST_UNPACKED * path.stat().st_size) if is_packed else None
                yield from _records(path.name, _Reader(file, start, most))
                return
        yield from samples_of(path)
    except _FILE_FAULTS as error:
        raise DataError(f"{path.name}: can't be read: {getattr(error, 'strerror', None) or error}") from None


class _TooLarge(Unreadable):
    """A value of more than `_WHOLE`."""


class _Reader:
    """JSON values of a file, one after the other; none is read that is longer than `_WHOLE`.

    Libraries that stream JSON take time with the square of its depth, which a stranger's file may choose.
    """

    def __init__(self, file: Any, start: bytes, most: int | None) -> None:
        self._file = file
        self._rest = start  # bytes that were read, and not decoded
        self._most = most  # bytes that the file may have
        self._decode = getincrementaldecoder(json.detect_encoding(start))("replace").decode
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._ended = "", 0, False
        self._offset = 0  # characters before `_text`
        self._size = 0  # bytes that were read
        self._line, self._counted = 1, 0  # the line of the character `_counted` of `_text`

    @property
    def position(self) -> int:
        """Characters before the next one."""
        return self._offset + self._at

    @property
    def line(self) -> int:
        """The line of the next character, from 1."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def next(self, skipped: re.Pattern[str] = _SPACE) -> str:
        """The next character that isn't skipped, unread; empty at the end."""
        while True:
            found = skipped.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def is_last(self) -> bool:
        """Whether nothing follows; False as well where that isn't seen at once."""
        while True:
            found = _BETWEEN.match(self._text, self._at)
            end = found.end() if found else self._at
            if end < len(self._text) or end - self._at > _PIECE:
                return False
            if not self._more():
                return True

    def skip(self, expected: str) -> None:
        """Reads that character. Raises `Unreadable` for another one."""
        if (found := self.next()) != expected:
            raise Unreadable(f"not valid JSON, or cut off: expected {expected!r}, found {found or 'the end'!r}")
        self._at += 1

    def value(self) -> Any:
        """The next value. Raises `Unreadable`, and `_TooLarge`; it is then still the next."""
        self.next()
        while True:
            fault, is_cut = "", False
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                length = end - self._at
                if length <= _WHOLE:
                    if end == len(self._text) and self._more():  # a number may go on
                        continue
                    self._at += length
                    return value
                is_cut = True
            except RecursionError:
                fault = "nested too deeply"
            except json.JSONDecodeError as error:
                fault = f"not valid JSON, or cut off: {_PLACE.sub('', error.msg)}"
                if below := self._text.count("\n", self._at, error.pos):
                    fault += f" in line {self.line + below}"
                is_cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_WORD
            except ValueError:
                fault = f"a number of more than {sys.get_int_max_str_digits():,} digits"
            is_large = is_cut and len(self._text) - self._at > _WHOLE
            if is_cut and not is_large and self._more():
                continue
            raise _TooLarge(f"a record of more than {_WHOLE >> 20} MB") if is_large else Unreadable(fault)

    def _more(self) -> bool:
        """Reads on, as much again as is there; False at the end of the file. Raises `OSError` and as `gzip` does."""
        if self._ended:
            return False
        self._line = self.line
        self._text, self._offset, self._at, self._counted = self._text[self._at :], self.position, 0, 0
        size = max(_PIECE, min(len(self._text), _WHOLE - len(self._text)))
        piece, self._rest = self._rest or self._file.read(size), b""
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise OSError(f"it unpacks to more than {_MOST_UNPACKED} times its size")
        self._ended = not piece
        self._text += self._decode(piece, not piece)
        return not self._ended


def _records(name: str, reader: _Reader) -> Iterator[tuple[str, Any]]:
    """The records of all values of a file. Raises `DataError`."""
    number, last_line = 0, 0
    try:
        while start := reader.next(_BETWEEN):
            number, line = number + 1, reader.line
            place = f"{name}, line {line}" if line != last_line else f"{name}, line {line}, value {number}"
            if start == "[":
                yield from _of_list(name if number == 1 else place, place, reader)
            elif start == "{":
                yield from _of_object(name if number == 1 else f"{name}, object {number}", place, reader)
            else:
                raise Unreadable("not valid JSON, or cut off: expected an object or a list")
            last_line = reader.line
    except Unreadable as fault:
        raise DataError(f"{name}, line {reader.line}: {fault}") from None


def _of_object(name: str, place: str, reader: _Reader) -> Iterator[tuple[str, Any]]:
    """The records of an object: its place is the line that it is on, or its name. Raises `Unreadable`."""
    line = reader.line
    try:
        record = reader.value()
    except _TooLarge:
        yield from _of_large_object(name, reader)
    else:
        yield from _expanded(place if reader.line == line else name, record)


def _of_large_object(name: str, reader: _Reader) -> Iterator[tuple[str, Any]]:
    """The items of each list of a known name in an object that isn't read as a whole. Raises `Unreadable`."""
    others: dict[str, Any] = {}
    number = size = 0
    for key, is_list in _members(reader):
        if not is_list or key not in (*_CONTAINERS, _SPANS):
            size -= reader.position
            others[key] = reader.value()
            size += reader.position
            if size > _WHOLE:
                raise _TooLarge(f"a record of more than {_WHOLE >> 20} MB")
            continue
        shared = _shared(others) if key == "simulations" else {}
        for number, item in enumerate(_items(reader), 1):
            whole = {_SPANS: [item]} if key == _SPANS else {**shared, **item} if isinstance(item, Mapping) else item
            yield from _expanded(f"{name}, {key} {number}", whole)
    if not number:
        raise Unreadable(f"a document of more than {_WHOLE >> 20} MB without a list of {', '.join(_CONTAINERS)}")


def _items(reader: _Reader) -> Iterator[Any]:
    """The items of a list. Raises `Unreadable`."""
    reader.skip("[")
    while reader.next() != "]":
        yield reader.value()
        if reader.next() != "]":
            reader.skip(",")
    reader.skip("]")


def _members(reader: _Reader) -> Iterator[tuple[str, bool]]:
    """The names in an object, and whether a list follows, which the caller reads. Raises `Unreadable`."""
    reader.skip("{")
    while reader.next() != "}":
        name = reader.value()
        reader.skip(":")
        yield str(name), reader.next() == "["
        if reader.next() != "}":
            reader.skip(",")
    reader.skip("}")


def _of_list(name: str, place: str, reader: _Reader) -> Iterator[tuple[str, Any]]:
    """The records of a list; messages alone are one conversation. Raises `Unreadable`."""
    messages: list[Any] = []
    start = reader.position
    for number, item in enumerate(_items(reader), 1):
        if messages or (number == 1 and conversation_of([item]) is not None):
            messages.append(item)
            if reader.position - start > _WHOLE:
                raise _TooLarge(f"a conversation of more than {_WHOLE >> 20} MB")
        else:
            yield from _expanded(f"{name}, record {number}", item)
    if messages:
        yield from conversations_in(name, name if reader.is_last() else place, messages)


def _expanded(where: str, record: Any) -> Iterator[tuple[str, Any]]:
    """A record, or those of the list in it."""
    if conversation_of(record) is None:
        if isinstance(record, list) and record and all(isinstance(each, Mapping) for each in record):
            for number, each in enumerate(record, 1):
                yield from _expanded(f"{where}, record {number}", each)
            return
        for name in _CONTAINERS if isinstance(record, Mapping) else ():
            inner = record.get(name)
            if isinstance(inner, list) and inner and all(isinstance(each, Mapping) for each in inner):
                shared = _shared(record) if name == "simulations" else {}
                for number, each in enumerate(inner, 1):
                    yield f"{where}, {name} {number}", {**shared, **each}
                return
    yield where, record


def _shared(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the simulations of a tau2-bench file have in common: policy, agent and model."""
    info = object_at(record, "info")
    agent, environment = object_at(info, "agent_info"), object_at(info, "environment_info")
    found = {"system": environment.get("policy"), "agent": agent.get("implementation"), "model": agent.get("llm")}
    return {name: value for name, value in found.items() if value}
