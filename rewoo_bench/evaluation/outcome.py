"""How a run, and a session of it, ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rewoo_bench.errors import RepeatedCrash, UsageError
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.journal.records import TaskKey


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `done`, or `incomplete` for the reason given."""

    folder: Path
    status: Literal["done", "incomplete"]
    reason: str | None = None
    is_resumable: bool = True
    """Whether `--resume` can finish an incomplete run; False where every failure would come again."""
    keys: Sequence[TaskKey] = ()
    """Questions x trials x architectures in the order of the tables, finished or not."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The columns of questions.parquet that all rows share."""


@dataclass
class Failures:
    """The failed questions of a session, and whether another session could do better."""

    count: int = 0
    can_be_retried: bool = False
    """Whether one of them may succeed when it is tried again."""
    has_repeated_crash: bool = False

    def add(self, result: Result) -> None:
        if result.score is None:
            self.count += 1
            self.can_be_retried |= result.is_retryable

    def stopped(self, stop: Exception) -> None:
        """Records why the session ended."""
        self.has_repeated_crash |= isinstance(stop, RepeatedCrash)

    def ended_run(self, fail_on_error: float | None, tasks: int) -> bool:
        """Whether failures ended the run before its last question."""
        if fail_on_error is None:
            return self.has_repeated_crash
        return self.has_repeated_crash or self.count > (fail_on_error * (1 if fail_on_error >= 1 else tasks))


@dataclass
class SessionEnd:
    """How a session ends; as it stands here if it is cancelled."""

    status: Literal["done", "incomplete"] = "incomplete"
    reason: str | None = "interrupted"
    wrong: UsageError | None = None
    """The command or its input was wrong, or the provider refused everything (`is_refused`)."""
    is_refused: bool = False
    failures: Failures = field(default_factory=Failures)
