"""Tango's score interval for a difference of paired shares.

Tango 1998, Statistics in Medicine 17, 891-908: a difference is in the interval where the score test,
with the share of discordant pairs that fits it best, doesn't refute it. Counts may be fractions.
"""

from __future__ import annotations

import math

_PRECISION = 1e-12


def score_interval(more: float, less: float, n: float, quantile: float) -> tuple[float, float]:
    """Bounds of (more - less) / n; `more` and `less` are the discordant pairs of either kind."""
    return -_upper(less, more, n, quantile), _upper(more, less, n, quantile)


def _upper(more: float, less: float, n: float, quantile: float) -> float:
    estimate = (more - less) / n

    def beyond(difference: float) -> float:
        return n * (difference - estimate) - quantile * math.sqrt(n * _variance(more, less, n, difference))

    # At the estimate itself a difference is zero where no pair is discordant, which is no bound.
    low, high = estimate + _PRECISION, 1.0
    while high - low > _PRECISION:  # halved: scipy.optimize would take longer to import than all of a comparison
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) > 0 else (middle, high)
    return high


def _variance(more: float, less: float, n: float, difference: float) -> float:
    """Of one pair's difference, with the likeliest shares of discordant pairs that differ by `difference`."""
    middle = (2 * n - more + less) * difference - more - less
    last = -less * difference * (1 - difference)
    share = (math.sqrt(max(0.0, middle**2 - 8 * n * last)) - middle) / (4 * n)
    return max(0.0, 2 * share + difference * (1 - difference))


def score(more: float, less: float, n: float, null: float) -> float:
    """The score statistic of the test that the difference is `null`: how many standard errors it is above that."""
    distance = (more - less) / n - null
    error = math.sqrt(variance_at(more, less, n, null) / n)
    if error:
        return distance / error
    return math.copysign(math.inf, distance) if distance else 0.0


def variance_at(more: float, less: float, n: float, null: float) -> float:
    """Of one pair's difference, if the truth is `null` and else as near to these counts, or shares, as can be."""
    return _variance(less, more, n, -null)
