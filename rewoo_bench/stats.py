"""Intervals and tests on paired columns: one value a question of the one system, one of the other.

    >>> ratio_of_means([4000, 6000, 5000], [2000, 2500, 3000])   # mean(b) / mean(a)
    Interval(estimate=0.5, low=..., high=..., n=3, level=0.95)

Arrays in, numbers out; nothing is read and nothing is drawn. `clusters` has the question of each
row where a question was put more than once: its trials are averaged first, and the question is the
observation. An interval of no question, or of one, holds every value that there can be: it says nothing.
Every function raises `DataError` for a value that is missing or isn't finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.bootstrap import Floats, log_ratio_bounds, mean_bounds, student
from rewoo_bench.columns import averaged, by_question, check_amounts, check_yes_or_no, finite, paired_columns
from rewoo_bench.errors import DataError

_EXACT, _EXACT_WITH_TIES = 50, 13  # differences up to which Wilcoxon's test is exact
_LONG = 1 << 24  # multiplications, above which a convolution by Fourier's transform is faster


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds; `n` is the number of questions behind it. The estimate of none is NaN."""

    estimate: float
    low: float
    high: float
    n: int
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class McNemar:
    """Pairs that only the one system got right, that only the other did, and the exact two-sided p."""

    only_a: int
    only_b: int
    p: float


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval for a share."""
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes of {n}: expected a count from 0 to n")
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, 0, level)
    share, z = successes / n, _normal((1 + level) / 2)
    whole = n + z**2
    centre, half = (successes + z**2 / 2) / whole, z * math.sqrt(n * share * (1 - share) + z**2 / 4) / whole
    low, high = centre - half if successes else 0.0, centre + half if successes < n else 1.0
    return Interval(share, low, high, n, level)


def ratio_of_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """mean(b) / mean(a), with a studentised paired bootstrap interval of its logarithm.

    Of percentile, BCa, Fieller's and the delta method this one covers best where tokens are skewed
    (scripts/simulate_intervals.py). Where either mean is zero, the interval runs from zero to infinity.
    """
    first, second = by_question(a, b, clusters)
    check_amounts(first, second)
    n, means = len(first), (_mean(first), _mean(second))
    estimate = _divided(means[1], means[0])
    if n < 2 or not all(means):
        return Interval(estimate, 0.0, math.inf, n, level)
    low, high = log_ratio_bounds(first, second, level, resamples, seed)
    return Interval(estimate, math.exp(low), math.exp(high), n, level)


def difference_of_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """mean(b) - mean(a), with a paired bootstrap interval."""
    first, second = by_question(a, b, clusters)
    n, difference = len(first), second - first
    if n < 2:
        return Interval(_mean(difference), -math.inf, math.inf, n, level)
    low, high = mean_bounds(difference, level, resamples, seed)
    return Interval(_mean(difference), low, high, n, level)


def geometric_mean_ratio(
    a: ArrayLike,
    b: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Geometric mean of b / a over the questions, with a bootstrap interval of its logarithm.

    A pair with a zero in it has no such ratio and is left out; `n` counts the questions that stay.
    """
    first, second, labels = paired_columns(a, b, clusters)
    check_amounts(first, second)
    there = (first > 0) & (second > 0)
    logs = np.log(second[there]) - np.log(first[there])
    (logs,) = averaged(labels[there] if labels is not None else None, logs)
    if len(logs) < 2:
        return Interval(math.exp(_mean(logs)), 0.0, math.inf, len(logs), level)
    low, high = mean_bounds(logs, level, resamples, seed)
    return Interval(math.exp(_mean(logs)), math.exp(low), math.exp(high), len(logs), level)


def difference_of_proportions(
    a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """Share of b minus share of a, of paired yes-or-no values, with Tango's score interval.

    Tango 1998, Statistics in Medicine 17. With trials the pairs count as many as they are worth by
    their design effect (Rao and Scott 1992, Biometrics 48), with Student's quantile.
    """
    from rewoo_bench.tango import score_interval

    only_a, only_b, worth, n = _discordant(a, b, clusters)
    if n == 0:
        return Interval(math.nan, -1.0, 1.0, 0, level)
    quantile = student(n, level) if clusters is not None and n > 1 else _normal((1 + level) / 2)
    low, high = score_interval(only_b * worth, only_a * worth, worth, quantile)
    return Interval(only_b - only_a, low, high, n, level)


def mcnemar_exact(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> McNemar:
    """The exact McNemar test: are there as many pairs that only a got right as only b did?

    With trials the differences of whole questions change sign together; with one trial each that is
    McNemar's test. Exact too.
    """
    first, second, labels = paired_columns(a, b, clusters)
    check_yes_or_no(first, second)
    signs = (second - first).astype(np.int64)
    only_a, only_b = int((signs < 0).sum()), int((signs > 0).sum())
    if labels is not None:
        _, position = np.unique(labels, return_inverse=True)
        signs = np.bincount(position, weights=signs, minlength=0).astype(np.int64)
    return McNemar(only_a, only_b, _signs_flipped(signs))


def minimum_detectable_difference(discordant_share: float, n: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest difference of paired shares that n questions show with this power.

    Solves Miettinen's formula (1968, Biometrics 24) for the difference; where it exceeds the share of
    discordant pairs, that share is taken to be the difference. Infinite for less than four questions.
    """
    if not 0 <= discordant_share <= 1:
        raise DataError(f"discordant share {discordant_share!r}: expected a number from 0 to 1")
    error, miss = _normal(1 - alpha / 2), _normal(power)
    if n <= error**2:
        return math.inf
    inside = n + miss**2 - error**2
    found = math.sqrt(discordant_share) * (error * math.sqrt(n) + miss * math.sqrt(inside)) / (n + miss**2)
    if found <= discordant_share and found > 0:
        return found
    root = (math.sqrt(n * inside) - error * miss) / (n + miss**2)  # all discordant pairs on one side
    return 1 - root**2


def wilcoxon(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> float:
    """p of Wilcoxon's signed-rank test; equal pairs say nothing, and where all are equal p is 1.

    Exact for 13 questions, and for 50 where no two differ by as much; else from the normal
    distribution. That is what `scipy.stats.wilcoxon` does, which takes half a second to import.
    """
    first, second = by_question(a, b, clusters)
    differences = second - first
    differences = differences[differences != 0]
    n = len(differences)
    if not n:
        return 1.0
    _, position, ties = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[position]  # ranks from 1, equal ones averaged, times two
    signed = np.where(differences > 0, doubled, -doubled)
    if n <= _EXACT_WITH_TIES or (n <= _EXACT and ties.max() == 1):
        return _signs_flipped(signed)
    variance = (n * (n + 1) * (2 * n + 1) - float((ties.astype(float) ** 3 - ties).sum()) / 2) / 24
    return math.erfc(abs(float(signed.sum())) / 4 / math.sqrt(2 * variance))


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for their number (Holm 1979), in the order given."""
    values = finite("p_values", p_values)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


def effective_pairs(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> float:
    """How many independent pairs the rows are worth: between the number of questions and that of rows."""
    return _discordant(a, b, clusters)[2]


def _discordant(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None) -> tuple[float, float, float, int]:
    """Shares of pairs that only a got right and that only b did, pairs that they are worth, and questions."""
    first, second, labels = paired_columns(a, b, clusters)
    check_yes_or_no(first, second)
    parts = averaged(labels, (first > second).astype(float), (second > first).astype(float))
    n, (only_a, only_b) = len(parts[0]), map(_mean, parts)
    if n < 2 or labels is None:
        return only_a, only_b, float(n), n
    difference = only_b - only_a
    of_pairs = only_a + only_b - difference**2
    of_questions = float((parts[1] - parts[0]).var(ddof=1))
    worth = n * of_pairs / of_questions if of_questions > 0 else float(n)
    return only_a, only_b, min(max(worth, n), len(first)), n


def _signs_flipped(differences: NDArray[np.int64]) -> float:
    """P of a sum as far from zero as this one where every difference may as well have the other sign."""
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    law = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = _fair_coins(count)
        law = _convolved(law, steps)
    farthest = len(law) // 2
    return min(1.0, float(law[np.abs(np.arange(len(law)) - farthest) >= abs(int(differences.sum()))].sum()))


def _fair_coins(n: int) -> Floats:
    """P of 0, 1, …, n heads."""
    from scipy.special import gammaln

    heads = np.arange(n + 1)
    logs: Floats = gammaln(n + 1) - gammaln(heads + 1) - gammaln(n - heads + 1) - n * math.log(2)
    return np.exp(logs)


def _convolved(a: Floats, b: Floats) -> Floats:
    if len(a) * len(b) < _LONG:
        return np.convolve(a, b)
    from scipy.signal import fftconvolve

    convolved: Floats = fftconvolve(a, b)
    return convolved


def _normal(share: float) -> float:
    """The normal distribution's quantile."""
    return NormalDist().inv_cdf(share)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _divided(above: float, below: float) -> float:
    if below:
        return above / below
    return math.inf if above > 0 else math.nan
