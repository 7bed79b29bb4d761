"""Averages over several data sets: each is a stratum of its own, and its questions are independent of the others'.

    ratio_of_summed_means([(react_1, rewoo_1, None), (react_2, rewoo_2, None)])     # sum of means b / sum of means a
    mean_of_differences([Interval(0.02, -0.03, 0.07, 300), Interval(0.07, 0.03, 0.11, 1000)])

Every data set counts alike, whatever its number of questions. `n` is the number of questions of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from numpy.typing import ArrayLike

from rewoo_bench.errors import DataError
from rewoo_bench.stats.bootstrap import student
from rewoo_bench.stats.columns import by_question, check_amounts
from rewoo_bench.stats.mean_bounds import LEAST_APART, MeanBounds
from rewoo_bench.stats.paired import Interval

Stratum = tuple[ArrayLike, ArrayLike, ArrayLike | None]
"""Columns a and b, paired, and the question of each row where a question has several trials."""


def ratio_of_summed_means(strata: Sequence[Stratum], *, level: float = 0.95) -> Interval:
    """The sum over strata of mean(b) / that of mean(a), with an interval on the logarithm (delta method).

    Student's, with the degrees of freedom of the smallest stratum, and in each with some more of its farthest
    values, as in `ratio_of_means`, which it is for one stratum. What those add to the means is added in squares: not
    every stratum misses a tail.
    """
    if not strata:
        raise DataError("no stratum to average over")
    columns = [by_question(*stratum) for stratum in strata]
    for a, b in columns:
        check_amounts(a, b)
    sums = [sum(float(pair[side].mean()) for pair in columns if len(pair[side])) for side in (0, 1)]
    n = sum(len(a) for a, _ in columns)
    smallest = min(len(a) for a, _ in columns)
    if smallest < 2 or not sums[0] or not sums[1]:
        return Interval(sums[1] / sums[0] if sums[0] else math.nan, 0.0, math.inf, n, level)
    apart = [b / sums[1] - a / sums[0] for a, b in columns]
    least = [LEAST_APART * max(float(a.mean()) / sums[0], float(b.mean()) / sums[1]) for a, b in columns]
    found = [MeanBounds.of(values, least=each) for values, each in zip(apart, least, strict=True)]
    moved = [math.hypot(*(e.means[side] - v.mean() for e, v in zip(found, apart, strict=True))) for side in (0, 1)]
    errors = [student(smallest, level) * math.hypot(*(each.errors[side] for each in found)) for side in (0, 1)]
    low, high = (moved[side] + errors[side] for side in (0, 1))
    estimate, rare = sums[1] / sums[0], any(each.rare for each in found)
    return Interval(estimate, estimate * math.exp(-low), estimate * math.exp(high), n, level, rare)


def mean_of_differences(strata: Sequence[Interval]) -> Interval:
    """The mean of independent estimates, from the interval of each (Zou and Donner 2008, Statistics in Medicine 27)."""
    if not strata:
        raise DataError("no stratum to average over")
    k = len(strata)
    estimate = sum(each.estimate for each in strata) / k
    below = math.sqrt(sum((each.estimate - each.low) ** 2 for each in strata)) / k
    above = math.sqrt(sum((each.high - each.estimate) ** 2 for each in strata)) / k
    n, rare = sum(each.n for each in strata), any(each.rare for each in strata)
    return Interval(estimate, estimate - below, estimate + above, n, strata[0].level, rare)
