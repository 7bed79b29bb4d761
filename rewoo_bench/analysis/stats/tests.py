"""Tests on paired columns (the exact McNemar test, Holm's adjustment), and how much data they take to show an effect.

    mcnemar_exact(a, b).p                               # are there as many pairs that only a got right as only b did?
    smallest_growth(before, now, ids, error=0.005)      # 0.14: growth of 14% or more is caught 4 times in 5
    minimum_detectable_difference(0.25, 300)            # 0.083: a difference that 300 questions show 4 times in 5

A live gate fails where the lower bound of the ratio of means is above 1. That depends on the number of questions and
on how much they differ. Where a few questions run into a step limit at many times the cost of the others, a growth of
10% can't be seen, and a gate that passes hasn't shown that nothing grew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy  # its modules are loaded where they are used
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.analysis.stats.paired import (
    by_question,
    difference_and_p,
    difference_of_proportions,
    paired_columns,
)

POWER = 0.8
_LONG = 1 << 24  # multiplications, above which a convolution by Fourier's transform is faster
_PRECISION = 1e-4  # of a difference
_PRECISION_OF_P = 1e-6
_MANY = 1 << 24  # pairs; nobody will ask as many
_FARTHEST = 5.0  # standard deviations of the number of discordant pairs
_NODES = 200  # numbers of discordant pairs that stand for all


@dataclass(frozen=True, slots=True)
class McNemar:
    """Pairs that only the one system got right, that only the other did, and the exact two-sided p."""

    only_a: int
    only_b: int
    p: float


def mcnemar_exact(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> McNemar:
    """The exact McNemar test: are there as many pairs that only a got right as only b did?

    With trials the differences of whole questions change sign together; with one trial each that is McNemar's test.
    Exact too.
    """
    first, second, labels = paired_columns(a, b, clusters)
    signs = (second - first).astype(np.int64)
    only_a, only_b = int((signs < 0).sum()), int((signs > 0).sum())
    if labels is not None:
        _, position = np.unique(labels, return_inverse=True)
        signs = np.bincount(position, weights=signs).astype(np.int64)
    # The distribution of the sum where every difference may as well have the other sign: 0.5 for [3, -1, 2].
    gammaln = scipy.special.gammaln
    sizes, counts = np.unique(np.abs(signs[signs != 0]), return_counts=True)
    law = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        heads = np.arange(count + 1)
        logs = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1) - count * math.log(2)
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = np.exp(logs)
        convolve = np.convolve if len(law) * len(steps) < _LONG else scipy.signal.fftconvolve
        law = convolve(law, steps)
    as_far = np.abs(np.arange(len(law)) - len(law) // 2) >= abs(int(signs.sum()))
    return McNemar(only_a, only_b, min(1.0, float(law[as_far].sum())))


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for their number (Holm 1979), in the order given."""
    values, _, _ = paired_columns(p_values, p_values, None)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


def p_of_margin(
    a: ArrayLike, b: ArrayLike, margin: float, clusters: ArrayLike | None = None, *, proportions: bool = True
) -> float:
    """p of "b is worse than a by the margin or more"; NaN without a pair.

    `proportions` are of scores 0 and 1, with the interval of exact match; else that of other scores from 0 to 1 counts.

    It is 1 less the level of the interval of b - a that ends at `-margin`, so it is below 0.05 exactly where the 95%
    interval leaves that out, on either side.
    """
    first, second, labels = paired_columns(a, b, clusters)
    if not len(first):
        return math.nan

    def leaves_out(p: float) -> bool:
        if proportions:
            found = difference_of_proportions(first, second, clusters=labels, level=1 - p)
        else:
            found, _ = difference_and_p(first, second, (0.0, 1.0), labels, 1 - p)
        return not found.low <= -margin <= found.high

    low, high = 0.0, 1.0
    while high - low > _PRECISION_OF_P:
        middle = (low + high) / 2
        low, high = (low, middle) if leaves_out(middle) else (middle, high)
    return high


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


def mcnemar_power(discordant_share: float, difference: float, n: int, alpha: float) -> float:
    """The chance that the exact two-sided McNemar test at level `alpha` finds this difference of paired shares.

    Of n pairs a share is discordant, and how many is binomial; so is how many of them one of the two got right.
    """
    bdtr, gammaln = scipy.special.bdtr, scipy.special.gammaln
    share = max(discordant_share, abs(difference))
    if not share:
        return 0.0
    middle, reach = n * share, _FARTHEST * math.sqrt(n * share * (1 - share)) + 1
    least, most = max(1, math.floor(middle - reach)), min(n, math.ceil(middle + reach))
    of = np.unique(np.linspace(least, most, _NODES).astype(np.int64))  # every number, or some evenly spaced ones
    rest = np.log1p(-share) * (n - of) if share < 1 else np.where(of == n, 0.0, -math.inf)
    logs = gammaln(n + 1) - gammaln(of + 1) - gammaln(n - of + 1) + of * math.log(share) + rest
    none = (1 - share) ** n if least == 1 else 0.0  # no discordant pair: nothing is found
    weights = np.exp(logs - logs.max())
    # Up to that many in the minority refute equality.
    critical = np.floor(np.nan_to_num(scipy.special.bdtrik(alpha / 2, of, 0.5)))
    critical = np.where(bdtr(critical, of, 0.5) > alpha / 2, critical - 1, critical)
    one = (1 + difference / share) / 2
    found = np.where(critical < 0, 0.0, sum(bdtr(np.maximum(critical, 0), of, each) for each in (one, 1 - one)))
    return float(weights @ found / weights.sum()) * (1 - none)


def minimum_detectable_difference(discordant_share: float, n: float, alpha: float = 0.05) -> float:
    """The smallest difference of paired shares that n pairs show with power 0.8, by the exact McNemar test.

    Where it exceeds the share of discordant pairs, that share is taken to be the difference. Infinite where n pairs
    show no difference.
    """
    pairs = round(n)
    if mcnemar_power(discordant_share, 1.0, pairs, alpha) < POWER:
        return math.inf
    low, high = 0.0, 1.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(discordant_share, middle, pairs, alpha) >= POWER else (middle, high)
    return high


def quantiles(alpha: float) -> float:
    """How many standard errors an effect must be from zero: for a two-sided test of level `alpha`, with power 0.8."""
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(POWER)
