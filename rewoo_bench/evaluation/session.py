"""One session of a run: questions at once, the end of it, and the questions that a provider refused.

A refusal (403, 404, no connection) is one question's error, for there are firewalls and content
filters; but where a provider never accepted anything, it is the end of the run. So the first
questions that are refused are held back until it is known which it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

import anyio

from rewoo_bench.call_site import in_architecture
from rewoo_bench.crashes import RUN_STOPPING, CrashCounter
from rewoo_bench.errors import JournalError, ProviderRefused, RepeatedCrash, RewooBenchError, RunStopped
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.events import Event
from rewoo_bench.metering.live_calls import LiveCalls
from rewoo_bench.metering.run_limits import RunLimits, Totals

_FEWEST_REFUSED = 3  # questions; of one or two, the prompts may be the reason
_LAST_STEPS_S = 0.05  # for questions whose last call has just ended


class TaskRunner(Protocol):
    """Asks one question of one architecture: the evaluator's `run_task`."""

    async def __call__(
        self, task: Task, on_event: Callable[[Task, Event], None] | None, live: LiveCalls | None
    ) -> Result: ...


class Session:
    """What is still to be done, and why it stopped."""

    def __init__(
        self,
        run_task: TaskRunner,
        tasks: Iterator[Task],
        totals: Totals,
        *,
        run_limits: RunLimits,
        live: LiveCalls,
        concurrency: int,
        grace_s: float,
        on_result: Callable[[Result], None],
        keep: Callable[[Result], Awaitable[None]] | None,
        on_event: Callable[[Task, Event], None] | None,
    ) -> None:
        self._run_task = run_task
        self._run_limits = run_limits
        self._concurrency = concurrency
        self._grace_s = grace_s
        self._tasks = tasks
        self._totals = totals
        self._on_result = on_result
        self._keep = keep
        self._on_event = on_event
        self._live = live
        self._crashes = CrashCounter()
        self._held: list[Result] = []
        self._must_stop: RewooBenchError | None = None

    async def run(self) -> None:
        """Works until no question is left. Raises what ended it before."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._end, group.cancel_scope)
            await self._work_all()
            group.cancel_scope.cancel()
        self._raise_reason()

    async def _work_all(self) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(min(self._concurrency, self._totals.tasks)):
                group.start_soon(self._work)
        if not self._live.shutdown.requested.is_set():
            try:
                await self._decide_held()
            except RUN_STOPPING as error:
                self._stop(error)

    async def _end(self, scope: anyio.CancelScope) -> None:
        """Once shutdown is requested, gives calls in flight their time and ends the run."""
        shutdown = self._live.shutdown
        await shutdown.requested.wait()
        if not isinstance(shutdown.reason, JournalError):  # what ends now couldn't be kept
            await shutdown.wait_idle(self._grace_s)
            await anyio.sleep(_LAST_STEPS_S)
        scope.cancel()

    async def _work(self) -> None:
        try:
            for task in self._tasks:
                if self._live.shutdown.requested.is_set():
                    return
                await self._work_on(task)
        except RUN_STOPPING as error:
            self._stop(error)

    def _stop(self, error: RewooBenchError) -> None:
        """What ends a run requests the shutdown."""
        self._must_stop = self._must_stop or error
        self._live.shutdown.request(error)

    async def _work_on(self, task: Task) -> None:
        with in_architecture(task.architecture.name):
            result = await self._run_task(task, self._on_event, self._live)
        if self._is_undecided(result):
            self._held.append(result)
            self._check_held(result)
            return
        decided = [held for held in self._held if not self._is_undecided(held)]
        self._held = [held for held in self._held if self._is_undecided(held)]
        for each in (*decided, result):
            await self._take(each)

    def _is_undecided(self, result: Result) -> bool:
        refused = result.refused
        return refused is not None and self._live.service(refused.model).is_undecided(unreachable=refused.unreachable)

    def _check_held(self, last: Result) -> None:
        """Raises `ProviderRefused` where all first calls were refused, on several questions."""
        assert last.refused is not None
        model = last.refused.model
        questions = {held.task.example.id for held in self._held if held.refused and held.refused.model == model}
        if len(questions) >= _FEWEST_REFUSED and not self._live.service(model).first_calls:
            raise ProviderRefused(str(last.refused))

    async def _decide_held(self) -> None:
        """At the end: a run of which nothing came at all was refused."""
        held, self._held = self._held, []
        undecided = [result for result in held if self._is_undecided(result)]
        if undecided and not self._totals.done and len(undecided) == len(held):
            raise ProviderRefused(str(undecided[0].refused))
        for result in held:
            await self._take(result)

    async def _take(self, result: Result) -> None:
        """Keeps a result and counts it. Raises `RunStopped` where that was one crash too many."""
        if self._keep:
            await self._keep(result)
        self._totals.add(None if result.score is not None else result.error or "failed")
        self._on_result(result)
        for crash in () if _is_recalled(result) else result.crashes:
            if reason := self._crashes.add(crash, result.task.example.id):
                raise RepeatedCrash(reason)
        if reason := self._run_limits.exceeded(self._totals):
            self._live.shutdown.request(RunStopped(reason))

    def _raise_reason(self) -> None:
        """Raises why not all was done. Raises `RunStopped` also where nobody said why."""
        if self._must_stop is not None:
            raise self._must_stop
        reached = self._run_limits.exceeded(self._totals)  # in the end, with the calls that were in flight
        through = self._totals.done == self._totals.tasks and not reached
        shutdown = self._live.shutdown
        if shutdown.requested.is_set() and not through:
            if reached and isinstance(shutdown.reason, RunStopped):
                raise RunStopped(reached)
            raise shutdown.reason or RunStopped("interrupted")
        if self._totals.done < self._totals.tasks:
            raise RunStopped(f"{self._totals.tasks - self._totals.done} questions were left without a result")


def _is_recalled(result: Result) -> bool:
    """Whether all that a question did was done before: that it crashes again is nothing new, and mustn't end each
    later session."""
    calls = [call for call in result.calls if call.kind == "model"]
    return bool(calls) and all(call.call_cost.measured_s is not None for call in calls)
