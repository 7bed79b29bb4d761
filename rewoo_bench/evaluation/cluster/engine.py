"""The driver's side: starts the workers, and gives questions to them. Imported when the cluster is connected.

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
from functools import partial
from importlib.metadata import version
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import ray
from anyio import CancelScope, to_thread
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rewoo_bench.calls.live import CallCaps
from rewoo_bench.calls.meter import Meter
from rewoo_bench.calls.recorder import QuestionRecorder, Recorder
from rewoo_bench.errors import HarnessFault, JournalError, RunStopped, UsageError
from rewoo_bench.evaluation.cluster.messages import (
    DriverReply,
    Ended,
    WorkerMessage,
    WorkerSetup,
    batches,
    last_line,
)
from rewoo_bench.evaluation.cluster.pool import Pool, PoolWorker
from rewoo_bench.evaluation.cluster.worker import RayWorker
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.evaluation.prepare import PreparedRun
from rewoo_bench.runs.journal.records import CallRecord, TaskKey
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.system.concurrency import background_task, background_tasks
from rewoo_bench.text.redaction import provider_environment
from rewoo_bench.types import Trajectory

_OPEN_CALLS = 10_000  # of an actor at the same time
MOST_DEATHS = 3
"""Workers that may die with a question before it counts as failed."""
_ALONE_FROM = 2  # deaths, after which a question gets a worker of its own: others may have been the cause
_BEGUN_WITHIN_S = 300.0  # for models that are loaded first
_ENDED_WITHIN_S = 15.0
_SAID_AFTER_S = 20.0
_LONGEST_PAUSE_S = 60.0  # before a worker that couldn't be started is tried again


# The engine: which worker a question goes to, and what happens when one dies.


@dataclass
class RayEngine:
    """Asks questions on the workers of a Ray cluster. `wanted` is the number of workers."""

    setup: WorkerSetup
    recorder: Recorder
    wanted: int
    resources: Mapping[str, float]
    say: Callable[[str], None]
    sent: dict[str, Any] = field(default_factory=dict)
    """By role: how requests differed from the options, as the workers learnt it."""
    pool: Pool = field(default_factory=Pool)
    deaths: Counter[TaskKey] = field(default_factory=Counter)
    _stopping: bool = False
    _began_at: float = field(default_factory=anyio.current_time)
    _done: int = 0

    async def ask(self, task: Task) -> Result:
        """A worker's result for a question. Raises the errors that end a run."""
        while self.deaths[task.key] < MOST_DEATHS:
            async with self.pool.place(alone=self.deaths[task.key] >= _ALONE_FROM) as worker:
                ended = await self._ask(worker, task)
            if ended is not None:
                self._done += 1
                self.recorder.live.learn(ended.endpoints)
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

    async def _ask(self, worker: PoolWorker, task: Task) -> Ended | None:
        """What the worker says of the question; None where it died."""
        alone = replace(task, architecture=None)  # type: ignore[arg-type]  # the worker has it
        try:
            # As safe as Ray itself, which unpickles whatever its workers return: they are this user's processes and
            # run this user's code. What comes from outside are answers, texts in the results.
            ended: Ended = await worker.handle.ask.remote(alone, task.architecture.name, await self._recorded(task))
        except RayActorError:
            await worker.is_gone.wait()
            return None
        except RayTaskError as error:  # such as a result that can't be pickled
            raise HarnessFault(f"a worker: {last_line(error)}") from None
        return ended

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
            for number in range(self.wanted):
                group.start_soon(self._keep_worker, number)

    async def end(self) -> None:
        """Closes the models and tools of the workers."""

        async def end(worker: PoolWorker) -> None:
            with anyio.move_on_after(_ENDED_WITHIN_S), suppress(RayActorError):
                await worker.handle.end.remote()

        self._stopping = True
        async with anyio.create_task_group() as group:
            for worker in list(self.pool.workers):
                group.start_soon(end, worker)

    async def _stop_when_requested(self) -> None:
        """Passes the shutdown of the run on to the workers; their calls in flight count as the driver's."""
        shutdown = self.recorder.live.shutdown
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
                await self._serve(worker)
            except RayActorError:
                if not self._stopping:
                    self.say(f"worker {number} died; its questions go to others")
            finally:
                self.pool.remove(worker)
                self._end(worker)

    async def _serve(self, worker: PoolWorker) -> None:
        """Sends and receives as long as the worker lives. Raises `RayActorError` where it died."""

        async def send(worker: PoolWorker) -> None:
            with suppress(RayActorError):  # the worker died: what it had sent before is still handled
                async for batch in batches(worker.outgoing):  # more comes together while a batch is on its way
                    await worker.handle.receive.remote(batch)

        async with background_tasks() as start:
            start(send, worker)
            async for reference in worker.handle.messages.options(num_returns="streaming").remote():
                batch: list[WorkerMessage] = await reference
                records = [message for message in batch if message.kind == "record"]
                for reply in await asyncio.gather(*map(self._keep, records)):
                    worker.outgoing.put_nowait(reply)
                for message in batch:
                    if message.kind == "reserve":  # which may have to wait
                        start(partial(self._reserve, worker), message)
                    elif message.kind != "record":
                        self._handle(worker, message)

    def _end(self, worker: PoolWorker) -> None:
        """Frees the room that a dead worker had under the caps, and lets its questions go to others."""
        for reservation in worker.reservations:
            self._caps.release(reservation, None)
        worker.reservations.clear()
        worker.is_gone.set()

    async def _keep(self, message: WorkerMessage) -> DriverReply:
        """Writes a record into the journal."""
        assert message.number is not None
        try:
            await self.recorder.journal.add_call(message.value)
        except JournalError as error:
            self.recorder.live.shutdown.request(error)
            return DriverReply(message.number, error=error)
        return DriverReply(message.number)

    def _handle(self, worker: PoolWorker, message: WorkerMessage) -> None:
        if message.kind == "notice":
            self.say(message.value)
            return
        reservation, call_cost = message.value
        worker.reservations.remove(reservation)
        self._caps.release(reservation, call_cost)

    async def _reserve(self, worker: PoolWorker, message: WorkerMessage) -> None:
        """Answers a call that asks for room under the caps."""
        assert message.number is not None
        reservation = await self._caps.reserve(message.value)
        if worker.is_gone.is_set():
            self._caps.release(reservation, None)
            return
        worker.reservations.append(reservation)
        worker.outgoing.put_nowait(DriverReply(message.number, reservation))

    @property
    def _caps(self) -> CallCaps:
        caps = self.recorder.live.caps
        assert caps is not None, "workers ask only where the run has caps"
        return caps


# Nodes and workers of the connected cluster.


def check_resources(resources: Mapping[str, float]) -> None:
    """Raises `UsageError` where no node has room for a worker."""
    if not any(all(node["Resources"].get(name, 0) >= much for name, much in resources.items()) for node in _nodes()):
        raise UsageError(f"--worker-resources: no node of the cluster has {json.dumps(dict(resources))}")


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


async def start_worker(number: int, setup: WorkerSetup, resources: Mapping[str, float]) -> PoolWorker:
    """A new worker that is ready.

    Raises `UsageError`, `RunStopped` without a node, and `RayError` where the worker dies at once.
    """
    place: Any = "SPREAD"
    if not resources:  # the nodes with processors in turn
        if not (nodes := _nodes()):
            raise RunStopped("no node of the Ray cluster is left")
        working = [node for node in nodes if node["Resources"].get("CPU")] or nodes
        place = NodeAffinitySchedulingStrategy(working[number % len(working)]["NodeID"], soft=False)
    others = {name: much for name, much in resources.items() if name not in ("CPU", "GPU")}
    try:
        handle: Any = (
            ray.remote(RayWorker)
            .options(
                max_concurrency=_OPEN_CALLS,
                num_cpus=resources.get("CPU", 0),
                num_gpus=resources.get("GPU", 0),
                resources=others,
                scheduling_strategy=place,
            )
            .remote()
        )
    except ValueError as error:  # a fraction that Ray doesn't take
        raise UsageError(f"--worker-resources: {last_line(error)}") from None
    begun = await handle.begin.remote(setup)
    if isinstance(begun, str):
        raise UsageError(begun)
    return PoolWorker(number, handle, begun)


@asynccontextmanager
async def ray_engine(
    options: RunOptions,
    run: PreparedRun,
    recorder: Recorder,
    *,
    sent: Mapping[str, Any],
    say: Callable[[str], None],
) -> AsyncIterator[RayEngine]:
    """Workers on the connected cluster, for as long as the context lasts. Raises `UsageError`."""
    resources = json.loads(options.worker_resources) if options.worker_resources else {}
    check_resources(resources)
    workers = options.workers or 1
    own = {
        "concurrency": options.concurrency and ceil(options.concurrency / workers),
        "max_connections": options.max_connections and max(1, options.max_connections // workers),
    }
    setup = WorkerSetup(
        options=replace(options, **own, out=None),  # type: ignore[arg-type]
        dataset=replace(run.dataset, examples=run.dataset.examples[:1]),
        secrets=provider_environment(),
        sent=sent,
        folder=str(Path.cwd()),
        has_answers=recorder.journal.has_answers(),
        version=version("rewoo-bench"),
    )
    engine = RayEngine(setup, recorder, workers, resources, say)
    async with background_task(engine.serve):
        try:
            yield engine
        finally:
            with CancelScope(shield=True):
                await engine.end()
