"""Columns of architectures side by side: the questions and trials that all have, in the same order.

pairs((group, "rewoo", "total_tokens"), (group, "react", "total_tokens")).columns
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.claims.derived_columns import SCORES
from rewoo_bench.claims.run_groups import RunGroup, steps_of
from rewoo_bench.runs import failed_rows
from rewoo_bench.stats.columns import averaged

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_CUT_OFF = ("invalid_plan", "step_limit", "repeated", "token_limit", "time_limit", "cost_limit")
ColumnOf = tuple[RunGroup, str, str]  # a run group, an architecture in it, a column


@dataclass(frozen=True, slots=True)
class Pairs:
    """Columns over the same questions and trials, without rows that lack a value."""

    columns: tuple[Floats, ...]
    clusters: NDArray[Any] | None
    """The question of each row, where a question has several trials."""
    steps: Floats | None = None
    """Look-ups that each row's question needs, where that is known."""


def pairs(*wanted: ColumnOf) -> Pairs | None:
    """Columns of architectures over the rows that all have; None without such a column or such a row."""
    import pandas as pd

    columns = list(_columns(wanted))
    if len(columns) < len(wanted):
        return None
    joined = pd.concat(columns, axis=1, join="inner", keys=range(len(columns)), sort=True)
    known = joined.dropna()
    if not len(known) or (wanted[0][2] == "cost_usd" and len(known) < len(joined)):
        return None  # a price that is known for some rows only would mislead
    questions = known.index.get_level_values("example_id")
    clusters = questions.to_numpy(dtype=object) if questions.has_duplicates else None
    group, name, _ = wanted[0]
    rows = group.architectures[name].rows.loc[known.index] if group.data == "chain" else None
    steps: Floats | None = None if rows is None else np.asarray(steps_of(rows), dtype=np.float64)
    values = known.to_numpy(dtype=np.float64)
    return Pairs(tuple(values[:, position] for position in range(len(columns))), clusters, steps)


def _columns(wanted: Sequence[ColumnOf]) -> Iterator[pd.Series[float]]:
    for group, architecture, name in wanted:
        own = group.architectures.get(architecture)
        column = own.column(name) if own else None
        if own is not None and column is not None:
            yield column if _counts_cut_off(group, name) else column[~_cut_off(own.rows.loc[column.index])]


def left_out(wanted: Sequence[ColumnOf]) -> int:
    """Rows of these architectures that `pairs` leaves out: failed, or cut off by a limit."""
    rows = 0
    for group, architecture, name in wanted:
        if own := group.architectures.get(architecture):
            out = failed_rows.left_out(own.rows)
            if not _counts_cut_off(group, name):
                out = out | _cut_off(own.rows)
            rows += int(out.sum())
    return rows


def never_asked(wanted: Sequence[ColumnOf]) -> int:
    """Rows of these architectures that a stopped run lacks."""
    own = (group.architectures.get(architecture) for group, architecture, _ in wanted)
    return sum(rows.never_asked for rows in own if rows)


def _counts_cut_off(group: RunGroup, name: str) -> bool:
    """Whether questions count that a limit cut off.

    A question of the chain data set needs a known number of look-ups: one that was cut off doesn't show their cost.
    """
    return group.data != "chain" or name in SCORES or name == "over_limit"


def _cut_off(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Where a plan was rejected, or a limit of steps, tokens, time or cost ended the question."""
    cut: NDArray[np.bool_] = rows["stop_reason"].astype(str).isin(_CUT_OFF).to_numpy(dtype=bool)
    return cut


def by_steps(*wanted: ColumnOf) -> tuple[Floats, list[Floats]] | None:
    """Look-ups, and each column, a value per question."""
    paired = pairs(*wanted)
    if not paired or paired.steps is None:
        return None
    steps, *columns = averaged(paired.clusters, paired.steps, *paired.columns)
    return steps, columns
