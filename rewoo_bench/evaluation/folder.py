"""A task (one question for one architecture), its result, and where a run keeps results: in its folder, and in memory.

The folder has the run's lock, the results as rows, the journal, and the tables made from it.

with taken(folder, is_new=True):
    write_manifest(folder, manifest)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from anyio import CancelScope, to_thread

from rewoo_bench.calls.meter import Call
from rewoo_bench.config.price_table import is_same_model
from rewoo_bench.errors import CapReached, ModelError, UsageError
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runs.columns import CALLS, QUESTIONS, call_rows, question_row
from rewoo_bench.runs.folder import CALLS_FILE, JOURNAL_FILE, LOCK, QUESTIONS_FILE, TRACES_FILE, as_frame
from rewoo_bench.runs.journal.records import TaskKey, as_bytes
from rewoo_bench.runs.journal.store import Journal, JournalReader, Spent, is_unused, open_journal
from rewoo_bench.runs.journal.tables import export, tables_of
from rewoo_bench.runs.manifest import MANIFEST, resume_command
from rewoo_bench.runs.reach import reach_of
from rewoo_bench.system.crashes import Crash
from rewoo_bench.system.files import locked
from rewoo_bench.text.scoring import Score
from rewoo_bench.text.words import counted
from rewoo_bench.types import Example, Trajectory

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Task:
    """One question for one architecture. `index` counts from 0 in the order of the run."""

    index: int
    example: Example
    trial: int
    architecture: Architecture

    @property
    def key(self) -> TaskKey:
        return TaskKey(self.architecture.name, self.example.id, self.trial)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a task. `score` is None where the infrastructure failed, and without gold answers."""

    task: Task
    trajectory: Trajectory
    calls: Sequence[Call]
    score: Score | None
    error: str | None
    judged_correct: bool | None
    latency_s: float
    working_s: float
    started_at: datetime
    cost_usd: float | None
    refused: ModelError | None = None
    """The refusal of a request by the provider, which may mean that it refuses all."""
    is_retryable: bool = False
    """Whether a question that failed, or its judge, may succeed when tried again: the provider failed or refused."""
    crashes: tuple[Crash, ...] = ()
    """Unexpected exceptions of the architecture and of the judge."""
    traceback: str | None = None
    judge_error: str | None = None
    startup_s: float = 0.0
    """Seconds in which something that the question needs was starting; not in `latency_s`."""
    flags: tuple[str, ...] = ()
    """What to doubt about the row (runs/columns.py)."""
    exposed: bool | None = None
    """Whether a prompt showed an attacker's text; None where there is none."""
    attacked: bool | None = None
    """Whether the attack came to its end, as the task's own check says."""
    answers_sha256: Sequence[str] | None = None
    """Hashes of the gold answers, where the scorer's exact match is an equality (text/scoring.py)."""

    @property
    def has_failed(self) -> bool:
        """Whether the infrastructure failed the question, or its judge: a resumed run asks again."""
        return self.failure is not None

    @property
    def failure(self) -> str | None:
        """The error of the infrastructure, if any."""
        if self.trajectory.stop_reason == "error":
            return self.error or "failed"
        return f"the judge failed: {self.judge_error}" if self.is_retryable else None


_OF_A_RUN = (MANIFEST, JOURNAL_FILE, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE)


@contextmanager
def taken(folder: Path, *, is_new: bool) -> Iterator[None]:
    """Locks the folder of a run, which is made for a new run.

    Raises `UsageError` where another process has locked it, where a new run's folder holds a run already, and for a
    link in the place of a file that a resumed run writes: it may lead anywhere. Raises `OSError` where it can't be
    written to.
    """
    flag = "--out" if is_new else "--resume"
    busy = f"{flag}: another process is at work on this run: it has locked the folder {str(folder)!r}"
    with ExitStack() as stack:
        if is_new:
            folder.mkdir(parents=True, exist_ok=True)
        written = [*(folder / name for name in (*_OF_A_RUN, LOCK)), *folder.glob(f"{JOURNAL_FILE}-*")]
        if not is_new and (link := next((path for path in written if path.is_symlink()), None)):
            raise UsageError(f"{flag}: {str(link)!r} is a symbolic link; the files of a run lie in its own folder")
        stack.enter_context(locked(folder / LOCK, busy))
        if is_new:
            check_new(folder)
        yield


def check_new(folder: Path) -> None:
    """Raises `UsageError` where a folder has a run, or other files."""
    if (folder / MANIFEST).exists():
        go_on = f"continue that run with {resume_command(folder)}"
        raise UsageError(f"--out: {str(folder)!r} holds another run; choose a new folder, or {go_on}")
    journal = folder / JOURNAL_FILE
    if journal.exists() and not is_unused(journal):  # else of a run that was killed before it asked anything
        raise UsageError(f"--out: {str(journal)!r} is of another run, without its {MANIFEST}; choose a new folder")
    others = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if any(name != LOCK and not name.startswith(JOURNAL_FILE) for name in others):
        raise UsageError(f"--out: the folder {str(folder)!r} isn't empty; choose a new one")


# A result as rows of the tables (runs/columns.py), and as a line of traces.jsonl.


def rows_of(result: Result, run: Mapping[str, Any]) -> bytes:
    """The rows of a result, as JSON. `run` has the columns that are the same for the whole run."""
    return as_bytes({"question": question_row(result, run), "calls": call_rows(result, run["run_id"])})


def trace(result: Any, run_id: str) -> dict[str, Any]:
    """Plan, evidence, steps and answer: a line of traces.jsonl."""
    trajectory = result.trajectory
    return {
        "run_id": run_id,
        "architecture": result.task.architecture.name,
        "example_id": result.task.example.id,
        "trial": result.task.trial,
        "question": result.task.example.question,
        "answer": trajectory.answer,
        "stop_reason": trajectory.stop_reason,
        "error": result.error,
        "plan": trajectory.plan,
        "evidence": trajectory.evidence,
        "steps": [
            {
                "id": step.id,
                "thought": step.thought,
                "tool": step.tool,
                "argument": step.argument,
                "observation": step.observation,
                "failed": step.failed,
                **({"written": step.written} if step.written else {}),
            }
            for step in trajectory.steps
        ],
        "notes": trajectory.notes,
        # The parts of a model's reply that aren't its visible text.
        "replies": [
            {"place": call.place.name, "role": call.role, "thoughts": call.thoughts, "repairs": list(call.repairs)}
            for call in result.calls
            if call.thoughts or call.repairs
        ],
        **({"traceback": result.traceback} if result.traceback else {}),
        **({"judge_error": result.judge_error} if result.judge_error else {}),
        **_attack(result),
    }


def _attack(result: Any) -> dict[str, Any]:
    """What an attacker wrote into a result, and the steps that it reached; nothing without an attack."""
    example = result.task.example
    if example.injection is None:
        return {}
    reach = reach_of(example.injection, result.trajectory, example.actions, example.question)
    return {"attack": {"words": example.injection.marker, **reach._asdict()}}


# The folder of a run in progress: results go into the journal, and the journal becomes the tables.
#
# While a run is in progress, the journal has its results. The parquet files are made from it when the run ends,
# whatever ends it, in the order of the tasks, so that the same run gives the same files.


@dataclass(frozen=True)
class RunFolder:
    """An open run: its folder, its journal, and the values of the columns that are the same in all its rows."""

    folder: Path
    journal: Journal
    shared: Mapping[str, Any]

    async def store(self, result: Result) -> None:
        """Writes a result into the journal. Raises `JournalError`."""
        rows, traced = rows_of(result, self.shared), as_bytes(trace(result, self.shared["run_id"]))
        await self.journal.add_question(result.task.key, rows, traced, failed=result.has_failed)

    async def export(self, tasks: Iterable[TaskKey], prompts: JournalReader | None = None) -> int:
        """Writes the tables of the finished questions; returns their number. `prompts`: what a replay replays."""
        rows = 0
        with CancelScope(shield=True):
            await self.journal.flush()
            rows = await to_thread.run_sync(export, self.folder, self.journal, tasks, self.shared, prompts)
        return rows  # noqa: RET504 - a scope may swallow a cancellation, says mypy


@asynccontextmanager
async def open_run(
    folder: Path, columns: Mapping[str, Any], *, recorded_calls: int = 0, accept_loss: bool = False
) -> AsyncIterator[RunFolder]:
    """Opens the run in an existing folder. The other arguments are those of `open_journal`."""
    async with open_journal(folder / JOURNAL_FILE, recorded_calls=recorded_calls, accept_loss=accept_loss) as journal:
        yield RunFolder(folder, journal, columns)


def remove_run(folder: Path) -> None:
    """Deletes the files of a run, and no others, and then the folder, if it is empty."""
    journal = folder.glob(f"{JOURNAL_FILE}-*")  # files that a killed run leaves
    for path in (*(folder / name for name in (*_OF_A_RUN, LOCK)), *journal):
        path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


# The results in memory: a sequence of `Result` that is also the tables of a run.
#
#     results = await rewoo_bench.evaluate("sample", ["rewoo", "react"])
#     results[0].trajectory.answer
#     results.to_frame()["total_tokens"].mean()       # the columns of questions.parquet


class Results(Sequence[Result]):
    """Results in the order of the tables, and the run that they are of. `columns` are those that all rows share.

    `folder` is the run's folder where one was written. `status` is `done`, or `incomplete` for `reason`.
    """

    def __init__(
        self,
        results: Iterable[Result],
        columns: Mapping[str, Any],
        *,
        folder: Path | None = None,
        status: str = "done",
        reason: str | None = None,
    ) -> None:
        self._results = list(results)
        self._columns = columns
        self.folder = folder
        self.status = status
        self.reason = reason

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...

    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        return self._results[index]

    def __repr__(self) -> str:
        where = f" in {str(self.folder)!r}" if self.folder else ""
        return f"<{len(self)} results of run {self._columns['run_id']!r}{where}, {self.status}>"

    def to_frame(self) -> pd.DataFrame:
        """A row for each result, with the columns and types of `rewoo_bench.load`."""
        return as_frame(self._tables[0])

    def calls_to_frame(self) -> pd.DataFrame:
        """A row for each model or tool call: the columns of calls.parquet."""
        frame: pd.DataFrame = self._tables[1].to_pandas()
        return frame

    @cached_property
    def _tables(self) -> tuple[pa.Table, pa.Table]:
        rows = [rows_of(result, self._columns).decode() for result in self._results]
        return tables_of(rows) if rows else (QUESTIONS.empty_table(), CALLS.empty_table())


@dataclass
class Outcome:
    """How a session of a run ended, as it stands here if it is cancelled: `done`, or `incomplete` for the reason."""

    folder: Path
    keys: Sequence[TaskKey] = ()
    """Questions x trials x architectures in the order of the tables, finished or not."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The columns of questions.parquet that all rows share."""
    status: Literal["done", "incomplete"] = "incomplete"
    reason: str | None = "interrupted"
    is_resumable: bool = True
    """Whether `--resume` can finish an incomplete run; False where every failure would come again."""
    finished: int = 0
    """Number of the keys that `--resume` needn't ask again."""
    was_interrupted: bool = False
    """Whether a signal ended it; a run may be done for all that."""
    has_asked_all: bool = False
    """Whether every question was asked: of an incomplete run some answers failed, and that is its reason."""
    cost_usd: float = 0.0
    """US dollars of all its sessions, of calls whose price is known."""
    unfinished: Spent = field(default_factory=Spent)
    """What questions spent that have no row, of an incomplete run."""
    wrong: UsageError | None = None
    """The command or its input was wrong, or the provider refused everything (`is_refused`)."""
    is_refused: bool = False
    cap: CapReached | None = None
    """The cap that ended it."""
    has_repeated_crash: bool = False
    failed: int = 0
    """Number of failed questions."""
    can_be_retried: bool = False
    """Whether one of the failed may succeed when it is tried again."""
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls by the model that was asked and the one that the provider says has answered."""

    def add(self, result: Result) -> None:
        """Counts a result."""
        self.answered.update((call.name, call.answered_model) for call in result.calls if call.answered_model)
        if result.has_failed:
            self.failed += 1
            self.can_be_retried |= result.is_retryable

    def other_models(self) -> Iterator[str]:
        """A line for each model that has answered in the place of the one that was asked."""
        for (asked, answered), calls in self.answered.most_common():
            if not is_same_model(asked, answered):
                yield f"{counted(calls, 'call')} of {asked} had an answer of {answered}, as its provider says"

    def is_failure(self, fail_on_error: float | None) -> bool:
        """Whether failures ended the run before its last question."""
        if fail_on_error is None:
            return self.has_repeated_crash
        tolerated = fail_on_error * (1 if fail_on_error >= 1 else len(self.keys))
        return self.has_repeated_crash or self.failed > tolerated
