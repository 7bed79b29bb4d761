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

import numpy as np
from numpy.typing import ArrayLike

from rewoo_bench.analysis.stats.bootstrap import (
    LEAST,
    LEAST_APART,
    MeanBounds,
    log_ratio_bounds,
    makers_of,
    normal_quantile,
    student,
    weight_of,
)
from rewoo_bench.analysis.stats.columns import (
    Floats,
    averaged,
    by_question,
    check_amounts,
    check_yes_or_no,
    finite,
    paired_columns,
)
from rewoo_bench.errors import DataError

_FEW_EVENTS = 3.5  # up to three


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds; `n` is the number of questions behind it. The estimate of none is NaN."""

    estimate: float
    low: float
    high: float
    n: int
    level: float = 0.95
    rare: bool = False
    """Whether a rare event may be missing: few questions, or few that make the spread (mean_bounds.py)."""


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval for a share, wider where few succeed or few fail (`_score_bounds`)."""
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes of {n}: expected a count from 0 to n")
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, 0, level)
    quantile = normal_quantile((1 + level) / 2)
    return Interval(successes / n, *_score_bounds(successes / n, n, quantile, level), n, level)


def proportion(values: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """The share of ones among zeros and ones, with the interval of `wilson`.

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
        return Interval(share, *_score_bounds(share, n, normal_quantile((1 + level) / 2), level), n, level)
    worth = rows_worth(share * (1 - share), means, len(column))
    return Interval(share, *_score_bounds(share, worth, student(n, level), level), n, level)


def ratio_of_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    unseen_tail: bool = True,
) -> Interval:
    """mean(b) / mean(a), with the interval of mean_bounds.py on the logarithm (delta method).

    `unseen_tail=False` is a studentised bootstrap: for a test of two runs of one system, which have the same tail.
    Where either mean is zero, the interval runs from zero to infinity.
    """
    first, second = by_question(a, b, clusters)
    check_amounts(first, second)
    n, estimate = len(first), _divided(_mean(second), _mean(first))
    if n < 2 or not first.any() or not second.any():
        return Interval(estimate, 0.0, math.inf, n, level)
    if not unseen_tail:
        low, high = log_ratio_bounds(first, second, level)
        return Interval(estimate, math.exp(low), math.exp(high), n, level)
    found = _apart(first, second)
    low, high = found.bounds(level)
    return Interval(estimate, estimate * math.exp(low), estimate * math.exp(high), n, level, found.rare)


def ratio_p(a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None) -> float:
    """p of "the means are equal": below 0.05 exactly where the 95% interval of `ratio_of_means` leaves 1 out."""
    first, second = by_question(a, b, clusters)
    check_amounts(first, second)
    if len(first) < 2 or not first.any() or not second.any():
        return 1.0
    return _apart(first, second).p(-math.log(second.mean() / first.mean()))


def _apart(first: Floats, second: Floats) -> MeanBounds:
    """Bounds of log(mean(b) / mean(a)), from its estimate."""
    return MeanBounds.of(second / second.mean() - first / first.mean(), least=LEAST_APART)


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
    found = MeanBounds.of(column, least=LEAST * abs(mean), ends=ends)
    low, high = found.bounds(level)
    return Interval(mean, max(low, lowest), min(high, highest), n, level, found.rare)


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
    found = _differing(first, second, ends)
    low, high = found.bounds(level)
    return Interval(_mean(difference), max(low, -widest), min(high, widest), n, level, found.rare)


def difference_p(
    a: ArrayLike, b: ArrayLike, *, ends: tuple[float, float] | None = None, clusters: ArrayLike | None = None
) -> float:
    """p of "the means are equal": below 0.05 exactly where the 95% interval of `difference_of_means` leaves 0 out."""
    first, second = by_question(a, b, clusters)
    return _differing(first, second, ends).p(0.0) if len(first) > 1 else 1.0


def _differing(first: Floats, second: Floats, ends: tuple[float, float] | None) -> MeanBounds:
    least = LEAST * max(abs(_mean(first)), abs(_mean(second)))
    widest = None if ends is None else (ends[0] - ends[1], ends[1] - ends[0])
    return MeanBounds.of(second - first, least=least, ends=widest)


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
    found = MeanBounds.of(logs, least=LEAST)
    low, high = found.bounds(level)
    return Interval(math.exp(_mean(logs)), math.exp(low), math.exp(high), len(logs), level, found.rare)


def difference_of_proportions(
    a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """Share of b minus share of a, of paired yes-or-no values, with Tango's score interval.

    Tango 1998, Statistics in Medicine 17. With trials the pairs count by their design effect
    (Rao and Scott 1992, Biometrics 48), with Student's quantile.
    """
    from rewoo_bench.analysis.stats.tests import score_interval

    only_a, only_b, worth, n = _discordant(a, b, clusters)
    if n == 0:
        return Interval(math.nan, -1.0, 1.0, 0, level)
    quantile = student(n, level) if clusters is not None and n > 1 else normal_quantile((1 + level) / 2)
    low, high = score_interval(only_b * worth, only_a * worth, worth, quantile)
    return Interval(only_b - only_a, low, high, n, level)


def not_worse_p(a: ArrayLike, b: ArrayLike, margin: float, *, clusters: ArrayLike | None = None) -> float:
    """Twice the one-sided p of "b's share is below that of a by `margin` or more" (non-inferiority), at most 1.

    Tango's score test, as in `difference_of_proportions`: p is below 0.05 where that interval's lower bound is above
    `-margin`. 1 where there is no question.
    """
    from scipy.special import ndtr, stdtr

    from rewoo_bench.analysis.stats.tests import score

    only_a, only_b, worth, n = _discordant(a, b, clusters)
    if n == 0:
        return 1.0
    distance = score(only_b * worth, only_a * worth, worth, -margin)
    below = stdtr(n - 1, -distance) if clusters is not None and n > 1 else ndtr(-distance)
    return min(1.0, 2 * float(below))


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
    return only_a, only_b, rows_worth(of_pairs, parts[1] - parts[0], len(first), (-1.0, 1.0)), n


def _score_bounds(share: float, n: float, quantile: float, level: float) -> tuple[float, float]:
    """Wilson 1927, Journal of the American Statistical Association 22.

    Of few events it holds the truth as seldom as 84 times in 100. The bound near 0 or 1 is then Poisson's (Brown, Cai
    and DasGupta 2001, Statistical Science 16, section 4.1.1): never fewer than 92.6 times for 20 questions or more.
    """
    whole = n + quantile**2
    centre = (n * share + quantile**2 / 2) / whole
    half = quantile * math.sqrt(n * share * (1 - share) + quantile**2 / 4) / whole
    low = min(centre - half, _least(share, n, level)) if share > 0 else 0.0
    return low, max(centre + half, 1 - _least(1 - share, n, level)) if share < 1 else 1.0


def _least(share: float, n: float, level: float) -> float:
    """Poisson's lower bound of the share of a rare event; 1 where it isn't rare."""
    from scipy.special import gammaincinv

    is_rare = share < 0.5 and share * n <= _FEW_EVENTS
    return float(gammaincinv(share * n, 1 - level)) / n if is_rare else 1.0


def rows_worth(variance: float, of_questions: Floats, rows: int, ends: tuple[float, float] = (0.0, 1.0)) -> float:
    """How many independent rows have a mean as sure as this one: from the number of questions to that of rows.

    `variance` is that of one row, `of_questions` has the means of the questions. Few questions with a rare event don't
    show how much its trials agree: some weight is added on a question in which all trials have it (`ends`,
    mean_bounds.py).
    """
    n, between, mean = len(of_questions), float(of_questions.var()), float(of_questions.mean())
    if not between:
        return n
    more = weight_of(makers_of(of_questions))
    squares = more * max(abs(end - mean) for end in ends) ** 2 * n / (n + more)
    of_row, of_question = (n * variance + squares) / (n + more), (n * between + squares) / (n + more - 1)
    return min(max(n * of_row / of_question, n), rows)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _divided(above: float, below: float) -> float:
    if below:
        return above / below
    return math.inf if above > 0 else math.nan


# A quantile with a distribution-free interval: two of the values themselves, by binomial ranks.
#
#     quantile_interval(seconds, 0.95)  ->  Interval(estimate=9.1, low=7.4, high=12.8, n=100, level=0.95)
#
# How many of n values lie below the true quantile is binomial, whatever their distribution is (Conover 1999,
# Practical Nonparametric Statistics, 3.2). With few values no rank is high enough: a 95% interval of the
# 95th percentile needs 72 values, one of the median 6. The bound is then infinite; print nothing.


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


# Averages over several data sets: each is a stratum of its own, and its questions are independent of the others'.
#
#     ratio_of_summed_means([(react_1, rewoo_1, None), (react_2, rewoo_2, None)])     # sum of means b / sum of means a
#     mean_of_differences([Interval(0.02, -0.03, 0.07, 300), Interval(0.07, 0.03, 0.11, 1000)])
#
# Every data set counts alike, whatever its number of questions. `n` is the number of questions of all.


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
