"""How often a question is answered right in all of several trials, and how often its trials differ.

    >>> outcomes = by_trials([1, 0, 1, 1], ["q1", "q1", "q2", "q2"])
    >>> pass_hat(outcomes, 2).estimate, flips(outcomes).estimate
    (0.5, 0.5)

`pass^k` is the probability that k trials of a question are all right: of c right ones among n its unbiased estimate is
C(c, k) / C(n, k), as in tau-bench (Yao et al. 2024, arXiv 2406.12045). `pass^1` is the accuracy. A question is one
observation.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.analysis.stats.paired import Interval, difference_and_p, mean_of, proportion


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
    return np.array([comb(right, k) / comb(trials, k) if trials >= k else np.nan for trials, right in pairs])


def pass_hat(outcomes: Outcomes, k: int, level: float = 0.95) -> Interval:
    """`pass^k` over the questions with k trials or more, and its interval."""
    shares = shares_of_passes(outcomes, k)
    known = shares[~np.isnan(shares)]
    if np.isin(known, (0, 1)).all():
        return proportion(known, level=level)
    return mean_of(known, ends=(0.0, 1.0), level=level)


def flips(outcomes: Outcomes, level: float = 0.95) -> Interval:
    """The share of questions, of those with several trials, that some trials answered right and others wrong."""
    several = outcomes.trials > 1
    differ = (outcomes.right > 0) & (outcomes.right < outcomes.trials)
    return proportion(differ[several].astype(float), level=level)


def difference_of_passes(a: Outcomes, b: Outcomes, k: int) -> tuple[Interval, float]:
    """`pass^k` of b less that of a, paired by question, and p; both are of the same questions."""
    first, second = shares_of_passes(a, k), shares_of_passes(b, k)
    known = ~np.isnan(first + second)
    return difference_and_p(first[known], second[known], (0.0, 1.0), None)
