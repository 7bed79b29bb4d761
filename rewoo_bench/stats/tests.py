"""Tests on paired columns: the exact McNemar test, and Holm's adjustment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rewoo_bench.stats.columns import check_yes_or_no, finite, paired_columns
from rewoo_bench.stats.sign_flips import signs_flipped


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
