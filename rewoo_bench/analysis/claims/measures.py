"""The measures of claims: chosen by name in claims.toml, with their columns and architectures.

    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }   # mean(react) / mean(rewoo)

A measure gives an interval of `rewoo_bench.analysis.stats.paired`, paired by question, or None where the run group
lacks an architecture or a column. A pair is left out where the infrastructure failed either row (runs/rows.py).
`MEASURES` has them all. An average is over several data sets, each of which counts alike; it needs runs of one model
with the same settings on every one of them:

    measure = { name = "average_saving", column = "total_tokens", of = "rewoo", to = "react", data = ["gsm8k", …] }
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.analysis.claims.run_groups import (
    CLAIM_COLUMNS,
    SCORES,
    SECONDS,
    YES_OR_NO,
    ArchitectureRows,
    Data,
    RunGroup,
    chain_shape,
)
from rewoo_bench.analysis.stats.bootstrap import curvature, trend
from rewoo_bench.analysis.stats.paired import (
    Floats,
    Interval,
    averaged,
    by_question,
    difference_of_means,
    difference_of_proportions,
    mean_of,
    mean_of_differences,
    proportion,
    ratio_of_means,
    ratio_of_summed_means,
)
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.errors import unknown

_RESAMPLES = 2_000
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
    if not len(known) or (wanted[0][2] == "cost_usd" and len(known) < len(joined)):
        return None  # a price that is known for some rows only would mislead
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
    return group.data == "chain" and name not in SCORES


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
    quantile: float | None = Field(default=None, gt=0, lt=1)
    data: tuple[Data, ...] = Field(default=(), min_length=2)
    """The data sets of an average, in any order."""

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
        """Whether an oracle's run has the measure: costs, but neither accuracy nor latency.

        No change either: after a failure the model decides what to do, and the oracle's policy is ours.
        """
        return self.name != "change" and not self.columns() & (SCORES | SECONDS)

    def show(self, value: float) -> str:
        """A value in the measure's unit, without the `suffix`."""
        is_share = self.column in SCORES
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
        return " points" if self.kind.unit == "difference" and self.column in SCORES else ""

    def groups_used(self, group: RunGroup, groups: Sequence[RunGroup]) -> list[RunGroup]:
        """The run groups that it is of. An average's has a group for each data set, the one with the most questions.

        Empty where one is missing, or where `group` isn't that of the average's first data set.
        """
        if not self.data:
            return [group]
        used = []
        for data in self.data:
            fitting = [
                each
                for each in groups
                if (each.data, each.settings, each.failure_rate, each.joined)
                == (data, group.settings, group.failure_rate, group.joined)
                and set(self.architectures()) <= set(each.architectures)
            ]
            if not fitting:
                return []
            used.append(max(fitting, key=lambda each: min(len(own.rows) for own in each.architectures.values())))
        return used if used[0].runs() == group.runs() else []

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        """The estimate with its 95% interval; `groups` are all run groups, for measures that compare several."""
        parts = [self.kind.rows(self, each, groups) for each in self.groups_used(group, groups)]
        interval = self.kind.interval(self, *parts) if parts and all(parts) else None
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


def _with_more_tools(measure: Measure, group: RunGroup, groups: Sequence[RunGroup]) -> CommonRows | None:
    """With the fewest and with the most tools: of `rewoo`, or of `rewoo?tools=Search` and nothing else."""
    variants = f"{measure.of}?tools="

    def offers(each: RunGroup) -> dict[int, ColumnOf]:
        """By number of tools, the architecture that offers them."""
        names = [name for name in each.architectures if name.startswith(variants) and "&" not in name]
        names += [measure.of] if measure.of in each.architectures else []
        return {each.architectures[name].tools: (each, name, measure.column) for name in names}

    own = offers(group)
    others = [each for each in groups if each.base == group.base and not each.failure_rate]
    offered = {tools: column for each in others for tools, column in offers(each).items()}
    if not own or len(offered) < 2 or max(own) < max(offered):
        return None
    return common_rows(offered[min(offered)], own[max(own)])


# The measures, of these columns.


def _ratio(_: Measure, both: CommonRows) -> Interval | None:
    has_some = all(map(np.any, both.columns))
    return ratio_of_means(*both.columns, clusters=both.clusters) if has_some else None


def _saving(measure: Measure, both: CommonRows) -> Interval | None:
    ratio = _ratio(measure, both)
    return ratio and _saved(ratio)


def _saved(ratio: Interval) -> Interval:
    return replace(ratio, estimate=1 - ratio.estimate, low=1 - ratio.high, high=1 - ratio.low)


def _difference(measure: Measure, both: CommonRows) -> Interval:
    a, b = both.columns
    if measure.column in YES_OR_NO:
        interval = difference_of_proportions(a, b, clusters=both.clusters)
        return Tested(**asdict(interval), p=mcnemar_exact(a, b, both.clusters).p)
    return difference_of_means(a, b, ends=_ends(measure.column), clusters=both.clusters)


def _ends(column: str) -> tuple[float, float] | None:
    """The ends of a score's scale; an amount has none."""
    return (0.0, 1.0) if column in SCORES else None


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


def _quantile_ratio(measure: Measure, both: CommonRows) -> Interval:
    below, above = by_question(both.columns[0], both.columns[1], both.clusters)
    at = partial(np.quantile, q=measure.quantile, axis=-1)
    estimate = float(at(above) / at(below))
    if len(above) < 2:
        return Interval(estimate, 0.0, math.inf, len(above))
    draw, at_once = np.random.default_rng(0), max(1, 100_000 // len(above))  # flat in memory
    sizes = [min(at_once, _RESAMPLES - begin) for begin in range(0, _RESAMPLES, at_once)]
    drawn = (draw.integers(len(above), size=(size, len(above))) for size in sizes)
    ratios = np.concatenate([at(above[rows]) / at(below[rows]) for rows in drawn])
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Interval(estimate, float(low), float(high), len(above))


def _curvature(_: Measure, rows: CommonRows) -> Interval | None:
    return None if rows.steps is None else curvature(*averaged(rows.clusters, rows.steps, rows.columns[0]))


def _ratio_trend(_: Measure, both: CommonRows) -> Interval | None:
    if both.steps is None:
        return None
    steps, below, above = averaged(both.clusters, both.steps, *both.columns)
    divisible = below > 0
    return trend(steps[divisible], above[divisible] / below[divisible])


def _average_saving(_: Measure, *each: CommonRows) -> Interval:
    return _saved(ratio_of_summed_means([(both.columns[0], both.columns[1], both.clusters) for both in each]))


def _average_difference(measure: Measure, *each: CommonRows) -> Interval:
    return mean_of_differences([_difference(measure, both) for both in each])


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

    interval: Callable[..., Interval | None]
    """Of the measure and its columns; an average's, of the columns on each data set."""
    unit: Literal["times", "share", "difference", "mean", "a look-up"]
    needs: tuple[str, ...] = ()
    may_have: str = ""
    rows: Callable[[Measure, RunGroup, Sequence[RunGroup]], CommonRows | None] = _both
    also_needs: str = ""
    """Further runs that the measure needs, for the line that says what to run."""
    chain_questions: int = 96
    """Number of questions of the chain data set that decides a claim."""


_MORE_TOOLS = "and the same with more tools, as in --arch 'rewoo,rewoo?tools=Search+LLM+Lookup'"
MEASURES: dict[str, MeasureKind] = {
    # mean(column of `of`) / mean(column of `to`)
    "ratio": MeasureKind(_ratio, "times", ("to",), "against"),
    # 1 - ratio: the share by which `of` takes less than `to`
    "saving": MeasureKind(_saving, "share", ("to",), "against"),
    # mean(column of `of`) - mean(column of `minus`), in points where the column is a share
    "difference": MeasureKind(_difference, "difference", ("minus",)),
    # mean(column of `of`)
    "mean": MeasureKind(_mean, "mean", (), "among", _own),
    # a quantile of `of` / the same quantile of `to`; bootstrap percentiles over questions
    "quantile_ratio": MeasureKind(_quantile_ratio, "times", ("to", "quantile")),
    # the quadratic term's share of the growth with look-ups, 0 for linear growth; for the chain data set
    "curvature": MeasureKind(_curvature, "share", rows=_own, chain_questions=240),
    # growth of a question's ratio, `of` / `to`, with one look-up more; for the chain data set
    "ratio_trend": MeasureKind(_ratio_trend, "a look-up", ("to",)),
    # mean(column of `of`) with failing tools - without; given `minus`, less the same change of `minus`
    "change": MeasureKind(_change, "difference", (), "minus", _changed, "and the same without failing tools"),
    # mean(column of `of`) with the most tools - with the fewest
    "more_tools": MeasureKind(_difference, "difference", rows=_with_more_tools, also_needs=_MORE_TOOLS),
    # 1 - the sum of the means of `of` / that of `to`: the share by which `of` takes less over all data sets
    "average_saving": MeasureKind(_average_saving, "share", ("to", "data")),
    # the mean over the data sets of mean(column of `of`) - mean(column of `minus`)
    "average_difference": MeasureKind(_average_difference, "difference", ("minus", "data")),
}
