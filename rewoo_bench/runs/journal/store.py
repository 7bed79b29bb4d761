"""Every finished call and question of a run, in one SQLite file, on disk before its result is used.

    async with open_journal(folder / "journal.sqlite") as journal:
        await journal.add_call(record)              # returns when it is on disk
        await journal.add_question(task, rows, trace, failed=False)
        await journal.flush()                       # all records are on disk
        journal.calls(task)                         # the recorded calls of a question

The key of a call is its task, place, kind and name, the hash of its request, and a count for repeated
requests in one place; never the order of arrival, since parallel steps finish in any order. Each text of a prompt
is stored once, however often it is sent; a prompt is its last message and the prompt before it, so one that goes on
with an earlier one adds what is new.

One thread writes, a commit for all records that arrive while it writes, and moves them into the one file at once.
run.json has the number of calls at the end of the last session: a resume that finds fewer says how many are missing,
and makes those calls again only if it is told to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal
from zlib import compress, decompress

from anyio import CancelScope, to_thread

from rewoo_bench.errors import DataError, JournalError
from rewoo_bench.runs.journal.beginnings import Beginnings
from rewoo_bench.runs.journal.database import (
    JournalFile,
    KnownTexts,
    connect_to_read,
    connect_to_write,
    damaged,
)
from rewoo_bench.runs.journal.records import (
    CallKey,
    CallRecord,
    RecordedPrompt,
    TaskKey,
    as_bytes,
    packed,
    text_id,
    unpacked,
    whole_form,
)
from rewoo_bench.runs.manifest import resume_command
from rewoo_bench.text.escaping import replace_surrogates

_log = logging.getLogger(__name__)

_Table = Literal["texts", "prompts", "calls", "questions"]
_Row = tuple[_Table, tuple[Any, ...]]
_Handed = tuple[Sequence[_Row], "asyncio.Future[None] | None"]
"""Rows, and who waits for them."""

# Texts come first, since messages name them, and these before calls.
_INSERTS: dict[_Table, str] = {
    "texts": "INSERT OR IGNORE INTO texts",
    "prompts": "INSERT OR IGNORE INTO prompts",
    "calls": "INSERT INTO calls",
    "questions": "INSERT OR REPLACE INTO questions",
}
_ROWS_A_STATEMENT = 64  # each statement waits for the interpreter's lock, and a row of its own would, too
_LONG = 64  # characters of an answer's text: a longer one is kept beside the texts of prompts
_TEXT_ID = "text_id"
_LEVEL = 6  # of compression: rows of calls repeat their names


class Writer:
    """The thread that writes into an existing journal, which has `calls`. Made on the event loop that hands in rows.

    What was handed in while it wrote is one group, and one commit. A group is on disk before anyone hears of it; then
    the log is moved into the file.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, calls: int) -> None:
        self._path = path
        self._database = database
        self.calls = calls
        self._failure: str | None = None
        self._queue: SimpleQueue[_Handed | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    async def write(self, rows: Sequence[_Row]) -> None:
        """Returns when the rows are on disk, also where it is cancelled meanwhile. Raises `JournalError`."""
        self.check()
        on_disk = self._loop.create_future()
        self._queue.put((rows, on_disk))
        with CancelScope(shield=True):
            await on_disk
        self.check()

    def hand(self, rows: Sequence[_Row]) -> None:
        """Writes the rows soon, and before all that is handed in later. Raises `JournalError`."""
        self.check()
        self._queue.put((rows, None))

    def check(self) -> None:
        """Raises `JournalError` where a group couldn't be written: nothing is written any more."""
        if self._failure is not None:
            raise JournalError(f"can't write {str(self._path)!r}: {self._failure}; what was finished before is in it")

    async def close(self) -> None:
        """Writes what was handed in, and leaves one file; after a failure its log stays beside it."""
        self._queue.put(None)
        with CancelScope(shield=True):
            await to_thread.run_sync(self._thread.join)

    def _run(self) -> None:
        group: list[_Handed | None] = []
        while None not in group:
            group = [self._queue.get()]
            with suppress(Empty):
                while True:
                    group.append(self._queue.get_nowait())
            self._write([handed for handed in group if handed is not None])
            with suppress(sqlite3.Error):  # the records stay in the log, and the next commit says what is wrong
                self._database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        with suppress(sqlite3.Error):  # somebody reads it, or the disk is full
            self._database.execute("PRAGMA busy_timeout = 1000")
            self._database.execute("PRAGMA journal_mode = DELETE").fetchall()
        self._database.close()

    def _write(self, group: Sequence[_Handed]) -> None:
        rows = [row for handed, _ in group for row in handed]
        if rows and self._failure is None:
            try:
                self._commit(rows)
            except Exception as error:  # also a bug: the run ends with it, and nobody waits for a thread that has ended
                self._failure = str(error)
                if not isinstance(error, sqlite3.Error | OSError):
                    _log.exception("%s: a record can't be written", self._path)

        def tell() -> None:
            for _, on_disk in group:
                if on_disk and not on_disk.done():  # its task was cancelled
                    on_disk.set_result(None)

        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(tell)

    def _commit(self, rows: Iterable[_Row]) -> None:
        of_table: dict[_Table, list[tuple[Any, ...]]] = {table: [] for table in _INSERTS}
        for table, values in rows:
            plain = [replace_surrogates(value) if isinstance(value, str) else value for value in values]
            of_table[table].append(tuple(plain))
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for table, insert in _INSERTS.items():
                for start in range(0, len(of_table[table]), _ROWS_A_STATEMENT):
                    part = of_table[table][start : start + _ROWS_A_STATEMENT]
                    places = f"({', '.join('?' * len(part[0]))})"
                    flat = [value for row in part for value in row]
                    self._database.execute(f"{insert} VALUES {', '.join([places] * len(part))}", flat)
            self._database.execute("COMMIT")
        except BaseException:  # Ctrl-C, too: no half of a group stays
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise
        self.calls += len(of_table["calls"])


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
        self.database = database
        self.beginnings = Beginnings(database)

    def survey(self, *, unfinished: bool = False) -> tuple[int, Spent]:
        """The number of calls, and what they cost; of `unfinished` questions alone. Raises `JournalError`."""
        unpriced = "max(billed_tokens > 0 AND cost_usd IS NULL)"
        ((calls, tokens, cost_usd, unpriced),) = self.database.read(
            # Never less than nothing: somebody else's journal would raise the cap of who resumes it.
            f"SELECT count(*), sum(max(billed_tokens, 0)), sum(max(cost_usd, 0)), {unpriced} FROM calls"
            + " WHERE task NOT IN (SELECT task FROM questions)" * unfinished
        )
        return calls, Spent(tokens or 0, cost_usd or 0.0, bool(unpriced))

    def calls(self, task: TaskKey) -> list[CallRecord]:
        """The recorded calls of a question, in the order written."""
        rows = self.database.rows("calls", "WHERE task = ? ORDER BY rowid", (str(task),))
        return [
            CallRecord(task, CallKey(*row[1:6]), row[6], None, self.answer(row[8]), row[9], row[10], text_ids=row[7])
            for row in rows
        ]

    def answer(self, recorded: str) -> dict[str, Any]:
        """The answer of a call as it was recorded. Raises `JournalError` for a damaged one."""
        try:
            answer: dict[str, Any] = json.loads(recorded)
        except ValueError as error:
            why = "bring the folder back as it was, or start a new run with another --out"
            raise JournalError(f"a recorded answer of {self.database.path} can't be read ({error}); {why}") from None
        if (id_ := answer.pop(_TEXT_ID, None)) is not None:
            answer["text"] = self.beginnings.text(id_)
        return answer

    def has_answers(self) -> bool:
        """Whether any model call was answered."""
        return bool(self.database.read("SELECT 1 FROM calls WHERE kind = 'model' AND status = 'ok' LIMIT 1"))

    def has_answers_or_bills(self) -> bool:
        """Whether any call was answered or billed: also a tool's call, and one that failed after it was billed."""
        answered = "status = 'ok' OR billed_tokens > 0 OR cost_usd > 0"
        return bool(self.database.read(f"SELECT 1 FROM calls WHERE {answered} LIMIT 1"))

    def texts(self, record: CallRecord) -> list[str]:
        """The texts of a record's prompt, the last one its form."""
        last, form = unpacked(record.text_ids)
        parts = self.beginnings.parts(last)
        texts = [self.beginnings.text(part.text) for part in parts]
        return [*texts, whole_form([part.form for part in parts], self.beginnings.text(form))]

    def finished(self) -> set[str]:
        """The finished tasks, as text: all but those that the infrastructure failed."""
        return {task for (task,) in self.database.read("SELECT task FROM questions WHERE NOT failed")}

    def failed(self) -> set[str]:
        """The tasks that the infrastructure failed when they were last asked, as text."""
        return {task for (task,) in self.database.read("SELECT task FROM questions WHERE failed")}

    def questions(self, tasks: Sequence[TaskKey]) -> list[tuple[str, str]]:
        """The results of questions, in their order: rows and trace of each finished one."""
        names = [str(task) for task in tasks]
        places = ", ".join("?" * len(names))
        results = self.database.rows("questions", f"WHERE task IN ({places})", names)
        by_task = {task: (decompress(rows).decode(), decompress(trace).decode()) for task, _, rows, trace in results}
        return [by_task[name] for name in names if name in by_task]


class Journal(JournalReader):
    """The journal of a running run; `open_journal` opens one. Added records can be read once they are on disk.

    `spent` covers all calls in it; `is_new`: it had none when it was opened.
    """

    def __init__(self, database: JournalFile, writer: Writer, spent: Spent) -> None:
        super().__init__(database)
        self.spent = spent
        self.is_new = not writer.calls
        self._writer = writer
        self._unwritten: list[_Row] = []
        self._written = KnownTexts[tuple[str, int], bool]()  # so that not every call writes its whole prompt

    @property
    def recorded_calls(self) -> int:
        """The number of calls on disk."""
        return self._writer.calls

    async def add_call(self, record: CallRecord) -> None:
        """Returns when the call is on disk. Raises `JournalError`.

        Nobody waits for a tool's call, which costs nothing: it is on disk a moment later, and no later call that
        depends on it can be in the journal without it. But for one that has changed something (`changes_state`).
        """
        self.put_call(record)
        if record.key.kind == "tool" and not record.answer.get("changes_state"):
            rows, self._unwritten = self._unwritten, []
            self._writer.hand(rows)
            return
        await self._write()
        self.spent.add(record.billed_tokens, record.cost_usd)

    def put_call(self, record: CallRecord) -> None:
        """Adds the call, which is written together with the next record that is waited for. Raises `JournalError`."""
        self._writer.check()
        key, answer, ids = record.key, record.answer, self._add_prompt(record.prompt)
        if isinstance(text := answer.get("text"), str) and len(text) > _LONG:  # it is sent on with the next prompts
            answer = {name: value for name, value in answer.items() if name != "text"} | {_TEXT_ID: text_id(text)}
            self._add_text(answer[_TEXT_ID], text)
        values = (  # a user's tool or price may be a subclass of str or float
            str(record.task), str(key.place), key.kind, str(key.name), key.request, int(key.nth), record.status,
            ids, as_bytes(answer).decode(), int(record.billed_tokens),
            None if record.cost_usd is None else float(record.cost_usd),
        )  # fmt: skip
        self._unwritten.append(("calls", values))

    async def add_question(self, task: TaskKey, rows: bytes, trace: bytes, *, failed: bool) -> None:
        """Writes the result of a question (two JSON texts) instead of an earlier one. Raises `JournalError`."""
        packed_ = (compress(each, _LEVEL) for each in (rows, trace))  # what is in them stands in the tables, too
        self._unwritten.append(("questions", (str(task), int(failed), *packed_)))
        await self._write()

    async def flush(self) -> None:
        """Waits until all added records are on disk, or can't be written."""
        with suppress(JournalError):  # the next added record raises it
            await self._write()

    async def close(self) -> None:
        await self.flush()
        self.database.close()  # first: the last connection leaves one file
        await self._writer.close()

    def _add_prompt(self, prompt: RecordedPrompt | None) -> bytes:
        """The prompt's ids; what isn't known to be in the journal is written."""
        assert prompt is not None  # only records that were read have none
        part = prompt.last
        while part is not None and self._is_new("prompts", part.id):
            self._add_text(part.text_id, part.text)
            before = part.before.id if part.before else 0
            self._unwritten.append(("prompts", (part.id, before, part.text_id, part.form)))
            part = part.before
        form = text_id(prompt.form)
        self._add_text(form, prompt.form)
        return packed(prompt.last.id if prompt.last else 0, form)

    def _add_text(self, id_: int, text: str) -> None:
        if self._is_new("texts", id_):
            self._unwritten.append(("texts", (id_, text)))

    def _is_new(self, table: str, id_: int) -> bool:
        return not self._written.get((table, id_)) and self._written.keep((table, id_), True, 0)

    async def _write(self) -> None:
        rows, self._unwritten = self._unwritten, []
        await self._writer.write(rows)


@asynccontextmanager
async def open_journal(path: Path, *, recorded_calls: int = 0, accept_loss: bool = False) -> AsyncIterator[Journal]:
    """The journal in a file, created if it doesn't exist. Its folder is locked, or nobody else's: one process writes.

    `recorded_calls` is the least number of calls that it should have. Raises `DataError` where calls are missing,
    unless `accept_loss`, and for another kind of file.
    """
    connection, calls, spent = await to_thread.run_sync(_open, path, recorded_calls, accept_loss)
    reading = sqlite3.connect(path, check_same_thread=False, timeout=30)
    journal = Journal(JournalFile(path, reading), Writer(path, connection, calls), spent)
    try:
        yield journal
    finally:
        await journal.close()


@asynccontextmanager
async def read_journal(path: Path) -> AsyncIterator[JournalReader]:
    """The journal of another run. Raises `DataError` where there is none."""
    if not await to_thread.run_sync(path.is_file):
        way = "expected a folder that `rewoo-bench run` wrote (a published copy has no journal)"
        raise DataError(f"no recorded run: there is no {str(path)!r}; {way}")
    with closing(await to_thread.run_sync(connect_to_read, path)) as database:
        yield JournalReader(database)


def is_unused(path: Path) -> bool:
    """Whether a journal was made and no call was recorded, as by a run that was killed when it began."""
    try:
        if path.stat().st_size == 0:
            return True
        with closing(connect_to_read(path)) as database:
            return not database.read("SELECT 1 FROM calls LIMIT 1")
    except (OSError, DataError, JournalError):
        return False


def _open(path: Path, recorded_calls: int, accept_loss: bool) -> tuple[sqlite3.Connection, int, Spent]:
    """A connection to write with, and number and cost of the calls that the journal has. Raises `DataError`."""
    calls, spent = 0, Spent()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size:
            with closing(connect_to_read(path)) as database:
                calls, spent = JournalReader(database).survey()
        if calls < recorded_calls:
            loss = f"{recorded_calls - calls:,} of {recorded_calls:,} recorded calls are missing"
            if not accept_loss:
                raise DataError(
                    f"{path}: {loss}; bring back the file as it was, or ask again what is missing: "
                    f"{resume_command(path.parent)} --accept-loss"
                )
            _log.warning("%s: %s; what is needed of them is asked again; their cost is in no sum", path, loss)
        return connect_to_write(path), calls, spent
    except JournalError as error:
        raise damaged(path, str(error)) from None
    except sqlite3.Error as error:
        raise DataError(f"{path}: can't be opened as a journal: {error}") from None
