"""Bootstrap bounds of a ratio of means: whole questions are drawn again, with replacement.

    log_ratio_bounds(a, b, 0.95, resamples=10_000, seed=0)  ->  (low, high)

Token counts are skewed, so each resample's distance from the estimate is measured in its own standard
error (studentised; Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 12). No bootstrap
allows for a tail that the sample lacks: for two systems see mean_bounds.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SMALL = 10  # questions; of fewer there are too few different resamples
LARGE = 2_000  # questions; with more, Student's interval is as good and a thousand times faster
_NUMBERS_AT_ONCE = 1 << 20
_NO_SPREAD = 0.1  # of the sample's standard error: a resample with less lacks the values that make the spread


def log_ratio_bounds(a: Floats, b: Floats, level: float, resamples: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """Bounds of log(mean(b) / mean(a)), of two pairs or more, both means positive.

    Student's where there are few questions or many, and where so few differ, or one by so much, that
    resamples without nearly all of the spread reach into the tails.
    """
    n, x = len(a), a / a.mean()
    y = b / b.mean() - x  # zero throughout where b is a multiple of a: then nothing varies
    columns = np.column_stack([x, y, x * x, x * y, y * y])
    error = math.sqrt(float((y * y).mean()) / (n - 1))
    low, high = -student(n, level), student(n, level)
    if error and SMALL <= n <= LARGE:
        scores = _scores(resampled_means(columns, resamples, seed), error, n)
        first, last = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2], method="nearest")
        if np.isfinite([first, last]).all():
            low, high = -float(last), -float(first)
    centre = math.log(b.mean() / a.mean())
    return centre + low * error, centre + high * error


def student(n: int, level: float) -> float:
    """Student's quantile for the mean of n values: the distance of a bound from the mean, in standard errors."""
    from scipy.special import stdtrit  # scipy.stats uses it too, and takes ten times as long to import

    return float(stdtrit(n - 1, (1 + level) / 2))


def _scores(means: Floats, error: float, n: int) -> Floats:
    """How far log((x + y) / x) of each resample is from zero, in its own standard errors (delta method)."""
    x, y, xx, xy, yy = means.T
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (yy * x**2 - 2 * x * y * xy + y**2 * xx) / (x * (x + y)) ** 2
        own = np.sqrt(np.maximum(variance, 0.0) / (n - 1))
        own[own < _NO_SPREAD * error] = 0.0
        scores: Floats = np.log1p(y / x) / own
    known: Floats = scores[~np.isnan(scores)]
    return known


def resampled_means(columns: Floats, resamples: int, seed: int) -> Floats:
    """The columns' means in each resample of their rows: resamples x columns."""
    n = len(columns)
    times = _times_drawn(n, resamples, seed)
    rows = max(1, _NUMBERS_AT_ONCE // n)
    parts = [times[start : start + rows].astype(np.float64) @ columns for start in range(0, resamples, rows)]
    return np.concatenate(parts) / n


@lru_cache(maxsize=1)  # the figures of a pair are about the same number of questions: some 20 MB, drawn once
def _times_drawn(n: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """How often each resample has each row: resamples x rows. (That one has a row 256 times doesn't happen.)"""
    draw = np.random.default_rng(seed)
    times = np.empty((resamples, n), dtype=np.uint8)
    rows = max(1, _NUMBERS_AT_ONCE // n)
    for start in range(0, resamples, rows):
        some = min(rows, resamples - start)
        drawn = draw.integers(n, size=(some, n)) + n * np.arange(some)[:, None]
        times[start : start + some] = np.bincount(drawn.ravel(), minlength=some * n).reshape(some, n)
    return times


def normal_quantile(share: float) -> float:
    """The normal distribution's quantile."""
    return NormalDist().inv_cdf(share)


# Student's bounds of a mean, with some more of the farthest values than the sample has.
#
#     found = MeanBounds.of(values, least=0.5)
#     found.bounds(0.95)      ->  (low, high)
#     found.p(0.0)            ->  p of "the mean is 0": below 0.05 exactly where that interval leaves 0 out
#
# Where a few questions make most of the spread (ReAct at its step limit: four times the tokens), another sample has
# one more of them, or one less, and Student's interval is too narrow. So the upper bound is that of the values with
# some weight more on the largest, and the lower bound that with as much more on the smallest. The weight is 2 / m, at
# most 1, where m is the number of questions that make the spread: (sum of d²)² / sum of d⁴, for distances d from the
# mean; it is n divided by the kurtosis. So the weight falls as 1 / n, and for many questions the interval is
# Student's.
#
# Where m is below `FEW`, or n below `FEWEST`, the sample is no guide to its own tail: `rare` is true, "a rare event may
# be missing" has to stand beside the interval, and one value more is added farther away than any other: at the end of
# the scale where there is one, else `REACH` times the range beyond the values. No interval has zero width.
#
# A tail that none of n questions shows can't be seen in them: the rule of three (Hanley and Lippman-Hand 1983, JAMA
# 249) says that events of up to 3 in n questions may be missing. No interval here allows for these
# (results/coverage.md).


FEW = 3.0  # questions that make the spread
FEWEST = 20  # questions of a sample
WEIGHT = 2.0  # of what is added, if one question makes the spread; chosen for coverage (results/coverage.md)
REACH = 0.75  # of the sample's range
LEAST = 0.25  # of the mean; the least reach of an amount, or equal values would leave no doubt
LEAST_APART = 0.5  # of the means of two systems; two that are alike in nearly all questions differ by as much in one
_ROUNDED_REACH = 1e-9  # of the least reach: what arithmetic leaves of equal values


@dataclass(frozen=True, slots=True)
class MeanBounds:
    """The mean and standard error of the values with the added ones: below, and above."""

    n: int
    means: tuple[float, float]
    errors: tuple[float, float]
    rare: bool
    """Whether a rare event may be missing: of `FEWEST` questions or more, `FEW` have to make the spread."""

    @classmethod
    def of(cls, values: Floats, *, least: float = 0.0, ends: tuple[float, float] | None = None) -> MeanBounds:
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
            return cls(n, (-math.inf, math.inf), (0.0, 0.0), rare)
        below, above = (_with_more(values, end, 1.0 if rare else weight_of(makers)) for end in (low, high))
        return cls(n, (below[0], above[0]), (below[1], above[1]), rare)

    def bounds(self, level: float) -> tuple[float, float]:
        """Lower and upper bound of the mean."""
        t = student(self.n, level)
        return self.means[0] - t * self.errors[0], self.means[1] + t * self.errors[1]

    def p(self, null: float) -> float:
        """The smallest 1 - level at which the interval leaves `null` out; 1 where it lies between the two means."""
        from scipy.special import stdtr

        distance = max(self.means[0] - null, null - self.means[1])
        if distance <= 0:
            return 1.0
        error = self.errors[0] if null < self.means[0] else self.errors[1]
        return 2 * float(stdtr(self.n - 1, -distance / error)) if error else 0.0


def makers_of(values: Floats) -> float:
    """How many questions make the spread: 1 if one differs from equal others, n / 3 of normally distributed ones."""
    apart = values - values.mean()
    squares = (apart / np.abs(apart).max()) ** 2
    return float(squares.sum() ** 2 / (squares @ squares))


def weight_of(makers: float) -> float:
    """The weight of what is added to values whose spread so many questions make."""
    return min(1.0, WEIGHT / makers)


def _with_more(values: Floats, value: float, weight: float) -> tuple[float, float]:
    """Mean and standard error of the values with some weight more at one value."""
    n, mean = len(values) + weight, float(values.mean())
    moved = weight * (value - mean) / n
    squares = len(values) * float(values.var()) + weight * (value - mean) ** 2 - n * moved**2
    return mean + moved, math.sqrt(max(squares, 0.0) / (n - 1) / n)
