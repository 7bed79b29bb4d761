"""Retries of model calls: the only place where a failed call is tried again, and recorded.

    limiter = AdaptiveLimiter(16)                       # model calls at once, for the whole run
    model = RetryingModel(HostedModel("openai/gpt-4o-mini"), limiter=limiter)
    completion = await model.complete(messages, role="planner")
    completion.call_cost    # CallCost(attempts=2, waiting=((12.0, 13.5),), billed=…, …)

Back-off is exponential with full jitter: a wait is drawn evenly between 0 and
`base_delay * 2**attempt`, so that callers that failed together don't come back together
(Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015).
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Unpack

import anyio

from rewoo_bench.errors import ModelError
from rewoo_bench.models.call_cost import attach, call_cost_of, check_completion
from rewoo_bench.models.hosted.attempts import AttemptCosts
from rewoo_bench.models.hosted.rate_limiter import CallLimiter
from rewoo_bench.streaming import complete
from rewoo_bench.types import Completion, CompletionOptions, Message, Model, Usage

# Taking a free place of the limiter takes microseconds, too; a shorter wait isn't recorded.
_SHORTEST_WAIT_S = 0.001


class RetryingModel:
    """A model whose failed calls are tried again where their `ModelError` is retryable and no reader has a part of it.

    At most `max_retries` + 1 attempts. `limiter` bounds the calls in flight of all models that share it, and
    learns from 429s; its place is given back during a back-off. A provider's Retry-After is used where it is longer
    than the drawn wait; no wait is longer than `max_delay` (seconds). `name` is the model's name in the tables, by
    default its own; `identity` is its part of a cache key, settings included. `prices` are dollars per million
    tokens by kind, where they are known.
    """

    streams = True

    def __init__(
        self,
        model: Model,
        *,
        name: str | None = None,
        identity: str | None = None,
        prices: Mapping[str, float] | None = None,
        max_retries: int = 5,
        limiter: CallLimiter | None = None,
        base_delay: float = 0.5,
        max_delay: float = 60.0,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        if max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {max_retries!r}")
        self.model = model
        self.name = name or str(getattr(model, "name", type(model).__name__))
        self.identity = identity or self.name
        self.prices = prices
        self.max_output_tokens: int | None = getattr(model, "max_output_tokens", None)
        self.max_retries = max_retries
        self._limiter = limiter
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._rng = rng or random.Random()  # jitter needs no seed: it only has to differ
        self._sleep = sleep

    async def complete(self, messages: Sequence[Message], **options: Unpack[CompletionOptions]) -> Completion:
        """The first completion, with the cost of all attempts.

        Raises the last `ModelError`, with the same cost, where all attempts fail. A cancellation has it attached,
        too, if anything was paid.
        """
        costs = AttemptCosts()
        try:
            return await self._first_answer(costs, messages, options)
        except ModelError as error:
            error.call_cost = costs.call_cost()
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if (call_cost := call_cost_of(cancelled)) is not None:
                costs.add(call_cost)
            if costs.billed != Usage():
                attach(cancelled, costs.call_cost())
            raise

    async def _first_answer(
        self, costs: AttemptCosts, messages: Sequence[Message], options: CompletionOptions
    ) -> Completion:
        for failures in count():
            try:
                completion = await self._attempt(costs, messages, options)
            except ModelError as error:
                costs.add(error.call_cost)
                if self._limiter is not None:
                    self._limiter.failed(error.status, unreachable=error.unreachable)
                begun = error.response is not None and error.response.begun  # its reader has some of the answer
                if not error.retryable or begun or failures >= self.max_retries or self._is_alone(error):
                    raise
                delay = self._delay(failures, error.retry_after)
            else:
                costs.add(check_completion(completion, self.name).call_cost)
                if self._limiter is not None:
                    self._limiter.succeeded()
                alone = costs.attempts == 1 and not costs.waiting
                return completion if alone else replace(completion, call_cost=costs.call_cost())
            started = time.monotonic()
            await self._sleep(delay)
            costs.waiting.append((started, time.monotonic()))
        raise AssertionError("there is always another attempt, or an error")

    def _is_alone(self, error: ModelError) -> bool:
        """Whether no server has ever answered, so that another attempt is useless."""
        return error.unreachable and self._limiter is not None and self._limiter.nobody_there

    async def _attempt(
        self, costs: AttemptCosts, messages: Sequence[Message], options: CompletionOptions
    ) -> Completion:
        """One attempt, within the limit of calls in flight; the wait for a place is recorded."""
        if self._limiter is None:
            return await complete(self.model, messages, **options)
        started = time.monotonic()
        async with self._limiter:
            got = time.monotonic()
            if got - started > _SHORTEST_WAIT_S:
                costs.waiting.append((started, got))
            return await complete(self.model, messages, **options)

    def _delay(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after the failed attempt number `attempt`, from 0."""
        longest = min(self._max_delay, self._base_delay * 2.0**attempt)
        return min(self._max_delay, max(self._rng.uniform(0, longest), retry_after or 0.0))
