"""Intervals and tests on paired columns: one value a question of the one system, one of the other.

    >>> ratio_of_means([4000, 6000, 5000], [2000, 2500, 3000])   # mean(b) / mean(a)
    Interval(estimate=0.5, low=..., high=..., n=3, level=0.95)

Arrays in, numbers out; nothing is read and nothing is drawn. `clusters` has the question of each
row where a question has several trials: they are averaged first, and the question is the observation. An
interval of no question, or of one, holds every possible value.
Every function raises `DataError` for a value that is missing or isn't finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from rewoo_bench.errors import DataError
from rewoo_bench.stats.bootstrap import log_ratio_bounds, student
from rewoo_bench.stats.columns import (
    Floats,
    averaged,
    by_question,
    check_amounts,
    check_yes_or_no,
    finite,
    paired_columns,
)
from rewoo_bench.stats.mean_bounds import LEAST, LEAST_APART, mean_bounds, reaching
from rewoo_bench.stats.sign_flips import signs_flipped

ENOUGH_FOR_TAILS = 50  # questions; intervals of fewer may be too narrow (results/coverage.md)
_EXACT, _EXACT_WITH_TIES = 50, 13  # differences up to which Wilcoxon's test is exact


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
    return Interval(successes / n, *_score_bounds(successes / n, n, _normal((1 + level) / 2)), n, level)


def proportion(values: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """The share of ones among zeros and ones, with Wilson's interval.

    With trials the rows count by their design effect (Rao and Scott 1992,
    Biometrics 48), with Student's quantile; as many as there are questions where all trials agree.
    """
    column, _, labels = paired_columns(values, values, clusters)
    check_yes_or_no(column)
    (means,) = averaged(labels, column)
    n, share = len(means), _mean(means)
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, 0, level)
    if n == len(column) or n < 2:
        return Interval(share, *_score_bounds(share, n, _normal((1 + level) / 2)), n, level)
    worth = rows_worth(share * (1 - share), means, len(column))
    return Interval(share, *_score_bounds(share, worth, student(n, level)), n, level)


def ratio_of_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    unseen_tail: bool = True,
) -> Interval:
    """mean(b) / mean(a), with the interval of mean_bounds.py on the logarithm (delta method).

    It allows for a tail that no question of the sample has reached; see `too_few_for_tails`. Without
    `unseen_tail` it is a studentised bootstrap: for a test of two runs of one system, which have the same
    tail. Where either mean is zero, the interval runs from zero to infinity.
    """
    first, second = by_question(a, b, clusters)
    check_amounts(first, second)
    n, estimate = len(first), _divided(_mean(second), _mean(first))
    if n < 2 or not first.any() or not second.any():
        return Interval(estimate, 0.0, math.inf, n, level)
    if not unseen_tail:
        low, high = log_ratio_bounds(first, second, level)
        return Interval(estimate, math.exp(low), math.exp(high), n, level)
    apart = second / second.mean() - first / first.mean()
    low, high = mean_bounds(apart, *reaching(apart, LEAST_APART), level)
    return Interval(estimate, estimate * math.exp(low), estimate * math.exp(high), n, level)


def too_few_for_tails(interval: Interval) -> bool:
    """Whether the interval may hold the truth less than 90 times in 100, if one question in 100 makes a tail."""
    return interval.n < ENOUGH_FOR_TAILS


def mean_of(
    values: ArrayLike,
    *,
    ends: tuple[float, float] | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """The mean with the interval of mean_bounds.py; `ends` are those of a scale, as 0 and 1 of F1.

    Without them values that are never negative are amounts, and so is their mean.
    """
    column, _ = by_question(values, values, clusters)
    lowest, highest = ends or (-math.inf if (column < 0).any() else 0.0, math.inf)
    n, mean = len(column), _mean(column)
    if n < 2:
        return Interval(mean, lowest, highest, n, level)
    low, high = mean_bounds(column, *(ends or reaching(column, LEAST * abs(mean))), level)
    return Interval(mean, max(low, lowest), min(high, highest), n, level)


def difference_of_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    ends: tuple[float, float] | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """mean(b) - mean(a), paired, with the interval of mean_bounds.py; `ends` are those of a scale, as of F1."""
    first, second = by_question(a, b, clusters)
    n, difference = len(first), second - first
    widest = math.inf if ends is None else ends[1] - ends[0]
    if n < 2:
        return Interval(_mean(difference), -widest, widest, n, level)
    least = LEAST * max(abs(_mean(first)), abs(_mean(second)))
    farthest = reaching(difference, least) if ends is None else (-widest, widest)
    low, high = mean_bounds(difference, *farthest, level)
    return Interval(_mean(difference), max(low, -widest), min(high, widest), n, level)


def geometric_mean_ratio(
    a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None, *, level: float = 0.95
) -> Interval:
    """Geometric mean of b / a over the questions, with the interval of mean_bounds.py on the logarithm.

    A pair with a zero in it has no such ratio and is left out; `n` counts the questions that stay.
    """
    first, second, labels = paired_columns(a, b, clusters)
    check_amounts(first, second)
    there = (first > 0) & (second > 0)
    logs = np.log(second[there]) - np.log(first[there])
    (logs,) = averaged(labels[there] if labels is not None else None, logs)
    if len(logs) < 2:
        return Interval(math.exp(_mean(logs)), 0.0, math.inf, len(logs), level)
    low, high = mean_bounds(logs, *reaching(logs, LEAST, reach=0.0), level)  # logarithms have short tails
    return Interval(math.exp(_mean(logs)), math.exp(low), math.exp(high), len(logs), level)


def difference_of_proportions(
    a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """Share of b minus share of a, of paired yes-or-no values, with Tango's score interval.

    Tango 1998, Statistics in Medicine 17. With trials the pairs count by their design effect
    (Rao and Scott 1992, Biometrics 48), with Student's quantile.
    """
    from rewoo_bench.stats.tango import score_interval

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
    return McNemar(only_a, only_b, signs_flipped(signs))


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
    difference = math.sqrt(discordant_share) * (error * math.sqrt(n) + miss * math.sqrt(inside)) / (n + miss**2)
    if 0 < difference <= discordant_share:
        return difference
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
        return signs_flipped(signed)
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
    of_pairs = only_a + only_b - (only_b - only_a) ** 2
    return only_a, only_b, rows_worth(of_pairs, parts[1] - parts[0], len(first)), n


def _score_bounds(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson 1927, Journal of the American Statistical Association 22."""
    whole = n + quantile**2
    centre = (n * share + quantile**2 / 2) / whole
    half = quantile * math.sqrt(n * share * (1 - share) + quantile**2 / 4) / whole
    return centre - half if share > 0 else 0.0, centre + half if share < 1 else 1.0


def rows_worth(variance: float, of_questions: Floats, rows: int) -> float:
    """How many independent rows have a mean as sure as this one: from the number of questions to that of rows.

    `variance` is that of one row, `of_questions` has the means of the questions.
    """
    n, between = len(of_questions), float(of_questions.var(ddof=1))
    return min(max(n * variance / between, n), rows) if between > 0 else n


def _normal(share: float) -> float:
    """The normal distribution's quantile."""
    return NormalDist().inv_cdf(share)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _divided(above: float, below: float) -> float:
    if below:
        return above / below
    return math.inf if above > 0 else math.nan
