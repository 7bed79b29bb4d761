"""What the attempts of one model call have taken so far, added up to a receipt.

ledger = Ledger()
ledger.book(error.receipt)          # an attempt that failed
ledger.book(completion.receipt)     # the one that was answered
ledger.receipt()                    # Receipt(attempts=2, billed=…, …)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rewoo_bench.types import Receipt, Usage

_NOTHING = Usage()


@dataclass(slots=True)
class Ledger:
    """Attempts, waiting, billed tokens and dollars. One unknown price makes the sum unknown."""

    attempts: int = 0
    waiting: list[tuple[float, float]] = field(default_factory=list)
    billed: Usage = _NOTHING
    cost_usd: float | None = None
    estimated: bool = False

    def book(self, receipt: Receipt | None) -> None:
        """Adds what an attempt reported: None is one attempt that cost nothing. A receipt may cover several."""
        self.attempts += receipt.attempts if receipt else 1
        if receipt is None or receipt.billed == _NOTHING:
            return
        self.estimated |= receipt.usage_source == "estimated"
        if self.billed is _NOTHING:
            self.billed, self.cost_usd = receipt.billed, receipt.cost_usd
            return
        both_known = self.cost_usd is not None and receipt.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (receipt.cost_usd or 0.0) if both_known else None
        self.billed += receipt.billed

    def receipt(self) -> Receipt:
        return Receipt(
            attempts=self.attempts,
            waiting=tuple(self.waiting),
            billed=self.billed,
            cost_usd=self.cost_usd,
            usage_source="estimated" if self.estimated else "provider",
        )
