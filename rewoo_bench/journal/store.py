"""Every finished call and question of a run, in one SQLite file, logged before its result is used.

    async with open_journal(folder / "journal.sqlite") as journal:
        await journal.add_call(record)              # returns when it is logged
        await journal.add_question(task, rows, trace, failed=False)
        await journal.settle()                      # all logged records are in the file
        journal.calls(task)                         # the recorded calls of a question

The key of a call is its place (task, call site, kind, name), the hash of its request, and a count for repeated
requests in one place; never the order of arrival, since parallel steps finish in any order. Each text of a prompt
is stored once, however often it is sent.

A record is appended to a log next to the file (log.py), which survives the death of the process. A writer process
moves the log into the file some moments later (writer_process.py). The file is in WAL mode. Opening a journal
first moves the log of a killed run into it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from struct import unpack

from anyio import CancelScope, to_thread

from rewoo_bench.errors import DataError, JournalError
from rewoo_bench.file_lock import locked
from rewoo_bench.journal.database import JournalFile, connect, connect_to_read
from rewoo_bench.journal.log import JournalLog, absorb_all
from rewoo_bench.journal.records import CallKey, CallRecord, TaskKey, as_bytes, digest_of, read_answer
from rewoo_bench.journal.writer_process import as_line, is_sound, pieces

JOURNAL = "journal.sqlite"
# Tables, their names in messages, and the effect of a damaged record.
_RECORDS = (
    ("calls", "calls", "a resumed run makes them again, and their cost is in no sum; a replay lacks them"),
    ("questions", "questions", "a resumed run evaluates them again, from their recorded calls"),
)
_log = logging.getLogger(__name__)
_TEXTS_KNOWN = 1000  # texts of prompts in memory, so that not every call hashes and writes them


@dataclass(slots=True)
class Spent:
    """The cost of a run so far, in all its sessions. `unpriced`: the price of some call isn't known."""

    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False

    def add(self, tokens: int, cost_usd: float | None) -> None:
        self.tokens += tokens
        self.cost_usd += cost_usd or 0.0
        self.unpriced |= bool(tokens) and cost_usd is None


class JournalReader:
    """A journal that is only read; `read_journal` opens one."""

    def __init__(self, database: JournalFile) -> None:
        self.path = database.path
        self._database = database

    def report_damage(self) -> None:
        """Warns of damaged records: no call is paid twice without a warning."""
        for table, name, effect in _RECORDS if self._database.has_checksums else ():
            checked = [(row[0], is_sound(row)) for row in self._database.each(table)]
            bad = [str(task) for task, sound in checked if not sound]
            if bad:
                message = f"{len(bad)} of {len(checked)} recorded {name} are damaged, first that of {bad[0]}"
                _log.warning("%s: %s; %s", self.path, message, effect)

    def calls(self, task: TaskKey) -> list[CallRecord]:
        """The recorded calls of a question, in the order written."""
        rows = self._database.rows("calls", "WHERE task = ? ORDER BY rowid", (str(task),))
        return [
            CallRecord(task, CallKey(*row[1:6]), row[6], (), read_answer(row[8]), row[9], row[10], text_ids=row[7])
            for row in rows
        ]

    def has_answers(self) -> bool:
        """Whether any model call was answered."""
        return bool(self._database.read("SELECT 1 FROM calls WHERE kind = 'model' AND status = 'ok' LIMIT 1"))

    def holds_answers(self) -> bool:
        """Whether any call was answered or billed: also a tool's call, and one that failed after it was billed."""
        answered = "status = 'ok' OR billed_tokens > 0 OR cost_usd > 0"
        return bool(self._database.read(f"SELECT 1 FROM calls WHERE {answered} LIMIT 1"))

    def texts(self, record: CallRecord) -> list[str]:
        """The texts of a record's prompt."""
        ids = unpack(f"{len(record.text_ids) // 8}q", record.text_ids)
        texts = [self._database.rows("texts", "WHERE id = ?", (id_,)) for id_ in ids]
        return [rows[0][1] if rows else "" for rows in texts]

    def finished(self) -> set[str]:
        """The finished tasks, as text: all but those that the infrastructure failed."""
        return {row[0] for row in self._database.each("questions") if not row[1] and is_sound(row)}

    def count_finished(self) -> int:
        return len(self.finished())

    def questions(self, tasks: Sequence[TaskKey]) -> list[tuple[str, str]]:
        """The results of questions, in their order: rows and trace of each finished one."""
        names = [str(task) for task in tasks]
        places = ", ".join("?" * len(names))
        results = self._database.rows("questions", f"WHERE task IN ({places})", names)
        by_task = {task: (rows, trace) for task, _, rows, trace, _ in results}
        return [by_task[name] for name in names if name in by_task]


class Journal(JournalReader):
    """The journal of a running run; `open_journal` opens one. Added records can be read once they are settled.

    `spent` covers all calls in it; `is_new`: it had none when it was opened.
    """

    def __init__(self, database: JournalFile, log: JournalLog) -> None:
        super().__init__(database)
        self.spent = Spent()
        self._log = log
        self._unlogged = b""
        self._ids: dict[str, int] = {}  # of some logged texts
        self.is_new = not self._database.read("SELECT 1 FROM calls LIMIT 1")
        for row in self._database.each("calls"):
            if is_sound(row) and row[9] > 0:
                self.spent.add(row[9], row[10])

    async def add_call(self, record: CallRecord) -> None:
        """Logs a call. Raises `JournalError`.

        A tool's call can be repeated for free, so it is logged together with the next record: no later call that
        depends on it can be in the log without it.
        """
        ids = [self._ids.get(text) or self._add_text(text) for text in record.prompt]
        key = record.key
        cost = None if record.cost_usd is None else float(record.cost_usd)
        head = (  # a user's tool or price may be a subclass of str or float
            "call", str(record.task), str(key.call_site), key.kind, str(key.name), key.request.hex(), key.nth,
            record.status, ids, int(record.billed_tokens), cost,
        )  # fmt: skip
        self._unlogged += as_line(b"%b\t%b" % (as_bytes(head), as_bytes(record.answer)))
        if key.kind == "tool":
            return
        await self._append()
        self.spent.add(record.billed_tokens, record.cost_usd)

    async def add_question(self, task: TaskKey, rows: bytes, trace: bytes, *, failed: bool) -> None:
        """Logs the result of a question (two JSON texts) instead of an earlier one. Raises `JournalError`."""
        self._unlogged += as_line(b"%b\t%b\t%b" % (as_bytes(("question", str(task), failed)), rows, trace))
        await self._append()

    async def settle(self) -> None:
        """Waits until all added records are in the file, or can't be written."""
        self._append_rest()
        with CancelScope(shield=True):
            await to_thread.run_sync(self._log.settle)

    async def close(self) -> None:
        self._append_rest()
        with CancelScope(shield=True):
            await to_thread.run_sync(self._log.close)

    def _add_text(self, text: str) -> int:
        if len(self._ids) >= _TEXTS_KNOWN:
            self._ids.clear()  # those that are sent often are soon in it again
        self._ids[text] = id_ = _text_id(text)
        self._unlogged += as_line(as_bytes(("text", id_, text)))
        return id_

    async def _append(self) -> None:
        lines, self._unlogged = self._unlogged, b""
        self._log.append(lines)
        if self._log.is_behind:
            await self.settle()

    def _append_rest(self) -> None:
        """Logs the records that wait for a next one, if the log can be written."""
        if self._unlogged:
            with suppress(JournalError):  # the next added record raises it
                self._log.append(self._unlogged)
            self._unlogged = b""


@asynccontextmanager
async def open_journal(path: Path) -> AsyncIterator[Journal]:
    """The journal in a file, created if it doesn't exist.

    Raises `DataError` for another kind of file, and `UsageError` where another process writes it.
    """
    lock = path.with_name(f"{path.name}-lock")
    busy = f"another process is at work on this run: it has {str(path)!r} open"
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, busy))
        except OSError as error:
            raise DataError(f"{path}: can't be opened as a journal: {error}") from None
        stack.callback(lock.unlink, missing_ok=True)
        database, log = await to_thread.run_sync(_open, path)
        stack.callback(database.close)
        journal = await to_thread.run_sync(_read, database, log)
        try:
            yield journal
        finally:
            await journal.close()


@asynccontextmanager
async def read_journal(path: Path) -> AsyncIterator[JournalReader]:
    """The journal of another run. Raises `DataError` where there is none."""
    if not await to_thread.run_sync(path.is_file):
        raise DataError(f"no recorded run: there is no {str(path)!r}")
    database = await to_thread.run_sync(_open_to_read, path)
    journal = JournalReader(database)
    try:
        await to_thread.run_sync(journal.report_damage)
        yield journal
    finally:
        database.close()


def _open(path: Path) -> tuple[JournalFile, JournalLog]:
    try:
        database = connect(path)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{path}: can't be opened as a journal: {error}") from None
    try:
        return database, JournalLog(path)
    except (sqlite3.Error, OSError, ValueError) as error:
        database.close()
        if isinstance(error, ValueError):
            raise _unreadable_log(path, error) from None
        raise DataError(f"{path}: can't be opened as a journal: {error}") from None


def _read(database: JournalFile, log: JournalLog) -> Journal:
    """The journal, checked for damage. Raises `JournalError`."""
    try:
        journal = Journal(database, log)
        journal.report_damage()
    except JournalError:
        log.close()
        raise
    return journal


def _open_to_read(path: Path) -> JournalFile:
    if pieces(str(path)):  # of a run that was killed, or goes on
        try:
            absorb_all(path)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise _unreadable_log(path, error) from None
    return connect_to_read(path)


def _unreadable_log(path: Path, error: Exception) -> DataError:
    message = f"{path}: the log of a killed run, {path.name}-log.*, can't be read: {error}"
    return DataError(f"{message}; if you remove those files, the calls that are only there are made again")


def _text_id(text: str) -> int:
    """64 bits of the hash. Among a million texts, two share them with a chance of 3 in 100 million."""
    return int.from_bytes(digest_of(text)[:8], "big", signed=True)
