"""The measures of claims: chosen by name in claims.toml, with their columns and architectures.

    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }   # mean(react) / mean(rewoo)

A measure gives an interval of `rewoo_bench.analysis.stats.paired`, paired by question, or None where the run group
lacks an architecture or a column. A pair is left out where the infrastructure failed either row (runs/rows.py).
`MEASURES` has them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

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


def _known_column(name: str) -> str:
    if name not in CLAIM_COLUMNS:
        raise ValueError(unknown("column", name, CLAIM_COLUMNS))
    return name


def _known_measure(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(unknown("measure", name, MEASURES))
    return name


_Column = Annotated[str, AfterValidator(_known_column)]


class Measure(BaseModel):
    """A measure by its name, a column of the architecture `of`, and what else the measure takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_known_measure)]
    column: _Column
    of: str
    """The architecture that is measured."""
    to: str = ""
    minus: str = ""
    """The architecture that it is compared with, by a ratio or by a difference."""
    against: _Column | None = None
    """The column of `to`, where it isn't `column`."""
    among: _Column | None = None
    """A column of yes or no: only the questions count where it is yes."""

    @model_validator(mode="after")
    def _has_its_parameters(self) -> Measure:
        given = self.model_fields_set - {"name", "column", "of"}
        for key in [*self.kind.needs, *sorted(given)]:
            if key not in given:
                raise ValueError(f"the measure {self.name!r} needs the key {key!r}")
            if key not in self.kind.needs and key != self.kind.may_have:
                raise ValueError(f"the measure {self.name!r} takes no key {key!r}")
        return self

    @property
    def kind(self) -> MeasureKind:
        return MEASURES[self.name]

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
        match self.kind.unit:
            case "share":
                return f"{100 * value:.1f}%"
            case "times":
                return f"{value:.2f}"
            case "a look-up":
                return f"{value:+.3f}"
            case "mean":  # a band may reach below 0
                return f"{100 * max(value, 0):.1f}%" if is_share else f"{value:,.2f}"
            case "difference":
                return f"{100 * value:+.1f}" if is_share else f"{value:+,.2f}"

    @property
    def suffix(self) -> str:
        """The unit, printed after a value."""
        if self.kind.unit == "a look-up":
            return " a look-up"
        return " points" if self.kind.unit == "difference" and self.column in SHARES else ""

    @property
    def counted(self) -> str:
        """What a value counts, where neither a sign nor the `suffix` says it: `times the total tokens of rewoo`."""
        column = (self.against or self.column).replace("_", " ")
        if self.kind.unit == "times":
            return f"times the {column} of {self.to}"
        return column if self.kind.unit in ("mean", "difference") and self.column not in SHARES else ""

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        """The estimate with its 95% interval; `groups` are all run groups, for measures that compare several."""
        rows = self.kind.rows(self, group, groups)
        interval = self.kind.interval(self, rows) if rows else None
        return None if interval is None or math.isnan(interval.estimate) else interval


# The columns that measures are computed from.


def _both(measure: Measure, group: RunGroup, _: Sequence[RunGroup]) -> CommonRows | None:
    """Of the other architecture, and of `of`."""
    other = (group, measure.to or measure.minus, measure.against or measure.column)
    return common_rows(other, (group, measure.of, measure.column))


def _own(measure: Measure, group: RunGroup, _: Sequence[RunGroup]) -> CommonRows | None:
    """Of `of`, and those that say which rows count."""
    columns = (measure.column, measure.among or measure.column)
    return common_rows(*((group, measure.of, column) for column in columns))


def _changed(measure: Measure, group: RunGroup, groups: Sequence[RunGroup]) -> CommonRows | None:
    """Without and with failing tools, of `of` and of `minus`."""
    for other in (each for each in groups if each.base == group.base and not each.failure_rate):
        wanted = [(each, name, measure.column) for name in measure.architectures() for each in (other, group)]
        if rows := common_rows(*wanted):
            return rows
    return None


# The measures, of these columns.


def _ratio(_: Measure, both: CommonRows) -> Interval | None:
    has_some = all(map(np.any, both.columns))
    return ratio_of_means(*both.columns, clusters=both.clusters) if has_some else None


def _saving(measure: Measure, both: CommonRows) -> Interval | None:
    ratio = _ratio(measure, both)
    return ratio and replace(ratio, estimate=1 - ratio.estimate, low=1 - ratio.high, high=1 - ratio.low)


def _difference(measure: Measure, both: CommonRows) -> Interval:
    a, b = both.columns
    if measure.column in YES_OR_NO:
        interval = difference_of_proportions(a, b, clusters=both.clusters)
        return Tested(**asdict(interval), p=mcnemar_exact(a, b, both.clusters).p)
    return difference_of_means(a, b, ends=_ends(measure.column), clusters=both.clusters)


def _ends(column: str) -> tuple[float, float] | None:
    """The ends of a score's scale; an amount has none."""
    return (0.0, 1.0) if column in SHARES else None


def _change(measure: Measure, rows: CommonRows) -> Interval:
    if not measure.minus:
        return _difference(measure, rows)
    clean, failing, clean_minus, failing_minus = rows.columns
    return difference_of_means(failing_minus - clean_minus, failing - clean, clusters=rows.clusters)


def _mean(measure: Measure, rows: CommonRows) -> Interval | None:
    if measure.among:
        rows = rows.only(rows.columns[1] == 1)
    if not len(rows.columns[0]):
        return None
    if measure.column in YES_OR_NO:
        return proportion(rows.columns[0], clusters=rows.clusters)
    return mean_of(rows.columns[0], ends=_ends(measure.column), clusters=rows.clusters)


def _curvature(_: Measure, rows: CommonRows) -> Interval | None:
    return None if rows.steps is None else curvature(*averaged(rows.clusters, rows.steps, rows.columns[0]))


def _ratio_trend(_: Measure, both: CommonRows) -> Interval | None:
    if both.steps is None:
        return None
    steps, below, above = averaged(both.clusters, both.steps, *both.columns)
    divisible = below > 0
    return trend(steps[divisible], above[divisible] / below[divisible])


def where_answered(measure: Measure, group: RunGroup) -> Interval | None:
    """A ratio of tokens over the questions that both answered; None where that is all of them, or none."""
    names = (measure.to, measure.of)
    found = common_rows(*((group, name, column) for column in (measure.column, "answered") for name in names))
    if not found or measure.against:
        return None
    kept = np.logical_and(*found.columns[2:])
    both = replace(found.only(kept), columns=tuple(column[kept] for column in found.columns[:2]))
    return None if kept.all() else measure.kind.interval(measure, both)


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """How a measure is computed, its unit, and the keys that it takes beside `column` and `of`."""

    interval: Callable[[Measure, CommonRows], Interval | None]
    """Of the measure and its columns."""
    unit: Literal["times", "share", "difference", "mean", "a look-up"]
    needs: tuple[str, ...] = ()
    may_have: str = ""
    rows: Callable[[Measure, RunGroup, Sequence[RunGroup]], CommonRows | None] = _both
    also_needs: str = ""
    """Further runs that the measure needs, for the line that says what to run."""
    chain_questions: int = 96
    """Number of questions of the chain data set that decides a claim."""


MEASURES: dict[str, MeasureKind] = {
    # mean(column of `of`) / mean(column of `to`)
    "ratio": MeasureKind(_ratio, "times", ("to",), "against"),
    # 1 - ratio: the share by which `of` takes less than `to`
    "saving": MeasureKind(_saving, "share", ("to",), "against"),
    # mean(column of `of`) - mean(column of `minus`), in points where the column is a share
    "difference": MeasureKind(_difference, "difference", ("minus",)),
    # mean(column of `of`)
    "mean": MeasureKind(_mean, "mean", (), "among", _own),
    # the quadratic term's share of the growth with look-ups, 0 for linear growth; for the chain data set
    "curvature": MeasureKind(_curvature, "share", rows=_own, chain_questions=240),
    # growth of a question's ratio, `of` / `to`, with one look-up more; for the chain data set
    "ratio_trend": MeasureKind(_ratio_trend, "a look-up", ("to",)),
    # mean(column of `of`) with failing tools - without; given `minus`, less the same change of `minus`
    "change": MeasureKind(_change, "difference", (), "minus", _changed, "and the same without failing tools"),
}
