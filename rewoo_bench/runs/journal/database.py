"""The file of a journal: its tables, a connection that any thread may read from, and checks for damage and loss.

Each row has a checksum, and a row with a wrong checksum counts as missing. The number of recorded calls is in the
file, and while a run writes, it is in a file beside it, too (`journal.sqlite-count`): so a copy without the
write-ahead log, or with a damaged one, is told from a whole one. Indexes have no checksum: they are compared with
their tables when a journal is opened, and rebuilt if they differ.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from rewoo_bench.errors import DataError, JournalError

JOURNAL_VERSION = 5
_ROWS_AT_ONCE = 500
_TEXTS_KNOWN = 32 * 2**20  # characters of texts in memory
_TEXT_SIZE = 200  # characters that a text in memory takes beside its own
Key = TypeVar("Key")
Value = TypeVar("Value")

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS prompts(
    id INTEGER PRIMARY KEY, before INTEGER NOT NULL, text INTEGER NOT NULL, form TEXT NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS calls(
    task TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, request BLOB NOT NULL,
    nth INTEGER NOT NULL, status TEXT NOT NULL, prompt BLOB NOT NULL, answer TEXT NOT NULL,
    billed_tokens INTEGER NOT NULL, cost_usd REAL, crc INTEGER);
CREATE INDEX IF NOT EXISTS calls_of_task ON calls(task);
CREATE TABLE IF NOT EXISTS questions(
    task TEXT UNIQUE NOT NULL, failed INTEGER NOT NULL, rows BLOB NOT NULL, trace BLOB NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS counts(calls INTEGER NOT NULL, crc INTEGER);
INSERT INTO counts VALUES (0, {crc32(b"0")});
PRAGMA user_version = {JOURNAL_VERSION};
COMMIT;
"""
_COLUMNS = {
    "texts": "id, text",
    "prompts": "id, before, text, form",
    "calls": "task, place, kind, name, request, nth, status, prompt, answer, billed_tokens, cost_usd",
    "questions": "task, failed, rows, trace",
}


def checksum(values: Sequence[object]) -> int:
    """CRC-32 of a row's values, as text where they aren't bytes."""
    crc = 0
    for value in values:
        crc = crc32(value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass"), crc)
    return crc


def is_sound(row: Sequence[object]) -> bool:
    """Whether a row's last value is the checksum of the others."""
    return bool(row[-1] == checksum(row[:-1]))


class KnownTexts(dict[Key, Value]):
    """Some texts of prompts in memory, by text or by id: prompts share most of theirs.

    It is emptied when they are too many; those that are sent often are soon in it again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def keep(self, key: Key, value: Value, characters: int) -> Value:
        """Adds a text with so many characters, and returns the value."""
        if self._size > _TEXTS_KNOWN:
            self.clear()
            self._size = 0
        self._size += characters + _TEXT_SIZE
        self[key] = value
        return value


class CountFile:
    """`journal.sqlite-count`: how many calls are in a journal that is being written, or whose run was killed.

    It is in one line, `00000000000000003843 1c291ca3`: the number and its checksum.
    """

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(f"{journal.name}-count")
        self._file: int | None = None

    def read(self) -> int | None:
        """The number; None where there is none, or it is damaged."""
        try:
            number, _, crc = self.path.read_bytes().rstrip(b"\n").partition(b" ")
        except OSError:
            return None
        return int(number) if number.isdigit() and crc == b"%08x" % crc32(number) else None

    def write(self, calls: int) -> None:
        """Raises `OSError`. The line has the same length each time, so a full disk has room for it."""
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        number = b"%020d" % calls
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, b"%b %08x\n" % (number, crc32(number)))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class JournalFile:
    """The file, which any thread may read, one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, had_log: bool = False) -> None:
        """`had_log`: its last writer had a log beside it, and left no single file."""
        self.path = path
        self._had_log = had_log
        self._connection = connection
        # Text that isn't UTF-8 has a wrong checksum; decoded so, it isn't an error of every query.
        self._connection.text_factory = lambda text: text.decode(errors="replace")
        self._lock = threading.Lock()

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Raises `JournalError` where the file can't be read."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise JournalError(f"can't read {str(self.path)!r}: {error}") from None

    def rows(self, table: str, where: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a table, without those that are damaged, each with its checksum last."""
        rows = self.read(f"SELECT {_COLUMNS[table]}, crc FROM {table} {where}", values)
        return [row for row in rows if is_sound(row)]

    def each(self, table: str) -> Iterator[tuple[Any, ...]]:
        """All rows of a table, including damaged ones, read in batches."""
        yield from (row for _, row in self.numbered(table))

    def numbered(self, table: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The same, each with its number for `numbered_rows`."""
        last = -(2**63)
        query = f"SELECT rowid, {_COLUMNS[table]}, crc FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        while rows := self.read(query, (last, _ROWS_AT_ONCE)):
            last = rows[-1][0]
            yield from ((row[0], row[1:]) for row in rows)

    def numbered_rows(self, table: str, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        """Some rows of a table by their numbers, in the order of these."""
        places = ", ".join("?" * len(numbers))
        query = f"SELECT rowid, {_COLUMNS[table]}, crc FROM {table} WHERE rowid IN ({places})"
        found = {row[0]: row[1:] for row in self.read(query, numbers)}
        return [found[number] for number in numbers]

    def counted_calls(self) -> int | None:
        """The number of calls that were ever recorded, by the counts in the file and beside it.

        None where a count that should be there is missing or damaged.
        """
        beside = CountFile(self.path).read()
        inside = self.read("SELECT calls, crc FROM counts")
        if len(inside) != 1 or not is_sound(inside[0]) or (self._had_log and beside is None):
            return None
        return max(int(inside[0][0]), beside or 0)

    def close(self) -> None:
        self._connection.close()


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A journal to continue, created if it doesn't exist. Raises `DataError` and `sqlite3.Error`."""
    database = sqlite3.connect(path, check_same_thread=False, timeout=30, cached_statements=256, isolation_level=None)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, JOURNAL_VERSION):
            raise _of_another_version(path, version)
        if version and (fault := _fault(database)):
            for table, index in (("calls", "calls_of_task"), ("questions", "sqlite_autoindex_questions_1")):
                (indexed,) = database.execute(f"SELECT count(*) FROM {table} INDEXED BY {index}").fetchone()
                (counted,) = database.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()
                if indexed > counted:  # to rebuild the index would hide the loss
                    raise damaged(path, f"{indexed - counted} rows of {table} are missing")
            database.execute("REINDEX")
            if fault := _fault(database):
                raise damaged(path, fault)
        database.execute(f"PRAGMA synchronous = {'NORMAL' if version else 'OFF'}")  # nothing is in a new file yet
        if version != JOURNAL_VERSION:
            database.executescript(_SCHEMA)
    except (sqlite3.Error, DataError):
        database.close()
        raise
    return database


def begin_writing(database: sqlite3.Connection, calls: int, damaged_calls: Iterable[int]) -> None:
    """Removes damaged calls, sets the number of calls, and only then begins a write-ahead log beside the file.

    Why a log: a group of calls is one sequential write of 0.05 to 3 ms. A rollback journal that survives a loss of
    power needs three flushes of the disk for each group (6 to 16 ms on the same disk), and one that isn't flushed may
    be broken as a whole then. A killed process loses nothing in either. A loss of power leaves a sound file here,
    without the calls since the last checkpoint: the writer makes one a second.
    """
    database.execute("BEGIN IMMEDIATE")
    database.executemany("DELETE FROM calls WHERE rowid = ?", [(number,) for number in damaged_calls])
    database.execute("DELETE FROM counts")
    database.execute("INSERT INTO counts VALUES (?, ?)", (calls, checksum((calls,))))
    database.execute("COMMIT")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA wal_autocheckpoint = 0")  # the writer does it


def connect_to_read(path: Path, *, check: bool = True) -> JournalFile:
    """A journal that is only read, of a run that ended, was killed or goes on. Raises `DataError`.

    Without `check` damage of its pages and indexes isn't looked for.
    """
    # As an immutable file: so the folder may be read-only. Where a run was killed, its log is read, too.
    waiting = path.with_name(f"{path.name}-wal").exists()
    options = "mode=ro" if waiting else "mode=ro&immutable=1"
    address = f"{path.absolute().as_uri()}?{options}"
    with ExitStack() as unless_sound:
        try:
            with path.open("rb") as file:  # SQLite doesn't say it where the log is gone
                had_log = file.read(20)[18:] != b"\x01\x01"
            database = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=30)
            unless_sound.callback(database.close)
            (version,) = database.execute("PRAGMA user_version").fetchone()
            fault = _fault(database) if check else None
        except (sqlite3.DatabaseError, OSError) as error:
            raise DataError(f"{path}: can't be read as a journal: {error}") from None
        if version != JOURNAL_VERSION:
            raise _of_another_version(path, version)
        if fault:
            raise damaged(path, fault)
        unless_sound.pop_all()
    return JournalFile(path, database, had_log=had_log)


def compact(path: Path) -> None:
    """Makes the pages of a closed journal full: its texts come in the order of their hashes. Raises `DataError`."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("VACUUM")
    except sqlite3.Error as error:
        raise DataError(f"{path}: can't be written: {error}") from None


def _of_another_version(path: Path, version: int) -> DataError:
    return DataError(f"{path}: a journal of version {version}; this rewoo_bench reads version {JOURNAL_VERSION}")


def damaged(path: Path, fault: str) -> DataError:
    message = f"{path}: the file is damaged: {fault}"
    return DataError(f"{message}; restore a copy of it, or save the readable part: sqlite3 {path} .recover")


def _fault(database: sqlite3.Connection) -> str | None:
    """The first fault of the file's pages and indexes, as SQLite reports it."""
    (fault,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    return None if fault == "ok" else str(fault).replace("\n", " ")
