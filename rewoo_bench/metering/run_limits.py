"""Progress and cost of a run, and the limits that end it.

RunLimits(max_total_tokens=250).exceeded(totals)  ->  "used 260 of 250 tokens (--max-total-tokens)"
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rewoo_bench.journal.store import Spent


@dataclass
class Totals:
    """Progress and cost of a run, including failed attempts and earlier sessions."""

    tasks: int = 0
    done: int = 0
    errors: int = 0
    spent: Spent = field(default_factory=Spent)
    last_error: str | None = None

    def add(self, error: str | None) -> None:
        """One more question is done; `error` is the failure of the infrastructure, if any."""
        self.done += 1
        if error is not None:
            self.errors += 1
            self.last_error = error


@dataclass(frozen=True)
class RunLimits:
    """Limits of a whole run. `max_errors` is the number of tolerated failed questions, or a fraction (below 1) of
    all; None tolerates none, but doesn't end the run early."""

    max_total_tokens: int | None = None
    max_total_cost: float | None = None
    max_errors: float | None = None

    def exceeded(self, totals: Totals) -> str | None:
        """The reason to stop the run now, or None. Caps don't stop a run after its last question."""
        if self.max_errors is not None and totals.errors > self._tolerated(totals):
            return f"{totals.errors} questions failed (--fail-on-error {self.max_errors:g}); last: {totals.last_error}"
        if totals.done == totals.tasks:
            return None
        if self.max_total_tokens is not None and totals.spent.tokens >= self.max_total_tokens:
            return f"used {totals.spent.tokens:,} of {self.max_total_tokens:,} tokens (--max-total-tokens)"
        if self.max_total_cost is not None and totals.spent.unpriced:
            return "the price of a call isn't known, so --max-total-cost can't be kept"
        if self.max_total_cost is not None and totals.spent.cost_usd >= self.max_total_cost:
            return f"cost {totals.spent.cost_usd:.4f} of {self.max_total_cost} USD (--max-total-cost)"
        return None

    def unfinished(self, totals: Totals) -> str | None:
        """The reason why a run is incomplete after its last question: too many of them failed."""
        if totals.errors <= self._tolerated(totals):
            return None
        if totals.errors == totals.tasks:
            return f"every question failed; last: {totals.last_error}"
        return f"{totals.errors} of {totals.tasks} questions failed"

    def _tolerated(self, totals: Totals) -> float:
        if self.max_errors is None:
            return 0
        return self.max_errors if self.max_errors >= 1 else self.max_errors * totals.tasks
