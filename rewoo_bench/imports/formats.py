"""Files -> records -> trajectories, one at a time: which format a record has, and which reader takes it.

    for found in read_files([Path("results.json")]):
        found.trajectory or found.fault

A file is one JSON document, a list of records, a record a line, or a log of inspect_ai; each also with gzip. The format
is recognised by what a record holds. Formats whose records are parts of a trajectory, such as spans, are collected by
trajectory first, in a temporary database.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, cast

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.imports.messages import as_verdict, conversation_of, read_messages, text_of
from rewoo_bench.imports.record import RecordedTrajectory, Unreadable
from rewoo_bench.text.redaction import redact_settings

_WHOLE = 64 * 2**20  # bytes of a document that is read at once
_CONTAINERS = ("simulations", "trajectories", "traces", "samples", "results", "examples", "items", "data", "runs")
_FAULTS = (Unreadable, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError)


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


MESSAGES = Format(
    "messages",
    "conversations with the messages of OpenAI or Anthropic, also of tau-bench, and logged requests",
    lambda record: conversation_of(record) is not None,
    read_messages,
)
FORMATS: tuple[Format, ...] = (MESSAGES,)


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
        value = part
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    raise Unreadable(f"{flag}: it has no field {path!r}")


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
            record = redact_settings(record)
            if format_ is None:
                yield Found(None, fault=f"{where}: no known format: {_shown(record)}")
            elif format_.parts is None:
                yield from _guarded(format_, record, where, where, fields)
            else:
                try:
                    for key, part in format_.parts(record):
                        parts.add(format_.name, key, where, part)
                except _FAULTS as error:
                    yield Found(None, format_.name, f"{where}: not readable as {format_.name}: {_said(error)}")
    except (OSError, EOFError, zlib.error) as error:
        yield Found(None, fault=f"{path}: can't be read: {getattr(error, 'strerror', None) or error}")


def _matches(format_: Format, record: Any) -> bool:
    try:
        return format_.matches(record)
    except _FAULTS:
        return False


def _guarded(format_: Format, record: Any, where: str, task: str, fields: Fields) -> Iterator[Found]:
    """What a reader finds in a record, whatever a stranger wrote into it."""
    try:
        for trajectory in format_.read(record, task):
            yield Found(fields.applied(trajectory, record), format_.name)
    except _FAULTS as error:
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
        start = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"[":
        yield from _streamed(path, "item")
    elif start == b"{":
        yield from _of_objects(path)
    else:
        yield f"{path.name}", Unreadable("no JSON: expected an object, a list, or an object a line")


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _of_objects(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of a file that begins with an object: an object a line, or one document."""
    with _opened(path) as file:
        first = file.readline(_WHOLE)
        is_whole_line = first.endswith(b"\n") or not file.read(1)
    value = _parsed(first) if is_whole_line else None
    if value is None or isinstance(value, Unreadable):
        yield from _of_document(path)
        return
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield from _expanded(f"{path.name}, line {number}", _parsed(line))


def _of_document(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of one document; a large one isn't read as a whole, if its records are in a list of a known name."""
    with _opened(path) as file:
        text = file.read(_WHOLE + 1)
    if len(text) <= _WHOLE:
        yield from _expanded(path.name, _parsed(text))
        return
    import ijson

    with _opened(path) as file:
        try:
            name = next(
                (found for found, event, _ in ijson.parse(file) if event == "start_array" and found in _LISTS), None
            )
        except (ijson.JSONError, ValueError) as error:
            yield path.name, Unreadable(f"not valid JSON, or cut off: {error}")
            return
    if name is None:
        yield path.name, Unreadable(f"a document of more than {_WHOLE >> 20} MB without a list of {', '.join(_LISTS)}")
        return
    yield from _streamed(path, f"{name}.item")


_LISTS = (*_CONTAINERS, "resourceSpans", "observations", "spans")


def _streamed(path: Path, prefix: str) -> Iterator[tuple[str, Any]]:
    """The items of a list in a document, read one after the other."""
    import ijson

    number = 0
    with _opened(path) as file:
        try:
            first = ijson.items(file, prefix, use_float=True)
            pending: list[Any] = []
            for item in first:
                number += 1
                if number == 1 and isinstance(item, Mapping) and prefix == "item" and "role" in item:
                    pending.append(item)  # the messages of one conversation
                elif pending:
                    pending.append(item)
                else:
                    yield from _expanded(f"{path.name}, record {number}", item)
            if pending:
                yield path.name, pending
        except (ijson.JSONError, ValueError, RecursionError) as error:
            yield f"{path.name}, after record {number}", Unreadable(f"not valid JSON, or cut off: {error}")


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
