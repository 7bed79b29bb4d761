"""An open run's folder: results into the journal, and the journal into the tables.

The journal is the truth while a run goes on; the parquet files are made from it when the run ends,
whatever ends it, in the order of the run, so that the same run gives the same files.
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
        """Makes the files of what is finished; returns how many questions that is."""
        rows = 0
        await self.journal.settle()
        with CancelScope(shield=True):
            rows = await to_thread.run_sync(export, self.folder, self.journal, tasks)
        return rows  # noqa: RET504 - a scope may swallow a cancellation, says mypy


@asynccontextmanager
async def open_run(folder: Path, columns: Mapping[str, Any]) -> AsyncIterator[RunFolder]:
    """The run in a folder that is there."""
    async with open_journal(folder / JOURNAL) as journal:
        yield RunFolder(folder, journal, columns)


def export(folder: Path, journal: JournalReader, tasks: Iterable[TaskKey]) -> int:
    """The finished questions of a journal as files, in the order of `tasks`; returns how many there are.

    Each file appears under its name when all three are whole: a disk that is full leaves those of before.
    """
    written = 0
    rest = iter(tasks)
    traces = folder / f"{TRACES_FILE}.part"
    with (
        removed_unless_written(traces),
        Table(folder / QUESTIONS_FILE, QUESTIONS) as questions,
        Table(folder / CALLS_FILE, CALLS) as calls,
        traces.open("w", encoding="utf-8") as lines,
    ):
        while group := list(islice(rest, _QUESTIONS_A_GROUP)):
            if found := journal.questions(group):
                of_questions, of_calls = tables_of([rows for rows, _ in found])
                questions.add(of_questions)
                calls.add(of_calls)
                lines.writelines(f"{line}\n" for _, line in found)
                written += len(found)
        questions.close()
        calls.close()
    traces.replace(folder / TRACES_FILE)
    return written


class Table:
    """A parquet file that has its name only when it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._part = path.with_suffix(".parquet.part")
        self._schema = schema

    def __enter__(self) -> Table:
        self._writer = pq.ParquetWriter(self._part, self._schema, compression="zstd")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            self._part.replace(self._path)
            return
        with suppress(OSError):  # what was raised first is what went wrong
            self.close()
        self._part.unlink(missing_ok=True)

    def close(self) -> None:
        """Writes what is left, once. Raises `OSError`."""
        self._writer.close()

    def add(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)


def remove_run(folder: Path) -> None:
    """Takes the files of a run, and no others, out of a folder; and the folder where it is empty then."""
    journal = folder.glob(f"{JOURNAL}-*")  # as a killed run leaves it
    files = (MANIFEST, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE, JOURNAL, LOCK)
    for path in (*(folder / name for name in files), *journal):
        path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
