"""The smallest growth that a comparison of two live runs could have caught.

    smallest_growth(before, now, ids, error=0.005)      # 0.14: growth of 14% or more is caught 4 times in 5

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
    quantiles = NormalDist().inv_cdf(1 - error) + NormalDist().inv_cdf(POWER)
    return math.expm1(quantiles * standard_error)
