"""What a recommendation has to keep to: the limits and the margin, checked.

Terms(max_cost=0.004, max_latency=20.0, margin=0.05)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rewoo_bench.errors import UsageError

MARGIN = 0.05
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Terms:
    """Raises `UsageError` for a value out of range."""

    max_cost: float | None = None
    """US dollars per question, the mean."""
    max_latency: float | None = None
    """Seconds per question, the 95th percentile."""
    margin: float = MARGIN
    """How much less accurate a cheaper architecture may be, as a share: 0.05 is 5 points of exact match."""

    def __post_init__(self) -> None:
        for name, unit in (("max_cost", "dollars per question"), ("max_latency", "seconds")):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise UsageError(f"--{name.replace('_', '-')} {value}: expected {unit}, a number above 0")
        if not (_is_number(self.margin) and 0 < self.margin < 1):
            raise UsageError(f"--margin {self.margin}: expected a share between 0 and 1, such as 5% or 0.05 (5 points)")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
