"""Rows of questions that the infrastructure failed: they show nothing about an architecture.

Such a row has no exact match (null), and its tokens, calls and cost are of incomplete work. Means, intervals, tests,
claims, gates and figures leave it out and give the number of such rows. A comparison of two architectures leaves out
both rows of the pair. A question that reached a limit (steps, tokens, time, cost) hasn't failed: its answer counts as
wrong, at the cost in its row.

    failed(rows)                    # a mask: True where the infrastructure failed the question
    pairs_failed(rows_a, rows_b)    # of aligned rows: True where it failed either of the two
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


def failed(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the infrastructure failed the question."""
    mask: NDArray[Any] = rows["exact_match"].isna().to_numpy(dtype=bool)
    return mask


def pairs_failed(a: pd.DataFrame, b: pd.DataFrame) -> NDArray[np.bool_]:
    """The same for two tables whose rows are of the same questions and trials, in the same order."""
    return failed(a) | failed(b)
