"""A quantile with a distribution-free interval: two of the values themselves, by binomial ranks.

    quantile_interval(seconds, 0.95)  ->  Interval(estimate=9.1, low=7.4, high=12.8, n=100, level=0.95)

How many of n values lie below the true quantile is binomial, whatever their distribution is (Conover 1999,
Practical Nonparametric Statistics, 3.2). With few values no rank is high enough: a 95% interval of the
95th percentile needs 72 values, one of the median 6. The bound is then infinite; print nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rewoo_bench.errors import DataError
from rewoo_bench.stats.columns import averaged, finite, paired_columns
from rewoo_bench.stats.paired import Interval, rows_worth


def quantile_interval(
    values: ArrayLike, share: float, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """The quantile of all rows, and its interval; `n` counts the questions.

    With trials the rows count by their design effect: that of the share of a question's rows at or below the
    quantile (Woodruff 1952, Journal of the American Statistical Association 47).
    Raises `DataError` for a value that isn't finite, and for a share that isn't between 0 and 1.
    """
    if not 0 < share < 1:
        raise DataError(f"quantile {share!r}: expected a number between 0 and 1")
    column, _, labels = paired_columns(values, values, clusters)
    finite("values", column)
    if not len(column):
        return Interval(math.nan, -math.inf, math.inf, 0, level)
    estimate = float(np.quantile(column, share))
    (below,) = averaged(labels, (column <= estimate).astype(float))
    n = len(below)
    worth = n if n < 2 else math.floor(rows_worth(share * (1 - share), below, len(column)))
    first, last = _ranks(worth, share, level)
    ordered, rows = np.sort(column), len(column)
    low = ordered[math.floor((first - 1) * rows / worth)] if first >= 1 else -math.inf
    high = ordered[math.ceil(last * rows / worth) - 1] if last <= worth else math.inf
    return Interval(estimate, float(low), float(high), n, level)


def _ranks(n: int, share: float, level: float) -> tuple[int, int]:
    """Ranks of the two values, from 1; 0 and n + 1 where there is none."""
    from scipy.special import bdtr  # cumulative binomial; scipy.stats takes ten times as long to import

    at_most = bdtr(np.arange(n, dtype=float), n, share)  # of 0 .. n - 1 below
    tail = (1 - level) / 2
    first = int(np.searchsorted(at_most, tail, side="right"))
    last = int(np.searchsorted(at_most, 1 - tail, side="left")) + 1
    return first, last
