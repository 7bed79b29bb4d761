"""The connections to a provider that the driver leases to a worker.

The driver has one limiter for each model, so `--max-connections` and the halving after a 429 are those of the whole
run. A lease is good for some calls, one after the other, so that a busy worker needn't ask for each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from rewoo_bench.evaluation.cluster.link import Link
from rewoo_bench.models.hosted.rate_limiter import CallLimiter

CALLS_A_LEASE = 16
_IDLE_S = 0.05


@dataclass(eq=False)
class _Lease:
    """A connection that this worker may use."""

    calls_left: int = CALLS_A_LEASE
    expires: asyncio.TimerHandle | None = None


class LeasedLimiter(CallLimiter):
    """A worker's limiter of the calls to one model. A lease that isn't used for a moment goes back."""

    def __init__(self, link: Link, model: str) -> None:
        super().__init__()
        self._link = link
        self._model = model
        self._idle: list[_Lease] = []
        self._in_use: list[_Lease] = []
        self._waiting: deque[asyncio.Future[_Lease]] = deque()
        self._asking: set[asyncio.Task[None]] = set()
        self._good = 0  # answers that the driver doesn't know of

    def succeeded(self) -> None:
        super().succeeded()
        self._good += 1

    def halve(self) -> None:
        """The driver halves the limit of the whole run."""
        self._link.tell("limited", self._model)

    async def acquire(self) -> None:
        self._in_use.append(self._idle_lease() or await self._next_lease())

    def release(self) -> None:
        lease = self._in_use.pop()  # one is as good as another
        lease.calls_left -= 1
        if lease.calls_left:
            self._offer(lease)
        else:
            self._give_back()

    def _idle_lease(self) -> _Lease | None:
        if not self._idle:
            return None
        lease = self._idle.pop()
        if lease.expires is not None:
            lease.expires.cancel()
        return lease

    async def _next_lease(self) -> _Lease:
        """A lease of the driver's, or one that a call of this worker has ended with."""
        waiting: asyncio.Future[_Lease] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        if len(self._asking) < len(self._waiting):
            task = asyncio.create_task(self._ask())
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._offer(waiting.result())
            raise

    async def _ask(self) -> None:
        await self._link.ask("connect", self._model)
        if not self._passed_on(_Lease()):
            self._give_back()

    def _offer(self, lease: _Lease) -> None:
        """Gives a lease to the call that waits longest, or keeps it for a moment: the next call may be near."""
        if not self._passed_on(lease):
            lease.expires = asyncio.get_running_loop().call_later(_IDLE_S, self._expire, lease)
            self._idle.append(lease)

    def _passed_on(self, lease: _Lease) -> bool:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(lease)
                return True
        return False

    def _expire(self, lease: _Lease) -> None:
        self._idle.remove(lease)
        self._give_back()

    def _give_back(self) -> None:
        self._link.tell("disconnect", (self._model, self._good))
        self._good = 0
