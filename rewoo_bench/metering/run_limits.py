"""Progress and cost of a run, and the limits that end it.

RunLimits(max_total_tokens=250).exceeded(totals)  ->  "used 260 of 250 tokens (--max-total-tokens)"
higher_cap("used 260 of 250 tokens (--max-total-tokens)", done=0.5)  ->  "--max-total-tokens 580"
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from rewoo_bench.journal.store import Spent

_NO_PRICE = "the price of a call isn't known, so --max-total-cost can't be kept"
_REACHED = re.compile(r"(?:used|cost) (\S+) of (\S+) (?:tokens|USD) \((--max-total-\w+)\)")
_MARGIN = 1.1  # questions that weren't asked yet may cost more than those that were


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
            return _NO_PRICE
        if self.max_total_cost is not None and totals.spent.cost_usd >= self.max_total_cost:
            spent = totals.spent.cost_usd
            shown = f"{spent:.4f}" if spent >= 0.01 else f"{spent:.2g}"
            return f"cost {shown} of {self.max_total_cost} USD (--max-total-cost)"
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


def higher_cap(reason: str, *, done: float) -> str | None:
    """The flag that lets a run continue after a cap ended it; None where its `reason` is another one.

    `done` is the share of the questions that are finished: the new cap is an estimate for all of them. A manifest
    keeps the reason only, so the amounts are read from it.
    """
    if reason == _NO_PRICE:
        return "--max-total-cost none"
    reached = _REACHED.fullmatch(reason)
    if reached is None:
        return None
    spent, cap = (float(text.replace(",", "")) for text in reached.group(1, 2))
    return f"{reached[3]} {_rounded_up(_MARGIN * max(spent, cap) / done, whole=reached[3] == '--max-total-tokens')}"


def _rounded_up(amount: float, *, whole: bool) -> str:
    """Two significant digits; `whole` for a whole number."""
    step = 10.0 ** (math.floor(math.log10(amount)) - 1)
    rounded = math.ceil(amount / step - 1e-9) * step  # 22.000000000000004 is 22
    return str(math.ceil(rounded)) if whole else f"{rounded:g}"
