"""The driver's side: starts the workers, and leases questions to them.

A worker that dies is replaced. Its questions go to others, with the calls that the journal has: nothing is paid twice
but for the calls in flight. A question with which three workers died is a failed one.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from anyio import CancelScope, to_thread

from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.calls.meter import Meter
from rewoo_bench.calls.recorder import QuestionRecorder, Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter
from rewoo_bench.errors import RunStopped, UsageError
from rewoo_bench.evaluation.cluster.messages import Ended, Lease, ShippedCorpus, WorkerSetup
from rewoo_bench.evaluation.cluster.pool import Asked, Dispatcher, Pool, PoolWorker
from rewoo_bench.evaluation.cluster.start import check_nodes, last_line, ray_cluster, start_worker
from rewoo_bench.evaluation.prepare import PreparedRun, connections
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.events import Event
from rewoo_bench.runs.folder import ENGINE_FILE
from rewoo_bench.runs.journal.records import CallRecord, TaskKey
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.system.concurrency import background_task
from rewoo_bench.system.files import replaced
from rewoo_bench.text.redaction import provider_environment
from rewoo_bench.types import Trajectory

MOST_DEATHS = 3
"""Workers that may die with a question before it counts as failed."""
_ALONE_FROM = 2  # deaths, after which a question gets a worker of its own: others may have been the cause
_BEGUN_WITHIN_S = 300.0  # for models that are loaded first
_ENDED_WITHIN_S = 15.0
_SAID_AFTER_S = 20.0
_LONGEST_PAUSE_S = 60.0  # before a worker that couldn't be started is tried again
_STATE_EVERY_S = 2.0


@dataclass
class RayEngine:
    """Asks questions on the workers of a Ray cluster. `wanted` is the number of workers."""

    setup: WorkerSetup
    recorder: Recorder
    wanted: int
    resources: Mapping[str, float]
    say: Callable[[str], None]
    state_file: Path
    """Has `state()` while the engine runs, for `rewoo-bench view`."""
    limiters: Mapping[str, AdaptiveLimiter] = field(default_factory=dict)
    """By model: the calls in flight of the whole run."""
    sent: dict[str, Any] = field(default_factory=dict)
    """By role: how requests differed from the options, as the workers learnt it."""
    pool: Pool = field(default_factory=Pool)
    deaths: Counter[TaskKey] = field(default_factory=Counter)
    refused_requests: Counter[str] = field(default_factory=Counter)
    """By path: requests of external agents with the key of no open question."""
    dispatcher: Dispatcher = field(init=False)
    _numbers: int = 0
    _stopping: bool = False
    _began_at: float = field(default_factory=anyio.current_time)
    _done: int = 0

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(self.recorder, self.pool, self.say, self.limiters)

    async def ask(self, task: Task, on_event: Callable[[Task, Event], None] | None, live: LiveCalls | None) -> Result:
        """A worker's result for a question. Raises the errors that end a run."""
        while self.deaths[task.key] < MOST_DEATHS:
            async with self.pool.place(alone=self.deaths[task.key] >= _ALONE_FROM) as worker:
                ended = await self._ask(worker, task, on_event)
            if ended is not None:
                self._done += 1
                if live is not None:
                    live.learn(ended.endpoints)
                self.sent.update(ended.sent)
                return ended.result_of(task)
            self.deaths[task.key] += 1
        recorded = QuestionRecorder(self.recorder, task.key, await self._recorded(task))
        model: Any = SimpleNamespace(name=self.setup.options.model)
        meter = Meter({"": model})
        meter.add_abandoned(recorded.abandoned())
        return Result(
            task=task,
            trajectory=Trajectory(None, "error"),
            calls=meter.calls,
            score=None,
            error=f"{MOST_DEATHS} workers died while they worked on this question",
            judged_correct=None,
            latency_s=0.0,
            working_s=0.0,
            started_at=datetime.now(UTC),
            cost_usd=meter.cost_usd,
            is_retryable=True,
        )

    def state(self) -> str:
        """Workers, questions a second and questions in flight, for the progress line."""
        seconds = max(1e-9, anyio.current_time() - self._began_at)
        workers = len(self.pool.workers)
        named = "worker" if workers == 1 else "workers"
        return f"{workers} {named}, {self._done / seconds:.1f} questions/s, {self.pool.taken} in flight"

    def facts(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """The facts of the manifest, with the workers' differences of requests and refused requests."""
        refused = Counter(own.get("refused_requests", {})) + self.refused_requests
        merged = {**own, "sent": {**own.get("sent", {}), **self.sent}}
        return {**merged, "refused_requests": dict(refused)} if refused else merged

    async def _ask(
        self, worker: PoolWorker, task: Task, on_event: Callable[[Task, Event], None] | None
    ) -> Ended | None:
        """What the worker says of the question; None where it died."""
        self._numbers += 1
        number = self._numbers
        asked = worker.asked[number] = Asked(task, on_event, asyncio.get_running_loop().create_future())
        try:
            records = await self._recorded(task)
            lease = Lease(number, task.example, task.trial, task.architecture.name, task.index, records)
            worker.outgoing.put_nowait(lease)
            return await asked.ended
        finally:
            del worker.asked[number]

    async def _recorded(self, task: Task) -> Sequence[CallRecord]:
        """The recorded calls of a question: of earlier sessions, and of workers that died with it."""
        if not self.deaths[task.key]:
            return await self.recorder.recorded(task.key)
        await self.recorder.journal.flush()
        return await to_thread.run_sync(self.recorder.journal.calls, task.key)

    async def serve(self) -> None:
        """Starts the workers and serves them, until it is cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._stop_when_requested)
            group.start_soon(self._write_state)
            for number in range(self.wanted):
                group.start_soon(self._keep_worker, number)

    async def _write_state(self) -> None:
        try:
            while True:
                with suppress(OSError), replaced(self.state_file, follows=False) as file:
                    file.write(self.state().encode())
                await anyio.sleep(_STATE_EVERY_S)
        finally:
            with suppress(OSError):
                self.state_file.unlink()

    async def end(self) -> None:
        """Closes the models and tools of the workers, and collects the requests that their gateways refused."""
        from ray.exceptions import RayActorError

        async def end(worker: PoolWorker) -> None:
            with anyio.move_on_after(_ENDED_WITHIN_S), suppress(RayActorError):
                self.refused_requests.update(await worker.handle.end.remote())

        self._stopping = True
        async with anyio.create_task_group() as group:
            for worker in list(self.pool.workers):
                group.start_soon(end, worker)

    async def _stop_when_requested(self) -> None:
        """Passes the shutdown of the run on to the workers; their calls in flight count as the driver's."""
        from ray.exceptions import RayActorError

        shutdown = self.recorder.shutdown
        with shutdown:
            await shutdown.requested.wait()
            self._stopping = True

            async def stop(worker: PoolWorker) -> None:
                with suppress(RayActorError):
                    await worker.handle.stop.remote(self.setup.options.grace)

            async with anyio.create_task_group() as group:
                for worker in self.pool.workers:
                    group.start_soon(stop, worker)

    async def _keep_worker(self, number: int) -> None:
        """One worker, and another one whenever it died."""
        from ray.exceptions import RayActorError, RayError

        async def say_later() -> None:
            await anyio.sleep(_SAID_AFTER_S)
            self.say(f"worker {number} isn't ready yet: the cluster has no room for it, or it still loads its model")

        failures = 0
        while not self._stopping:
            try:
                with anyio.fail_after(_BEGUN_WITHIN_S):
                    async with background_task(say_later):
                        worker = await start_worker(number, self.setup, self.resources)
            except (UsageError, RunStopped) as error:
                self.pool.fail(error)
                return
            except (TimeoutError, RayError) as error:
                if not self.pool.workers:
                    self.pool.fail(RunStopped(f"no worker is left, and none could be started: {last_line(error)}"))
                    return
                self.say(f"worker {number} couldn't be started: {last_line(error)}; it is tried again")
                failures += 1
                await anyio.sleep(min(2**failures, _LONGEST_PAUSE_S))
                continue
            failures = 0
            self.pool.add(worker)
            try:
                await self.dispatcher.serve(worker)
            except RayActorError:
                if not self._stopping:
                    self.say(f"worker {number} died; its questions go to others")
            finally:
                self.pool.remove(worker)
                self.dispatcher.end(worker)


# The engine of a run with `--engine ray`, from the connection with the cluster to its end.


@asynccontextmanager
async def ray_engine(
    options: RunOptions,
    run: PreparedRun,
    recorder: Recorder,
    *,
    sent: Mapping[str, Any],
    folder: Path,
    wants_events: bool,
    say: Callable[[str], None],
) -> AsyncIterator[RayEngine]:
    """Workers on a cluster, for as long as the context lasts. Raises `UsageError`."""
    if run.is_model_given:
        raise UsageError("engine: a model object can't be sent to the workers of a cluster; name a model")
    if recorder.replay is not None:
        raise UsageError("--engine ray: a replay makes no calls; leave it out")
    resources = json.loads(options.worker_resources) if options.worker_resources else {}
    with ray_cluster(options.ray_address):
        await check_nodes(resources)
        workers = options.workers or 1
        path = options.corpus or run.dataset.corpus
        share = options.concurrency and ceil(options.concurrency / workers)  # of the questions at the same time
        setup = WorkerSetup(
            options=replace(options, concurrency=share, answer_cache=None, otel=None, out=None),
            dataset=replace(run.dataset, examples=run.dataset.examples[:1]),
            corpus=await to_thread.run_sync(ShippedCorpus.of, path) if path else None,
            secrets=provider_environment(),
            sent=sent,
            folder=str(Path.cwd()),
            wants_events=wants_events,
            has_cache=recorder.cache is not None,
            has_answers=recorder.journal.has_answers(),
        )
        # `--max-connections` is that of the whole run; else each worker has its own connections.
        times = 1 if options.max_connections else workers
        limiters = {name: AdaptiveLimiter(times * places) for name, places in connections(options, run).items()}
        engine = RayEngine(setup, recorder, workers, resources, say, folder / ENGINE_FILE, limiters)
        async with background_task(engine.serve):
            try:
                yield engine
            finally:
                with CancelScope(shield=True):
                    await engine.end()
