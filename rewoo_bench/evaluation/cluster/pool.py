"""The workers' free places for questions.

async with pool.place(alone=False) as worker:
    ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from rewoo_bench.calls.caps import Reservation
from rewoo_bench.evaluation.cluster.messages import DriverReply


@dataclass(eq=False)
class PoolWorker:
    """A worker: its Ray handle, and its places."""

    number: int
    handle: Any
    places: int
    taken: int = 0
    is_gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has died, and its last message was handled."""
    outgoing: asyncio.Queue[DriverReply] = field(default_factory=asyncio.Queue)
    """What waits to be sent to it."""
    reservations: list[Reservation] = field(default_factory=list)
    """Room under the caps of the run that its calls in flight have."""


class Pool:
    """All workers that live. Questions wait here for a place, in turn."""

    def __init__(self) -> None:
        self.workers: list[PoolWorker] = []
        self.failure: Exception | None = None
        """Why there will be no worker any more."""
        self._next = anyio.Lock(fast_acquire=True)  # of the questions that wait one looks for a place, the first
        self._changed = anyio.Event()

    @property
    def taken(self) -> int:
        return sum(worker.taken for worker in self.workers)

    def add(self, worker: PoolWorker) -> None:
        self.workers.append(worker)
        self._changed.set()

    def remove(self, worker: PoolWorker) -> None:
        self.workers.remove(worker)
        self._changed.set()

    def fail(self, failure: Exception) -> None:
        """Ends all waiting with this exception."""
        self.failure = failure
        self._changed.set()

    @asynccontextmanager
    async def place(self, *, alone: bool) -> AsyncIterator[PoolWorker]:
        """A place at the worker with the most free ones; `alone` it has all places of one, and waits for that.

        Raises `failure`.
        """
        async with self._next:
            while (worker := self._free(alone=alone)) is None:
                self._changed = anyio.Event()
                await self._changed.wait()
            size = worker.places if alone else 1
            worker.taken += size
        try:
            yield worker
        finally:
            worker.taken -= size
            self._changed.set()

    def _free(self, *, alone: bool) -> PoolWorker | None:
        if self.failure is not None:
            raise self.failure
        worker = max(self.workers, key=lambda each: each.places - each.taken, default=None)
        if alone:
            worker = next((each for each in self.workers if not each.taken), None)
        return worker if worker is not None and worker.taken < worker.places else None
