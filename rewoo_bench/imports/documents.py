"""Files -> records, each with its place: what a file of traces consists of, whatever its format.

    for where, record in records_of(Path("results.json")):    # "results.json, record 3"

A file is one JSON document, several, a list of records, a record or a message a line, or a log of inspect_ai; each also
with gzip.
None is in memory as a whole: of a large one, at most one record.
"""

from __future__ import annotations

import gzip
import json
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from rewoo_bench.errors import UsageError
from rewoo_bench.imports.inspect_log import is_inspect_log, samples_of
from rewoo_bench.imports.messages import conversation_of
from rewoo_bench.imports.record import Unreadable
from rewoo_bench.text.redaction import hide_credentials

_LARGEST_FETCHED = 4 * 2**30  # bytes
_WHOLE = 64 * 2**20  # bytes of a document that is read at once
_PIECE = 1 << 16  # bytes that are read at once
_CONTAINERS = ("simulations", "trajectories", "traces", "samples", "results", "examples", "items", "data", "runs")
_SPANS = "resourceSpans"  # of an OTLP document


@contextmanager
def local_files(given: Iterable[str]) -> Iterator[list[Path]]:
    """The files and folders that are given, those at an address fetched first. Raises `UsageError`."""
    with TemporaryDirectory(prefix="rewoo-bench-") as folder:
        paths = []
        for number, each in enumerate(given):
            if each.startswith(("http://", "https://")):
                paths.append(_fetched(each, Path(folder, str(number))))
            elif not (path := Path(each)).exists():
                raise UsageError(f"no such file or folder: {each!r}")
            else:
                paths.append(path)
        yield paths


def _fetched(address: str, folder: Path) -> Path:
    """Fetches a file. What the server says chooses no other host."""
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class SameHost(HTTPRedirectHandler):
        def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            if urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
                raise OSError(f"it leads to another address, which you may give yourself: {hide_credentials(newurl)}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    folder.mkdir()
    shown = hide_credentials(address)
    try:
        path = folder / (Path(unquote(urlsplit(address).path)).name or "fetched.json")
        with build_opener(SameHost()).open(address, timeout=60) as answer, path.open("wb") as file:
            while piece := answer.read(1 << 20):
                if file.write(piece) and file.tell() > _LARGEST_FETCHED:
                    raise UsageError(f"{shown}: more than {_LARGEST_FETCHED >> 30} GB; fetch it yourself")
            said = answer.headers.get("Content-Length")
            if said is not None and file.tell() != int(said):
                raise UsageError(f"{shown}: it broke off after {file.tell():,} of {int(said):,} bytes")
    except (OSError, ValueError, HTTPException) as error:
        raise UsageError(f"{shown}: can't be fetched: {error}") from None
    return path


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


def records_of(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its place: `runs.jsonl, line 3`. Raises `OSError` and as `gzip` does."""
    with _opened(path) as file:
        is_log = is_inspect_log(path, file.read(4096))
    if is_log:
        yield from samples_of(path)
        return
    with _opened(path) as file:
        first = file.readline(_WHOLE)
        is_whole_line = first.endswith(b"\n") or not file.read(1)
    is_lines = is_whole_line and first.lstrip()[:1] == b"{" and not isinstance(_parsed(first), Unreadable)
    with _opened(path) as file:
        if is_lines:
            lines = _lines(path.name, file)
            yield from _of_messages(path.name, lines, file) if _is_message(_parsed(first)) else _all_expanded(lines)
            return
        reader = _Reader(file)
        try:
            if (start := reader.next()) == "[":
                yield from _of_list(path.name, _items(reader))
                return
            if start != "{":
                raise Unreadable("no JSON: expected an object, a list, or an object a line")
            if reader.fits() or reader.is_followed():
                yield from _expanded(path.name, reader.value())
                number = 1
                while reader.next() == "{":  # objects over several lines, as a console exporter writes them
                    number += 1
                    yield from _expanded(f"{path.name}, object {number}", reader.value())
            else:
                yield from _of_large_object(path.name, reader)
        except Unreadable as error:
            yield path.name, error


def _lines(name: str, file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """The value of each line with its place."""
    for number, line in enumerate(iter(lambda: file.readline(_WHOLE + 1), b""), 1):
        if len(line) > _WHOLE:
            yield f"{name}, line {number}", Unreadable(f"more than {_WHOLE >> 20} MB")
            return
        if line.strip():
            yield f"{name}, line {number}", _parsed(line)


def _is_message(value: Any) -> bool:
    """Whether it is a single message of a conversation."""
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and conversation_of(value) is None


def _of_messages(name: str, lines: Iterator[tuple[str, Any]], file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """One conversation of lines that are a message each; the lines as they are where one isn't, or for a large file."""
    found: list[tuple[str, Any]] = []
    for where, value in lines:
        found.append((where, value))
        if not _is_message(value) or file.tell() > _WHOLE:
            yield from _all_expanded(found)
            yield from _all_expanded(lines)
            return
    yield name, [value for _, value in found]


def _all_expanded(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for where, value in values:
        yield from _expanded(where, value)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, decompressed, behind its byte order mark."""
    with cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        if file.read(len(BOM_UTF8)) != BOM_UTF8:
            file.seek(0)
        yield file


class _Reader:
    """JSON values of a file, one after the other; none is read that is longer than `_WHOLE`.

    Libraries that stream JSON take time with the square of its depth, which a stranger's file may choose.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._ended = "", 0, False

    def fits(self) -> bool:
        """Whether the file ends within what is read at once."""
        while len(self._text) <= _WHOLE and self._more():
            pass
        return self._ended

    def is_followed(self) -> bool:
        """Whether another object comes after the next value, and both begin in what was read."""
        try:
            _, end = self._decoder.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            return False
        return self._text[end : end + 100].lstrip()[:1] == "{"

    def next(self) -> str:
        """The next character that isn't white space, unread; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def skip(self, expected: str) -> None:
        """Reads that character. Raises `Unreadable` for another one."""
        if (found := self.next()) != expected:
            raise Unreadable(f"not valid JSON, or cut off: expected {expected!r}, found {found or 'the end'!r}")
        self._at += 1

    def value(self) -> Any:
        """The next value. Raises `Unreadable`."""
        self.next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                if end < len(self._text) or not self._more():
                    self._at = end
                    return value
            except RecursionError:
                raise Unreadable("nested too deeply") from None
            except ValueError as error:
                if len(self._text) - self._at > _WHOLE:
                    raise Unreadable(f"a record of more than {_WHOLE >> 20} MB, or not valid JSON") from None
                if not self._more():
                    raise Unreadable(f"not valid JSON, or cut off: {error}") from None

    def _more(self) -> bool:
        """Reads on, twice as much as is there; False at the end of the file."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        piece = self._file.read(max(_PIECE, len(rest)))
        self._ended = not piece
        self._text, self._at = rest + self._decode(piece, not piece), 0
        return not self._ended


def _of_large_object(name: str, reader: _Reader) -> Iterator[tuple[str, Any]]:
    """The items of each list of a known name in an object that isn't read as a whole. Raises `Unreadable`."""
    others: dict[str, Any] = {}
    number = 0
    for key, is_list in _members(reader):
        if not is_list or key not in (*_CONTAINERS, _SPANS):
            others[key] = reader.value()
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


def _of_list(name: str, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """The records of a list; messages alone are one conversation."""
    number = 0
    messages: list[Any] = []
    try:
        for number, item in enumerate(items, 1):
            if messages or (number == 1 and isinstance(item, Mapping) and "role" in item):
                messages.append(item)
            else:
                yield from _expanded(f"{name}, record {number}", item)
    except Unreadable as error:
        yield f"{name}, after record {number}", error
    if messages:
        yield name, messages


def _expanded(where: str, record: Any) -> Iterator[tuple[str, Any]]:
    """A record, or those of the list in it."""
    if isinstance(record, Mapping) and conversation_of(record) is None:
        for name in _CONTAINERS:
            inner = record.get(name)
            if isinstance(inner, list) and inner and all(isinstance(each, Mapping) for each in inner):
                shared = _shared(record) if name == "simulations" else {}
                for number, each in enumerate(inner, 1):
                    yield f"{where}, {name} {number}", {**shared, **each}
                return
    yield where, record


def _shared(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the simulations of a tau2-bench file have in common: policy, agent and model."""
    info = record.get("info")
    places = info if isinstance(info, Mapping) else {}
    agent, environment = (
        each if isinstance(each := places.get(name), Mapping) else {} for name in ("agent_info", "environment_info")
    )
    found = {"system": environment.get("policy"), "agent": agent.get("implementation"), "model": agent.get("llm")}
    return {name: value for name, value in found.items() if value}


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        return Unreadable("nested too deeply")
    except ValueError as error:
        return Unreadable(f"not valid JSON, or cut off: {error}")
