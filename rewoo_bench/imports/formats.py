"""Records -> trajectories, one at a time: which format a record has, and which reader takes it.

    for found in read_files([Path("results.json")]):
        found.trajectory or found.fault

The format is recognised by what a record holds. Formats whose records are parts of a trajectory, such as spans, are
collected by trajectory first, in a temporary database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.imports.atif import inner_files, is_atif, read_atif, with_files
from rewoo_bench.imports.claude_code import is_claude_code, read_session, session_parts, with_history
from rewoo_bench.imports.conversations import RequestLog, conversations_of, is_message
from rewoo_bench.imports.documents import files_of, records_of
from rewoo_bench.imports.dojo_log import is_dojo_log, read_dojo_log, with_quiet_run
from rewoo_bench.imports.inspect_log import is_sample, read_sample
from rewoo_bench.imports.langfuse import is_langfuse, langfuse_parts, read_langfuse
from rewoo_bench.imports.messages import text_of
from rewoo_bench.imports.record import Parts, RecordedTrajectory, Unreadable, as_verdict
from rewoo_bench.imports.requests import conversation_of
from rewoo_bench.imports.spans import is_spans, read_spans, span_parts
from rewoo_bench.imports.unread import unread_in

# What a stranger's values raise where they aren't what a reader expects.
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recorded trajectories."""

    name: str
    matches: Callable[[Any], bool]
    """Whether a record is of this format."""
    read: Callable[[Any, str], Iterator[RecordedTrajectory]] | None = None
    """The trajectories of a record, or of all collected parts of one. Gets the name of a task that has none."""
    parts: Callable[[Any], Iterator[tuple[str, Any]]] | None = None
    """For a format whose records are parts: the id of the trajectory of each part, and the part."""
    with_files: Callable[[Any, Path], Any] = lambda record, path: record
    """The record with what files beside its own say of it."""


MESSAGES = Format("messages", lambda record: conversation_of(record) is not None or is_message(record))
"""Its conversations are joined over the records of a file (conversations.py)."""
OTEL = Format("otel", is_spans, read_spans, span_parts)
LANGFUSE = Format("langfuse", is_langfuse, read_langfuse, langfuse_parts)
INSPECT = Format("inspect", is_sample, read_sample)
ATIF = Format("atif", is_atif, read_atif, with_files=with_files)
AGENTDOJO = Format("agentdojo", is_dojo_log, read_dojo_log, with_files=with_quiet_run)
CLAUDE_CODE = Format("claude-code", is_claude_code, read_session, session_parts)
FORMATS = {each.name: each for each in (INSPECT, ATIF, AGENTDOJO, OTEL, LANGFUSE, CLAUDE_CODE, MESSAGES)}


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

    def task_of(self, record: Any) -> Any:
        """What identifies the task of a record; None where that isn't said."""
        return _at(record, self.task) if self.task else None

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
    if chosen is not None and chosen not in FORMATS:
        raise UsageError(f"--format: {unknown('format', chosen, [*FORMATS])}")
    files = [file for path in paths for file in files_of(path)]
    seen: dict[bytes, Path] = {}
    with TemporaryDirectory(prefix="rewoo-bench-") as own, closing(Parts(Path(own) / "parts.sqlite")) as parts:
        for file, found in _Reader(files, parts, chosen, fields).read():
            # Equal ones of one file are trials.
            if len(files) > 1 and found.trajectory is not None:
                first = seen.setdefault(_digest(found.trajectory, file.name), file)
                found = found if first == file else Found(None, is_copy=True)
            yield found


def _digest(trajectory: RecordedTrajectory, name: str) -> bytes:
    """A hash of a trajectory, without the name of its file. Of its prompts the last one has what is in the others."""
    task = "" if trajectory.task.startswith(name) else trajectory.task
    plain = replace(trajectory, task=task).with_calls(lambda call: replace(call, messages=None, tools=()))
    last = [call.messages for call in trajectory.calls][-1:]
    return sha256(repr((plain, last)).encode("utf-8", "replace")).digest()


class _Reader:
    """Reads files one after the other. What has parts in several is kept in `parts` until all are read."""

    def __init__(self, files: list[Path], parts: Parts, chosen: str | None, fields: Fields) -> None:
        self._files = files
        self._inner = inner_files(files) if len(files) > 1 else set()
        self._parts = parts
        self._chosen = chosen
        self._fields = fields

    def read(self) -> Iterator[tuple[Path, Found]]:
        """What each file holds, and at the end the trajectories whose parts may be in several files."""
        names = Counter(file.name for file in self._files)
        for file in self._files:
            folder = "".join(f"{part}/" for part in file.parts[-5:-1]) if names[file.name] > 1 else ""
            try:
                for found in self._of_file(file):
                    yield file, found._replace(fault=f"{folder}{found.fault}") if found.fault else found
            except DataError as error:
                raise DataError(f"{folder}{error}") from None
        told = set[str]()
        for name, key, file, where, records in self._parts.whole():
            format_ = FORMATS[name]
            if format_ is CLAUDE_CODE and not (records := with_history(records, told)):
                yield file, Found(None, is_copy=True)
            else:
                for found in self._of_record(format_, records, where, key):
                    yield file, found

    def _of_file(self, path: Path) -> Iterator[Found]:
        log, messages = RequestLog(self._fields.task_of), list[tuple[str, Any]]()
        for where, record in records_of(path):
            fitting = [each for each in FORMATS.values() if each.matches(record)]
            format_ = next((each for each in fitting if self._chosen in (None, each.name)), None)
            if format_ is None:
                what = f"it looks like {fitting[0].name}" if fitting else f"no known format: {_shown(record)}"
                yield Found(
                    None, fault=f"{where}: {f'not of the format {self._chosen}: ' if self._chosen else ''}{what}"
                )
            elif format_ is not MESSAGES:
                yield from self._of_format(format_, record, where, path)
            elif is_message(record):
                messages.append((where, record))
            elif isinstance(record, list):
                items = [(f"{where}, record {number}", each) for number, each in enumerate(record, 1)]
                yield from self._conversations(log, where, items, are_lines=False)
            else:
                yield from self._logged(log, where, record)
        yield from self._conversations(log, path.name, messages, are_lines=True)
        for logged in log.conversations:
            yield from self._found(MESSAGES, logged.trajectories, logged.where, logged.request.record)

    def _of_format(self, format_: Format, record: Any, where: str, path: Path) -> Iterator[Found]:
        """What a record holds; of a format whose records are parts it is kept until all are there."""
        try:
            for key, part in format_.parts(record) if format_.parts else ():
                self._parts.add(format_.name, key or str(path), path, where, part)
            record = format_.with_files(record, path)
        except FAULTS as error:
            yield _fault(format_, where, error)
            return
        if format_.parts is None and path not in self._inner:  # else it counts in the trajectory that refers to it
            yield from self._of_record(format_, record, where, where)

    def _conversations(
        self, log: RequestLog, name: str, messages: list[tuple[str, Any]], *, are_lines: bool
    ) -> Iterator[Found]:
        """Puts the conversations of single messages into the log; yields what is wrong with them."""
        for place, conversation in conversations_of(name, messages, self._fields.task_of, are_lines=are_lines):
            yield from self._logged(log, place, conversation)

    def _logged(self, log: RequestLog, where: str, record: Any) -> Iterator[Found]:
        """Puts a conversation into the log; yields what is wrong with it."""
        try:
            log.add(where, record)
        except FAULTS as error:
            yield _fault(MESSAGES, where, error)

    def _of_record(self, format_: Format, record: Any, where: str, task: str) -> Iterator[Found]:
        read = format_.read
        assert read is not None
        return self._found(format_, lambda: read(record, task), where, record)

    def _found(
        self, format_: Format, read: Callable[[], Iterable[RecordedTrajectory]], where: str, record: Any
    ) -> Iterator[Found]:
        """What a reader finds, whatever a stranger wrote, and which texts of its record that leaves out."""
        found: list[RecordedTrajectory] = []
        fault: list[Found] = []
        try:
            for trajectory in read():
                found.append(self._fields.applied(trajectory, record))
        except FAULTS as error:
            fault = [_fault(format_, where, error)]
        yield from (Found(each, format_.name) for each in found[:-1])
        yield from (Found(each, format_.name, unread=unread_in(record, found)) for each in found[-1:])
        yield from fault


def _fault(format_: Format, where: str, error: Exception) -> Found:
    said = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
    return Found(None, format_.name, f"{where}: not readable as {format_.name}: {said}")


def _shown(record: Any) -> str:
    """What a record is, in a few words."""
    if isinstance(record, Mapping):
        return f"an object with {', '.join(map(repr, list(record)[:6])) or 'nothing in it'}"
    return f"a list of {len(record)}" if isinstance(record, list) else f"{type(record).__name__} {str(record)[:40]!r}"
