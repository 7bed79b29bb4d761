"""The file of a journal: its tables, and a connection that any thread may read from.

SQLite keeps it sound: a file whose pages or indexes don't fit together is refused where a run goes on with it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from rewoo_bench.errors import DataError, JournalError

JOURNAL_VERSION = 6
_ROWS_AT_ONCE = 500
_TEXTS_KNOWN = 32 * 2**20  # characters of texts in memory
_TEXT_SIZE = 200  # characters that a text in memory takes beside its own
Key = TypeVar("Key")
Value = TypeVar("Value")

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS prompts(
    id INTEGER PRIMARY KEY, before INTEGER NOT NULL, text INTEGER NOT NULL, form TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls(
    task TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, request BLOB NOT NULL,
    nth INTEGER NOT NULL, status TEXT NOT NULL, prompt BLOB NOT NULL, answer TEXT NOT NULL,
    billed_tokens INTEGER NOT NULL, cost_usd REAL);
CREATE INDEX IF NOT EXISTS calls_of_task ON calls(task);
CREATE TABLE IF NOT EXISTS questions(
    task TEXT UNIQUE NOT NULL, failed INTEGER NOT NULL, rows BLOB NOT NULL, trace BLOB NOT NULL);
PRAGMA user_version = {JOURNAL_VERSION};
COMMIT;
"""
_COLUMNS = {
    "texts": "id, text",
    "prompts": "id, before, text, form",
    "calls": "task, place, kind, name, request, nth, status, prompt, answer, billed_tokens, cost_usd",
    "questions": "task, failed, rows, trace",
}


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


class JournalFile:
    """The file, which any thread may read, one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Raises `JournalError` where the file can't be read."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise JournalError(f"can't read {str(self.path)!r}: {error}") from None

    def rows(self, table: str, where: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows of a table, with its columns in the order of the schema."""
        return self.read(f"SELECT {_COLUMNS[table]} FROM {table} {where}", values)

    def each(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, read in batches. Raises `JournalError`."""
        try:
            with self._lock:
                cursor = self._connection.execute(query)
            while rows := self._next(cursor):
                yield from rows
        except sqlite3.Error as error:
            raise JournalError(f"can't read {str(self.path)!r}: {error}") from None

    def _next(self, cursor: sqlite3.Cursor) -> list[Any]:
        with self._lock:
            return cursor.fetchmany(_ROWS_AT_ONCE)

    def close(self) -> None:
        self._connection.close()


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A journal to continue, created if it doesn't exist, with a log beside it. Raises `DataError` and `sqlite3.Error`.

    Why a log: a group of calls is one sequential write of 0.05 to 3 ms. A rollback journal that survives a loss of
    power needs three flushes of the disk for each group (6 to 16 ms on the same disk), and one that isn't flushed may
    be broken as a whole then. A killed process loses nothing in either. The writer moves each group from the log into
    the file, so a copy of the file alone lacks at most what was being moved.
    """
    database = sqlite3.connect(path, check_same_thread=False, timeout=30, cached_statements=256, isolation_level=None)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, JOURNAL_VERSION):
            raise _of_another_version(path, version)
        (fault,) = database.execute("PRAGMA integrity_check(1)").fetchone()
        if fault != "ok":
            raise damaged(path, fault.replace("\n", " "))
        database.execute(f"PRAGMA synchronous = {'NORMAL' if version else 'OFF'}")  # nothing is in a new file yet
        if version != JOURNAL_VERSION:
            database.executescript(_SCHEMA)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")  # the writer does it, after it has told who waits
    except (sqlite3.Error, DataError):
        database.close()
        raise
    return database


def connect_to_read(path: Path) -> JournalFile:
    """A journal that is only read, of a run that ended, was killed or goes on. Raises `DataError`."""
    # As an immutable file: so the folder may be read-only. Where a run was killed, its log is read, too.
    waiting = path.with_name(f"{path.name}-wal").exists()
    options = "mode=ro" if waiting else "mode=ro&immutable=1"
    address = f"{path.absolute().as_uri()}?{options}"
    try:
        database = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=30)
        (version,) = database.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: can't be read as a journal: {error}") from None
    if version != JOURNAL_VERSION:
        database.close()
        raise _of_another_version(path, version)
    return JournalFile(path, database)


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
