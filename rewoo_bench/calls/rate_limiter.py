"""An adaptive limit on model calls in flight: halved after a 429, and slowly raised again.

Additive increase, multiplicative decrease, as in TCP (Chiu and Jain 1989): after a 429 the limit is
halved, at most once in `hold_s` seconds, since calls in flight fail together; after as many good
answers as the limit, it rises by one, up to its first value.

It also knows whether the server was ever reached: if every connection was refused from the start, no call
has to use up all its attempts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

import anyio

from rewoo_bench.concurrency import take

TOO_MANY_REQUESTS = 429
_FEWEST_REFUSALS = 3  # refused connections, after which a server counts as absent


class CallLimiter:
    """A limit on the calls in flight, for `async with`, that is told how each attempt ended."""

    def __init__(self) -> None:
        self._answered = False
        self._first_calls = 0  # begun before anything was known
        self._unreachable = 0  # attempts

    @property
    def nobody_there(self) -> bool:
        """Whether no connection was ever made: neither by any of the first calls nor by a later one."""
        return not self._answered and self._unreachable >= max(_FEWEST_REFUSALS, self._first_calls)

    def succeeded(self) -> None:
        """A call was answered."""
        self._answered = True

    def failed(self, status: int | None, *, unreachable: bool = False) -> None:
        """A call failed, with an HTTP status if there was one. `unreachable`: no connection was made."""
        self._unreachable += unreachable
        self._answered |= not unreachable
        if status == TOO_MANY_REQUESTS:
            self.halve()

    def halve(self) -> None:
        """The provider wants fewer calls at the same time."""
        raise NotImplementedError

    async def acquire(self) -> None:
        """Waits for a place."""
        raise NotImplementedError

    def release(self) -> None:
        """Gives a place back."""
        raise NotImplementedError

    async def __aenter__(self) -> None:
        await self.acquire()
        self._first_calls += not (self._answered or self._unreachable)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class AdaptiveLimiter(CallLimiter):
    """A limiter that learns from a provider's answers. `places` is its current limit."""

    def __init__(self, places: int, *, hold_s: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.most = places
        self._limiter = anyio.CapacityLimiter(places)
        self._hold_s = hold_s
        self._clock = clock
        self._held_until = 0.0
        self._good = 0

    @property
    def places(self) -> int:
        return int(self._limiter.total_tokens)

    @property
    def in_use(self) -> int:
        return int(self._limiter.borrowed_tokens)

    def succeeded(self) -> None:
        super().succeeded()
        self._good += 1
        if self.places < self.most and self._good >= self.places:
            self._good = 0
            self._limiter.total_tokens = self.places + 1

    def halve(self) -> None:
        """Halves the limit, at most once in `hold_s` seconds."""
        if self._clock() < self._held_until:
            return
        self._good = 0
        self._held_until = self._clock() + self._hold_s
        self._limiter.total_tokens = max(1, self.places // 2)

    async def acquire(self) -> None:
        await take(self._limiter)

    def release(self) -> None:
        self._limiter.release()

    async def acquire_for(self, holder: object) -> None:
        """Waits for a place that `release_for` gives back in whatever task."""
        await self._limiter.acquire_on_behalf_of(holder)

    def release_for(self, holder: object) -> None:
        self._limiter.release_on_behalf_of(holder)
