"""Questions x architectures x trials, bounded and async: from examples to results.

    async for every (example, trial, architecture), at most `concurrency` at once:
        meter + fresh tools -> runner.run(question) -> score -> on_result(result)

The gold answers stay here: a runner gets the question's text, its tools get documents. `Evaluator` asks one question;
`Session` works on all of them, several at the same time, until none is left or the run ends.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Protocol, get_args

import anyio

from rewoo_bench.calls.caps import Caps, GracefulShutdown, RunLimits, Totals
from rewoo_bench.calls.live import LiveCalls, LiveModel
from rewoo_bench.calls.meter import Limits, Meter, not_working
from rewoo_bench.calls.recorded import RecordedModel
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.config.named import find_scorer
from rewoo_bench.errors import (
    JournalError,
    LimitReached,
    ModelError,
    ProviderRefused,
    RepeatedCrash,
    RewooBenchError,
    RunStopped,
)
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.events import Event, current_notes, in_architecture, listening, noting
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.system.crashes import RUN_STOPPING, Crash, CrashCounter, crash_of, deciding, harness_fault
from rewoo_bench.text.model_output import noting_repairs
from rewoo_bench.text.scoring import Score, Scorer, ScorerFault, all_or_nothing
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import Example, Model, Runner, Step, StopReason, Tool, Trajectory
from rewoo_bench.worlds.world import World, WorldFault

_STOP_REASONS = frozenset(get_args(StopReason))


def check_trajectory(value: object) -> Trajectory:
    """The trajectory. Raises `TypeError` or `ValueError` with the field that no table can hold."""
    if not isinstance(value, Trajectory):
        raise TypeError(f"answered with {type(value).__name__}, expected a Trajectory")
    if not (value.answer is None or isinstance(value.answer, str)):
        raise TypeError(f"answer is {type(value.answer).__name__}, expected text or None")
    if value.stop_reason not in _STOP_REASONS:
        raise ValueError(f"stop_reason is {value.stop_reason!r}, expected one of {', '.join(sorted(_STOP_REASONS))}")
    if type(value.replans) is not int or not 0 <= value.replans < 2**31:
        raise TypeError(f"replans is {value.replans!r}, expected a count")
    if not all(isinstance(step, Step) for step in value.steps):
        raise TypeError("steps has something that is no Step")
    return value


class Judge(Protocol):
    """Decides whether a prediction means the same as a gold answer."""

    async def judge(self, example: Example, prediction: str, model: Model) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a question has no answer, or an answer no verdict of the judge."""

    error: str
    stop_reason: StopReason = "error"
    refused: ModelError | None = None
    crash: Crash | None = None
    is_retryable: bool = False


@dataclass(frozen=True)
class Evaluator:
    """Everything that is the same for all questions of a run.

    `models` maps a role to its model, `""` to the model of every other role. A `recorder` answers calls of earlier
    sessions of the run, and its shutdown ends the run.
    """

    models: Mapping[str, Model]
    scoring: str | Scorer
    """A scorer, or the name of one."""
    toolbox: Toolbox = field(default_factory=Toolbox)
    limits: Limits = field(default_factory=Limits)
    run_limits: RunLimits = field(default_factory=RunLimits)
    judge: Judge | None = None
    recorder: Recorder | None = None
    concurrency: int = 8
    grace_s: float = 15.0
    """How long calls in flight may take to end once shutdown is requested."""
    engine: Engine | None = None
    """Asks the questions elsewhere; None asks them in this process."""
    asks_failed: bool = True
    """Whether questions that the infrastructure failed in an earlier session are asked again."""

    async def run(
        self,
        examples: Sequence[Example],
        architectures: Sequence[Architecture],
        *,
        trials: int = 1,
        on_result: Callable[[Result], None],
        store: Callable[[Result], Awaitable[None]] | None = None,
        on_event: Callable[[Task, Event], None] | None = None,
    ) -> Totals:
        """Asks every question of every architecture; `on_result` gets each result as it ends.

        `store` gets each result first and is awaited. `on_event` gets the events inside each question as they
        happen. Results aren't kept here. Raises `RunStopped` where a limit of the run was reached, an exception was
        repeated, or shutdown was requested; and `ProviderRefused`, `ModelGone`, `UsageError` (a runner that is set up
        wrongly), `HarnessFault` or `JournalError`: all but the last after the calls in flight ended.
        """
        find_scorer(self.scoring)
        for architecture in architectures:
            self.toolbox.check(architecture, examples[0] if examples else None)
        journal = self.recorder.journal if self.recorder else None
        finished = journal.finished() if journal else set()
        failed = journal.failed() if journal and not self.asks_failed else set()
        finished |= failed
        totals = Totals(len(examples) * len(architectures) * trials, done=len(finished), failed_before=len(failed))
        if journal:
            totals.spent = journal.spent
        if spent_before := self.run_limits.exceeded(totals):
            raise spent_before
        live = self.recorder.live if self.recorder else LiveCalls(spent=totals.spent)
        live.accepted_before = journal is not None and journal.has_answers()
        if self.run_limits.run_tokens is not None or self.run_limits.run_cost is not None:
            live.caps = Caps(self.run_limits, totals, live.shutdown)
        tasks = (task for task in tasks_of(examples, architectures, trials) if str(task.key) not in finished)
        session = Session(
            self.engine.ask if self.engine else partial(self.run_task, on_event=on_event, live=live),
            tasks,
            totals,
            run_limits=self.run_limits,
            live=live,
            concurrency=self.concurrency,
            grace_s=self.grace_s,
            on_result=on_result,
            store=store,
        )
        count_tokens("a")  # loads the tokenizer now, and not in the first question's seconds
        # A provider's library has some 300,000 objects that stay, and a full collection visits all of them: that stops
        # everything for 0.2 s, once in several hundred questions.
        gc.freeze()
        try:
            await session.run()
        finally:
            gc.unfreeze()
        return totals

    async def run_task(
        self,
        task: Task,
        on_event: Callable[[Task, Event], None] | None = None,
        live: LiveCalls | None = None,
    ) -> Result:
        """Asks one question of one architecture.

        Errors of a question, a model, a runner or a tool are in the result; only `crashes.RUN_STOPPING` is raised.
        """
        live = live or (self.recorder.live if self.recorder else LiveCalls())
        recorder = await self.recorder.question(task.key) if self.recorder else None
        models: dict[str, Model] = {}
        for role, model in self.models.items():
            # Only here a `GoldAware` model gets the gold answers. (`isinstance` of a protocol takes 50 µs.)
            with_gold = getattr(model, "with_gold", None)
            asked_model = with_gold(task.example) if with_gold else model
            models[role] = RecordedModel(recorder, asked_model) if recorder else LiveModel(live, asked_model)
        example = task.example
        meter = Meter(models, self.limits, question=example.question, trial=task.trial, injection=example.injection)
        place = getattr(task.architecture.runner, "question_places", nullcontext())
        begin = not (recorder and recorder.has_records)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(place)
            servers = await stack.enter_async_context(self.toolbox.servers(task.architecture, begin=begin))
            started_at, start = datetime.now(UTC), time.monotonic()
            trajectory, score, failure, attacked = Trajectory(None, "error"), None, None, None
            try:
                world = await stack.enter_async_context(self.toolbox.world(task.example))
                started_at, start = datetime.now(UTC), time.monotonic()
                tools = partial(self.toolbox.tools, task.architecture, task.example, meter, recorder, servers, world)
                with noting(meter.notes):
                    trajectory, failure = await self._ask(task, meter, tools, on_event, live.shutdown)
                seconds = time.monotonic() - start
                score = await self._score(task.example, trajectory, world)
                attacked = world.attack(trajectory.answer or "") if world is not None and world.attack else None
            except (WorldFault, ScorerFault) as fault:
                seconds = time.monotonic() - start
                trajectory, failure = replace(trajectory, stop_reason="error"), _failure(fault, "")
        if task.trial and trajectory.answer is not None and not any(call.kind == "model" for call in meter.calls):
            meter.notes.flags.add("no_call")
        idle_s, startup_s = not_working(meter.calls, meter.notes.startups)
        judging = Meter(models)  # a judge's calls are kept apart
        verdict, unjudged = await self._judge(task.example, trajectory, judging)
        if recorder:
            meter.add_abandoned(recorder.abandoned())
        return Result(
            task=task,
            trajectory=trajectory,
            calls=[*meter.calls, *judging.calls],
            score=score,
            error=failure.error if failure else None,
            judged_correct=verdict,
            latency_s=max(0.0, seconds - startup_s),
            working_s=max(0.0, seconds - startup_s - idle_s),
            startup_s=startup_s,
            flags=tuple(sorted(meter.notes.flags)),
            started_at=started_at,
            cost_usd=meter.cost_usd,
            refused=next((each.refused for each in (failure, unjudged) if each and each.refused), None),
            is_retryable=any(each.is_retryable for each in (failure, unjudged) if each),
            crashes=tuple(each.crash for each in (failure, unjudged) if each and each.crash),
            traceback=failure.crash.traceback if failure and failure.crash else None,
            judge_error=unjudged.error if unjudged else None,
            exposed=meter.exposed,
            attacked=attacked,
            answers_sha256=self._scorer.answers_sha256(task.example.answers) if task.example.answers else None,
        )

    async def _ask(
        self,
        task: Task,
        meter: Meter,
        make_tools: Callable[[], Mapping[str, Tool]],
        on_event: Callable[[Task, Event], None] | None,
        shutdown: GracefulShutdown,
    ) -> tuple[Trajectory, _Failure | None]:
        """Asks the architecture. Raises an exception that ends the run."""
        example, runner = task.example, task.architecture.runner
        limit = nullcontext() if self.limits.time_s is None else anyio.move_on_after(self.limits.time_s)
        events = listening(lambda event: on_event(task, event)) if on_event else nullcontext()
        try:
            with limit, events:
                trajectory = check_trajectory(await run_noting_repairs(runner, example.question, meter, make_tools()))
                # An external agent says in its notes why it gave no answer.
                error = trajectory.notes.get("error") if trajectory.answer is None else None
                return trajectory, _Failure(error) if isinstance(error, str) else None
        except (Exception, BaseExceptionGroup) as raised:  # of a runner, a parser or a tool's factory
            failure = _failure(raised, type(runner).__name__)
        else:
            if shutdown.requested.is_set():
                await anyio.sleep_forever()  # stopped by the shutdown, not by its limit: a later session continues it
            failure = _Failure(f"took longer than {self.limits.time_s} s", "time_limit")
        notes = current_notes()  # they keep the steps of an external agent
        so_far = (notes.so_far if notes else None) or Trajectory(None, failure.stop_reason)
        return replace(so_far, stop_reason=failure.stop_reason), failure

    @cached_property
    def _scorer(self) -> Scorer:
        return find_scorer(self.scoring)

    async def _score(self, example: Example, trajectory: Trajectory, world: World | None) -> Score | None:
        """The world's verdict where it has a check, else that of the answer. Raises `WorldFault` and `ScorerFault`."""
        if trajectory.stop_reason == "error":
            return None
        if world is not None and (verdict := await self.toolbox.solved(world, trajectory.answer)) is not None:
            return all_or_nothing(verdict)
        if not example.answers:
            return None
        return self._scorer(trajectory.answer, example.answers)

    async def _judge(
        self, example: Example, trajectory: Trajectory, meter: Meter
    ) -> tuple[bool | None, _Failure | None]:
        """The judge's verdict, None where there is none; its calls go through a meter of their own."""
        if self.judge is None or trajectory.stop_reason == "error" or not example.answers:
            return None, None
        if trajectory.answer is None:
            return False, None
        try:
            return await self.judge.judge(example, trajectory.answer, meter), None
        except Exception as error:  # a judge's failure is no verdict, and never a wrong answer
            return None, _failure(error, type(self.judge).__name__)


def tasks_of(examples: Iterable[Example], architectures: Sequence[Architecture], trials: int) -> Iterator[Task]:
    """All architectures of a question before the next question, so that an interrupted run is still paired."""
    index = 0
    for example in examples:
        for trial in range(trials):
            for architecture in architectures:
                yield Task(index, example, trial, architecture)
                index += 1


async def run_noting_repairs(runner: Runner, question: str, model: Model, tools: Mapping[str, Tool]) -> object:
    """The runner's trajectory, with the repairs of its model's replies among its notes.

    Raises `RuntimeError` for a cancellation that nobody requested.
    """
    try:
        with noting_repairs() as repaired:
            ended = await runner.run(question, model=model, tools=tools)
    except anyio.get_cancelled_exc_class() as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError(f"raised {type(error).__name__}, though nothing was cancelled") from error
    if repaired and isinstance(ended, Trajectory):
        return replace(ended, notes={**ended.notes, "repaired": repaired})
    return ended


def _failure(error: BaseException, where: str) -> _Failure:
    """What an exception says of a question. Raises an exception that ends the run."""
    cause = deciding(error)
    if isinstance(cause, RUN_STOPPING):
        raise cause
    if fault := harness_fault(cause, where):
        raise fault from error
    if isinstance(cause, LimitReached):
        return _Failure(str(cause), cause.stop_reason)
    if isinstance(cause, ModelError):
        if cause.refuses_key:
            raise ProviderRefused(str(cause)) from error
        refused = cause if cause.refused_by else None
        is_retryable = cause.retryable or cause.unreachable or cause.status is not None
        return _Failure(str(cause), refused=refused, is_retryable=is_retryable)
    crash = crash_of(cause, where, error)
    return _Failure(crash.error, crash=crash)


# One session of a run: questions at the same time, and the session's end.
#
# A refusal (403, 404, no connection) is one question's error, because firewalls and content filters exist. But where
# the provider never accepted a request, and refused several questions or all that there are, it is the end of the run.


_MOST_REFUSED = 2  # questions; of one or two, the prompts may be the reason
_LAST_STEPS_S = 0.05  # for questions whose last call has just ended


class Engine(Protocol):
    """Asks questions in other processes. `sent` says by role how their requests differed from the options."""

    sent: dict[str, Any]

    async def ask(self, task: Task) -> Result:
        """Raises the errors that end a run."""

    def state(self) -> str:
        """Some words for the progress line: `4 workers, 31 in flight`."""


@dataclass(eq=False)
class Session:
    """The remaining tasks of a run, and the reason for an early end. `ask` is an engine's, or the evaluator's own."""

    ask: Callable[[Task], Awaitable[Result]]
    tasks: Iterator[Task]
    totals: Totals
    run_limits: RunLimits
    live: LiveCalls
    concurrency: int
    grace_s: float
    on_result: Callable[[Result], None]
    store: Callable[[Result], Awaitable[None]] | None
    _crashes: CrashCounter = field(default_factory=CrashCounter)
    _refused: dict[str, set[str]] = field(default_factory=dict)
    """Model -> questions that its provider refused, having accepted nothing."""
    _others: int = 0
    """Results of other questions."""
    _must_stop: RewooBenchError | None = None

    async def run(self) -> None:
        """Works until no question is left. Raises the reason of an early end."""
        shutdown = self.live.shutdown
        async with anyio.create_task_group() as group:
            group.start_soon(self._end, group.cancel_scope)
            async with anyio.create_task_group() as workers:
                for _ in range(min(self.concurrency, self.totals.tasks)):
                    workers.start_soon(self._work)
            group.cancel_scope.cancel()
        if self._must_stop is not None:
            raise self._must_stop
        reached = self.run_limits.exceeded(self.totals)  # with the calls that were in flight
        left = self.totals.tasks - self.totals.done
        if shutdown.requested.is_set() and (left or reached):
            if reached and isinstance(shutdown.reason, RunStopped):
                raise reached
            raise shutdown.reason or RunStopped("interrupted")

    async def _end(self, scope: anyio.CancelScope) -> None:
        """After a request for shutdown, waits for calls in flight and ends the run."""
        shutdown = self.live.shutdown
        await shutdown.requested.wait()
        if not isinstance(shutdown.reason, JournalError):  # without a journal, their answers couldn't be kept
            await shutdown.wait_idle(self.grace_s)
            await anyio.sleep(_LAST_STEPS_S)
        scope.cancel()

    def _stop(self, error: RewooBenchError) -> None:
        """Requests the shutdown because of an error that ends a run."""
        self._must_stop = self._must_stop or error
        self.live.shutdown.request(error)

    async def _work(self) -> None:
        """Asks one question after another, until none is left or the run ends."""
        try:
            for task in self.tasks:
                if self.live.shutdown.requested.is_set():
                    return
                with in_architecture(task.architecture.name):
                    result = await self.ask(task)
                await self._count(result)
        except RUN_STOPPING as error:
            self._stop(error)

    def _check_refusal(self, result: Result) -> None:
        """Raises `ProviderRefused` where a provider that has accepted nothing refuses too many questions, or all."""
        refused = result.refused
        if not refused or not self.live.may_refuse_all(refused.refused_by, unreachable=refused.unreachable):
            self._others += 1
            return
        questions = self._refused.setdefault(refused.refused_by, set())
        questions.add(result.task.example.id)
        is_last = self.totals.done + 1 == self.totals.tasks
        if len(questions) > _MOST_REFUSED or (is_last and not self._others):
            raise ProviderRefused(str(refused))

    async def _count(self, result: Result) -> None:
        """Stores a result and counts it. Raises `RepeatedCrash` for one crash too many, and `ProviderRefused`."""
        self._check_refusal(result)
        if self.store:
            await self.store(result)
        self.totals.add(result.failure)
        self.on_result(result)
        # Where every model call is recalled, the crash is known, and mustn't end each later session.
        measured = [call.call_cost.measured_s for call in result.calls if call.kind == "model"]
        for crash in () if measured and None not in measured else result.crashes:
            if reason := self._crashes.add(crash, result.task.example.id):
                raise RepeatedCrash(reason)
        if reached := self.run_limits.exceeded(self.totals):
            self.live.shutdown.request(reached)
