"""The exact law of a sum of differences that may each as well have the other sign.

    signs_flipped(np.array([3, -1, 2]))  ->  0.5

It is behind McNemar's test, where a question has several trials.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

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
