"""Numbers with their nouns, and bounds of intervals.

>>> counted(1, "question"), counted(1200, "question")
('1 question', '1,200 questions')
>>> round_up(1231)
1300
"""

from __future__ import annotations

import math
from collections.abc import Callable


def counted(number: int, noun: str) -> str:
    """The number and the noun, which takes an s unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def round_up(number: float) -> int:
    """Rounded up to two digits."""
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit) * unit


def brackets(low: float, high: float, show: Callable[[float], str]) -> str:
    """`[1.95, 3.35]`; words where there is no upper bound, or where every value is possible, as of one question."""
    if math.isfinite(low) and math.isfinite(high):
        return f"[{show(low)}, {show(high)}]"
    return f"[{show(low)}, no bound]" if low > 0 else "[no interval]"
