"""The driver's side: starts the workers, and leases questions to them. Imported when the cluster is connected.

A worker that dies is replaced. Its questions go to others, with the calls that the journal has: nothing is paid twice
but for the calls in flight. A question with which three workers died is a failed one.
"""

from __future__ import annotations

import asyncio
import json
import pickle
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import ray
from anyio import CancelScope, to_thread
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rewoo_bench.calls.live import CallCaps, LiveCalls
from rewoo_bench.calls.meter import Meter
from rewoo_bench.calls.recorder import QuestionRecorder, Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter
from rewoo_bench.errors import JournalError, RunStopped, UsageError
from rewoo_bench.evaluation.cluster import probe
from rewoo_bench.evaluation.cluster.messages import (
    RECORDING_ERRORS,
    DriverReply,
    Ended,
    Lease,
    ShippedCorpus,
    WorkerMessage,
    WorkerSetup,
    batches,
)
from rewoo_bench.evaluation.cluster.pool import Asked, Pool, PoolWorker
from rewoo_bench.evaluation.cluster.start import last_line
from rewoo_bench.evaluation.cluster.worker import RayWorker
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.evaluation.prepare import PreparedRun, connections
from rewoo_bench.events import Event
from rewoo_bench.loaders.sources import file_sha256
from rewoo_bench.runs.folder import ENGINE_FILE
from rewoo_bench.runs.journal.records import CallRecord, TaskKey
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.system.concurrency import TaskStarter, background_task, background_tasks
from rewoo_bench.system.files import replaced
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
_STATE_EVERY_S = 2.0


# The driver's side of its connections: sends leases and replies to the workers, and handles what they send.


@dataclass(frozen=True)
class Dispatcher:
    """The messages between the driver and its workers."""

    recorder: Recorder
    pool: Pool
    say: Callable[[str], None]
    limiters: Mapping[str, AdaptiveLimiter]
    """By model: the calls in flight of the whole run."""

    async def serve(self, worker: PoolWorker) -> None:
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
                    if message.kind != "record":
                        self._handle(worker, message, start)

    def end(self, worker: PoolWorker) -> None:
        """Ends the questions of a dead worker, and frees what it had: connections, and room under the caps."""
        for asked in worker.asked.values():
            if not asked.ended.done():
                asked.ended.set_result(None)
        for reservation in worker.reservations:
            self._caps.release(reservation, None)
        worker.reservations.clear()
        for model, held in worker.connections.items():
            for connection in held:
                self.limiters[model].release_for(connection)
        worker.connections.clear()

    async def _keep(self, message: WorkerMessage) -> DriverReply:
        """Writes a record into the journal."""
        assert message.number is not None
        record: CallRecord = message.value
        try:
            await self.recorder.keep(record)
        except RECORDING_ERRORS as error:
            if isinstance(error, JournalError):
                self.recorder.live.shutdown.request(error)
            return DriverReply.failed(message.number, error)
        return DriverReply(message.number)

    def _handle(self, worker: PoolWorker, message: WorkerMessage, start: TaskStarter) -> None:
        kind, value = message.kind, message.value
        if kind == "ended":
            number, ended = value
            asked = worker.asked.get(number)
            if asked and not asked.ended.done():
                # As safe as Ray itself, which unpickles whatever its workers return: they are this user's processes and
                # run this user's code. What comes from outside are answers, texts in the results.
                asked.ended.set_result(pickle.loads(ended))
        elif kind == "release":
            reservation, call_cost = value
            worker.reservations.remove(reservation)
            self._caps.release(reservation, call_cost)
        elif kind == "disconnect":
            model, good = value
            self.limiters[model].release_for(worker.connections[model].pop())
            for _ in range(good):
                self.limiters[model].succeeded()
        elif kind == "limited":
            self.limiters[value].halve()
        elif kind == "event":
            number, event = value
            if (asked := worker.asked.get(number)) and asked.on_event:
                asked.on_event(asked.task, event)
        elif kind == "notice":
            self.say(value)
        else:
            start(partial(self._answer, worker), message)

    async def _answer(self, worker: PoolWorker, message: WorkerMessage) -> None:
        """Answers a message that may have to wait."""
        assert message.number is not None
        if message.kind == "reserve":
            value: Any = await self._caps.reserve(message.value)
            if worker.dead:
                self._caps.release(value, None)
                return
            worker.reservations.append(value)
        elif message.kind == "connect":
            value, connection = None, object()
            await self.limiters[message.value].acquire_for(connection)
            if worker.dead:
                self.limiters[message.value].release_for(connection)
                return
            worker.connections[message.value].append(connection)
        elif message.kind == "cached":
            assert self.recorder.cache is not None
            value = await to_thread.run_sync(self.recorder.cache.get, message.value)
        else:
            assert self.recorder.cache is not None
            value = await to_thread.run_sync(self.recorder.cache.put, *message.value)
        worker.outgoing.put_nowait(DriverReply(message.number, value))

    @property
    def _caps(self) -> CallCaps:
        caps = self.recorder.live.caps
        assert caps is not None, "workers ask only where the run has caps"
        return caps


# The engine: which worker a question goes to, and what happens when one dies.


@dataclass
class RayEngine:
    """Asks questions on the workers of a Ray cluster. `wanted` is the number of workers."""

    setup: WorkerSetup
    recorder: Recorder
    wanted: int
    resources: Mapping[str, float]
    say: Callable[[str], None]
    state_file: Path
    """Has `state()` while the engine runs, for `rewoo-bench report --live`."""
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

        async def end(worker: PoolWorker) -> None:
            with anyio.move_on_after(_ENDED_WITHIN_S), suppress(RayActorError):
                self.refused_requests.update(await worker.handle.end.remote())

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
                await self.dispatcher.serve(worker)
            except RayActorError:
                if not self._stopping:
                    self.say(f"worker {number} died; its questions go to others")
            finally:
                self.pool.remove(worker)
                self.dispatcher.end(worker)


# Nodes and workers of the connected cluster.


async def check_nodes(resources: Mapping[str, float], say: Callable[[str], None]) -> None:
    """Raises `UsageError` where no node has room for a worker, or a node has other versions than this process.

    A node that has just died counts as alive until Ray notices, which takes half a minute: that is said.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    if not any(all(node["Resources"].get(name, 0) >= much for name, much in resources.items()) for node in nodes):
        raise UsageError(f"--worker-resources: no node of the cluster has {json.dumps(dict(resources))}")
    ray.cloudpickle.register_pickle_by_value(probe)  # type: ignore[no-untyped-call]
    here = probe.versions()
    ask = ray.remote(num_cpus=0, max_retries=0)(probe.versions)
    for node in nodes:
        address = node["NodeManagerAddress"]
        try:
            async with background_task(partial(_say_that_it_waits, address, say)):
                there = await ask.options(scheduling_strategy=_on(node["NodeID"])).remote()
        except RayError as error:
            say(f"the Ray node {address} is left out: {last_line(error)}")
        else:
            check_versions(here, there, address)


async def _say_that_it_waits(address: str, say: Callable[[str], None]) -> None:
    await anyio.sleep(_SAID_AFTER_S)
    say(f"the Ray node {address} doesn't answer; Ray drops a node that is gone within about a minute")


def _on(node: str) -> Any:
    return NodeAffinitySchedulingStrategy(node, soft=False)


def check_versions(here: Mapping[str, str], there: Mapping[str, str], node: str) -> None:
    for package, version in here.items():
        if package not in there:
            raise UsageError(f"the Ray node {node} has no {package}: install {package}=={version} there")
        if there[package] != version and package != "python":
            raise UsageError(f"the Ray node {node} has {package} {there[package]}, and this machine {version}")


async def start_worker(number: int, setup: WorkerSetup, resources: Mapping[str, float]) -> PoolWorker:
    """A new worker that is ready.

    Raises `UsageError`, `RunStopped` without a node, and `RayError` where the worker dies at once.
    """
    place: Any = "SPREAD"
    if not resources:  # the nodes with processors in turn
        nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        if not nodes:
            raise RunStopped("no node of the Ray cluster is left")
        working = [node for node in nodes if node["Resources"].get("CPU")] or nodes
        place = _on(working[number % len(working)]["NodeID"])
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


def _shipped(path: Path) -> ShippedCorpus:
    """The file in Ray's object store, which brings it to a node once."""
    return ShippedCorpus(path, file_sha256(path), [ray.put(path.read_bytes())])


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
    """Workers on the connected cluster, for as long as the context lasts. Raises `UsageError`."""
    resources = json.loads(options.worker_resources) if options.worker_resources else {}
    await check_nodes(resources, say)
    workers = options.workers or 1
    path = options.corpus or run.dataset.corpus
    share = options.concurrency and ceil(options.concurrency / workers)  # of the questions at the same time
    setup = WorkerSetup(
        options=replace(options, concurrency=share, answer_cache=None, otel=None, out=None),
        dataset=replace(run.dataset, examples=run.dataset.examples[:1]),
        corpus=await to_thread.run_sync(_shipped, path) if path else None,
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
