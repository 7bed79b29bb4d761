"""A question put to an architecture, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rewoo_bench.crashes import Crash
from rewoo_bench.journal.records import TaskKey
from rewoo_bench.metering.calls import Call
from rewoo_bench.metering.live_calls import RequestRefused
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.scoring import Score
from rewoo_bench.types import Example, Trajectory


@dataclass(frozen=True, slots=True)
class Task:
    """One question put to one architecture. `index` counts from 0 in the order of the run."""

    index: int
    example: Example
    trial: int
    architecture: Architecture

    @property
    def key(self) -> TaskKey:
        return TaskKey(self.architecture.name, self.example.id, self.trial)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a task. `score` is None where the infrastructure failed."""

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
    """Why the provider didn't take a request, where it may take no other either."""
    crashes: tuple[Crash, ...] = ()
    """Exceptions that nobody raised on purpose, of the architecture and of the judge."""
    traceback: str | None = None
    judge_error: str | None = None
