"""Files -> records -> trajectories, one at a time: which format a record has, and which reader takes it.

    for found in read_files([Path("results.json")]):
        found.trajectory or found.fault

A file is one JSON document, several, a list of records, a record a line, or a log of inspect_ai; each also with gzip.
The format is recognised by what a record holds. Formats whose records are parts of a trajectory, such as spans, are
collected by trajectory first, in a temporary database.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.imports.atif import is_atif, read_atif, with_files
from rewoo_bench.imports.inspect_log import is_inspect_log, is_sample, read_sample, samples_of
from rewoo_bench.imports.messages import as_verdict, conversation_of, read_messages, text_of
from rewoo_bench.imports.observability import (
    is_langfuse,
    is_langsmith,
    is_mlflow,
    langfuse_parts,
    langsmith_parts,
    read_langfuse,
    read_langsmith,
    read_mlflow,
)
from rewoo_bench.imports.record import RecordedTrajectory, Unreadable
from rewoo_bench.imports.spans import is_spans, read_spans, span_parts
from rewoo_bench.text.redaction import hide_credentials, without_credentials

_LARGEST_FETCHED = 4 * 2**30  # bytes
_WHOLE = 64 * 2**20  # bytes of a document that is read at once
_PIECE = 1 << 16  # bytes that are read at once
_CONTAINERS = ("simulations", "trajectories", "traces", "samples", "results", "examples", "items", "data", "runs")
_SPANS = "resourceSpans"  # of an OTLP document
FAULTS = (
    Unreadable,
    ValueError,
    MemoryError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    RecursionError,
    OverflowError,
)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recorded trajectories."""

    name: str
    about: str
    matches: Callable[[Any], bool]
    """Whether a record is of this format."""
    read: Callable[[Any, str], Iterator[RecordedTrajectory]]
    """The trajectories of a record, or of all collected parts of one. Gets the name of a task that has none."""
    parts: Callable[[Any], Iterator[tuple[str, Any]]] | None = None
    """For a format whose records are parts: the id of the trajectory of each part, and the part."""
    beside: Callable[[Any, Path], Any] | None = None
    """For a format with references to other files: the record with what those hold; None where it belongs to one."""


MESSAGES = Format(
    "messages",
    "conversations with the messages of OpenAI or Anthropic, also of tau-bench, and logged requests",
    lambda record: conversation_of(record) is not None,
    read_messages,
)
OTEL = Format(
    "otel",
    "OpenTelemetry's spans: OTLP in JSON as a collector writes it, or those of --otel and of the console exporter",
    is_spans,
    read_spans,
    span_parts,
)
LANGFUSE = Format("langfuse", "traces and observations of Langfuse", is_langfuse, read_langfuse, langfuse_parts)
LANGSMITH = Format("langsmith", "runs of LangSmith", is_langsmith, read_langsmith, langsmith_parts)
MLFLOW = Format("mlflow", "traces of MLflow", is_mlflow, read_mlflow)
INSPECT = Format("inspect", "logs of inspect_ai: .eval files and their JSON form", is_sample, read_sample)
ATIF = Format("atif", "ATIF, as Harbor and NeMo Agent Toolkit write it", is_atif, read_atif, beside=with_files)
FORMATS: tuple[Format, ...] = (INSPECT, ATIF, OTEL, MLFLOW, LANGSMITH, LANGFUSE, MESSAGES)


class Found(NamedTuple):
    """A trajectory, or what is wrong with a record: one line with file, record and reason."""

    trajectory: RecordedTrajectory | None
    format: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """Where in a record a task's identity and its verdict stand: names with dots between (`info.task.id`)."""

    task: str | None = None
    solved: str | None = None

    def applied(self, trajectory: RecordedTrajectory, record: Any) -> RecordedTrajectory:
        """The trajectory with what these fields say. Raises `Unreadable` where a record lacks one."""
        if self.task is not None:
            trajectory = replace(trajectory, task=text_of(_field(record, self.task, "--task")))
        if self.solved is not None:
            found = _field(record, self.solved, "--solved")
            solved, score = as_verdict(found)
            if solved is None:
                raise Unreadable(f"--solved: {self.solved!r} is {found!r:.80}, expected true, false or a number")
            trajectory = replace(trajectory, solved=solved, score=score)
        return trajectory


NO_FIELDS = Fields()


def _field(record: Any, path: str, flag: str) -> Any:
    """The value at a path, of the first part of a trajectory that has it."""
    for part in record if isinstance(record, list) else [record]:
        if (value := _at(part, path)) is not None:
            return value
    raise Unreadable(f"{flag}: it has no field {path!r}")


def _at(value: Any, path: str) -> Any:
    """The value at a path; names may have dots in them, as attributes of spans do."""
    if not isinstance(value, Mapping) or path in value:
        return value[path] if isinstance(value, Mapping) else None
    name, _, rest = path.partition(".")
    return _at(value.get(name), rest) if rest else None


def read_files(paths: Iterable[Path], chosen: str | None = None, fields: Fields = NO_FIELDS) -> Iterator[Found]:
    """The trajectories of files, and of all files of folders. Raises `UsageError` for a format that doesn't exist."""
    if chosen is not None and chosen not in {each.name for each in FORMATS}:
        raise UsageError(f"--format: {unknown('format', chosen, [each.name for each in FORMATS])}")
    with TemporaryDirectory(prefix="rewoo-bench-") as folder, closing(_Parts(Path(folder) / "parts.sqlite")) as parts:
        for path in paths:
            for file in _files(path):
                yield from _read_file(file, chosen, fields, parts)
        for name, key, where, records in parts.whole():
            format_ = next(each for each in FORMATS if each.name == name)
            yield from _guarded(format_, records, where, key, fields)


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


def _files(path: Path) -> Iterator[Path]:
    """The file, or those of a folder whose names end as traces do."""
    if not path.is_dir():
        yield path
        return
    names = (".json", ".jsonl", ".ndjson", ".eval", ".json.gz", ".jsonl.gz")
    found = sorted(each for each in path.rglob("*") if each.name.lower().endswith(names) and each.is_file())
    if not found:
        raise UsageError(f"{str(path)!r} has no files of traces: expected names that end in {', '.join(names)}")
    yield from found


def _read_file(path: Path, chosen: str | None, fields: Fields, parts: _Parts) -> Iterator[Found]:
    try:
        for where, record in records_of(path):
            if isinstance(record, Unreadable):
                yield Found(None, fault=f"{where}: {record}")
                continue
            format_ = next(
                (each for each in FORMATS if (each.name == chosen if chosen else _matches(each, record))), None
            )
            if (
                format_ is not None
                and format_.beside is not None
                and (record := _with_files(format_, record, path)) is None
            ):
                continue
            try:
                record = without_credentials(record)
            except RecursionError:
                yield Found(None, fault=f"{where}: nested too deeply")
                continue
            if format_ is None:
                yield Found(None, fault=f"{where}: no known format: {_shown(record)}")
            elif format_.parts is None:
                yield from _guarded(format_, record, where, where, fields)
            else:
                try:
                    for key, part in format_.parts(record):
                        parts.add(format_.name, key, where, part)
                except FAULTS as error:
                    yield Found(None, format_.name, f"{where}: not readable as {format_.name}: {_said(error)}")
    except (OSError, EOFError, zlib.error) as error:
        yield Found(None, fault=f"{path}: can't be read: {getattr(error, 'strerror', None) or error}")


def _matches(format_: Format, record: Any) -> bool:
    try:
        return format_.matches(record)
    except FAULTS:
        return False


def _with_files(format_: Format, record: Any, path: Path) -> Any:
    """The record with what other files hold of it; as it is where it isn't sound, which its reader then says."""
    try:
        return format_.beside(record, path) if format_.beside is not None else record
    except FAULTS:
        return record


def _guarded(format_: Format, record: Any, where: str, task: str, fields: Fields) -> Iterator[Found]:
    """What a reader finds in a record, whatever a stranger wrote into it."""
    try:
        for trajectory in format_.read(record, task):
            yield Found(fields.applied(trajectory, record), format_.name)
    except FAULTS as error:
        yield Found(None, format_.name, f"{where}: not readable as {format_.name}: {_said(error)}")


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"


def _shown(record: Any) -> str:
    """What a record is, in a few words."""
    if isinstance(record, Mapping):
        names = ", ".join(map(repr, list(record)[:6]))
        return f"an object with {names or 'nothing in it'}"
    return f"a list of {len(record)}" if isinstance(record, list) else f"{type(record).__name__} {str(record)[:40]!r}"


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
            for number, line in enumerate(iter(lambda: file.readline(_WHOLE + 1), b""), 1):
                if len(line) > _WHOLE:
                    yield f"{path.name}, line {number}", Unreadable(f"more than {_WHOLE >> 20} MB")
                    return
                if line.strip():
                    yield from _expanded(f"{path.name}, line {number}", _parsed(line))
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


class _Parts:
    """Parts of trajectories on disk, until all are there."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(
            "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;"
            "CREATE TABLE parts(format TEXT, trajectory TEXT, place TEXT, part TEXT);"
        )

    def close(self) -> None:
        self._database.close()

    def add(self, format_: str, key: str, where: str, part: Any) -> None:
        text = json.dumps(part, default=str)
        self._database.execute("INSERT INTO parts VALUES (?, ?, ?, ?)", (format_, str(key), where, text))

    def whole(self) -> Iterator[tuple[str, str, str, Sequence[Any]]]:
        """Format, id, place of the first part, and the parts of each trajectory, in the order of their first parts."""
        self._database.execute("CREATE INDEX of_parts ON parts(format, trajectory)")
        keys = self._database.execute(
            "SELECT format, trajectory, place, min(rowid) FROM parts GROUP BY format, trajectory ORDER BY 4"
        )
        for name, key, where, _ in keys:
            parts = self._database.execute(
                "SELECT part FROM parts WHERE format = ? AND trajectory = ? ORDER BY rowid", (name, key)
            )
            yield name, key, where, [json.loads(part) for (part,) in parts]
