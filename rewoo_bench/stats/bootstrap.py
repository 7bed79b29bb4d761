"""Bootstrap bounds of a ratio of means: whole questions are drawn again, with replacement.

    log_ratio_bounds(a, b, 0.95, resamples=10_000, seed=0)  ->  (low, high)

Token counts are skewed, so each resample's distance from the estimate is measured in its own standard
error (studentised; Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 12). No bootstrap
allows for a tail that the sample lacks: for two systems see mean_bounds.py.
"""

from __future__ import annotations

import math
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
