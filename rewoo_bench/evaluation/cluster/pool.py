"""The workers' free places for questions, and which questions are put alone because workers died with them.

async with pool.place(alone=False) as worker:
    ...
"""

from __future__ import annotations

import asyncio
import pickle
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from rewoo_bench.calls.caps import Reservation
from rewoo_bench.calls.live import CallCaps
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter
from rewoo_bench.errors import JournalError
from rewoo_bench.evaluation.cluster.link import batches
from rewoo_bench.evaluation.cluster.messages import DriverReply, Ended, Lease, WorkerMessage
from rewoo_bench.evaluation.tasks import Task
from rewoo_bench.events import Event
from rewoo_bench.runs.journal.records import CallRecord
from rewoo_bench.system.concurrency import TaskStarter, background_tasks


@dataclass
class Asked:
    """A question at a worker. `ended` becomes None where the worker died, when its last message is handled."""

    task: Task
    on_event: Callable[[Task, Event], None] | None
    ended: asyncio.Future[Ended | None]


@dataclass(eq=False)
class PoolWorker:
    """A worker: its Ray handle, and its places."""

    number: int
    handle: Any
    places: int
    taken: int = 0
    reserved: bool = False
    """Whether a question waits for all its places."""
    dead: bool = False
    outgoing: asyncio.Queue[Lease | DriverReply] = field(default_factory=asyncio.Queue)
    """What waits to be sent to it."""
    asked: dict[int, Asked] = field(default_factory=dict)
    """Its questions, by the number of the lease."""
    reservations: list[Reservation] = field(default_factory=list)
    """Room under the caps of the run that its calls in flight have."""
    connections: defaultdict[str, list[object]] = field(default_factory=lambda: defaultdict(list))
    """By model: the connections that its calls have."""

    @property
    def free(self) -> int:
        return 0 if self.dead or self.reserved else self.places - self.taken


class Pool:
    """All workers that live. Questions wait here for a place."""

    def __init__(self) -> None:
        self.workers: list[PoolWorker] = []
        self._changed = anyio.Event()
        self.failure: Exception | None = None
        """Why there will be no worker any more."""

    @property
    def taken(self) -> int:
        return sum(worker.taken for worker in self.workers)

    def add(self, worker: PoolWorker) -> None:
        self.workers.append(worker)
        self._notify()

    def remove(self, worker: PoolWorker) -> None:
        worker.dead = True
        if worker in self.workers:
            self.workers.remove(worker)
        self._notify()

    def fail(self, failure: Exception) -> None:
        """Ends all waiting with this exception."""
        self.failure = failure
        self._notify()

    @asynccontextmanager
    async def place(self, *, alone: bool) -> AsyncIterator[PoolWorker]:
        """A place at the worker with the most free ones, or all places of one. Raises `failure`."""
        worker = await (self._whole() if alone else self._next())
        size = worker.places if alone else 1
        try:
            yield worker
        finally:
            worker.taken -= size
            self._notify()

    async def _next(self) -> PoolWorker:
        while True:
            worker = max(self.workers, key=lambda each: each.free, default=None)
            if worker is not None and worker.free > 0:
                worker.taken += 1
                return worker
            await self._wait()

    async def _whole(self) -> PoolWorker:
        """A worker without other questions, which begins none while this one waits."""
        while True:
            worker = next((each for each in self.workers if each.free), None)
            if worker is None:
                await self._wait()
                continue
            worker.reserved = True
            try:
                while worker.taken and not worker.dead:
                    await self._wait()
            finally:
                worker.reserved = False
            if not worker.dead:
                worker.taken = worker.places
                return worker

    async def _wait(self) -> None:
        if self.failure is not None:
            raise self.failure
        await self._changed.wait()
        if self.failure is not None:
            raise self.failure

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


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
        from ray.exceptions import RayActorError

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
        for model, connections in worker.connections.items():
            for connection in connections:
                self.limiters[model].release_for(connection)
        worker.connections.clear()

    async def _keep(self, message: WorkerMessage) -> DriverReply:
        """Writes a record into the journal."""
        assert message.number is not None
        record: CallRecord = message.value
        try:
            await self.recorder.keep(record)
        except JournalError as error:
            self.recorder.shutdown.request(error)
            return DriverReply(message.number, error=("JournalError", str(error)))
        except (TypeError, ValueError, RecursionError) as error:  # an answer that is no JSON
            return DriverReply(message.number, error=(type(error).__name__, str(error)))
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
