"""How far a run is, what it has paid, and when that is the end of it.

RunLimits(max_total_tokens=250).exceeded(totals)  ->  "used 260 of 250 tokens (--max-total-tokens)"
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rewoo_bench.journal.store import Spent


@dataclass
class Totals:
    """How far a run is, and what it has paid: failed attempts included, and earlier sessions."""

    tasks: int = 0
    done: int = 0
    errors: int = 0
    spent: Spent = field(default_factory=Spent)
    last_error: str | None = None

    def add(self, error: str | None) -> None:
        """One more question is done; `error` says how the infrastructure failed it, if it did."""
        self.done += 1
        if error is not None:
            self.errors += 1
            self.last_error = error


@dataclass(frozen=True)
class RunLimits:
    """When a whole run ends early. `max_errors` is how many failed questions are tolerated: a count, or a
    fraction (below 1) of all; None tolerates none, and goes on to the last question all the same."""

    max_total_tokens: int | None = None
    max_total_cost: float | None = None
    max_errors: float | None = None

    def exceeded(self, totals: Totals) -> str | None:
        """Why the run has to stop now, or None. A run that is through with its questions kept to its caps."""
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
        """Why a run that has put all its questions isn't done: more of them failed than is tolerated."""
        if totals.errors <= self._tolerated(totals):
            return None
        if totals.errors == totals.tasks:
            return f"every question failed; last: {totals.last_error}"
        return f"{totals.errors} of {totals.tasks} questions failed"

    def _tolerated(self, totals: Totals) -> float:
        if self.max_errors is None:
            return 0
        return self.max_errors if self.max_errors >= 1 else self.max_errors * totals.tasks
