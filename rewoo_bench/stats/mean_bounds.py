"""Student's bounds of a mean, with one value more than the sample has.

    mean_bounds(values, below=0.0, above=1.0, level=0.95)  ->  (low, high)

A tail that few questions reach (ReAct at its step limit: four times the tokens) is missing from many small
samples, and neither Student's interval nor a bootstrap can allow for it. So the upper bound is that of the
values with one more far above, and the lower one that with one more far below. For an event that none of n
questions shows, this allows a share of about 3 / n, as the rule of three does
(Hanley and Lippman-Hand 1983, JAMA 249). No interval has zero width, and for many questions it is Student's.

How far such a value may be from the others: to the end of the scale where there is one, else REACH times
the range of the sample. REACH and the others were chosen for coverage on the project's own runs
(scripts/measure_coverage.py): the least that holds the truth 90 times in 100 at n = 50 and more.
"""

from __future__ import annotations

import math

import numpy as np

from rewoo_bench.stats.bootstrap import Floats, student

REACH = 0.75  # of the sample's range: how far beyond its ends one value more may be
LEAST = 0.25  # of the mean; the least distance, or equal values would leave no doubt
LEAST_APART = 0.5  # of the means of two systems; two that are alike in nearly all questions differ by as much in one


def mean_bounds(values: Floats, below: float, above: float, level: float) -> tuple[float, float]:
    """Bounds of the mean of two values or more; `below` and `above` are what one value more could be."""
    return _bound(values, below, level, -1), _bound(values, above, level, +1)


def reaching(values: Floats, least: float, reach: float = REACH) -> tuple[float, float]:
    """What one value more could be, of values that have no end: below them all, and above, by `least` at least.

    `reach` is in ranges of the values. Where all are zero and `least` is too, the distance is unknown: anything.
    """
    low, high = float(values.min()), float(values.max())
    distance = max(reach * (high - low), least) or math.inf
    return low - distance, high + distance


def _bound(values: Floats, more: float, level: float, side: int) -> float:
    if math.isinf(more):
        return more
    n = len(values)
    added = np.append(values, more)
    return float(added.mean()) + side * student(n, level) * float(added.std(ddof=1)) / math.sqrt(n + 1)
