"""Intervals and tests on paired columns: one value a question of the one system, one of the other.

    >>> ratio_of_means([4000, 6000, 5000], [2000, 2500, 3000])   # mean(b) / mean(a)
    Interval(estimate=0.5, low=..., high=..., n=3, level=0.95)

Arrays in, numbers out; nothing is read and nothing is drawn. `clusters` has the question of each row where a question
has several trials: they are averaged first, and the question is the observation. An interval of no question, or of
one, holds every possible value. Every function raises `DataError` for a value that is missing or isn't finite.

Means have Student's bounds, with some more of the farthest values than the sample has: where a few questions make most
of the spread (ReAct at its step limit: four times the tokens), another sample has one more of them, or one less, and
Student's interval is too narrow. So the upper bound is that of the values with some weight more on the largest, and
the lower bound that with as much more on the smallest. The weight is 2 / m, at most 1, where m is the number of
questions that make the spread: (sum of d²)² / sum of d⁴, for distances d from the mean; it is n divided by the
kurtosis. So the weight falls as 1 / n, and for many questions the interval is Student's.

Where m is below `FEW`, or n below `FEWEST`, the sample is no guide to its own tail: `rare` is true, "a rare event may
be missing" has to stand beside the interval, and one value more is added farther away than any other: at the end of
the scale where there is one, else `REACH` times the range beyond the values. No interval has zero width.

A tail that none of n questions shows can't be seen in them: the rule of three (Hanley and Lippman-Hand 1983, JAMA 249)
says that events of up to 3 in n questions may be missing. No interval here allows for these (results/coverage.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.special at its first use: a quarter of a second that an exact gate is spared
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.errors import DataError
from rewoo_bench.runs.rows import averaged, exact_mean

Floats = NDArray[np.float64]
FEW = 3.0  # questions that make the spread
FEWEST = 20  # questions of a sample
WEIGHT = 2.0  # of what is added, if one question makes the spread; chosen for coverage (results/coverage.md)
REACH = 0.75  # of the sample's range
A_RARE_EVENT = "a rare event may be missing"
"""What is said of an interval where few questions make the spread (`Interval.rare`), and its mark."""
RARE = "?"
OF_RARE = f"{RARE} rests on a few questions: {A_RARE_EVENT}"
LEAST = 0.25  # of the mean; the least reach of an amount, or equal values would leave no doubt
LEAST_APART = 0.5  # of the means of two systems; two that are alike in nearly all questions differ by as much in one
_ROUNDED_REACH = 1e-9  # of the least reach: what arithmetic leaves of equal values
_FEW_EVENTS = 3.5  # up to three
_PRECISION = 1e-12  # of a difference of shares


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds; `n` is the number of questions behind it. The estimate of none is NaN."""

    estimate: float
    low: float
    high: float
    n: int
    level: float = 0.95
    rare: bool = False
    """Whether a rare event may be missing: few questions, or few that make the spread."""


def brackets(low: float, high: float, show: Callable[[float], str]) -> str:
    """`[1.95, 3.35]`; `[1.95 or more]` without an upper bound; words where every value is possible."""
    if math.isfinite(low) and math.isfinite(high):
        return f"[{show(low)}, {show(high)}]"
    return f"[{show(low)} or more]" if low > 0 else "[no interval]"


def paired_columns(
    a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None
) -> tuple[Floats, Floats, NDArray[Any] | None]:
    """Both columns as numbers, and the question of each row where one is given. Raises `DataError`."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if len(first) != len(second):
        raise DataError(f"paired columns differ in length: {len(first)} and {len(second)}")
    for name, values in (("a", first), ("b", second)):
        if len(bad := np.flatnonzero(~np.isfinite(values))):
            raise DataError(f"{name}[{bad[0]}] is {values[bad[0]]}: expected finite numbers; leave out pairs with one")
    return first, second, None if clusters is None else np.asarray(clusters)


def by_question(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Floats]:
    """Both columns with one value a question: [1, 3, 5] of the questions 1, 1, 2 are [2, 5]."""
    first, second, labels = paired_columns(a, b, clusters)
    first, second = averaged(labels, first, second)
    return first, second


def student(n: int, level: float) -> float:
    """Student's quantile for the mean of n values: the distance of a bound from the mean, in standard errors."""
    return float(scipy.special.stdtrit(n - 1, (1 + level) / 2))


def makers_of(values: Floats) -> float:
    """How many questions make the spread: 1 if one differs from equal others, n / 3 of normally distributed ones."""
    apart = values - values.mean()
    squares = (apart / np.abs(apart).max()) ** 2
    return float(squares.sum() ** 2 / (squares @ squares))


class _Extended(NamedTuple):
    """Mean and standard error of values with some more at their lower end, and at their upper end."""

    means: tuple[float, float]
    errors: tuple[float, float]
    rare: bool


def _extended(values: Floats, least: float, ends: tuple[float, float] | None = None) -> _Extended:
    """Of two values or more; `ends` are those of their scale, else `least` is the least reach beyond them.

    Where the values are equal and neither is known, a mean may be anything.
    """
    n, low, high = len(values), float(values.min()), float(values.max())
    spread = high - low
    makers = makers_of(values) if spread > _ROUNDED_REACH * (ends[1] - ends[0] if ends else least) else 0.0
    rare = makers < FEW or n < FEWEST
    if rare:
        reach = max(REACH * spread, least) or math.inf
        low, high = ends or (low - reach, high + reach)
    if math.isinf(high):
        return _Extended((-math.inf, math.inf), (0.0, 0.0), rare)
    weight = 1.0 if rare else min(1.0, WEIGHT / makers)
    more, mean, squares = n + weight, exact_mean(values), n * float(values.var())
    moved = [weight * (end - mean) / more for end in (low, high)]
    below, above = (
        math.sqrt(max(squares + weight * (end - mean) ** 2 - more * by**2, 0.0) / (more - 1) / more)
        for end, by in zip((low, high), moved, strict=True)
    )
    return _Extended((mean + moved[0], mean + moved[1]), (below, above), rare)


def _of_mean(
    values: Floats, level: float, least: float, ends: tuple[float, float] | None = None, null: float = 0.0
) -> tuple[Interval, float]:
    """The mean of two values or more, and p of "it is `null`": below 1 - level where the interval leaves that out."""
    n, (means, errors, rare) = len(values), _extended(values, least, ends)
    t, distance = student(n, level), max(means[0] - null, null - means[1])
    error = errors[0] if null < means[0] else errors[1]
    p = 1.0 if distance <= 0 else 2 * float(scipy.special.stdtr(n - 1, -distance / error)) if error else 0.0
    return Interval(exact_mean(values), means[0] - t * errors[0], means[1] + t * errors[1], n, level, rare), p


def mean_of(
    values: ArrayLike,
    *,
    ends: tuple[float, float] | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """The mean; `ends` are those of a scale, as 0 and 1 of F1.

    Without them values that are never negative are amounts, and so is their mean.
    """
    column, _ = by_question(values, values, clusters)
    lowest, highest = ends or (-math.inf if (column < 0).any() else 0.0, math.inf)
    if len(column) < 2:
        return Interval(exact_mean(column), lowest, highest, len(column), level)
    found, _ = _of_mean(column, level, LEAST * abs(exact_mean(column)), ends)
    return Interval(found.estimate, max(found.low, lowest), min(found.high, highest), found.n, level, found.rare)


def difference_of_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    ends: tuple[float, float] | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """mean(b) - mean(a), paired; `ends` are those of a scale, as of F1."""
    return difference_and_p(a, b, ends, clusters, level)[0]


def difference_and_p(
    a: ArrayLike, b: ArrayLike, ends: tuple[float, float] | None, clusters: ArrayLike | None, level: float = 0.95
) -> tuple[Interval, float]:
    """`difference_of_means`, and p of "the means are equal": below 0.05 exactly where the 95% interval leaves 0 out."""
    first, second = by_question(a, b, clusters)
    n, difference = len(first), second - first
    widest = math.inf if ends is None else ends[1] - ends[0]
    if n < 2:
        return Interval(exact_mean(difference), -widest, widest, n, level), 1.0
    least = LEAST * max(abs(exact_mean(first)), abs(exact_mean(second)))
    found, p = _of_mean(difference, level, least, None if ends is None else (-widest, widest))
    return Interval(found.estimate, max(found.low, -widest), min(found.high, widest), n, level, found.rare), p


def ratio_of_means(a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """mean(b) / mean(a), with an interval on the logarithm (delta method).

    Where either mean is zero, the interval runs from zero to infinity.
    """
    return ratio_and_p(a, b, clusters, level)[0]


def ratio_and_p(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None, level: float = 0.95) -> tuple[Interval, float]:
    """`ratio_of_means`, and p of "the means are equal": below 0.05 exactly where the 95% interval leaves 1 out."""
    first, second = by_question(a, b, clusters)
    n = len(first)
    if n < 2 or not first.any() or not second.any():
        above, below = math.fsum(second), math.fsum(first)
        estimate = above / below if below else math.inf if above else math.nan
        return Interval(estimate, 0.0, math.inf, n, level), 1.0
    below, above = exact_mean(first), exact_mean(second)
    estimate = above / below
    found, p = _of_mean(second / above - first / below, level, LEAST_APART, null=-math.log(estimate))
    low, high = estimate * math.exp(found.low), estimate * math.exp(found.high)
    return Interval(estimate, low, high, n, level, found.rare), p


def proportion(values: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """The share of ones among zeros and ones, with Wilson's score interval, wider where few succeed or few fail.

    Wilson 1927, Journal of the American Statistical Association 22. Of few events it holds the truth as seldom as 84
    times in 100. The bound near 0 or 1 is then Poisson's (Brown, Cai and DasGupta 2001, Statistical Science 16,
    section 4.1.1): never fewer than 92.6 times for 20 questions or more. With trials the rows count by their design
    effect (Rao and Scott 1992, Biometrics 48), with Student's quantile, since the effect is estimated. No trial makes a
    question worth less than one row, so the interval is never wider than that of one row a question (`_narrower`).
    """
    column, _, labels = paired_columns(values, values, clusters)
    (means,) = averaged(labels, column)
    if not len(means):
        return Interval(math.nan, 0.0, 1.0, 0, level)
    share, n = exact_mean(means), len(means)

    def bounds(worth: float, quantile: float) -> tuple[float, float]:
        whole = worth + quantile**2
        centre = (worth * share + quantile**2 / 2) / whole
        half = quantile * math.sqrt(worth * share * (1 - share) + quantile**2 / 4) / whole
        parts = np.array([share, 1 - share])
        is_rare = (parts < 0.5) & (parts * worth <= _FEW_EVENTS)
        few = np.where(is_rare, scipy.special.gammaincinv(parts * worth, 1 - level) / worth, 1.0)
        low = min(centre - half, float(few[0])) if share > 0 else 0.0
        return low, max(centre + half, 1 - float(few[1])) if share < 1 else 1.0

    worth = rows_worth(share * (1 - share), means, len(column)) if 1 < n < len(column) else None
    return Interval(share, *_narrower(bounds, n, worth, level), n, level)


def _narrower(
    bounds: Callable[[float, float], tuple[float, float]], n: int, worth: float | None, level: float
) -> tuple[float, float]:
    """The bounds of n questions, or the inner ones of these and of those of what their trials are worth together.

    `bounds` takes a number of rows and a quantile. The first hold whatever the trials do: a question's mean of scores
    from 0 to 1 varies no more than one score. So more trials never make an interval wider.
    """
    low, high = bounds(float(n), NormalDist().inv_cdf((1 + level) / 2))
    if worth is None:
        return low, high
    low_of_trials, high_of_trials = bounds(worth, student(n, level))
    return max(low, low_of_trials), min(high, high_of_trials)


class Discordant(NamedTuple):
    """Shares of pairs that only one of two systems got right, and how many independent pairs the rows are worth."""

    only_a: float
    only_b: float
    worth: float
    """Between the number of questions and that of rows."""
    questions: int


def discordant(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> Discordant:
    """The discordant pairs of two columns of zeros and ones; shares are NaN where there is no question."""
    first, second, labels = paired_columns(a, b, clusters)
    parts = averaged(labels, (first > second).astype(float), (second > first).astype(float))
    n, (only_a, only_b) = len(parts[0]), map(exact_mean, parts)
    if n < 2 or labels is None:
        return Discordant(only_a, only_b, float(n), n)
    of_pairs = only_a + only_b - (only_b - only_a) ** 2
    return Discordant(only_a, only_b, rows_worth(of_pairs, parts[1] - parts[0], len(first), (-1.0, 1.0)), n)


def difference_of_proportions(
    a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """Share of b minus share of a, of paired yes-or-no values, with Tango's score interval.

    Tango 1998, Statistics in Medicine 17, 891-908: a difference is in the interval where the score test, with the
    share of discordant pairs that fits it best, doesn't refute it. With trials the pairs count by their design effect
    (Rao and Scott 1992, Biometrics 48), with Student's quantile, and never wider than of a pair each (`_narrower`).
    """
    only_a, only_b, worth, questions = discordant(a, b, clusters)
    if not questions:
        return Interval(math.nan, -1.0, 1.0, 0, level)

    def bounds(n: float, quantile: float) -> tuple[float, float]:
        ends = []
        for more, less in ((only_a * n, only_b * n), (only_b * n, only_a * n)):
            estimate = (more - less) / n
            # At the estimate itself a difference is zero where no pair is discordant, which is no bound.
            low, high = estimate + _PRECISION, 1.0
            while high - low > _PRECISION:  # halved: scipy.optimize would take longer to import than all of it
                middle = (low + high) / 2
                error = math.sqrt(n * variance_at(less, more, n, -middle))
                low, high = (low, middle) if n * (middle - estimate) - quantile * error > 0 else (middle, high)
            ends.append(high)
        return -ends[0], ends[1]

    is_clustered = clusters is not None and questions > 1
    found = _narrower(bounds, questions, worth if is_clustered else None, level)
    return Interval(only_b - only_a, *found, questions, level)


def variance_at(more: float, less: float, n: float, null: float) -> float:
    """Of one pair's difference, with the likeliest shares of discordant pairs if the difference is `null` (Tango).

    `more` and `less` are the discordant pairs of either kind, of n: counts, which may be fractions, or shares.
    """
    middle = (2 * n - less + more) * -null - less - more
    last = more * null * (1 + null)
    share = (math.sqrt(max(0.0, middle**2 - 8 * n * last)) - middle) / (4 * n)
    return max(0.0, 2 * share - null * (1 + null))


def rows_worth(variance: float, of_questions: Floats, rows: int, ends: tuple[float, float] = (0.0, 1.0)) -> float:
    """How many independent rows have a mean as sure as this one: from the number of questions to that of rows.

    `variance` is that of one row, `of_questions` has the means of the questions. Few questions with a rare event don't
    show how much its trials agree: some weight is added on a question in which all trials have it (`ends`).
    """
    n, between, mean = len(of_questions), float(of_questions.var()), float(of_questions.mean())
    if not between:
        return n
    more = min(1.0, WEIGHT / makers_of(of_questions))
    squares = more * max(abs(end - mean) for end in ends) ** 2 * n / (n + more)
    of_row, of_question = (n * variance + squares) / (n + more), (n * between + squares) / (n + more - 1)
    return min(max(n * of_row / of_question, n), rows)


def quantile_interval(values: ArrayLike, share: float, *, clusters: ArrayLike | None = None) -> Interval:
    """The quantile of all rows, with a distribution-free interval: two of the values themselves, by binomial ranks.

    How many of n values lie below the true quantile is binomial, whatever their distribution is (Conover 1999,
    Practical Nonparametric Statistics, 3.2). With few values no rank is high enough: a 95% interval of the 95th
    percentile needs 72 values, one of the median 6. The bound is then infinite; print nothing. With trials the rows
    count by their design effect: that of the share of a question's rows at or below the quantile (Woodruff 1952,
    Journal of the American Statistical Association 47).

    `n` counts the questions. Raises `DataError` for a value that isn't finite, and for a share that isn't between 0
    and 1.
    """
    if not 0 < share < 1:
        raise DataError(f"quantile {share!r}: expected a number between 0 and 1")
    column, _, labels = paired_columns(values, values, clusters)
    if not len(column):
        return Interval(math.nan, -math.inf, math.inf, 0)
    estimate = float(np.quantile(column, share))
    (below,) = averaged(labels, (column <= estimate).astype(float))
    n = len(below)
    worth = n if n < 2 else math.floor(rows_worth(share * (1 - share), below, len(column)))
    at_most = scipy.special.bdtr(np.arange(worth, dtype=float), worth, share)  # chance of at most 0, 1, … below
    tail = (1 - 0.95) / 2
    first = int(np.searchsorted(at_most, tail, side="right"))  # ranks, from 1
    last = int(np.searchsorted(at_most, 1 - tail, side="left")) + 1
    ordered, rows = np.sort(column), len(column)
    low = ordered[math.floor((first - 1) * rows / worth)] if first >= 1 else -math.inf
    high = ordered[math.ceil(last * rows / worth) - 1] if last <= worth else math.inf
    return Interval(estimate, float(low), float(high), n)
