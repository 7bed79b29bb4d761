"""Rows of questions.parquet, split by the kind of question.

for part in subsets(rows, "question_type"):    # part["dataset"] is "hotpotqa, bridge"
    ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewoo_bench.errors import UsageError, unknown

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("question_type", "difficulty", "hops")
"""Columns that describe the question, so that every system has the same questions in each part."""


def subsets(rows: pd.DataFrame, by: str) -> list[pd.DataFrame]:
    """The rows of each value of a column of `COLUMNS`, with the value in the data set's name; in order of the values.

    Raises `UsageError` for another column, and where no row has a value.
    """
    if by not in COLUMNS:
        raise UsageError(unknown("column to compare by", by, COLUMNS))
    there = [name for name in COLUMNS if name in rows.columns and rows[name].notna().any()]
    if by not in there:
        others = ", ".join(there) or "none of these columns"
        raise UsageError(f"these runs can't be compared by {by}: no row has one; they have {others}")
    values = rows[by].astype(object).where(rows[by].notna(), None)
    parts = [rows[values == value] for value in sorted(values.dropna().unique())]
    named = [_named(part, f"{by} {part[by].iloc[0]}") for part in parts]
    without = rows[values.isna()]
    return [*named, _named(without, f"no {by}")] if len(without) else named


def _named(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    return rows.assign(dataset=rows["dataset"].astype(str) + f", {part}")
