"""How small an effect a comparison can show, and how many questions it takes to show one.

    smallest_growth(before, now, ids, error=0.005)      # 0.14: growth of 14% or more is caught 4 times in 5
    questions_for_difference(0.25, 0.04)                # 1226: questions that show 4 points 4 times in 5
    questions_for_margin(0.25, 0.0, 0.05)               # 786: questions that show "at most 5 points worse"

A live gate fails where the lower bound of the ratio of means is above 1. That depends on the number of questions and
on how much they differ. Where a few questions run into a step limit at many times the cost of the others, a growth of
10% can't be seen, and a gate that passes hasn't shown that nothing grew.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.stats.columns import by_question
from rewoo_bench.stats.tango import variance_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

POWER = 0.8


def smallest_growth(before: ArrayLike, now: ArrayLike, ids: NDArray[Any], *, error: float) -> float:
    """The growth, as a share of the mean, that this comparison catches 4 times in 5.

    `error` is the gate's one-sided chance of a false alarm for this test. By the normal approximation: the
    standard error of the log ratio (delta method, paired by question, the trials of a question averaged) times
    the quantiles of the error and of the power. Infinite for fewer than two questions or a mean of zero.
    """
    a, b = by_question(before, now, ids)
    n = len(a)
    if n < 2 or not a.mean() or not b.mean():
        return math.inf
    standard_error = float(np.std(b / b.mean() - a / a.mean(), ddof=1)) / math.sqrt(n)
    return math.expm1(quantiles(2 * error) * standard_error)


def questions_for_difference(discordant_share: float, difference: float, alpha: float = 0.05) -> float:
    """Pairs that show this difference of paired shares with power 0.8, by a two-sided test of level `alpha`.

    Miettinen 1968, Biometrics 24; the inverse of `minimum_detectable_difference`. Infinite for no difference.
    """
    if not difference:
        return math.inf
    share = max(discordant_share, abs(difference))
    error, miss = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(POWER)
    return (error * math.sqrt(share) + miss * math.sqrt(share - difference**2)) ** 2 / difference**2


def questions_for_margin(discordant_share: float, difference: float, margin: float, alpha: float = 0.05) -> float:
    """Pairs that show with power 0.8 that one share isn't below another by `margin` or more, by Tango's score test.

    `difference` is the true one, the first share minus the second. One-sided at `alpha / 2`, as the lower bound of a
    two-sided interval. Infinite where the truth is at the margin or beyond it.
    """
    if difference <= -margin:
        return math.inf
    share = max(discordant_share, abs(difference))
    at_margin = variance_at((share + difference) / 2, (share - difference) / 2, 1.0, -margin)
    error, miss = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(POWER)
    spread = error * math.sqrt(at_margin) + miss * math.sqrt(share - difference**2)
    return (spread / (margin + difference)) ** 2


def quantiles(alpha: float) -> float:
    """How many standard errors an effect must be from zero: for a two-sided test of level `alpha`, with power 0.8."""
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(POWER)
