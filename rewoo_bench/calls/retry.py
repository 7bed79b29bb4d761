"""Retries of model calls, and the place that each attempt takes.

    limiter = AdaptiveLimiter(16)                       # model calls at once, for the whole run
    model = RetryingModel(HostedModel("openai/gpt-4o-mini"), limiter=limiter)
    completion = await model.complete(request)
    request.bill.total      # CallCost(attempts=1, waiting=((12.0, 13.5),), …), of an attempt that failed before

A failed model call is tried again here. Which failures may pass is in models/hosted/provider_errors.py. Others
send twice, each another request: models/hosted/client.py leaves out a parameter that the endpoint refused, or gives a
reply that was cut off in its thoughts more room; models/hosted/wire.py leaves out an option that an agent didn't ask
for; tools/wikipedia.py tries a page again; an agent's own client asks the gateway again (agents/session.py). A question
that failed is asked again as a whole by the next `--resume` (evaluation/evaluator.py).

Back-off is exponential with full jitter: a wait is drawn evenly between 0 and
`base_delay * 2**attempt`, so that callers that failed together don't come back together
(Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count

import anyio

from rewoo_bench.calls.live import name_of
from rewoo_bench.errors import ModelError
from rewoo_bench.system.concurrency import take
from rewoo_bench.types import Completion, Model, Request, Usage

TOO_MANY_REQUESTS = 429
_MANY = 10_000  # calls at once, where nothing limits them
_LONG_WAIT_S = 20.0  # said, since a run would seem to hang; and not again for as long as it takes


class AdaptiveLimiter:
    """For `async with`: limits the calls in flight, and learns from a provider's answers. `places` is its limit now.

    Additive increase, multiplicative decrease, as in TCP (Chiu and Jain 1989): after a 429 the limit is halved, at most
    once in `hold_s` seconds, since calls in flight fail together; after as many good answers as the limit, it rises by
    one, up to its first value.
    """

    def __init__(self, places: int, *, hold_s: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = places
        self._limiter = anyio.CapacityLimiter(places)
        self._hold_s = hold_s
        self._clock = clock
        self._held_until = 0.0
        self._good = 0

    @property
    def places(self) -> int:
        return int(self._limiter.total_tokens)

    def succeeded(self) -> None:
        """A call was answered."""
        self._good += 1
        if self.places < self.most and self._good >= self.places:
            self._good = 0
            self._limiter.total_tokens = self.places + 1

    def failed(self, status: int | None) -> None:
        """A call failed, with an HTTP status if there was one."""
        if status == TOO_MANY_REQUESTS and self._clock() >= self._held_until:
            self._good = 0
            self._held_until = self._clock() + self._hold_s
            self._limiter.total_tokens = max(1, self.places // 2)

    async def __aenter__(self) -> bool:
        """Takes a place; returns whether it had to wait for one."""
        return await take(self._limiter)

    async def __aexit__(self, *_: object) -> None:
        self._limiter.release()


class RetryingModel:
    """A model whose failed calls are tried again where their `ModelError` is retryable and no reader has a part of it.

    At most `max_retries` + 1 attempts. `limiter` bounds the calls in flight of all models that share it, and
    learns from 429s; its place is given back during a back-off. A provider's Retry-After is used where it is longer
    than the drawn wait; no wait is longer than `max_delay` (seconds). `name` is the model's name in the tables, by
    default its own; `cache_key_part` is its part of a cache key, settings included. `prices` are dollars per million
    tokens by kind, where they are known, and `price` counts those of a call.
    """

    def __init__(
        self,
        model: Model,
        *,
        name: str | None = None,
        cache_key_part: str | None = None,
        prices: Mapping[str, float] | None = None,
        price: Callable[[Usage], float | None] | None = None,
        max_retries: int = 5,
        limiter: AdaptiveLimiter | None = None,
        base_delay: float = 0.5,
        max_delay: float = 60.0,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        if max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {max_retries!r}")
        self.model = model
        self.name = name or name_of(model)
        self.cache_key_part = cache_key_part or self.name
        self.prices = prices
        self.price = price
        self.max_output_tokens: int | None = getattr(model, "max_output_tokens", None)
        self.max_retries = max_retries
        self._limiter = limiter or AdaptiveLimiter(_MANY)
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._rng = rng or random.Random()  # jitter needs no seed: it only has to differ
        self._sleep = sleep
        self._said_until = 0.0  # of the monotonic clock

    async def complete(self, request: Request) -> Completion:
        """The first completion. Raises the last `ModelError` where all attempts fail."""
        limiter, bill = self._limiter, request.bill
        for failures in count():
            started = time.monotonic()
            try:
                async with limiter as waited:
                    if waited:
                        bill.add_waiting(started, time.monotonic())
                    completion = await self.model.complete(request)
            except ModelError as error:
                limiter.failed(error.status)
                begun = error.response is not None and error.response.begun  # its reader has some of the answer
                if not error.retryable or begun or failures >= self.max_retries:
                    raise
                bill.add(error.call_cost)
                await bill.keep()
                delay = self._delay(failures, error.retry_after)
                if delay >= _LONG_WAIT_S and time.monotonic() >= self._said_until:
                    self._said_until = time.monotonic() + delay
                    logging.getLogger(__name__).warning("%s: waiting %.0f s: %s", self.name, delay, error)
            else:
                limiter.succeeded()
                return completion
            started = time.monotonic()
            await self._sleep(delay)
            bill.add_waiting(started, time.monotonic())
        raise AssertionError("there is always another attempt, or an error")

    def _delay(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after the failed attempt number `attempt`, from 0."""
        longest = min(self._max_delay, self._base_delay * 2.0**attempt)
        return min(self._max_delay, max(self._rng.uniform(0, longest), retry_after or 0.0))
