"""Paired columns as statistics take them: numbers, of one length, averaged over the trials of a question.

by_question([1, 3, 5], [2, 2, 6], clusters=["q1", "q1", "q2"])  ->  [2, 5], [2, 6]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.errors import DataError

Floats = NDArray[np.float64]


def by_question(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Floats]:
    """Both columns with one value a question."""
    first, second, labels = paired_columns(a, b, clusters)
    first, second = averaged(labels, first, second)
    return first, second


def paired_columns(
    a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None
) -> tuple[Floats, Floats, NDArray[Any] | None]:
    """Both columns as numbers, and the question of each row where one is given. Raises `DataError`."""
    first, second = finite("a", a), finite("b", b)
    labels = None if clusters is None else np.asarray(clusters)
    if len(first) != len(second) or (labels is not None and len(labels) != len(first)):
        lengths = f"a has {len(first)}, b {len(second)}" + (f", clusters {len(labels)}" if labels is not None else "")
        raise DataError(f"paired columns differ in length: {lengths}")
    return first, second, labels


def finite(name: str, values: ArrayLike) -> Floats:
    """A column of finite numbers. Raises `DataError` naming the first value that is none."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} holds a value that is no number; leave out pairs with one") from None
    if numbers.ndim != 1:
        raise DataError(f"{name} has {numbers.ndim} dimensions; expected a column")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise DataError(f"{name}[{bad[0]}] is {numbers[bad[0]]}: expected finite numbers; leave out pairs with one")
    return numbers


def averaged(labels: NDArray[Any] | None, *columns: Floats) -> list[Floats]:
    """Columns of rows as columns of questions: the mean over each question's trials."""
    if labels is None or not len(labels):
        return list(columns)
    _, position = np.unique(labels, return_inverse=True)
    sizes = np.bincount(position)
    return [np.bincount(position, weights=column) / sizes for column in columns]


def check_yes_or_no(*columns: Floats) -> None:
    """Raises `DataError` for anything but 0 and 1."""
    for column in columns:
        other = column[(column != 0) & (column != 1)]
        if len(other):
            raise DataError(f"{float(other[0])!r} is neither right (1) nor wrong (0)")


def check_amounts(*columns: Floats) -> None:
    """Raises `DataError` for a negative number."""
    for column in columns:
        if len(column) and column.min() < 0:
            raise DataError(f"{float(column.min())!r} is negative: a ratio is of amounts")
