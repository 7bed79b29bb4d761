"""The file of a journal: one connection for all threads, its tables, and checks for damage.

Every row has a checksum (writer_process.py), and a row with a wrong checksum counts as missing. Indexes have
none: they are compared with their tables when a journal is opened, and rebuilt if they differ.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError, JournalError
from rewoo_bench.journal.log import VERSION, upgrade
from rewoo_bench.journal.writer_process import is_sound

READ_VERSIONS = (1, 2, VERSION)  # calls are the same in all
_CONTINUED_VERSIONS = (0, 2, VERSION)
_ROWS_AT_ONCE = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS calls(
    task TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, request BLOB NOT NULL,
    nth INTEGER NOT NULL, status TEXT NOT NULL, prompt BLOB NOT NULL, answer TEXT NOT NULL,
    billed_tokens INTEGER NOT NULL, cost_usd REAL, crc INTEGER);
CREATE INDEX IF NOT EXISTS calls_of_task ON calls(task);
CREATE TABLE IF NOT EXISTS questions(
    task TEXT UNIQUE NOT NULL, failed INTEGER NOT NULL, rows TEXT NOT NULL, trace TEXT NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS absorbed(piece INTEGER NOT NULL, offset INTEGER NOT NULL, crc INTEGER);
INSERT INTO absorbed SELECT 0, 0, NULL WHERE NOT EXISTS (SELECT 1 FROM absorbed);
"""
_COLUMNS = {
    "texts": "id, text",
    "calls": "task, place, kind, name, request, nth, status, prompt, answer, billed_tokens, cost_usd",
    "questions": "task, failed, rows, trace",
}


class JournalFile:
    """The file, which any thread may use, one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, has_checksums: bool = True) -> None:
        self.path = path
        self._connection = connection
        self._connection.text_factory = _text
        self.has_checksums = has_checksums
        self._crc = "crc" if has_checksums else "NULL"
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
        rows = self.read(f"SELECT {_COLUMNS[table]}, {self._crc} FROM {table} {where}", values)
        return [row for row in rows if is_sound(row)]

    def each(self, table: str) -> Iterator[tuple[Any, ...]]:
        """All rows of a table, including damaged ones, read in batches."""
        yield from (row for _, row in self.numbered(table))

    def numbered(self, table: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The same, each with its number for `numbered_rows`."""
        last = -(2**63)
        query = f"SELECT rowid, {_COLUMNS[table]}, {self._crc} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        while rows := self.read(query, (last, _ROWS_AT_ONCE)):
            last = rows[-1][0]
            yield from ((row[0], row[1:]) for row in rows)

    def numbered_rows(self, table: str, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        """Some rows of a table by their numbers, in the order of these."""
        places = ", ".join("?" * len(numbers))
        query = f"SELECT rowid, {_COLUMNS[table]}, {self._crc} FROM {table} WHERE rowid IN ({places})"
        found = {row[0]: row[1:] for row in self.read(query, numbers)}
        return [found[number] for number in numbers]

    def close(self) -> None:
        self._connection.close()


def connect(path: Path) -> JournalFile:
    """A journal to continue, created if it doesn't exist. Raises `DataError` and `sqlite3.Error`."""
    database = sqlite3.connect(path, check_same_thread=False, timeout=30)
    try:
        _prepare(path, database)
    except (sqlite3.Error, DataError):
        database.close()
        raise
    return JournalFile(path, database)


def _prepare(path: Path, database: sqlite3.Connection) -> None:
    """Creates missing tables, and rebuilds damaged indexes."""
    database.execute("PRAGMA journal_mode = WAL")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in _CONTINUED_VERSIONS:
        raise DataError(f"{path}: a journal of version {version}; this rewoo_bench continues version {VERSION}")
    upgrade(database)
    database.executescript(f"{_SCHEMA} PRAGMA user_version = {VERSION};")
    if fault := _fault(database):
        _check_nothing_missing(path, database)
        database.execute("REINDEX")
        fault = _fault(database)
    if fault:
        raise damaged(path, fault)


def connect_to_read(path: Path) -> JournalFile:
    """A journal that is only read. Raises `DataError`."""
    # As an immutable file: so the folder may be read-only, or that of a killed run.
    waiting = path.with_name(f"{path.name}-wal").exists()
    options = "mode=ro" if waiting else "mode=ro&immutable=1"
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, check_same_thread=False)
        (version,) = database.execute("PRAGMA user_version").fetchone()
        fault = _fault(database)
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: can't be read as a journal: {error}") from None
    if version not in READ_VERSIONS:
        raise DataError(f"{path}: a journal of version {version}; this rewoo_bench reads versions {READ_VERSIONS}")
    if fault:
        raise damaged(path, fault)
    return JournalFile(path, database, has_checksums=version == VERSION)


def damaged(path: Path, fault: str) -> DataError:
    message = f"{path}: the file is damaged: {fault}"
    return DataError(f"{message}; restore a copy of it, or save the readable part: sqlite3 {path} .recover")


def _fault(database: sqlite3.Connection) -> str | None:
    """The first fault of the file's pages and indexes, as SQLite reports it."""
    (fault,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    return None if fault == "ok" else str(fault).replace("\n", " ")


def _check_nothing_missing(path: Path, database: sqlite3.Connection) -> None:
    """Raises `DataError` where an index has more rows than its table: to rebuild it would hide the loss."""
    for table, index in (("calls", "calls_of_task"), ("questions", "sqlite_autoindex_questions_1")):
        (indexed,) = database.execute(f"SELECT count(*) FROM {table} INDEXED BY {index}").fetchone()
        (counted,) = database.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()
        if indexed > counted:
            raise damaged(path, f"{indexed - counted} rows of {table} are missing")


def _text(value: bytes) -> str:
    """Text that isn't UTF-8 has a wrong checksum; decoded so, it isn't an error of every query."""
    return value.decode(errors="replace")
