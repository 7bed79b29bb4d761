"""The studentised bootstrap of one figure of a sample: whole questions are drawn again, with replacement.

    mean_bounds(values, 0.95, resamples=10_000, seed=0)  ->  (low, high)

Each resample's distance from the estimate is measured in its own standard error, which answers for
skewness and small samples where percentiles don't (Efron and Tibshirani 1993, An Introduction to the
Bootstrap, chapter 12).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Means of some columns (a row a sample) -> the figure of each sample, and its variance times the sample's size.
Figure = Callable[[Floats], tuple[Floats, Floats]]

SMALL = 10  # questions; resamples of fewer are too much alike
LARGE = 2_000  # questions; with more, Student's interval is as good and a thousand times faster
_NUMBERS_AT_ONCE = 1 << 20


def mean_bounds(values: Floats, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Bounds of the mean of two values or more."""
    centre = float(values.mean())
    rest = values - centre
    low, high = _distances(np.column_stack([rest, rest**2]), _mean, level, resamples, seed)
    return centre + low, centre + high


def log_ratio_bounds(a: Floats, b: Floats, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Bounds of log(mean(b) / mean(a)), of two pairs or more, both means positive."""
    x = a / a.mean()
    y = b / b.mean() - x  # zero throughout where b is a multiple of a: then nothing varies
    low, high = _distances(np.column_stack([x, y, x * x, x * y, y * y]), _log_ratio, level, resamples, seed)
    centre = math.log(b.mean() / a.mean())
    return centre + low, centre + high


def _mean(means: Floats) -> tuple[Floats, Floats]:
    rest, square = means.T
    return rest, square - rest**2


def _log_ratio(means: Floats) -> tuple[Floats, Floats]:
    """The logarithm of (x + y) / x, and its variance by the delta method."""
    x, y, xx, xy, yy = means.T
    return np.log1p(y / x), (yy * x**2 - 2 * x * y * xy + y**2 * xx) / (x * (x + y)) ** 2


def _distances(columns: Floats, figure: Figure, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """How far the bounds are from the estimate.

    Student's where there are few questions or many, and where so few pairs differ that resamples
    without any spread reach into the tails.
    """
    from scipy.stats import t

    n = len(columns)
    _, variance = figure(columns.mean(axis=0, keepdims=True))
    error = math.sqrt(max(0.0, float(variance[0])) / (n - 1))
    student = float(t.ppf((1 + level) / 2, n - 1))
    low, high = -student, student
    if error and SMALL <= n <= LARGE:
        with np.errstate(divide="ignore", invalid="ignore"):
            figures, variances = figure(resampled_means(columns, resamples, seed))
            scores = figures / np.sqrt(np.maximum(variances, 0.0) / (n - 1))
        tails = [(1 - level) / 2, (1 + level) / 2]
        first, last = np.quantile(scores[~np.isnan(scores)], tails, method="nearest")
        if np.isfinite([first, last]).all():
            low, high = -float(last), -float(first)
    return low * error, high * error


def resampled_means(columns: Floats, resamples: int, seed: int) -> Floats:
    """The columns' means in each resample of their rows: resamples x columns, some megabytes at a time."""
    n = len(columns)
    draw = np.random.default_rng(seed)
    rows = max(1, _NUMBERS_AT_ONCE // n)
    means = np.empty((resamples, columns.shape[1]))
    for start in range(0, resamples, rows):
        some = min(rows, resamples - start)
        drawn = draw.integers(n, size=(some, n)) + n * np.arange(some)[:, None]
        times = np.bincount(drawn.ravel(), minlength=some * n).reshape(some, n)
        means[start : start + some] = times.astype(np.float64) @ columns / n
    return means
