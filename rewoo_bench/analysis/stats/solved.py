"""Figures of solved questions: what each costs, and how many are solved in every one of several trials.

    >>> per_solved([900, 1100, 2000, 4000], [1, 1, 0, 0])
    Interval(estimate=4000.0, low=..., high=..., n=4, level=0.95)
    >>> outcomes = by_trials([1, 0, 1, 1], ["q1", "q1", "q2", "q2"])
    >>> pass_hat(outcomes, 2).estimate, flips(outcomes).estimate
    (0.5, 0.5)

What a solved question costs is the sum of tokens or dollars over the number of questions that were solved. The ratio is
mean(amount) / share, and the share is what makes it unsure: of few solved questions a symmetric interval of either is
too narrow at one end. So the interval is Wilson's score interval of the share (1927) with the amount's
variance, and its covariance with being solved, added: all shares p with

    (share - p)^2 <= z^2 / n * (p (1 - p) - 2 r c p sqrt(p (1 - p)) + c^2 p^2)

where c is the amounts' coefficient of variation and r their correlation with being solved; Fieller's (1954) takes the
variance at the estimate instead. Two systems are compared by the square-and-add of their intervals on the logarithm,
with the correlation of the two estimates (Zou and Donner 2008, Statistics in Medicine 27). Where no question is solved
the ratio is infinite, and an interval has a lower bound alone.

Where few questions make the spread, as where hardly one is solved, a rare event may be missing (paired.py). Where
either of two systems solved fewer than `LEAST_SOLVED`, their ratio has no interval: often the two solved the same few
questions, and nothing shows how seldom one of them solves what the other doesn't. How often the intervals hold the
truth is in results/coverage.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.analysis.stats.paired import (
    FEW,
    FEWEST,
    Floats,
    Interval,
    difference_and_p,
    makers_of,
    mean_of,
    paired_columns,
    proportion,
    rows_worth,
    student,
)
from rewoo_bench.runs.rows import averaged, exact_mean

LEAST_SOLVED = 15
"""Questions that each of two systems has to solve for an interval of their ratio; chosen in results/coverage.md."""
_NEAR = 1e-9  # beside the estimate, where the inequality holds even if neither amounts nor shares vary
_HALVINGS = 60  # scipy.optimize takes a fifth of a second to import


def per_solved(amounts: ArrayLike, solved: ArrayLike, *, clusters: ArrayLike | None = None) -> Interval:
    """Amount for each solved question; infinite where none is, and NaN where there is no question."""
    amount, share, design = _questions(amounts, solved, clusters)
    n = len(amount)
    if not n:
        return Interval(math.nan, 0.0, math.inf, 0)
    mean, right = exact_mean(amount), exact_mean(share)
    estimate = mean / right if right else math.inf
    if n < 2 or not mean:
        return Interval(estimate, 0.0, math.inf, n)
    low, high = _shares(amount / mean, share, design, student(n, 0.95))
    rare = bool(right) and _is_rare(amount / mean - share / right)
    return Interval(estimate, mean / high, mean / low if low else math.inf, n, rare=rare)


def ratio_per_solved(
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    *,
    clusters: ArrayLike | None = None,
    least: int = LEAST_SOLVED,
) -> Interval:
    """What b takes for each solved question over what a takes, of (amounts, solved) of the same questions.

    NaN where neither solved one; without bounds where either solved fewer than `least`.
    """
    first, second = (per_solved(*each, clusters=clusters) for each in (a, b))
    if not (0 < first.estimate < math.inf and 0 < second.estimate < math.inf):
        unknown = not (math.isfinite(first.estimate) or math.isfinite(second.estimate)) or not first.n
        estimate = math.nan if unknown or not first.estimate else second.estimate / first.estimate
        return Interval(estimate, 0.0, math.inf, first.n)
    questions = [_questions(*each, clusters)[:2] for each in (a, b)]
    estimate = second.estimate / first.estimate
    if min(share.sum() for _, share in questions) < least:
        return Interval(estimate, 0.0, math.inf, first.n)
    # How far each question moves the logarithm of either ratio (delta method); their mean is 0.
    parts = [amount / amount.mean() - share / share.mean() for amount, share in questions]
    spread = [float(part.std()) for part in parts]
    together = float((parts[0] * parts[1]).mean()) / (spread[0] * spread[1]) if all(spread) else 0.0
    logs = [
        [math.log(value) if value else -math.inf for value in (each.estimate, each.low, each.high)]
        for each in (first, second)
    ]
    (down_a, up_a), (down_b, up_b) = ((middle - low, high - middle) for middle, low, high in logs)
    low, high = (
        math.sqrt(max(one**2 + other**2 - 2 * together * one * other, 0.0))
        if math.isfinite(one) and math.isfinite(other)
        else math.inf
        for one, other in ((down_b, up_a), (up_b, down_a))
    )
    rare = _is_rare(parts[1] - parts[0])
    return Interval(estimate, estimate * math.exp(-low), estimate * math.exp(high), first.n, rare=rare)


def _questions(amounts: ArrayLike, solved: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Floats, float]:
    """Amounts and shares solved of each question, and the variance of a share in variances of one row."""
    amount, right, labels = paired_columns(amounts, solved, clusters)
    of_amount, of_right = averaged(labels, amount, right)
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

    room = 1 - varies * quantile / math.sqrt(n)
    bounds = []
    for near, far in ((right * (1 - _NEAR), 0.0), (right + _NEAR, (1 + 2 * _NEAR) / room if room > 0 else math.inf)):
        for _ in range(_HALVINGS if outside(near) < 0 and math.isfinite(far) else 0):
            middle = (near + far) / 2
            near, far = (middle, far) if outside(middle) < 0 else (near, middle)
        bounds.append(near if math.isfinite(far) else far)
    return bounds[0], bounds[1]


def _is_rare(moved: Floats) -> bool:
    """Whether a rare event may be missing; not where every question moves the ratio alike."""
    return len(moved) < FEWEST or (float(np.ptp(moved)) > _NEAR and makers_of(moved) < FEW)


# How often a question is answered right in all of several trials, and how often its trials differ.
#
# `pass^k` is the probability that k trials of a question are all right: of c right ones among n its unbiased estimate
# is C(c, k) / C(n, k), as in tau-bench (Yao et al. 2024, arXiv 2406.12045). `pass^1` is the accuracy. A question is one
# observation.


class Outcomes(NamedTuple):
    """Of each question: its trials with a score, and how many of them are right."""

    trials: NDArray[np.int64]
    right: NDArray[np.int64]


def by_trials(scores: ArrayLike, questions: ArrayLike) -> Outcomes:
    """The outcomes of rows, in the order of the questions' names; rows without a score (NaN) don't count."""
    values, names = np.asarray(scores, dtype=np.float64), np.asarray(questions)
    known = ~np.isnan(values)
    every, place = np.unique(names, return_inverse=True)
    trials = np.bincount(place[known], minlength=len(every))
    return Outcomes(trials, np.bincount(place[known], weights=values[known], minlength=len(every)).astype(np.int64))


def shares_of_passes(outcomes: Outcomes, k: int) -> NDArray[np.float64]:
    """`pass^k` of each question; NaN where it has fewer than k trials."""
    pairs: Any = zip(outcomes.trials.tolist(), outcomes.right.tolist(), strict=True)
    return np.array([math.comb(right, k) / math.comb(trials, k) if trials >= k else np.nan for trials, right in pairs])


def pass_hat(outcomes: Outcomes, k: int) -> Interval:
    """`pass^k` over the questions with k trials or more, and its interval."""
    shares = shares_of_passes(outcomes, k)
    known = shares[~np.isnan(shares)]
    if np.isin(known, (0, 1)).all():
        return proportion(known)
    return mean_of(known, ends=(0.0, 1.0))


def flips(outcomes: Outcomes) -> Interval:
    """The share of questions, of those with several trials, that some trials answered right and others wrong."""
    several = outcomes.trials > 1
    differ = (outcomes.right > 0) & (outcomes.right < outcomes.trials)
    return proportion(differ[several].astype(float))


def difference_of_passes(a: Outcomes, b: Outcomes, k: int) -> tuple[Interval, float]:
    """`pass^k` of b less that of a, paired by question, and p; both are of the same questions."""
    first, second = shares_of_passes(a, k), shares_of_passes(b, k)
    known = ~np.isnan(first + second)
    return difference_and_p(first[known], second[known], (0.0, 1.0), None)
