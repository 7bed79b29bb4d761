"""The workers' free places for questions, and which questions are put alone because workers died with them.

async with pool.place(alone=False) as worker:
    ...
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from rewoo_bench.calls.caps import Reservation
from rewoo_bench.evaluation.cluster.messages import DriverReply, Ended, Lease
from rewoo_bench.evaluation.folder import Task
from rewoo_bench.events import Event


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
