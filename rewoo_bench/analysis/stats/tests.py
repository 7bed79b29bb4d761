"""Tests on paired columns: the exact McNemar test, and Holm's adjustment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.analysis.stats.columns import check_yes_or_no, finite, paired_columns

# The exact law of a sum of differences that may each as well have the other sign.
#
#     signs_flipped(np.array([3, -1, 2]))  ->  0.5
#
# It is behind McNemar's test, where a question has several trials.


Floats = NDArray[np.float64]
_LONG = 1 << 24  # multiplications, above which a convolution by Fourier's transform is faster


def signs_flipped(differences: NDArray[np.int64]) -> float:
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


@dataclass(frozen=True, slots=True)
class McNemar:
    """Pairs that only the one system got right, that only the other did, and the exact two-sided p."""

    only_a: int
    only_b: int
    p: float


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


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for their number (Holm 1979), in the order given."""
    values = finite("p_values", p_values)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


# Tango's score interval for a difference of paired shares.
#
# Tango 1998, Statistics in Medicine 17, 891-908: a difference is in the interval where the score test,
# with the share of discordant pairs that fits it best, doesn't refute it. Counts may be fractions.


_PRECISION = 1e-12


def score_interval(more: float, less: float, n: float, quantile: float) -> tuple[float, float]:
    """Bounds of (more - less) / n; `more` and `less` are the discordant pairs of either kind."""
    return -_upper(less, more, n, quantile), _upper(more, less, n, quantile)


def _upper(more: float, less: float, n: float, quantile: float) -> float:
    estimate = (more - less) / n

    def beyond(difference: float) -> float:
        return n * (difference - estimate) - quantile * math.sqrt(n * _variance(more, less, n, difference))

    # At the estimate itself a difference is zero where no pair is discordant, which is no bound.
    low, high = estimate + _PRECISION, 1.0
    while high - low > _PRECISION:  # halved: scipy.optimize would take longer to import than all of a comparison
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) > 0 else (middle, high)
    return high


def _variance(more: float, less: float, n: float, difference: float) -> float:
    """Of one pair's difference, with the likeliest shares of discordant pairs that differ by `difference`."""
    middle = (2 * n - more + less) * difference - more - less
    last = -less * difference * (1 - difference)
    share = (math.sqrt(max(0.0, middle**2 - 8 * n * last)) - middle) / (4 * n)
    return max(0.0, 2 * share + difference * (1 - difference))


def score(more: float, less: float, n: float, null: float) -> float:
    """The score statistic of the test that the difference is `null`: how many standard errors it is above that."""
    distance = (more - less) / n - null
    error = math.sqrt(variance_at(more, less, n, null) / n)
    if error:
        return distance / error
    return math.copysign(math.inf, distance) if distance else 0.0


def variance_at(more: float, less: float, n: float, null: float) -> float:
    """Of one pair's difference, if the truth is `null` and else as near to these counts, or shares, as can be."""
    return _variance(less, more, n, -null)
