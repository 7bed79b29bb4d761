"""The thread that writes a journal: what was handed in while it wrote is one group, and one commit.

    writer = Writer(path, connection, count_file, calls=0)
    await writer.write([("calls", values), ...])    # returns when they are on disk
    await writer.close()                            # a file without a log beside it

A group is on disk before the number of its calls is in the count file, and that before anyone hears of it: so the
count is never too high for a process that was killed. Once a second the log is moved into the file.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple

from anyio import CancelScope, to_thread

from rewoo_bench.errors import JournalError
from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.journal.database import CountFile, checksum

_log = logging.getLogger(__name__)

Table = Literal["texts", "calls", "questions"]
Row = tuple[Table, tuple[Any, ...]]

# Texts come first, since calls name them.
_INSERTS: dict[Table, str] = {
    "texts": "INSERT OR IGNORE INTO texts",
    "calls": "INSERT INTO calls",
    "questions": "INSERT OR REPLACE INTO questions",
}
_ROWS_A_STATEMENT = 64  # each statement waits for the interpreter's lock, and a row of its own would, too
_CHECKPOINT_S = 1.0


class _Handed(NamedTuple):
    rows: Sequence[Row]
    on_disk: asyncio.Future[None]


class Writer:
    """Writes into an existing journal; `calls` are on disk. Made on the event loop that hands in the rows."""

    def __init__(self, path: Path, database: sqlite3.Connection, count_file: CountFile, calls: int) -> None:
        self._path = path
        self._database = database
        self._count_file = count_file
        self.calls = calls
        self._failure: str | None = None
        self._queue: SimpleQueue[_Handed | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    async def write(self, rows: Sequence[Row]) -> None:
        """Returns when the rows are on disk, also where it is cancelled meanwhile. Raises `JournalError`."""
        self.check()
        handed = _Handed(rows, self._loop.create_future())
        self._queue.put(handed)
        with CancelScope(shield=True):
            await handed.on_disk
        self.check()

    def check(self) -> None:
        """Raises `JournalError` where a group couldn't be written: nothing is written any more."""
        if self._failure is not None:
            raise JournalError(f"can't write {str(self._path)!r}: {self._failure}; what was finished before is in it")

    async def close(self) -> None:
        """Writes what was handed in, and leaves one file; after a failure its log and its count stay beside it."""
        self._queue.put(None)
        with CancelScope(shield=True):
            await to_thread.run_sync(self._thread.join)

    def _run(self) -> None:
        checkpoint_at: float | None = None
        while True:
            try:
                wait_s = None if checkpoint_at is None else max(0.0, checkpoint_at - time.monotonic())
                group = [self._queue.get(timeout=wait_s)]
            except Empty:
                checkpoint_at = None
                self._checkpoint("PASSIVE")
                continue
            with suppress(Empty):
                while True:
                    group.append(self._queue.get_nowait())
            self._write([handed for handed in group if handed is not None])
            if None in group:
                return self._close()
            if checkpoint_at is None:
                checkpoint_at = time.monotonic() + _CHECKPOINT_S
            elif time.monotonic() > checkpoint_at:
                checkpoint_at = None
                self._checkpoint("PASSIVE")

    def _write(self, group: Sequence[_Handed]) -> None:
        rows = [row for handed in group for row in handed.rows]
        if rows and self._failure is None:
            try:
                self._commit(rows)
            except (sqlite3.Error, OSError) as error:
                self._failure = str(error)
            except Exception as error:  # a bug: the run ends with it, and nobody waits for a thread that has ended
                _log.exception("%s: a record can't be written", self._path)
                self._failure = f"{type(error).__name__}: {error}"
        self._tell(group)

    def _tell(self, group: Sequence[_Handed]) -> None:
        def tell() -> None:
            for handed in group:
                if not handed.on_disk.done():  # its task was cancelled
                    handed.on_disk.set_result(None)

        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(tell)

    def _commit(self, rows: Iterable[Row]) -> None:
        of_table: dict[Table, list[tuple[Any, ...]]] = {table: [] for table in _INSERTS}
        for table, values in rows:
            plain = [replace_surrogates(value) if isinstance(value, str) else value for value in values]
            of_table[table].append((*plain, checksum(plain)))
        calls = self.calls + len(of_table["calls"])
        try:
            self._transact(of_table, calls)
        except sqlite3.OperationalError:  # of a full disk: once the log is in the file, its space is free
            self._checkpoint("TRUNCATE")
            self._transact(of_table, calls)
        self.calls = calls
        self._count_file.write(calls)

    def _transact(self, of_table: dict[Table, list[tuple[Any, ...]]], calls: int) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for table, insert in _INSERTS.items():
                for start in range(0, len(of_table[table]), _ROWS_A_STATEMENT):
                    part = of_table[table][start : start + _ROWS_A_STATEMENT]
                    places = f"({', '.join('?' * len(part[0]))})"
                    values = [value for row in part for value in row]
                    self._database.execute(f"{insert} VALUES {', '.join([places] * len(part))}", values)
            self._database.execute("UPDATE counts SET calls = ?, crc = ?", (calls, checksum((calls,))))
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise

    def _checkpoint(self, how: Literal["PASSIVE", "TRUNCATE"]) -> None:
        with suppress(sqlite3.Error):  # the records stay in the log, and the next commit says what is wrong
            self._database.execute(f"PRAGMA wal_checkpoint({how})").fetchall()

    def _close(self) -> None:
        """Nothing is removed beside the file before all is in it, which SQLite says by leaving the mode of a log."""
        mode = "wal"
        with suppress(sqlite3.Error):  # somebody reads it, or the disk is full
            self._database.execute("PRAGMA busy_timeout = 1000")
            ((mode,),) = self._database.execute("PRAGMA journal_mode = DELETE").fetchall()
        self._database.close()
        self._count_file.close()
        if mode == "delete":
            self._count_file.path.unlink(missing_ok=True)
