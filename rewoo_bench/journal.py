"""Every finished call and question of a run, in one SQLite file, before its result is used.

    async with open_journal(folder / "journal.sqlite") as journal:
        await journal.add_call(record)              # back when it is on disk
        await journal.add_question(task, rows)
        journal.calls(task)                         # what is known of a question already

A call is found again by where it stands (task, place, kind, name), by the hash of its request, and
by a count where the same is asked twice in one place; never by the order of arrival, since
parallel steps finish in any order. Texts of prompts are kept once each, however often they are sent.

The file is in WAL mode: what was committed outlives the death of the process. One writer, a process
of its own, takes all that waits in one commit; whoever wrote waits for it, the event loop never does.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import pack, unpack
from typing import Any

from anyio import to_thread
from pydantic_core import from_json

from rewoo_bench.errors import DataError, JournalError
from rewoo_bench.records import CallKey, CallRecord, TaskKey, as_json, digest_of
from rewoo_bench.writer import Writer, open_writer

JOURNAL = "journal.sqlite"
_VERSION = 1
_TEXTS_KNOWN = 1000  # texts of prompts, held so as not to hash and write them with every call

_SCHEMA = """
CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls(
    task TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, request BLOB NOT NULL,
    nth INTEGER NOT NULL, status TEXT NOT NULL, prompt BLOB NOT NULL, answer TEXT NOT NULL,
    billed_tokens INTEGER NOT NULL, cost_usd REAL);
CREATE INDEX IF NOT EXISTS calls_of_task ON calls(task);
CREATE TABLE IF NOT EXISTS questions(task TEXT UNIQUE NOT NULL, failed INTEGER NOT NULL, rows TEXT NOT NULL);
"""


@dataclass(slots=True)
class Spent:
    """What a run has paid so far, in all its sessions. `unpriced` says that some price isn't known."""

    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False

    def add(self, tokens: int, cost_usd: float | None) -> None:
        self.tokens += tokens
        self.cost_usd += cost_usd or 0.0
        self.unpriced |= bool(tokens) and cost_usd is None


class _Database:
    """The file, which any thread may use, one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        self._connection.close()


class Journal:
    """An open journal; `open_journal` makes one.

    `spent` covers all calls in it; `is_new` says that it had none when it was opened.
    """

    def __init__(self, database: _Database, writer: Writer | None = None) -> None:
        self.path = database.path
        self.spent = Spent()
        self._database = database
        self._writer = writer
        self._ids: dict[str, int] = {}  # of some texts that are in the file
        self.is_new = not self._database.read("SELECT 1 FROM calls LIMIT 1")
        for tokens, cost in self._database.read("SELECT billed_tokens, cost_usd FROM calls WHERE billed_tokens > 0"):
            self.spent.add(tokens, cost)

    async def add_call(self, record: CallRecord) -> None:
        """Writes a call; returns when it is on disk. Raises `JournalError`.

        A tool's call costs nothing to make again, so nobody waits for it. It goes to disk with or before
        whatever is written after it: no call that came of it can be there without it.
        """
        ids = [self._ids.get(text) or self._add_text(text) for text in record.prompt]
        key = record.key
        cost = None if record.cost_usd is None else float(record.cost_usd)
        self._add(  # a tool's name or a price may be of a kind of str or float of the user's, which can't be sent
            "call", str(record.task), str(key.place), key.kind, str(key.name), key.request, key.nth, record.status,
            pack(f"{len(ids)}q", *ids), as_json(record.answer), int(record.billed_tokens), cost,
        )  # fmt: skip
        if key.kind != "tool":
            await self._written()
        self._raise_failure()
        self.spent.add(record.billed_tokens, record.cost_usd)

    async def add_question(self, task: TaskKey, rows: str, *, failed: bool) -> None:
        """Writes what came of a question (JSON), in place of what came of it before. Raises `JournalError`."""
        self._add("question", str(task), failed, rows)
        await self._written()
        self._raise_failure()

    def calls(self, task: TaskKey) -> list[CallRecord]:
        """What is recorded of a question, in the order written."""
        columns = "place, kind, name, request, nth, status, prompt, answer, billed_tokens, cost_usd"
        found = self._database.read(f"SELECT {columns} FROM calls WHERE task = ? ORDER BY rowid", (str(task),))
        return [
            CallRecord(task, CallKey(*row[:5]), row[5], (), from_json(row[7]), row[8], row[9], text_ids=row[6])
            for row in found
        ]

    def texts(self, record: CallRecord) -> list[str]:
        """The texts of a record's prompt."""
        ids = unpack(f"{len(record.text_ids) // 8}q", record.text_ids)
        return [self._database.read("SELECT text FROM texts WHERE id = ?", (id_,))[0][0] for id_ in ids]

    def finished(self) -> set[str]:
        """The tasks, as text, that needn't be done again: all but those that the infrastructure failed."""
        return {task for (task,) in self._database.read("SELECT task FROM questions WHERE NOT failed")}

    def count_finished(self) -> int:
        return int(self._database.read("SELECT count(*) FROM questions WHERE NOT failed")[0][0])

    def rows(self, task: TaskKey) -> dict[str, Any] | None:
        """What came of a question, or None where nothing did yet."""
        found = self._database.read("SELECT rows FROM questions WHERE task = ?", (str(task),))
        return from_json(found[0][0]) if found else None

    def _add_text(self, text: str) -> int:
        if len(self._ids) >= _TEXTS_KNOWN:
            self._ids.clear()  # those that are sent again and again are soon known again
        self._ids[text] = id_ = _text_id(text)
        self._add("text", id_, _storable(text))
        return id_

    def _add(self, *row: Any) -> None:
        assert self._writer is not None, "opened to be read only"
        self._writer.add(row)

    async def _written(self) -> None:
        if self._writer is not None:
            await self._writer.written()

    def _raise_failure(self) -> None:
        if self._writer is not None and self._writer.failure is not None:
            said = f"can't write {str(self.path)!r}: {self._writer.failure}; what was finished before is in it"
            raise JournalError(said)


@asynccontextmanager
async def open_journal(path: Path) -> AsyncIterator[Journal]:
    """The journal in a file, made where there is none. Raises `DataError` for a file that is none."""
    database = await to_thread.run_sync(_connect, path)
    try:
        async with open_writer(path) as writer:
            yield await to_thread.run_sync(Journal, database, writer)
    finally:
        database.close()


@asynccontextmanager
async def read_journal(path: Path) -> AsyncIterator[Journal]:
    """The journal of another run, to be read only. Raises `DataError` where there is none."""
    if not await to_thread.run_sync(path.is_file):
        raise DataError(f"no recorded run: there is no {str(path)!r}")
    database = await to_thread.run_sync(_connect_to_read, path)
    try:
        yield await to_thread.run_sync(Journal, database)
    finally:
        database.close()


def _connect_to_read(path: Path) -> _Database:
    # Unchanging as a file: a folder that may not be written to is fine, and so is a killed run's.
    waiting = path.with_name(f"{path.name}-wal").exists()
    options = "mode=ro" if waiting else "mode=ro&immutable=1"
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, check_same_thread=False)
        (version,) = database.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: can't be read as a journal: {error}") from None
    if version != _VERSION:
        raise DataError(f"{path}: a journal of version {version}; this rewoo_bench reads version {_VERSION}")
    return _Database(path, database)


def _connect(path: Path) -> _Database:
    try:
        database = sqlite3.connect(path, check_same_thread=False, timeout=30)
        database.execute("PRAGMA journal_mode = WAL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise DataError(f"{path}: a journal of version {version}; this rewoo_bench reads version {_VERSION}")
        database.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION};")
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: can't be opened as a journal: {error}") from None
    return _Database(path, database)


def _text_id(text: str) -> int:
    """64 bits of the hash: among a million texts, two share them with a chance of 3 in 100 million."""
    return int.from_bytes(digest_of(text)[:8], "big", signed=True)


def _storable(text: str) -> str:
    """Half of a surrogate pair, which SQLite can't hold, becomes `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")
