"""Questions x architectures x trials, bounded and async: from examples to results.

    async for every (example, trial, architecture), at most `concurrency` at once:
        meter + fresh tools -> runner.run(question) -> score -> on_result(result)

The gold answers stay here: a runner gets the question's text, its tools get documents.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol

import anyio

from rewoo_bench.architecture import Architecture
from rewoo_bench.brake import Brake
from rewoo_bench.errors import JournalError, LimitReached, ModelError, ModelGone, RewooBenchError, UsageError
from rewoo_bench.events import Event, listening
from rewoo_bench.garbage import frozen_heap
from rewoo_bench.meter import Call, Limits, Meter, idle_seconds
from rewoo_bench.place import in_architecture
from rewoo_bench.recording import QuestionRecorder, Recorder
from rewoo_bench.records import TaskKey
from rewoo_bench.run_limits import RunLimits, Totals
from rewoo_bench.scoring import Score, Scoring, score
from rewoo_bench.toolbox import Toolbox
from rewoo_bench.types import Example, Informed, Model, StopReason, Trajectory

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


@dataclass(frozen=True)
class Evaluator:
    """Everything that is the same for all questions of a run.

    `models` maps a role to its model, `""` to the model of every other role. With a `recorder`, what
    was done in earlier sessions of the run isn't done again, and its brake stops the run.
    """

    models: Mapping[str, Model]
    scoring: Scoring
    toolbox: Toolbox = field(default_factory=Toolbox)
    limits: Limits = field(default_factory=Limits)
    run_limits: RunLimits = field(default_factory=RunLimits)
    judge: Judge | None = None
    recorder: Recorder | None = None
    concurrency: int = 8
    grace_s: float = 15.0
    """How long calls in flight may take to end once the brake is pulled."""

    async def run(
        self,
        examples: Sequence[Example],
        architectures: Sequence[Architecture],
        *,
        trials: int = 1,
        on_result: Callable[[Result], None],
        keep: Callable[[Result], Awaitable[None]] | None = None,
        on_event: Callable[[Task, Event], None] | None = None,
    ) -> Totals:
        """Puts every question to every architecture; `on_result` gets each result as it ends.

        `keep` gets each result first and is waited for. `on_event` gets what happens inside each
        question, as it happens. Holds no results itself. Raises `RunStopped` where a limit of the
        run was reached, after the questions in flight ended, or the brake was pulled; and
        `ProviderRefused`, `ModelGone`, `UsageError` (a runner that can't work as it is set up) or
        `JournalError` at once.
        """
        for architecture in architectures:
            self.toolbox.check(architecture)
        finished = self.recorder.journal.finished() if self.recorder else set()
        totals = Totals(tasks=len(examples) * len(architectures) * trials, done=len(finished))
        if self.recorder:
            totals.spent = self.recorder.journal.spent
        if spent_before := self.run_limits.exceeded(totals):
            raise RunStopped(spent_before)
        tasks = (task for task in tasks_of(examples, architectures, trials) if str(task.key) not in finished)
        session = _Session(self, tasks, totals, on_result, keep, on_event)
        with frozen_heap():
            await self._run_session(session)
        through = totals.done == totals.tasks and not self.run_limits.exceeded(totals)
        if session.stopped and not through:
            raise session.stopped[0]
        return totals

    async def _run_session(self, session: _Session) -> None:
        async with anyio.create_task_group() as group:
            if self.recorder:
                group.start_soon(session.heed, self.recorder.brake, group.cancel_scope)
            await session.work_all()
            group.cancel_scope.cancel()

    async def run_task(self, task: Task, on_event: Callable[[Task, Event], None] | None = None) -> Result:
        """One question, one architecture: never raises for what a question, a model or a tool did."""
        heard = listening(lambda event: on_event(task, event)) if on_event else nullcontext()
        recorder = await self.recorder.question(task.key) if self.recorder else None
        models = self._models(task.example, recorder)
        meter = Meter(models, self.limits, question=task.example.question)
        started_at, start = datetime.now(UTC), time.monotonic()
        error = None
        try:
            tools = self.toolbox.tools(task.architecture, task.example, meter, recorder)
            with heard, anyio.fail_after(self.limits.time_s):
                trajectory = await task.architecture.runner.run(task.example.question, model=meter, tools=tools)
        except LimitReached as reached:
            trajectory, error = _stopped(reached.stop_reason), str(reached)
        except TimeoutError:
            trajectory, error = _stopped("time_limit"), f"took longer than {self.limits.time_s} s"
        except ModelError as failed:
            _raise_hopeless(failed)
            trajectory, error = _stopped("error"), str(failed)
        latency_s = time.monotonic() - start
        judging = Meter(models)  # a judge's calls are kept apart
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

    @cached_property
    def _informed(self) -> dict[str, Informed]:
        return {role: model for role, model in self.models.items() if isinstance(model, Informed)}

    def _models(self, example: Example, recorder: QuestionRecorder | None) -> dict[str, Model]:
        """The models of one question; here, and nowhere else, one that has to know the gold is told it."""
        told = {**self.models, **{role: model.knowing(example) for role, model in self._informed.items()}}
        return {role: recorder.model(model) for role, model in told.items()} if recorder else told

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
        except LimitReached:  # it thought longer than it may write
            return None
        except ModelError as failed:
            _raise_hopeless(failed)
            return None  # a missing verdict is null, never a wrong answer


@dataclass
class _Session:
    """One run of an evaluator: what is still to be done, and why it stopped. The first reason counts."""

    evaluator: Evaluator
    tasks: Iterator[Task]
    totals: Totals
    on_result: Callable[[Result], None]
    keep: Callable[[Result], Awaitable[None]] | None
    on_event: Callable[[Task, Event], None] | None
    stopped: list[RewooBenchError] = field(default_factory=list)

    async def work_all(self) -> None:
        """Works on so many questions at once until none is left or the run is stopped."""
        async with anyio.create_task_group() as group:
            for _ in range(min(self.evaluator.concurrency, self.totals.tasks)):
                group.start_soon(self._work, group.cancel_scope)

    async def heed(self, brake: Brake, scope: anyio.CancelScope) -> None:
        """Once the brake is pulled, gives calls in flight their time and ends the run."""
        await brake.pulled.wait()
        self.stopped.append(RunStopped("interrupted"))
        await brake.stopped(self.evaluator.grace_s)
        scope.cancel()

    async def _work(self, scope: anyio.CancelScope) -> None:
        for task in self.tasks:
            if self.stopped:
                return
            try:
                with in_architecture(task.architecture.name):
                    result = await self.evaluator.run_task(task, self.on_event)
                if self.keep:
                    await self.keep(result)
            except (ProviderRefused, ModelGone, UsageError, JournalError) as error:
                self.stopped.append(error)
                scope.cancel()
                return
            self._add(result)

    def _add(self, result: Result) -> None:
        self.totals.add(None if result.score is not None else result.error or "failed")
        if self.evaluator.recorder is None:
            for call in result.calls:
                self.totals.spent.add(call.receipt.billed.total_tokens, call.receipt.cost_usd)
        self.on_result(result)
        reason = self.evaluator.run_limits.exceeded(self.totals)
        if reason and not self.stopped:
            self.stopped.append(RunStopped(reason))


def tasks_of(examples: Iterable[Example], architectures: Sequence[Architecture], trials: int) -> Iterator[Task]:
    """All architectures of a question before the next question, so that an interrupted run is still paired."""
    index = 0
    for example in examples:
        for trial in range(trials):
            for architecture in architectures:
                yield Task(index, example, trial, architecture)
                index += 1


def _raise_hopeless(failed: ModelError) -> None:
    """Raises where the next question would fare no better."""
    if failed.status in _REFUSED:
        raise ProviderRefused(str(failed)) from failed
    if isinstance(failed, ModelGone):
        raise failed


def _stopped(stop_reason: StopReason) -> Trajectory:
    return Trajectory(None, stop_reason)
