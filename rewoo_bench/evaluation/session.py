"""One session of a run: questions at the same time, the session's end, and questions that a provider refused.

A refusal (403, 404, no connection) is one question's error, because firewalls and content filters exist. But where
the provider never accepted a request, it is the end of the run. So the first refused questions are pending until the
provider answers something else, or refuses too many.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol

import anyio

from rewoo_bench.calls.caps import RunLimits, Totals
from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.errors import JournalError, ProviderRefused, RepeatedCrash, RewooBenchError, RunStopped
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.events import Event, in_architecture
from rewoo_bench.system.crashes import RUN_STOPPING, CrashCounter
from rewoo_bench.text.words import counted

_FEWEST_REFUSED = 3  # questions; of one or two, the prompts may be the reason
_LAST_STEPS_S = 0.05  # for questions whose last call has just ended


class AskTask(Protocol):
    """Asks one question of one architecture: the evaluator's `run_task`."""

    async def __call__(
        self, task: Task, on_event: Callable[[Task, Event], None] | None, live: LiveCalls | None
    ) -> Result: ...


class Engine(Protocol):
    """Asks questions in other processes; its `ask` is an `AskTask`."""

    async def ask(self, task: Task, on_event: Callable[[Task, Event], None] | None, live: LiveCalls | None) -> Result:
        """Raises the errors that end a run."""

    def state(self) -> str:
        """Some words for the progress line: `4 workers, 31 in flight`."""

    def facts(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Facts for the manifest: those of this process, and what the others learnt."""


class Session:
    """The remaining tasks of a run, and the reason for an early end."""

    def __init__(
        self,
        ask: AskTask,
        tasks: Iterator[Task],
        totals: Totals,
        *,
        run_limits: RunLimits,
        live: LiveCalls,
        concurrency: int,
        grace_s: float,
        on_result: Callable[[Result], None],
        store: Callable[[Result], Awaitable[None]] | None,
        on_event: Callable[[Task, Event], None] | None,
    ) -> None:
        self._ask = ask
        self._run_limits = run_limits
        self._concurrency = concurrency
        self._grace_s = grace_s
        self._tasks = tasks
        self._totals = totals
        self._on_result = on_result
        self._store = store
        self._on_event = on_event
        self._live = live
        self._crashes = CrashCounter()
        self._pending: list[Result] = []
        self._must_stop: RewooBenchError | None = None

    async def run(self) -> None:
        """Works until no question is left. Raises the reason of an early end."""
        shutdown = self._live.shutdown
        async with anyio.create_task_group() as group:
            group.start_soon(self._end, group.cancel_scope)
            async with anyio.create_task_group() as workers:
                for _ in range(min(self._concurrency, self._totals.tasks)):
                    workers.start_soon(self._work)
            if not shutdown.requested.is_set():
                try:
                    await self._decide_pending()
                except RUN_STOPPING as error:
                    self._stop(error)
            group.cancel_scope.cancel()
        if self._must_stop is not None:
            raise self._must_stop
        reached = self._run_limits.exceeded(self._totals)  # with the calls that were in flight
        left = self._totals.tasks - self._totals.done
        if shutdown.requested.is_set() and (left or reached):
            if reached and isinstance(shutdown.reason, RunStopped):
                raise RunStopped(reached)
            raise shutdown.reason or RunStopped("interrupted")
        if left > 0:
            raise RunStopped(f"{counted(left, 'question')} left without a result")

    async def _end(self, scope: anyio.CancelScope) -> None:
        """After a request for shutdown, waits for calls in flight and ends the run."""
        shutdown = self._live.shutdown
        await shutdown.requested.wait()
        if not isinstance(shutdown.reason, JournalError):  # without a journal, their answers couldn't be kept
            await shutdown.wait_idle(self._grace_s)
            await anyio.sleep(_LAST_STEPS_S)
        scope.cancel()

    def _stop(self, error: RewooBenchError) -> None:
        """Requests the shutdown because of an error that ends a run."""
        self._must_stop = self._must_stop or error
        self._live.shutdown.request(error)

    async def _work(self) -> None:
        """Asks one question after another, until none is left or the run ends."""
        try:
            for task in self._tasks:
                if self._live.shutdown.requested.is_set():
                    return
                with in_architecture(task.architecture.name):
                    result = await self._ask(task, self._on_event, self._live)
                if self._is_undecided(result):
                    self._add_pending(result)
                    continue
                decided = [each for each in self._pending if not self._is_undecided(each)]
                self._pending = [each for each in self._pending if self._is_undecided(each)]
                for each in (*decided, result):
                    await self._count(each)
        except RUN_STOPPING as error:
            self._stop(error)

    def _is_undecided(self, result: Result) -> bool:
        refused = result.refused
        return refused is not None and self._live.endpoint(refused.model).is_undecided(unreachable=refused.unreachable)

    def _add_pending(self, result: Result) -> None:
        """Raises `ProviderRefused` where all first calls were refused, on several questions."""
        assert result.refused is not None
        self._pending.append(result)
        model = result.refused.model
        questions = {each.task.example.id for each in self._pending if each.refused and each.refused.model == model}
        if len(questions) >= _FEWEST_REFUSED and not self._live.endpoint(model).first_calls:
            raise ProviderRefused(str(result.refused))

    async def _decide_pending(self) -> None:
        """Counts pending results at the end. Raises `ProviderRefused` where the run has no other result."""
        pending, self._pending = self._pending, []
        undecided = [result for result in pending if self._is_undecided(result)]
        if undecided and not self._totals.done and len(undecided) == len(pending):
            raise ProviderRefused(str(undecided[0].refused))
        for result in pending:
            await self._count(result)

    async def _count(self, result: Result) -> None:
        """Stores a result and counts it. Raises `RepeatedCrash` for one crash too many."""
        if self._store:
            await self._store(result)
        self._totals.add(result.error or "failed" if result.has_failed else None)
        self._on_result(result)
        # Where every model call is recalled, the crash is known, and mustn't end each later session.
        measured = [call.call_cost.measured_s for call in result.calls if call.kind == "model"]
        for crash in () if measured and None not in measured else result.crashes:
            if reason := self._crashes.add(crash, result.task.example.id):
                raise RepeatedCrash(reason)
        if reason := self._run_limits.exceeded(self._totals):
            self._live.shutdown.request(RunStopped(reason))
