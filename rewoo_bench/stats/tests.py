"""Tests on paired columns: exact McNemar, Wilcoxon's signed ranks, Holm's adjustment, and what a test can detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rewoo_bench.errors import DataError
from rewoo_bench.stats.bootstrap import normal_quantile
from rewoo_bench.stats.columns import (
    by_question,
    check_yes_or_no,
    finite,
    paired_columns,
)
from rewoo_bench.stats.sign_flips import signs_flipped

_EXACT, _EXACT_WITH_TIES = 50, 13  # differences up to which Wilcoxon's test is exact


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


def wilcoxon(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> float:
    """p of Wilcoxon's signed-rank test; equal pairs say nothing, and where all are equal p is 1.

    Exact for 13 questions, and for 50 where no two differ by as much; else from the normal
    distribution. That is what `scipy.stats.wilcoxon` does, which takes half a second to import.
    """
    first, second = by_question(a, b, clusters)
    differences = second - first
    differences = differences[differences != 0]
    n = len(differences)
    if not n:
        return 1.0
    _, position, ties = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[position]  # ranks from 1, equal ones averaged, times two
    signed = np.where(differences > 0, doubled, -doubled)
    if n <= _EXACT_WITH_TIES or (n <= _EXACT and ties.max() == 1):
        return signs_flipped(signed)
    variance = (n * (n + 1) * (2 * n + 1) - float((ties.astype(float) ** 3 - ties).sum()) / 2) / 24
    return math.erfc(abs(float(signed.sum())) / 4 / math.sqrt(2 * variance))


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for their number (Holm 1979), in the order given."""
    values = finite("p_values", p_values)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


def minimum_detectable_difference(discordant_share: float, n: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest difference of paired shares that n questions show with this power.

    Solves Miettinen's formula (1968, Biometrics 24) for the difference; where it exceeds the share of
    discordant pairs, that share is taken to be the difference. Infinite for less than four questions.
    """
    if not 0 <= discordant_share <= 1:
        raise DataError(f"discordant share {discordant_share!r}: expected a number from 0 to 1")
    error, miss = normal_quantile(1 - alpha / 2), normal_quantile(power)
    if n <= error**2:
        return math.inf
    inside = n + miss**2 - error**2
    difference = math.sqrt(discordant_share) * (error * math.sqrt(n) + miss * math.sqrt(inside)) / (n + miss**2)
    if 0 < difference <= discordant_share:
        return difference
    root = (math.sqrt(n * inside) - error * miss) / (n + miss**2)  # all discordant pairs on one side
    return 1 - root**2
