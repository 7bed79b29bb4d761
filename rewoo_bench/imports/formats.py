"""Records -> trajectories, one at a time: which format a record has, and which reader takes it.

    for found in read_files([Path("results.json")]):
        found.trajectory or found.fault

The format is recognised by what a record holds. Formats whose records are parts of a trajectory, such as spans, are
collected by trajectory first, in a temporary database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.imports.atif import is_atif, read_atif, with_files
from rewoo_bench.imports.claude_code import is_claude_code, read_session, session_parts
from rewoo_bench.imports.conversations import Logged, RequestLog
from rewoo_bench.imports.documents import files_of, records_of
from rewoo_bench.imports.inspect_log import is_sample, read_sample
from rewoo_bench.imports.langfuse import is_langfuse, langfuse_parts, read_langfuse
from rewoo_bench.imports.messages import as_verdict, conversation_of, read_messages, text_of
from rewoo_bench.imports.record import Parts, RecordedTrajectory, Unreadable
from rewoo_bench.imports.spans import is_spans, read_spans, span_parts
from rewoo_bench.imports.unread import unread_in
from rewoo_bench.text.redaction import without_credentials

# What a stranger's values raise where they aren't what a reader expects.
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recorded trajectories."""

    name: str
    matches: Callable[[Any], bool]
    """Whether a record is of this format."""
    read: Callable[[Any, str], Iterator[RecordedTrajectory]]
    """The trajectories of a record, or of all collected parts of one. Gets the name of a task that has none."""
    parts: Callable[[Any], Iterator[tuple[str, Any]]] | None = None
    """For a format whose records are parts: the id of the trajectory of each part, and the part."""


MESSAGES = Format("messages", lambda record: conversation_of(record) is not None, read_messages)
OTEL = Format("otel", is_spans, read_spans, span_parts)
LANGFUSE = Format("langfuse", is_langfuse, read_langfuse, langfuse_parts)
INSPECT = Format("inspect", is_sample, read_sample)
ATIF = Format("atif", is_atif, read_atif)
CLAUDE_CODE = Format("claude-code", is_claude_code, read_session, session_parts)
FORMATS: tuple[Format, ...] = (INSPECT, ATIF, OTEL, LANGFUSE, CLAUDE_CODE, MESSAGES)


class Found(NamedTuple):
    """A trajectory, what is wrong with a record (one line with file, record and reason), or a copy."""

    trajectory: RecordedTrajectory | None
    format: str = ""
    fault: str = ""
    is_copy: bool = False
    """Whether it was a trajectory that an earlier file has, too."""
    unread: Mapping[str, int] = MappingProxyType({})
    """Texts of its record that its reader left out, by field; of a record with several trajectories at the last one."""


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
            solved = as_verdict(found)
            if solved is None:
                raise Unreadable(f"--solved: {self.solved!r} is {found!r:.80}, expected true, false or a number")
            trajectory = replace(trajectory, solved=solved)
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
    """The trajectories of files, and of all files of folders.

    Raises `UsageError` for a format that doesn't exist, and `DataError` for a file that can't be read to its end.
    """
    if chosen is not None and chosen not in {each.name for each in FORMATS}:
        raise UsageError(f"--format: {unknown('format', chosen, [each.name for each in FORMATS])}")
    files = [(file, path if path.is_dir() else path.parent) for path in paths for file in files_of(path)]
    seen: dict[bytes, Path] | None = {} if len(files) > 1 else None
    with TemporaryDirectory(prefix="rewoo-bench-") as own, closing(Parts(Path(own) / "parts.sqlite")) as parts:
        for file, folder in files:
            for found in _read_file(file, folder, chosen, fields, parts):
                yield _checked(found, file, seen)
        for name, key, file, where, records in parts.whole():
            format_ = next(each for each in FORMATS if each.name == name)
            for found in _trajectories(format_, records, where, key, fields):
                yield _checked(found, file, seen)


def _checked(found: Found, file: Path, seen: dict[bytes, Path] | None) -> Found:
    """What was found, or that it is a copy: `seen` has the first file of each. Equal ones of one file are trials."""
    if seen is None or found.trajectory is None:
        return found
    return found if seen.setdefault(_digest(found.trajectory, file.name), file) == file else Found(None, is_copy=True)


def _digest(trajectory: RecordedTrajectory, name: str) -> bytes:
    """A hash of a trajectory, without the name of its file. Of its prompts the last one has what is in the others."""
    task = "" if trajectory.task.startswith(name) else trajectory.task
    plain = replace(trajectory, task=task).with_calls(lambda call: replace(call, messages=None, tools=()))
    last = [call.messages for call in trajectory.calls][-1:]
    return sha256(repr((plain, last)).encode("utf-8", "replace")).digest()


def _read_file(path: Path, folder: Path, chosen: str | None, fields: Fields, parts: Parts) -> Iterator[Found]:
    def named(record: Any) -> Any:
        return fields.task and _at(record, fields.task)

    log = RequestLog(named)
    try:
        for where, record in records_of(path, named):
            fitting = [each for each in FORMATS if _matches(each, record)]
            format_ = next((each for each in fitting if chosen in (None, each.name)), None)
            if format_ is not None:
                yield from _read_record(format_, record, path, folder, where, fields, parts, log)
            elif chosen is None or not fitting:
                what = "no known format" if chosen is None else f"not of the format {chosen}, nor of another known one"
                yield Found(None, fault=f"{where}: {what}: {_shown(record)}")
            else:
                yield Found(None, fault=f"{where}: not of the format {chosen}: it looks like {fitting[0].name}")
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
    for logged in log.rest():
        yield from _logged(logged, fields)


def _matches(format_: Format, record: Any) -> bool:
    try:
        return format_.matches(record)
    except FAULTS:
        return False


def _read_record(
    format_: Format, record: Any, path: Path, folder: Path, where: str, fields: Fields, parts: Parts, log: RequestLog
) -> Iterator[Found]:
    """What a record holds; of a format whose records are parts it is kept until all are there."""
    try:
        if format_ is ATIF and (record := with_files(record, path, folder)) is None:
            return
        if format_ is MESSAGES:
            for logged in log.add(where, record):
                yield from _logged(logged, fields)
            return
        record = without_credentials(record)
        if format_.parts is not None:
            for key, part in format_.parts(record):
                parts.add(format_.name, key or str(path), path, where, part)
            return
    except FAULTS as error:
        yield _fault(format_, where, error)
        return
    yield from _trajectories(format_, record, where, where, fields)


def _trajectories(
    format_: Format, record: Any, where: str, task: str, fields: Fields, got: Any = None
) -> Iterator[Found]:
    """What a reader finds in a record, whatever a stranger wrote into it, and which texts of it that leaves out.

    `got` is what the reader got, where `record` is only what it says of the task.
    """
    found: list[RecordedTrajectory] = []
    fault: list[Found] = []
    try:
        for trajectory in format_.read(record, task):
            applied = fields.applied(trajectory, record)
            found.append(replace(applied, task=without_credentials(applied.task)))
    except FAULTS as error:
        fault = [_fault(format_, where, error)]
    yield from (Found(each, format_.name) for each in found[:-1])
    yield from (Found(each, format_.name, unread=unread_in(got or record, found)) for each in found[-1:])
    yield from fault


def _logged(logged: Logged, fields: Fields) -> Iterator[Found]:
    """The conversation of one record, or of several."""
    whole = replace(MESSAGES, read=lambda record, task: iter([logged.trajectory(task)]))
    request = logged.request
    yield from _trajectories(whole, request.facts, logged.where, logged.where, fields, request.record)


def _fault(format_: Format, where: str, error: Exception) -> Found:
    said = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
    if isinstance(error, RecursionError):
        said = "nested too deeply"
    return Found(None, format_.name, f"{where}: not readable as {format_.name}: {without_credentials(said)}")


def _shown(record: Any) -> str:
    """What a record is, in a few words."""
    if isinstance(record, Mapping):
        names = ", ".join(repr(without_credentials(name)) for name in list(record)[:6])
        return f"an object with {names or 'nothing in it'}"
    if isinstance(record, list):
        return f"a list of {len(record)}"
    return f"{type(record).__name__} {without_credentials(str(record))[:40]!r}"
