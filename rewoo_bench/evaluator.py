"""Questions x architectures x trials, bounded and async: from examples to results.

    async for every (example, trial, architecture), at most `concurrency` at once:
        meter + fresh tools -> runner.run(question) -> score -> on_result(result)

The gold answers stay here: a runner gets the question's text, its tools get documents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import anyio

from rewoo_bench.architecture import Architecture
from rewoo_bench.errors import LimitReached, ModelError, RewooBenchError, UsageError
from rewoo_bench.events import Event, listening
from rewoo_bench.meter import Call, Limits, Meter, idle_seconds
from rewoo_bench.scoring import Score, Scoring, score
from rewoo_bench.toolbox import Toolbox
from rewoo_bench.types import Example, Model, StopReason, Trajectory

# An answer that says the request itself is refused: the next question would hear the same.
_REFUSED = frozenset({401, 403, 404})


class Judge(Protocol):
    """Decides whether a prediction means the same as a gold answer."""

    async def judge(self, example: Example, prediction: str, model: Model) -> bool | None: ...


class RunStopped(RewooBenchError):
    """The run ended before its last question; what was finished is kept."""


class ProviderRefused(RewooBenchError):
    """The provider refuses every request: a wrong key, or no such model."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question put to one architecture. `index` counts from 0 in the order of the run."""

    index: int
    example: Example
    trial: int
    architecture: Architecture


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


@dataclass(frozen=True)
class RunLimits:
    """When a whole run ends early. `max_errors` is a count (int) or a fraction (float below 1)."""

    max_total_tokens: int | None = None
    max_total_cost: float | None = None
    max_errors: float | None = None

    def exceeded(self, totals: Totals) -> str | None:
        """Why the run has to stop now, or None. A run that is through with its questions kept to its caps."""
        if self.max_errors is not None and totals.errors:
            allowed = self.max_errors if self.max_errors >= 1 else self.max_errors * totals.tasks
            if totals.errors >= allowed:
                return (
                    f"{totals.errors} questions failed (--fail-on-error {self.max_errors:g}); last: {totals.last_error}"
                )
        if totals.done == totals.tasks:
            return None
        if self.max_total_tokens is not None and totals.tokens >= self.max_total_tokens:
            return f"used {totals.tokens} of {self.max_total_tokens} tokens (--max-total-tokens)"
        if self.max_total_cost is not None and totals.unpriced:
            return "the price of a call isn't known, so --max-total-cost can't be kept"
        if self.max_total_cost is not None and totals.cost_usd >= self.max_total_cost:
            return f"cost {totals.cost_usd:.4f} of {self.max_total_cost} USD (--max-total-cost)"
        return None


@dataclass
class Totals:
    """What a run has used so far, billed: failed attempts included."""

    tasks: int = 0
    done: int = 0
    errors: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False
    last_error: str | None = None

    def add(self, result: Result) -> None:
        self.done += 1
        self.tokens += sum(call.receipt.billed.total_tokens for call in result.calls)
        self.cost_usd += sum(call.receipt.cost_usd or 0.0 for call in result.calls)
        self.unpriced |= result.cost_usd is None and any(call.status == "ok" for call in result.calls)
        if result.score is None:
            self.errors += 1
            self.last_error = result.error


@dataclass(frozen=True)
class Evaluator:
    """Everything that is the same for all questions of a run.

    `models` maps a role to its model, `""` to the model of every other role.
    """

    models: Mapping[str, Model]
    scoring: Scoring
    toolbox: Toolbox = field(default_factory=Toolbox)
    limits: Limits = field(default_factory=Limits)
    run_limits: RunLimits = field(default_factory=RunLimits)
    judge: Judge | None = None
    concurrency: int = 8

    async def run(
        self,
        examples: Sequence[Example],
        architectures: Sequence[Architecture],
        *,
        trials: int = 1,
        on_result: Callable[[Result], None],
        on_event: Callable[[Task, Event], None] | None = None,
    ) -> Totals:
        """Puts every question to every architecture; `on_result` gets each result as it ends.

        `on_event` gets what happens inside each question, as it happens. Holds no results itself.
        Raises `RunStopped` where a limit of the run was reached, after the questions in flight
        ended, and `ProviderRefused` or `UsageError` (a runner that can't work as it is set up) at once.
        """
        for architecture in architectures:
            self.toolbox.check(architecture)
        totals = Totals(tasks=len(examples) * len(architectures) * trials)
        tasks = _tasks(examples, architectures, trials)
        stopped: list[RewooBenchError] = []

        async def work() -> None:
            for task in tasks:
                if stopped:
                    return
                try:
                    result = await self.run_task(task, on_event)
                except (ProviderRefused, UsageError) as error:
                    stopped.append(error)
                    group.cancel_scope.cancel()
                    return
                totals.add(result)
                on_result(result)
                reason = self.run_limits.exceeded(totals)
                if reason and not stopped:
                    stopped.append(RunStopped(reason))

        async with anyio.create_task_group() as group:
            for _ in range(min(self.concurrency, totals.tasks)):
                group.start_soon(work)
        through = totals.done == totals.tasks and not self.run_limits.exceeded(totals)
        if stopped and not through:
            raise stopped[0]
        return totals

    async def run_task(self, task: Task, on_event: Callable[[Task, Event], None] | None = None) -> Result:
        """One question, one architecture: never raises for what a question, a model or a tool did."""
        heard = listening(lambda event: on_event(task, event)) if on_event else nullcontext()
        meter = Meter(self.models, self.limits)
        started_at, start = datetime.now(UTC), time.monotonic()
        error = None
        try:
            tools = self.toolbox.tools(task.architecture, task.example.documents, meter)
            with heard, anyio.fail_after(self.limits.time_s):
                trajectory = await task.architecture.runner.run(task.example.question, model=meter, tools=tools)
        except LimitReached as reached:
            trajectory, error = _stopped(reached.stop_reason), str(reached)
        except TimeoutError:
            trajectory, error = _stopped("time_limit"), f"took longer than {self.limits.time_s} s"
        except ModelError as failed:
            if failed.status in _REFUSED:
                raise ProviderRefused(str(failed)) from failed
            trajectory, error = _stopped("error"), str(failed)
        latency_s = time.monotonic() - start
        judging = Meter(self.models)  # a judge's calls are kept apart
        judged_correct = await self._judge(task.example, trajectory, judging)
        return Result(
            task=task,
            trajectory=trajectory,
            calls=[*meter.calls, *judging.calls],
            score=self._score(task.example, trajectory),
            error=error,
            judged_correct=judged_correct,
            latency_s=latency_s,
            working_s=max(0.0, latency_s - idle_seconds(meter.calls)),
            started_at=started_at,
            cost_usd=meter.cost_usd,
        )

    def _score(self, example: Example, trajectory: Trajectory) -> Score | None:
        if trajectory.stop_reason in ("error", "cancelled"):
            return None
        return score(trajectory.answer, example.answers, self.scoring)

    async def _judge(self, example: Example, trajectory: Trajectory, meter: Meter) -> bool | None:
        """The judge's verdict; its calls go through a meter of their own."""
        if self.judge is None or trajectory.stop_reason == "error":
            return None
        if trajectory.answer is None:
            return False
        try:
            return await self.judge.judge(example, trajectory.answer, meter)
        except ModelError as failed:
            if failed.status in _REFUSED:
                raise ProviderRefused(str(failed)) from failed
            return None  # a missing verdict is null, never a wrong answer


def _tasks(examples: Iterable[Example], architectures: Sequence[Architecture], trials: int) -> Iterator[Task]:
    """All architectures of a question before the next question, so that an interrupted run is still paired."""
    index = 0
    for example in examples:
        for trial in range(trials):
            for architecture in architectures:
                yield Task(index, example, trial, architecture)
                index += 1


def _stopped(stop_reason: StopReason) -> Trajectory:
    return Trajectory(None, stop_reason)
