"""The folder of a run in progress: results go into the journal, and the journal becomes the tables.

While a run is in progress, the journal has its results. The parquet files are made from it when the run ends,
whatever ends it, in the order of the tasks, so that the same run gives the same files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio import CancelScope, to_thread

from rewoo_bench.evaluation.rows import lines_of
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.journal.records import TaskKey
from rewoo_bench.journal.store import JOURNAL, Journal, JournalReader, open_journal
from rewoo_bench.journal_tables import export
from rewoo_bench.runs.folder import CALLS_FILE, ENGINE_FILE, LOCK, QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import MANIFEST


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

    async def export(self, tasks: Iterable[TaskKey], prompts: JournalReader | None = None) -> int:
        """Writes the tables of the finished questions; returns their number. `prompts`: what a replay replays."""
        rows = 0
        with CancelScope(shield=True):
            await self.journal.settle()
            rows = await to_thread.run_sync(export, self.folder, self.journal, tasks, self.columns, prompts)
        return rows  # noqa: RET504 - a scope may swallow a cancellation, says mypy


@asynccontextmanager
async def open_run(
    folder: Path, columns: Mapping[str, Any], *, recorded_calls: int = 0, accept_loss: bool = False
) -> AsyncIterator[RunFolder]:
    """Opens the run in an existing folder. The other arguments are those of `open_journal`."""
    async with open_journal(folder / JOURNAL, recorded_calls=recorded_calls, accept_loss=accept_loss) as journal:
        yield RunFolder(folder, journal, columns)


def remove_run(folder: Path) -> None:
    """Deletes the files of a run, and no others, and then the folder, if it is empty."""
    journal = folder.glob(f"{JOURNAL}-*")  # files that a killed run leaves
    files = (MANIFEST, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE, JOURNAL, LOCK, ENGINE_FILE)
    for path in (*(folder / name for name in files), *journal):
        path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
