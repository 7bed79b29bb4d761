"""A task (one question for one architecture) and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rewoo_bench.calls.live import RequestRefused
from rewoo_bench.calls.meter import Call
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.system.crashes import Crash
from rewoo_bench.text.scoring import Score
from rewoo_bench.types import Example, Trajectory


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
    refused: RequestRefused | None = None
    """Refusal of a request by the provider, which may mean that it refuses all."""
    is_retryable: bool = False
    """Whether a failed question may succeed when it is tried again: the provider failed or refused."""
    crashes: tuple[Crash, ...] = ()
    """Unexpected exceptions of the architecture and of the judge."""
    traceback: str | None = None
    judge_error: str | None = None
    startup_s: float = 0.0
    """Seconds in which something that the question needs was starting; not in `latency_s`."""
    flags: tuple[str, ...] = ()
    """What to doubt about the row (runs/columns.py)."""
    answers_sha256: Sequence[str] | None = None
    """Hashes of the gold answers, where the scorer's exact match is an equality (text/scoring.py)."""

    @property
    def has_failed(self) -> bool:
        """Whether the infrastructure failed the question."""
        return self.trajectory.stop_reason == "error"
