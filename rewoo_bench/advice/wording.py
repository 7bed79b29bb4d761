"""Numbers as the sentences of a recommendation have them.

>>> points(0.031), points(-0.02, signed=True), money(0.00397), joined(["a", "b", "c"])
('3.1 points', '-2.0 points', '$0.00397', 'a, b and c')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rewoo_bench.analysis.pairs import RARE
from rewoo_bench.stats.paired import Interval
from rewoo_bench.text.counts import brackets


def points(value: float, *, signed: bool = False) -> str:
    """A difference of shares in points."""
    return f"{100 * value:{'+' if signed else ''}.1f} points"


def bounds_in_points(interval: Interval) -> str:
    """`[-3.1, +7.0]`."""
    return f"[{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"


def share(interval: Interval) -> str:
    """`26.7% [22.0%, 31.9%]`."""
    return with_bounds(interval, lambda value: f"{100 * value:.1f}%")


def money(dollars: float) -> str:
    """Dollars with three digits."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.{_decimals(dollars)}f}"


def _decimals(dollars: float) -> int:
    return 2 - math.floor(math.log10(dollars)) if dollars > 0 else 2


def tokens(number: float) -> str:
    """A whole number."""
    return f"{number:,.0f}"


def number_of_seconds(value: float) -> str:
    """With one decimal below ten seconds."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def times_of(ratio: Interval, unit: str) -> str:
    """`15% [14%, 15%] of its tokens` or `3.65 [2.70, 5.09] times its tokens`."""
    if ratio.estimate < 1:
        return f"{with_bounds(ratio, lambda value: f'{100 * value:.0f}%')} of its {unit}"
    return f"{with_bounds(ratio, lambda value: f'{value:.2f}')} times its {unit}"


def p_value(p: float) -> str:
    """`p = 0.013`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.{2 if p >= 0.1 else 3}f}"


def with_bounds(interval: Interval, show: Callable[[float], str]) -> str:
    """`1,433 [1,381, 1,502]`; a question mark behind it is of a rare event."""
    return f"{show(interval.estimate)} {brackets(interval.low, interval.high, show)}{RARE if interval.rare else ''}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    *most, end = names
    return f"{', '.join(most)} {last} {end}" if most else end
