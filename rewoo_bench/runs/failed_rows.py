"""Rows that are in no mean: they show nothing about what an architecture costs.

Of a question that the infrastructure failed there is no exact match (null), and its tokens, calls and cost are of
incomplete work. A question that an external agent answered without one metered model call (the flag `unmetered`) looks
free, and what answered it isn't known. Means, intervals, tests, claims, gates and figures leave both out and give their
number. A comparison of two architectures leaves out both rows of the pair. A question that reached a limit (steps,
tokens, time, cost) hasn't failed: without an answer it counts as wrong, at the cost in its row.

    left_out(rows)                    # a mask: True for a row that is in no mean
    pairs_left_out(rows_a, rows_b)    # of aligned rows: True where either of the two is
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewoo_bench.runs.flags import UNMETERED, flagged

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray


def failed(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the infrastructure failed the question."""
    import numpy as np

    from rewoo_bench.runs.table_columns import read_columns

    mask: NDArray[np.bool_] = np.isnan(read_columns(rows, ["exact_match"])["exact_match"].values)
    return mask


def left_out(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the question failed, or was answered without a metered call."""
    return failed(rows) | flagged(rows, UNMETERED)


def pairs_left_out(a: pd.DataFrame, b: pd.DataFrame) -> NDArray[np.bool_]:
    """The same for two tables whose rows are of the same questions and trials, in the same order."""
    return left_out(a) | left_out(b)
