"""What a solved question costs: the sum of tokens or dollars over the number of questions that were solved.

    >>> per_solved([900, 1100, 2000, 4000], [1, 1, 0, 0])
    Interval(estimate=4000.0, low=..., high=..., n=4, level=0.95)

The ratio is mean(amount) / share, and the share is what makes it unsure: of few solved questions a symmetric interval
of either is too narrow at one end. So the interval is Wilson's score interval of the share (1927) with the amount's
variance, and its covariance with being solved, added: all shares p with

    (share - p)^2 <= z^2 / n * (p (1 - p) - 2 r c p sqrt(p (1 - p)) + c^2 p^2)

where c is the amounts' coefficient of variation and r their correlation with being solved; Fieller's (1954) takes the
variance at the estimate instead. Two systems are compared by the square-and-add of their intervals on the logarithm,
with the correlation of the two estimates (Zou and Donner 2008, Statistics in Medicine 27). Where no question is solved
the ratio is infinite, and an interval has a lower bound alone.

Where few questions make the spread, as where hardly one is solved, a rare event may be missing (mean_bounds.py). Where
either of two systems solved fewer than `LEAST_SOLVED`, their ratio has no interval: often the two solved the same few
questions, and nothing shows how seldom one of them solves what the other doesn't. How often the intervals hold the
truth is in results/coverage.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rewoo_bench.analysis.stats.bootstrap import FEW, FEWEST, LARGE, makers_of, resampled_means, student
from rewoo_bench.analysis.stats.columns import Floats, by_question, check_amounts, check_yes_or_no, paired_columns
from rewoo_bench.analysis.stats.paired import Interval, rows_worth

LEAST_SOLVED = 15
"""Questions that each of two systems has to solve for an interval of their ratio; chosen in results/coverage.md."""
_NEAR = 1e-9  # beside the estimate, where the inequality holds even if neither amounts nor shares vary
_HALVINGS = 60  # scipy.optimize takes a fifth of a second to import


def per_solved(
    amounts: ArrayLike, solved: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """Amount for each solved question; infinite where none is, and NaN where there is no question."""
    amount, share, design = _questions(amounts, solved, clusters)
    n = len(amount)
    if not n:
        return Interval(math.nan, 0.0, math.inf, 0, level)
    mean, right = float(amount.mean()), float(share.mean())
    estimate = mean / right if right else math.inf
    if n < 2 or not mean:
        return Interval(estimate, 0.0, math.inf, n, level)
    low, high = _shares(amount / mean, share, design, student(n, level))
    rare = bool(right) and _is_rare(_influence(amount, share))
    return Interval(estimate, mean / high, mean / low if low else math.inf, n, level, rare)


def ratio_per_solved(
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    least: int = LEAST_SOLVED,
) -> Interval:
    """What b takes for each solved question over what a takes, of (amounts, solved) of the same questions.

    NaN where neither solved one; without bounds where either solved fewer than `least`.
    """
    first, second = (per_solved(*each, clusters=clusters, level=level) for each in (a, b))
    if not (0 < first.estimate < math.inf and 0 < second.estimate < math.inf):
        unknown = not (math.isfinite(first.estimate) or math.isfinite(second.estimate)) or not first.n
        estimate = math.nan if unknown or not first.estimate else second.estimate / first.estimate
        return Interval(estimate, 0.0, math.inf, first.n, level)
    questions = [_questions(*each, clusters)[:2] for each in (a, b)]
    estimate = second.estimate / first.estimate
    if min(share.sum() for _, share in questions) < least:
        return Interval(estimate, 0.0, math.inf, first.n, level)
    parts = [_influence(*each) for each in questions]
    spread = [float(part.std()) for part in parts]
    together = float((parts[0] * parts[1]).mean()) / (spread[0] * spread[1]) if all(spread) else 0.0
    (down_a, up_a), (down_b, up_b) = (
        (math.log(each.estimate) - _log(each.low), _log(each.high) - math.log(each.estimate))
        for each in (first, second)
    )
    low, high = _added(down_b, up_a, together), _added(up_b, down_a, together)
    rare = _is_rare(parts[1] - parts[0])
    return Interval(estimate, estimate * math.exp(-low), estimate * math.exp(high), first.n, level, rare)


def _questions(amounts: ArrayLike, solved: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Floats, float]:
    """Amounts and shares solved of each question, and the variance of a share in variances of one row."""
    amount, right, _ = paired_columns(amounts, solved, clusters)
    check_amounts(amount)
    check_yes_or_no(right)
    of_amount, of_right = by_question(amounts, solved, clusters)
    if len(of_right) in (len(right), 1):
        return of_amount, of_right, 1.0
    share = float(of_right.mean())
    return of_amount, of_right, len(of_right) / rows_worth(share * (1 - share), of_right, len(right))


def _shares(amount: Floats, share: Floats, design: float, quantile: float) -> tuple[float, float]:
    """The bounds of the share, in whose place `mean(amount) / bound` are those of the ratio; mean(amount) is 1."""
    n, right, varies = len(amount), float(share.mean()), float(amount.std())
    spread = float(share.std())
    r = float(((amount - 1) * (share - right)).mean()) / (varies * spread) if varies and spread else 0.0

    def outside(p: float) -> float:
        of_share = math.sqrt(max(p * (1 - p), 0.0) * design)
        return (right - p) ** 2 - quantile**2 / n * (of_share**2 - 2 * r * varies * p * of_share + (varies * p) ** 2)

    def bound(near: float, far: float) -> float:
        for _ in range(_HALVINGS if outside(near) < 0 else 0):
            middle = (near + far) / 2
            near, far = (middle, far) if outside(middle) < 0 else (near, middle)
        return near

    room = 1 - varies * quantile / math.sqrt(n)
    return bound(right * (1 - _NEAR), 0.0), bound(right + _NEAR, (1 + 2 * _NEAR) / room) if room > 0 else math.inf


def _influence(amount: Floats, share: Floats) -> Floats:
    """How far each question moves the logarithm of the ratio (delta method); their mean is 0."""
    moved: Floats = amount / amount.mean() - share / share.mean()
    return moved


def _is_rare(moved: Floats) -> bool:
    """Whether a rare event may be missing; not where every question moves the ratio alike."""
    return len(moved) < FEWEST or (float(np.ptp(moved)) > _NEAR and makers_of(moved) < FEW)


def _added(one: float, other: float, together: float) -> float:
    """The distance of a bound of a difference, from those of its two parts and their correlation."""
    if math.isinf(one) or math.isinf(other):
        return math.inf
    return math.sqrt(max(one**2 + other**2 - 2 * together * one * other, 0.0))


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf


# How tokens grow with steps: a polynomial fitted by least squares, with intervals of its terms.
#
#     curvature([1, 2, 3, 4], [10, 13, 18, 25])     # 7 + 2 k + k²
#     Interval(estimate=0.4, low=…, high=…, n=4, level=0.95)
#
# The paper's formula for ReAct has a linear and a quadratic term, so its slope on log-log axes is between 1 and 2
# everywhere. The quadratic term distinguishes the two formulas.
#
# Intervals: questions are drawn again, with replacement, and the fit is made anew (the pairs bootstrap;
# Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 9); percentiles, widened
# for small samples. Of 500 simulated sets of 16 and of 60 questions they held the truth in 93 to 98%.


_RESAMPLES, _RESAMPLES_OF_MANY = 10_000, 1_000
_NO_FIT = 1e-9  # determinant of the moments, steps scaled to 0..1; below, the steps drawn are too few different ones


def curvature(steps: ArrayLike, amounts: ArrayLike, *, level: float = 0.95, seed: int = 0) -> Interval:
    """The quadratic term's share of the growth from the fewest steps to the most: 0 of a line, 1 of a parabola.

    Parabola means one that starts level; negative is growth that slows down. Needs three different
    numbers of steps; with fewer the estimate is NaN.
    """
    return _fitted(steps, amounts, 2, lambda terms: terms[:, 2] / (terms[:, 1] + terms[:, 2]), level, seed)


def trend(steps: ArrayLike, values: ArrayLike, *, level: float = 0.95, seed: int = 0) -> Interval:
    """By how much the value changes with one step more. Needs two different numbers of steps."""
    span = float(np.ptp(np.asarray(steps, dtype=np.float64))) if np.size(steps) else 0.0
    return _fitted(steps, values, 1, lambda terms: terms[:, 1] / span, level, seed)


def _fitted(
    steps: ArrayLike, values: ArrayLike, degree: int, read: Callable[[Floats], Floats], level: float, seed: int
) -> Interval:
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    n = len(x)
    if len(np.unique(x)) <= degree:
        return Interval(math.nan, -math.inf, math.inf, n, level)
    u = (x - x.min()) / np.ptp(x)
    scale = float(np.abs(y).max()) or 1.0
    powers = np.column_stack([*(u**power for power in range(2 * degree + 1))])
    moments = np.column_stack([powers, *(u**power * y / scale for power in range(degree + 1))])
    estimate = read(_solved(moments.mean(axis=0)[None, :], degree) * scale)
    drawn = resampled_means(moments, _RESAMPLES if n <= LARGE else _RESAMPLES_OF_MANY, seed)
    resampled = read(_solved(drawn, degree) * scale)
    tail = _tail(n - degree, level)
    low, high = np.quantile(resampled, [tail, 1 - tail]) if len(resampled) else (-math.inf, math.inf)
    return Interval(float(estimate[0]), float(low), float(high), n, level)


def _tail(n: int, level: float) -> float:
    """The percentile to read, widened for small samples (Hesterberg 2015, The American Statistician 69)."""
    from scipy.special import ndtr

    return float(ndtr(-math.sqrt(n / (n - 1)) * student(n, level))) if n > 1 else 0.0


def _solved(moments: Floats, degree: int) -> Floats:
    """Coefficients of each row of moments, from the constant up; rows without a fit are left out."""
    size = degree + 1
    left = np.stack([moments[:, row : row + size] for row in range(size)], axis=1)
    right = moments[:, 2 * degree + 1 :]
    there = np.abs(np.linalg.det(left)) > _NO_FIT
    solved: Floats = np.linalg.solve(left[there], right[there][..., None])[..., 0]
    return solved
