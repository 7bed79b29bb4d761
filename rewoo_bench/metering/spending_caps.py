"""A run's caps (--max-total-tokens, --max-total-cost), exceeded by at most one call: each call reserves its estimate.

    estimate = CallEstimate.of(model, messages, options)
    reservation = await caps.admit(estimate)                    # waits while the calls in flight may use up the rest
    ...                                                         # the call
    caps.release(reservation, call_cost)

A call begins if the spent and reserved amounts are below the cap, or if none is in flight and the cap isn't
reached: so there is always a running call, or a reason to stop. The first call of a session is made alone, since
its cost shows how far estimates are from the bill: thoughts, retries, a doubled budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio

from rewoo_bench.errors import RunStopped
from rewoo_bench.metering.interrupt import GracefulShutdown
from rewoo_bench.metering.run_limits import RunLimits, Totals
from rewoo_bench.text.prompt_parts import count_prompt
from rewoo_bench.types import CallCost, CompletionOptions, Message, Model

_LONG_ANSWER = 1024  # tokens reserved for an answer of unlimited length


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Tokens of a call before it is made: its prompt and its longest answer; and dollars per million tokens."""

    prompt: int
    answer: int
    prices: Mapping[str, float] | None

    @classmethod
    def of(cls, model: Model, messages: Sequence[Message], options: CompletionOptions) -> CallEstimate:
        prompt = count_prompt(messages, options.get("tools") or ())
        answer = options.get("max_tokens") or getattr(model, "max_output_tokens", None) or _LONG_ANSWER
        return cls(prompt, answer, getattr(model, "prices", None))


@dataclass(frozen=True, slots=True)
class Reservation:
    """The amounts reserved for a call. `cost_usd` is None where no estimate is possible."""

    tokens: int
    cost_usd: float | None
    estimate: int
    """The counted tokens, before any correction."""


class Caps:
    """Admits calls while the caps of a run leave room for them; when a cap is reached, requests the shutdown."""

    def __init__(self, limits: RunLimits, totals: Totals, shutdown: GracefulShutdown) -> None:
        self._limits = limits
        self._totals = totals
        self._shutdown = shutdown
        self._in_flight = 0
        self._tokens = 0
        self._cost_usd = 0.0
        self._correction = 1.0  # the largest ratio of a call's tokens to its estimate
        self._calls, self._paid_usd = 0, 0.0
        self._freed = anyio.Event()

    async def admit(self, estimate: CallEstimate) -> Reservation:
        """Waits until there is room for a call, and reserves it. Doesn't return once a cap is reached."""
        while True:
            if reason := self._limits.exceeded(self._totals):
                self._shutdown.request(RunStopped(reason))
            await self._shutdown.admit()
            reservation = self._reservation(estimate)
            if not self._in_flight or (self._calls and self._has_space(reservation)):
                self._in_flight += 1
                self._tokens += reservation.tokens
                self._cost_usd += reservation.cost_usd or 0.0
                return reservation
            await self._freed.wait()

    def release(self, reservation: Reservation, call_cost: CallCost | None) -> None:
        """Frees the reservation of a call that has ended and whose cost is recorded."""
        self._in_flight -= 1
        self._tokens -= reservation.tokens
        self._cost_usd = self._cost_usd - (reservation.cost_usd or 0.0) if self._in_flight else 0.0
        if call_cost is not None:
            self._correction = max(self._correction, call_cost.billed.total_tokens / max(1, reservation.estimate))
            self._calls += 1
            self._paid_usd += call_cost.cost_usd or 0.0
        self._freed.set()
        self._freed = anyio.Event()

    def _has_space(self, reservation: Reservation) -> bool:
        limits, spent = self._limits, self._totals.spent
        if limits.max_total_tokens is not None and spent.tokens + self._tokens >= limits.max_total_tokens:
            return False
        if limits.max_total_cost is None:
            return True
        return reservation.cost_usd is not None and spent.cost_usd + self._cost_usd < limits.max_total_cost

    def _reservation(self, call: CallEstimate) -> Reservation:
        """The prompt and the longest answer, at the model's prices; without prices the mean cost of a call so far."""
        cost_usd = self._paid_usd / self._calls if self._paid_usd else None
        if call.prices:
            paid = call.prompt * call.prices["input"] + call.answer * call.prices["output"]
            cost_usd = paid * self._correction / 1e6
        tokens = call.prompt + call.answer
        return Reservation(int(tokens * self._correction), cost_usd, tokens)
