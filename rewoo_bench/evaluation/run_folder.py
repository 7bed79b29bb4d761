"""The folder of a run in progress: results go into the journal, and the journal becomes the tables.

While a run is in progress, the journal has its results. The parquet files are made from it when the run ends,
whatever ends it, in the order of the tasks, so that the same run gives the same files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from anyio import CancelScope, to_thread

from rewoo_bench.evaluation.rows import lines_of, tables_of
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.journal.records import TaskKey
from rewoo_bench.journal.store import JOURNAL, Journal, JournalReader, open_journal
from rewoo_bench.runs.folder import CALLS_FILE, LOCK, QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import MANIFEST, removed_unless_written
from rewoo_bench.runs.oracle_rows import COLUMN
from rewoo_bench.runs.schema import CALLS, QUESTIONS

_QUESTIONS_A_GROUP = 1000


@dataclass(frozen=True)
class RunFolder:
    """An open run: its folder, its journal, and the columns that are the same in all its rows."""

    folder: Path
    journal: Journal
    columns: Mapping[str, Any]

    async def keep(self, result: Result) -> None:
        """Writes a result into the journal. Raises `JournalError`."""
        result, rows, traced = lines_of(result, self.columns)
        await self.journal.add_question(result.task.key, rows, traced, failed=result.score is None)

    async def export(self, tasks: Iterable[TaskKey]) -> int:
        """Writes the tables of the finished questions; returns their number."""
        rows = 0
        with CancelScope(shield=True):
            await self.journal.settle()
            rows = await to_thread.run_sync(export, self.folder, self.journal, tasks, self.columns)
        return rows  # noqa: RET504 - a scope may swallow a cancellation, says mypy


@asynccontextmanager
async def open_run(folder: Path, columns: Mapping[str, Any]) -> AsyncIterator[RunFolder]:
    """Opens the run in an existing folder."""
    async with open_journal(folder / JOURNAL) as journal:
        yield RunFolder(folder, journal, columns)


def export(folder: Path, journal: JournalReader, tasks: Iterable[TaskKey], columns: Mapping[str, Any]) -> int:
    """Writes the finished questions of a journal as files, in the order of `tasks`; returns their number.

    The files get their names when all three are complete: on a full disk the earlier ones stay.
    """
    written = 0
    rest = iter(tasks)
    traces = folder / f"{TRACES_FILE}.part"
    with (
        removed_unless_written(traces),
        ParquetWriter(folder / QUESTIONS_FILE, QUESTIONS) as questions,
        ParquetWriter(folder / CALLS_FILE, CALLS) as calls,
        traces.open("w", encoding="utf-8") as lines,
    ):
        while group := list(islice(rest, _QUESTIONS_A_GROUP)):
            if finished := journal.questions(group):
                of_questions, of_calls = tables_of([rows for rows, _ in finished])
                questions.add(_with_oracle(of_questions, columns.get(COLUMN)))
                calls.add(of_calls)
                lines.writelines(f"{line}\n" for _, line in finished)
                written += len(finished)
        questions.close()
        calls.close()
    traces.replace(folder / TRACES_FILE)
    return written


def _with_oracle(questions: pa.Table, oracle: bool | None) -> pa.Table:
    """The rows with the column `oracle` of their run: rows that an older version wrote lack it."""
    if oracle is None:
        return questions
    position = questions.schema.get_field_index(COLUMN)
    return questions.set_column(position, questions.schema.field(position), _repeated(oracle, len(questions)))


def _repeated(value: bool, rows: int) -> pa.Array:
    """A column of one boolean. `pa.repeat` and `pa.array` would import pandas, half a second of a short run."""
    bits = (b"\xff" if value else b"\x00") * ((rows + 7) // 8)
    return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bits)])


class ParquetWriter:
    """Writes a parquet file, which gets its name only when it is complete."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._part = path.with_suffix(".parquet.part")
        self._schema = schema

    def __enter__(self) -> ParquetWriter:
        self._writer = pq.ParquetWriter(self._part, self._schema, compression="zstd")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            self._part.replace(self._path)
            return
        with suppress(OSError):  # the first exception is the cause
            self.close()
        self._part.unlink(missing_ok=True)

    def close(self) -> None:
        """Writes the rest of the file. Raises `OSError`."""
        self._writer.close()

    def add(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)


def remove_run(folder: Path) -> None:
    """Deletes the files of a run, and no others, and then the folder, if it is empty."""
    journal = folder.glob(f"{JOURNAL}-*")  # files that a killed run leaves
    files = (MANIFEST, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE, JOURNAL, LOCK)
    for path in (*(folder / name for name in files), *journal):
        path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
