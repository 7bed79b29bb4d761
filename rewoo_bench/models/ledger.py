"""What the attempts of one model call have taken so far, added up to a receipt.

ledger = Ledger()
ledger.book(error.receipt)          # an attempt that failed
ledger.book(completion.receipt)     # the one that was answered
ledger.receipt()                    # Receipt(attempts=2, billed=…, …)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rewoo_bench.types import Receipt, Usage


@dataclass(slots=True)
class Ledger:
    """Attempts, waiting, billed tokens and dollars. One unknown price makes the sum unknown."""

    attempts: int = 0
    waiting: list[tuple[float, float]] = field(default_factory=list)
    billed: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    estimated: bool = False

    def book(self, receipt: Receipt | None) -> None:
        """Adds what an attempt reported: None is one attempt that cost nothing. A receipt may cover several."""
        self.attempts += receipt.attempts if receipt else 1
        if receipt is None or receipt.billed == Usage():
            return
        known = self.billed == Usage() or self.cost_usd is not None
        cost = receipt.cost_usd
        self.cost_usd = (self.cost_usd or 0.0) + cost if known and cost is not None else None
        self.billed += receipt.billed
        self.estimated |= receipt.usage_source == "estimated"

    def receipt(self) -> Receipt:
        return Receipt(
            attempts=self.attempts,
            waiting=tuple(self.waiting),
            billed=self.billed,
            cost_usd=self.cost_usd,
            usage_source="estimated" if self.estimated else "provider",
        )
