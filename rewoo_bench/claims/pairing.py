"""Columns of architectures side by side: what all have, of the same questions and trials, in the same order.

pairs((evidence, "rewoo", "total_tokens"), (evidence, "react", "total_tokens")).columns
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.claims.derived_columns import SCORES
from rewoo_bench.claims.run_groups import Evidence, steps_of
from rewoo_bench.runs.failed_rows import failed
from rewoo_bench.stats.columns import averaged

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_CUT_OFF = ("invalid_plan", "step_limit", "token_limit", "time_limit", "cost_limit")
Wanted = tuple[Evidence, str, str]  # an architecture's column


@dataclass(frozen=True, slots=True)
class Pairs:
    """Columns over the same questions and trials, without those that miss a value."""

    columns: tuple[Floats, ...]
    clusters: NDArray[Any] | None
    """The question of each row, where questions were put more than once."""
    steps: Floats | None = None
    """Look-ups that each row's question takes, where that is known."""


def pairs(*wanted: Wanted) -> Pairs | None:
    """Columns of architectures over what all have; None where one has no such column, or they share nothing."""
    import pandas as pd

    columns = list(_columns(wanted))
    if len(columns) < len(wanted):
        return None
    joined = pd.concat(columns, axis=1, join="inner", keys=range(len(columns)), sort=True)
    there = joined.dropna()
    if not len(there) or (wanted[0][2] == "cost_usd" and len(there) < len(joined)):
        return None  # where prices are known of some only, they would mislead
    questions = there.index.get_level_values("example_id")
    clusters = questions.to_numpy(dtype=object) if questions.has_duplicates else None
    evidence, name, _ = wanted[0]
    rows = evidence.systems[name].rows.loc[there.index] if evidence.data == "chain" else None
    steps: Floats | None = None if rows is None else np.asarray(steps_of(rows), dtype=np.float64)
    values = there.to_numpy(dtype=np.float64)
    return Pairs(tuple(values[:, place] for place in range(len(columns))), clusters, steps)


def _columns(wanted: Sequence[Wanted]) -> Iterator[pd.Series[float]]:
    for evidence, architecture, name in wanted:
        system = evidence.systems.get(architecture)
        found = system.column(name) if system else None
        if system is not None and found is not None:
            yield found if _counts_cut_off(evidence, name) else found[~_cut_off(system.rows.loc[found.index])]


def left_out(wanted: Sequence[Wanted]) -> int:
    """Rows that these architectures should have and `pairs` hasn't: failed, cut off by a limit, or never asked."""
    rows = 0
    for evidence, architecture, name in wanted:
        if system := evidence.systems.get(architecture):
            out = failed(system.rows)
            if not _counts_cut_off(evidence, name):
                out = out | _cut_off(system.rows)
            rows += int(out.sum()) + system.unasked
    return rows


def _counts_cut_off(evidence: Evidence, name: str) -> bool:
    """Whether questions count that a limit cut off.

    Of a chain, which is made to take so many look-ups, one that was cut off says nothing of what they cost.
    """
    return evidence.data != "chain" or name in SCORES or name == "over_limit"


def _cut_off(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Where a plan was refused or a limit of steps, tokens, time or cost ended the question."""
    cut: NDArray[np.bool_] = rows["stop_reason"].astype(str).isin(_CUT_OFF).to_numpy(dtype=bool)
    return cut


def by_steps(*wanted: Wanted) -> tuple[Floats, list[Floats]] | None:
    """Look-ups, and each column, a value a question."""
    found = pairs(*wanted)
    if not found or found.steps is None:
        return None
    steps, *columns = averaged(found.clusters, found.steps, *found.columns)
    return steps, columns
