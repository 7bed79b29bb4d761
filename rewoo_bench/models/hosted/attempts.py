"""The cost of one model call so far, summed over its attempts.

costs = AttemptCosts()
costs.add(error.call_cost)          # a failed attempt
costs.add(completion.call_cost)     # the successful one
costs.call_cost()                   # CallCost(attempts=2, billed=…, …)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rewoo_bench.types import CallCost, Usage

_NOTHING = Usage()


@dataclass(slots=True)
class AttemptCosts:
    """Attempts, waiting, billed tokens and dollars. One unknown price makes the sum unknown."""

    attempts: int = 0
    waiting: list[tuple[float, float]] = field(default_factory=list)
    billed: Usage = _NOTHING
    cost_usd: float | None = None
    estimated: bool = False

    def add(self, call_cost: CallCost | None) -> None:
        """Adds an attempt: None is one that cost nothing. A `CallCost` may cover several attempts."""
        self.attempts += call_cost.attempts if call_cost else 1
        if call_cost is None or call_cost.billed == _NOTHING:
            return
        self.estimated |= call_cost.usage_source == "estimated"
        if self.billed is _NOTHING:
            self.billed, self.cost_usd = call_cost.billed, call_cost.cost_usd
            return
        both_known = self.cost_usd is not None and call_cost.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (call_cost.cost_usd or 0.0) if both_known else None
        self.billed += call_cost.billed

    def call_cost(self) -> CallCost:
        return CallCost(
            attempts=self.attempts,
            waiting=tuple(self.waiting),
            billed=self.billed,
            cost_usd=self.cost_usd,
            usage_source="estimated" if self.estimated else "provider",
        )
