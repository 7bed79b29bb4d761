"""The measures of claims: chosen by name in claims.toml, with their columns and architectures.

    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }   # mean(react) / mean(rewoo)

A measure gives an interval of `rewoo_bench.analysis.stats.paired`, paired by question, or None where the run group
lacks an architecture or a column. A pair is left out where the infrastructure failed either row (runs/rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_validator

from rewoo_bench.analysis.claims.run_groups import (
    CLAIM_COLUMNS,
    SCORES,
    SHARES,
    YES_OR_NO,
    ArchitectureRows,
    RunGroup,
    chain_shape,
)
from rewoo_bench.analysis.stats.bootstrap import curvature, trend
from rewoo_bench.analysis.stats.paired import (
    Floats,
    Interval,
    difference_of_means,
    difference_of_proportions,
    mean_of,
    proportion,
    ratio_of_means,
)
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.errors import unknown
from rewoo_bench.runs.rows import averaged

ColumnOf = tuple[RunGroup, str, str]  # a run group, an architecture in it, a column


@dataclass(frozen=True, slots=True)
class Tested(Interval):
    """A difference of shares with the exact test of it."""

    p: float = math.nan
    """Exact McNemar: p of no difference."""


@dataclass(frozen=True, slots=True)
class CommonRows:
    """Columns over the same questions and trials, without rows that lack a value."""

    columns: tuple[Floats, ...]
    clusters: NDArray[Any] | None
    """The question of each row, where a question has several trials."""
    steps: Floats | None
    """Look-ups that each row's question needs; None outside the chain data set."""

    def only(self, kept: NDArray[np.bool_]) -> CommonRows:
        """The same for the rows of a mask."""
        clusters = None if self.clusters is None else self.clusters[kept]
        steps = None if self.steps is None else self.steps[kept]
        return CommonRows(tuple(column[kept] for column in self.columns), clusters, steps)


def common_rows(*wanted: ColumnOf) -> CommonRows | None:
    """Columns of architectures over the rows that all have; None without such a column or such a row."""
    columns = []
    for group, architecture, name in wanted:
        own = group.architectures.get(architecture)
        column = own.column(name) if own else None
        if own is None or column is None:
            return None
        columns.append(column[~own.cut_off[~own.left_out]] if _shows_cost(group, name) else column)
    joined = pd.concat(columns, axis=1, join="inner", keys=range(len(columns)), sort=True)
    known = joined.dropna()
    if not len(known):
        return None
    questions = known.index.get_level_values("example_id")
    clusters = questions.to_numpy(dtype=object) if questions.has_duplicates else None
    group, name, _ = wanted[0]
    steps: Floats | None = None
    if group.data == "chain":
        rows = group.architectures[name].rows[["question_type"]].loc[known.index]
        steps = np.asarray(chain_shape(rows)[0], dtype=np.float64)
    values = known.to_numpy(dtype=np.float64)
    return CommonRows(tuple(values[:, position] for position in range(len(columns))), clusters, steps)


def rows_left_out(group: RunGroup, own: ArchitectureRows, column: str) -> int:
    """Number of rows of an architecture that `common_rows` leaves out: failed, or cut off by a limit."""
    return int((own.left_out | own.cut_off if _shows_cost(group, column) else own.left_out).sum())


def _shows_cost(group: RunGroup, name: str) -> bool:
    """Whether rows are left out where a plan was rejected, or a limit of steps, tokens, time or cost ended a question.

    It needs a known number of look-ups, as in the chain data set: a question that was cut off doesn't show their cost.
    Elsewhere, and in scores, such questions count.
    """
    return group.data == "chain" and name not in SHARES


MeasureName = Literal["ratio", "saving", "difference", "mean", "curvature", "ratio_trend", "change"]
"""
    ratio         mean(column of `of`) / mean(column of `to`)
    saving        1 - ratio: the share by which `of` takes less than `to`
    difference    mean(column of `of`) - mean(column of `minus`), in points where the column is a share
    mean          mean(column of `of`)
    curvature     the quadratic term's share of the growth with look-ups, 0 for linear growth; for the chain data set
    ratio_trend   growth of a question's ratio, `of` / `to`, with one look-up more; for the chain data set
    change        mean(column of `of`) with failing tools - without; given `minus`, less the same change of `minus`
"""


class Measure(BaseModel):
    """A measure by its name, a column of the architecture `of`, and what else the measure takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: MeasureName
    column: str
    of: str
    """The architecture that is measured."""
    to: str = ""
    minus: str = ""
    """The architecture that it is compared with, by a ratio or by a difference."""
    against: str | None = None
    """The column of `to`, where it isn't `column`."""
    among: str | None = None
    """A column of yes or no: only the questions count where it is yes."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Measure:
        if strange := self.columns() - CLAIM_COLUMNS:
            raise ValueError(unknown("column", min(strange), CLAIM_COLUMNS))
        needs = {"ratio": "to", "saving": "to", "ratio_trend": "to", "difference": "minus"}.get(self.name)
        if needs and not getattr(self, needs):
            raise ValueError(f"the measure {self.name!r} needs the key {needs!r}")
        return self

    def architectures(self) -> list[str]:
        """The architectures that a run must have."""
        return list(dict.fromkeys(filter(None, (self.of, self.to, self.minus))))

    def columns(self) -> set[str]:
        """The columns that are read."""
        return {self.column, *filter(None, (self.against, self.among))}

    def serves_oracle(self) -> bool:
        """Whether an oracle's run has the measure: costs, but no accuracy.

        No change either: after a failure the model decides what to do, and the oracle's policy is ours.
        """
        return self.name != "change" and not self.columns() & SCORES

    def show(self, value: float) -> str:
        """A value in the measure's unit, without the `suffix`."""
        is_share = self.column in SHARES
        match self.name:
            case "saving" | "curvature":
                return f"{100 * value:.1f}%"
            case "ratio":
                return f"{value:.2f}"
            case "ratio_trend":
                return f"{value:+.3f}"
            case "mean":  # a band may reach below 0
                return f"{100 * max(value, 0):.1f}%" if is_share else f"{value:,.2f}"
            case "difference" | "change":
                return f"{100 * value:+.1f}" if is_share else f"{value:+,.2f}"

    @property
    def suffix(self) -> str:
        """The unit, printed after a value."""
        if self.name == "ratio_trend":
            return " a look-up"
        return " points" if self.name in ("difference", "change") and self.column in SHARES else ""

    @property
    def counted(self) -> str:
        """What a value counts, where neither a sign nor the `suffix` says it: `times the total tokens of rewoo`."""
        column = (self.against or self.column).replace("_", " ")
        if self.name == "ratio":
            return f"times the {column} of {self.to}"
        return column if self.name in ("mean", "difference", "change") and self.column not in SHARES else ""

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        """The estimate with its 95% interval; `groups` are all run groups, for measures that compare several."""
        rows = self._rows(group, groups)
        interval = self.interval(rows) if rows else None
        return None if interval is None or math.isnan(interval.estimate) else interval

    def _rows(self, group: RunGroup, groups: Sequence[RunGroup]) -> CommonRows | None:
        """The columns that the measure is computed from."""
        own = group, self.of, self.column
        if self.name in ("mean", "curvature"):  # with those that say which rows count
            return common_rows(own, (group, self.of, self.among or self.column))
        if self.name != "change":
            return common_rows((group, self.to or self.minus, self.against or self.column), own)
        for other in (each for each in groups if each.base == group.base and not each.failure_rate):
            # without and with failing tools, of `of` and of `minus`
            wanted = [(each, name, self.column) for name in self.architectures() for each in (other, group)]
            if rows := common_rows(*wanted):
                return rows
        return None

    def interval(self, rows: CommonRows) -> Interval | None:
        """The measure of its columns."""
        first, *others = rows.columns
        match self.name:
            case "ratio" | "saving":
                if not all(map(np.any, rows.columns)):
                    return None
                ratio = ratio_of_means(first, others[0], clusters=rows.clusters)
                if self.name == "ratio":
                    return ratio
                return replace(ratio, estimate=1 - ratio.estimate, low=1 - ratio.high, high=1 - ratio.low)
            case "mean":
                if self.among:
                    rows = rows.only(others[0] == 1)
                if not len(rows.columns[0]):
                    return None
                if self.column in YES_OR_NO:
                    return proportion(rows.columns[0], clusters=rows.clusters)
                return mean_of(rows.columns[0], ends=self._ends, clusters=rows.clusters)
            case "difference" | "change":
                return self._difference(rows)
            case "curvature":
                return None if rows.steps is None else curvature(*averaged(rows.clusters, rows.steps, first))
            case "ratio_trend":
                if rows.steps is None:
                    return None
                steps, below, above = averaged(rows.clusters, rows.steps, first, others[0])
                return trend(steps[below > 0], above[below > 0] / below[below > 0])

    def _difference(self, rows: CommonRows) -> Interval:
        if len(rows.columns) == 4:  # of two changes
            clean, failing, clean_minus, failing_minus = rows.columns
            return difference_of_means(failing_minus - clean_minus, failing - clean, clusters=rows.clusters)
        a, b = rows.columns
        if self.column in YES_OR_NO:
            interval = difference_of_proportions(a, b, clusters=rows.clusters)
            return Tested(**asdict(interval), p=mcnemar_exact(a, b, rows.clusters).p)
        return difference_of_means(a, b, ends=self._ends, clusters=rows.clusters)

    @property
    def _ends(self) -> tuple[float, float] | None:
        """The ends of a score's scale; an amount has none."""
        return (0.0, 1.0) if self.column in SHARES else None


def where_answered(measure: Measure, group: RunGroup) -> Interval | None:
    """A ratio of tokens over the questions that both answered; None where that is all of them, or none."""
    names = (measure.to, measure.of)
    found = common_rows(*((group, name, column) for column in (measure.column, "answered") for name in names))
    if not found or measure.against:
        return None
    kept = np.logical_and(*found.columns[2:])
    both = replace(found.only(kept), columns=tuple(column[kept] for column in found.columns[:2]))
    return None if kept.all() else measure.interval(both)
