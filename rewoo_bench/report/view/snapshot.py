"""The run in a folder as the page's data: from its tables, or from its journal while it is in progress.

A journal is only read. Its writer may be at work at the same time: what it has taken in so far is shown.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewoo_bench.errors import DataError
from rewoo_bench.report.planned import Planned, TraceKey, read_planned
from rewoo_bench.report.rows import QuestionKey, QuestionTable
from rewoo_bench.report.trajectories import PromptsOf, Trajectories
from rewoo_bench.report.write import read_page
from rewoo_bench.runs.folder import ENGINE_FILE, QUESTIONS_FILE
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.store import JOURNAL, JournalReader
from rewoo_bench.runs.journal.tables import export
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.past_runs import PastRun, current_status, past_run
from rewoo_bench.text.words import counted

Stamp = tuple[tuple[str | int, ...], ...]

MOST_PATHS = 2_000  # questions whose traces are read for the filter by the look-up at which systems part


def stamp(folder: Path) -> Stamp:
    """Changes when a run's manifest, tables or journal do (names, sizes and times in nanoseconds), or it is killed."""
    stamps: list[tuple[str | int, ...]] = []
    with suppress(DataError):
        stamps.append((current_status(folder, read_manifest(folder).status),))
    for name in (MANIFEST, QUESTIONS_FILE, JOURNAL, f"{JOURNAL}-wal"):
        with suppress(OSError):
            status = (folder / name).stat()
            stamps.append((name, status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def in_progress(folder: Path) -> bool:
    """Whether the journal may have more than the tables: the run goes on, or was killed."""
    manifest = read_manifest(folder)
    return (folder / JOURNAL).is_file() and (manifest.status == "running" or not (folder / QUESTIONS_FILE).is_file())


def progress(folder: Path, run: PastRun) -> tuple[str, int]:
    """`3 of 20 answers, 2 min to go` for a run that isn't finished, and the number of answers; else nothing."""
    if not in_progress(folder):
        return "", 0
    with closing(connect_to_read(folder / JOURNAL)) as database:
        done = len(JournalReader(database).finished())
    shown = f"{done:,} of {counted(run.tasks, 'answer')}" if run.tasks else counted(done, "answer")
    if run.status == "running" and done and run.tasks and run.started_at and not read_manifest(folder).sessions:
        elapsed = datetime.now(UTC) - datetime.fromisoformat(run.started_at)
        minutes = round(elapsed.total_seconds() * (run.tasks - done) / done / 60)
        rest = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
        shown += f", {rest if minutes else 'less than a minute'} to go"
    return shown, done


def with_figures(folder: Path, run: PastRun) -> PastRun:
    """A run in progress with the figures that it has by now."""
    with TemporaryDirectory(prefix="rewoo-bench-view-") as temporary:
        _export(folder, Path(temporary) / "run")
        now = past_run(Path(temporary) / "run")
    return replace(run, exact_match=now.exact_match, tokens=now.tokens, oracle=now.oracle)


@dataclass
class Snapshot:
    """The data of a run's page at one moment. `close` frees its files."""

    stamp: Stamp
    head: dict[str, Any]
    table: QuestionTable
    trajectories: Trajectories
    _stack: ExitStack

    def question(self, line: QuestionKey) -> dict[str, Any]:
        """The trajectories of a question, with the labels of their systems. Raises `KeyError`."""
        question = self.trajectories.question(self.trajectories.numbers[line])
        return {**question, "labels": [system["label"] for system in self.table.columns["systems"]]}

    def close(self) -> None:
        self._stack.close()


def take_snapshot(folder: Path) -> Snapshot:
    """Reads a run. Raises `DataError` where it has no finished question yet, or can't be read."""
    now = stamp(folder)
    with ExitStack() as stack:
        source = folder
        if in_progress(folder):
            source = Path(stack.enter_context(TemporaryDirectory(prefix="rewoo-bench-view-"))) / folder.resolve().name
            _export(folder, source)
        head, table = read_page([source], [folder], at_any_price=source is folder)
        if so_far := progress(folder, past_run(folder))[0]:
            head["facts"].append(("Progress", so_far))
        if current_status(folder, read_manifest(folder).status) == "running":  # a killed run leaves its file
            with suppress(OSError):
                head["facts"].append(("Cluster", (folder / ENGINE_FILE).read_text(encoding="utf-8")))
        planned = read_planned([source]) if source is folder else Planned()  # a run in progress is read again and again
        head["planned"] = planned.shown
        trajectories = stack.enter_context(Trajectories([source], table, planned=planned))
        if len(table.lines) <= MOST_PATHS:
            answered = [trajectories.question(number)["systems"] for number in range(len(table.lines))]
            for place, system in enumerate(table.columns["systems"]):
                system["paths"] = [each[place] and each[place]["path"] for each in answered]
        return Snapshot(now, head, table, trajectories, stack.pop_all())


def _export(folder: Path, into: Path) -> None:
    """The tables of what a journal has by now, in a folder of their own."""
    into.mkdir()
    shutil.copyfile(folder / MANIFEST, into / MANIFEST)
    with closing(connect_to_read(folder / JOURNAL)) as database:
        journal = JournalReader(database)
        tasks = [TaskKey(*json.loads(name)) for name in journal.finished()]
        order = {facts.name: place for place, facts in enumerate(read_manifest(folder).architectures)}
        tasks.sort(key=lambda task: (task.example_id, task.trial, order.get(task.architecture, len(order))))
        export(into, journal, tasks, {})


@contextmanager
def journal_prompts(runs: Sequence[Path]) -> Iterator[PromptsOf]:
    """A function from a run's question to the prompts and raw completions of its model calls, from the journal.

    A run without a journal has none. Raises `DataError`.
    """
    journals: dict[str, JournalReader] = {}
    with ExitStack() as stack:
        for folder in runs:
            if (folder / JOURNAL).is_file():
                database = stack.enter_context(closing(connect_to_read(folder / JOURNAL)))
                journals[read_manifest(folder).run_id] = JournalReader(database)

        def prompts(key: TraceKey) -> list[dict[str, Any]]:
            run, architecture, example_id, trial = key
            task = TaskKey(architecture, example_id, trial)
            shown = []
            for record in journals[run].calls(task) if run in journals else ():
                if record.key.kind == "model":
                    said = record.answer.get("text" if record.status == "ok" else "message")
                    *texts, _ = journals[run].texts(record)  # the last one is the request's form: roles, grammar, tools
                    shown.append({"place": record.key.place, "prompt": texts, "completion": str(said or "")})
            return shown

        yield prompts
