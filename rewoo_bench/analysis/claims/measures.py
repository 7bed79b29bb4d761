"""The measures of claims: chosen by name in claims.toml, with their columns and architectures.

    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }   # mean(react) / mean(rewoo)

A measure gives an interval of `rewoo_bench.analysis.stats.paired`, paired by question, or None where the run group
lacks an architecture or a column. A pair is left out where the infrastructure failed either row (runs/rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rewoo_bench.analysis.claims.rules import Tested
from rewoo_bench.analysis.claims.run_groups import (
    COLUMNS,
    NOT_OF_AN_ORACLE,
    SCORES,
    YES_OR_NO,
    Data,
    RunGroup,
    chain_shape,
)
from rewoo_bench.analysis.stats.bootstrap import curvature, trend
from rewoo_bench.analysis.stats.paired import (
    Interval,
    averaged,
    by_question,
    difference_of_means,
    difference_of_proportions,
    mean_of,
    proportion,
    ratio_of_means,
)
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.errors import unknown
from rewoo_bench.runs import rows as failed_rows

Floats = NDArray[np.float64]
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
    columns = []
    for group, architecture, name in wanted:
        own = group.architectures.get(architecture)
        column = own.column(name) if own else None
        if own is None or column is None:
            return None
        columns.append(column[~_cut_off(group, own.rows.loc[column.index], name)])
    joined = pd.concat(columns, axis=1, join="inner", keys=range(len(columns)), sort=True)
    known = joined.dropna()
    if not len(known) or (wanted[0][2] == "cost_usd" and len(known) < len(joined)):
        return None  # a price that is known for some rows only would mislead
    questions = known.index.get_level_values("example_id")
    clusters = questions.to_numpy(dtype=object) if questions.has_duplicates else None
    group, name, _ = wanted[0]
    rows = group.architectures[name].rows.loc[known.index] if group.data == "chain" else None
    steps: Floats | None = None if rows is None else np.asarray(chain_shape(rows)[0], dtype=np.float64)
    values = known.to_numpy(dtype=np.float64)
    return Pairs(tuple(values[:, position] for position in range(len(columns))), clusters, steps)


def left_out(wanted: Sequence[ColumnOf]) -> int:
    """Rows of these architectures that `pairs` leaves out: failed, or cut off by a limit."""
    rows = 0
    for group, architecture, name in wanted:
        if own := group.architectures.get(architecture):
            rows += int((failed_rows.left_out(own.rows) | _cut_off(group, own.rows, name)).sum())
    return rows


def never_asked(wanted: Sequence[ColumnOf]) -> int:
    """Rows of these architectures that a stopped run lacks."""
    own = (group.architectures.get(architecture) for group, architecture, _ in wanted)
    return sum(rows.never_asked for rows in own if rows)


def _cut_off(group: RunGroup, rows: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    """Where a plan was rejected, or a limit of steps, tokens, time or cost ended a question of the chain data set.

    It needs a known number of look-ups: one that was cut off doesn't show their cost. Elsewhere, and in scores, such
    questions count.
    """
    if group.data != "chain" or name in SCORES or name == "over_limit":
        return np.zeros(len(rows), dtype=bool)
    reasons = ("invalid_plan", "step_limit", "repeated", "token_limit", "time_limit", "cost_limit")
    cut: NDArray[np.bool_] = rows["stop_reason"].astype(str).isin(reasons).to_numpy(dtype=bool)
    return cut


def by_steps(*wanted: ColumnOf) -> tuple[Floats, list[Floats]] | None:
    """Look-ups, and each column, a value per question."""
    paired = pairs(*wanted)
    if not paired or paired.steps is None:
        return None
    steps, *columns = averaged(paired.clusters, paired.steps, *paired.columns)
    return steps, columns


TOKENS = frozenset({"total_tokens", "input_tokens"})


def _known_column(name: str) -> str:
    if name not in COLUMNS:
        raise ValueError(unknown("column", name, COLUMNS))
    return name


Column = Annotated[str, AfterValidator(_known_column)]


class Measure(BaseModel):
    """A column of one architecture, and of another one where there is `to` or `minus`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: ClassVar[str] = "its column's"
    also_needs: ClassVar[str] = ""
    """Further runs that the measure needs, for the line that says what to run."""
    chain_questions: ClassVar[int] = 96
    """Number of questions of the chain data set that decides a claim."""

    column: Column
    of: str
    """The architecture that is measured."""

    def architectures(self) -> list[str]:
        """The architectures that a run must have."""
        others = (getattr(self, name, None) for name in ("to", "minus"))
        return list(dict.fromkeys(name for name in (self.of, *others) if name))

    def data_sets(self) -> tuple[Data, ...]:
        """The data sets that it needs, each of them; none where it needs one run group only."""
        return ()

    def groups_used(self, group: RunGroup, groups: Sequence[RunGroup]) -> list[RunGroup]:
        """The run groups that it is of; none where some are missing."""
        return [group]

    def columns(self) -> set[str]:
        """The columns that are read."""
        return {name for name in (self.column, getattr(self, "against", None)) if name}

    def serves_oracle(self) -> bool:
        """Whether an oracle's run has the measure: costs, but neither accuracy nor latency."""
        return not self.columns() & NOT_OF_AN_ORACLE

    def show(self, value: float) -> str:
        """A value in the measure's unit, without the `suffix`."""
        if self.unit == "share":
            return f"{100 * value:.1f}%"
        if self.unit == "times":
            return f"{value:.2f}"
        return f"{100 * value:+.1f}" if self.column in SCORES else f"{value:+,.2f}"

    @property
    def suffix(self) -> str:
        """The unit, printed after a value."""
        return " points" if self.unit == Measure.unit and self.column in SCORES else ""

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        """The estimate with its 95% interval; `groups` are all run groups, for measures that compare two of them."""
        raise NotImplementedError


class Ratio(Measure):
    """mean(column of `of`) / mean(column of `to`); with `against` the second mean is of that column."""

    unit: ClassVar[str] = "times"

    to: str
    against: Column | None = None

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        both = pairs(*self._two(group))
        if not both or not all(map(np.any, both.columns)):
            return None
        return self._shown(ratio_of_means(*both.columns, clusters=both.clusters))

    def where_answered(self, group: RunGroup) -> Interval | None:
        """Of tokens the same over the questions that both answered; None where that is all of them, or none."""
        tokens = self.column in TOKENS and self.against is None
        found = (
            pairs(*self._two(group), *((group, name, "answered") for name in (self.to, self.of))) if tokens else None
        )
        if not found:
            return None
        below, above, *answered = found.columns
        kept = np.logical_and(*answered)
        if kept.all() or not below[kept].any() or not above[kept].any():
            return None
        clusters = None if found.clusters is None else found.clusters[kept]
        return self._shown(ratio_of_means(below[kept], above[kept], clusters=clusters))

    def _two(self, group: RunGroup) -> tuple[ColumnOf, ColumnOf]:
        return (group, self.to, self.against or self.column), (group, self.of, self.column)

    def _shown(self, ratio: Interval) -> Interval:
        return ratio


class Saving(Ratio):
    """1 - Ratio: the share by which `of` takes less than `to`."""

    unit: ClassVar[str] = "share"

    def _shown(self, ratio: Interval) -> Interval:
        return replace(ratio, estimate=1 - ratio.estimate, low=1 - ratio.high, high=1 - ratio.low)


class Difference(Measure):
    """mean(column of `of`) - mean(column of `minus`), in points where the column is a share."""

    minus: str

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        both = pairs((group, self.minus, self.column), (group, self.of, self.column))
        return difference_of(both, self.column) if both else None


class Mean(Measure):
    """mean(column of `of`); with `among` only over the questions where that column, of yes or no, is yes."""

    unit: ClassVar[str] = "plain"

    among: Column | None = None

    def columns(self) -> set[str]:
        return {self.column, *([self.among] if self.among else [])}

    def show(self, value: float) -> str:
        return f"{100 * max(value, 0):.1f}%" if self.column in SCORES else f"{value:,.2f}"  # a band may reach below 0

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        rows = pairs((group, self.of, self.column), (group, self.of, self.among or self.column))
        if not rows:
            return None
        values, chosen = rows.columns
        kept = chosen == 1 if self.among else np.ones(len(values), dtype=bool)
        clusters = None if rows.clusters is None else rows.clusters[kept]
        if not kept.any():
            return None
        if self.column in YES_OR_NO:
            return proportion(values[kept], clusters=clusters)
        return mean_of(values[kept], ends=_ends(self.column), clusters=clusters)


class QuantileRatio(Measure):
    """A quantile of `of` / the same quantile of `to`; bootstrap percentiles over questions."""

    unit: ClassVar[str] = "times"

    to: str
    quantile: float = Field(gt=0, lt=1)

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        both = pairs((group, self.to, self.column), (group, self.of, self.column))
        if not both:
            return None
        below, above = by_question(both.columns[0], both.columns[1], both.clusters)
        at = partial(np.quantile, q=self.quantile)
        estimate = float(at(above) / at(below))
        if len(above) < 2:
            return Interval(estimate, 0.0, math.inf, len(above))
        draw = np.random.default_rng(0)
        drawn = (draw.integers(len(above), size=len(above)) for _ in range(2_000))
        low, high = np.quantile([at(above[rows]) / at(below[rows]) for rows in drawn], [0.025, 0.975])
        return Interval(estimate, float(low), float(high), len(above))


class Curvature(Measure):
    """The quadratic term's share of the growth with look-ups; 0 for linear growth. For the chain data set."""

    unit: ClassVar[str] = "share"
    chain_questions: ClassVar[int] = 240

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        by_look_ups = by_steps((group, self.of, self.column))
        return by_look_ups and _known(curvature(by_look_ups[0], by_look_ups[1][0]))


class RatioTrend(Measure):
    """Growth of a question's ratio, `of` / `to`, with one look-up more. For the chain data set."""

    to: str

    def show(self, value: float) -> str:
        return f"{value:+.3f}"

    @property
    def suffix(self) -> str:
        return " a look-up"

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        by_look_ups = by_steps((group, self.to, self.column), (group, self.of, self.column))
        if not by_look_ups:
            return None
        steps, (below, above) = by_look_ups
        divisible = below > 0
        return _known(trend(steps[divisible], above[divisible] / below[divisible]))


class Change(Measure):
    """mean(column of `of`) with failing tools - without; given `minus`, less the same change of `minus`."""

    also_needs: ClassVar[str] = "and the same without failing tools"

    minus: str | None = None

    def serves_oracle(self) -> bool:
        """No: after a failure the model decides what to do, and the oracle's policy is ours."""
        return False

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        for other in (each for each in groups if each.base == group.base and not each.failure_rate):
            wanted = [(each, name, self.column) for name in self.architectures() for each in (other, group)]
            rows = pairs(*wanted)
            if rows and len(rows.columns) == 2:
                return difference_of(rows, self.column)
            if rows:
                clean, failing, clean_minus, failing_minus = rows.columns
                return difference_of_means(failing_minus - clean_minus, failing - clean, clusters=rows.clusters)
        return None


class MoreTools(Measure):
    """mean(column of `of`) with the most tools - with the fewest."""

    also_needs: ClassVar[str] = "and the same with more tools, as in --arch 'rewoo,rewoo?tools=Search+LLM+Lookup'"

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        own = self._offers(group)
        others = [each for each in groups if each.base == group.base and not each.failure_rate]
        offered = {tools: (each, name) for each in others for tools, name in self._offers(each).items()}
        if not own or len(offered) < 2 or max(own) < max(offered):
            return None
        both = pairs((*offered[min(offered)], self.column), (group, own[max(own)], self.column))
        return difference_of(both, self.column) if both else None

    def _offers(self, group: RunGroup) -> dict[int, str]:
        """Number of tools -> the architecture that offers them: `rewoo`, or `rewoo?tools=Search` and nothing else."""
        variants = f"{self.of}?tools="
        return {
            own.tools: name
            for name, own in group.architectures.items()
            if own.tools is not None and (name == self.of or (name.startswith(variants) and "&" not in name))
        }


MEASURES: dict[str, type[Measure]] = {
    "ratio": Ratio,
    "saving": Saving,
    "difference": Difference,
    "mean": Mean,
    "quantile_ratio": QuantileRatio,
    "curvature": Curvature,
    "ratio_trend": RatioTrend,
    "change": Change,
    "more_tools": MoreTools,
}


def difference_of(both: Pairs, column: str) -> Interval:
    """The second column's mean minus the first one's."""
    if column in YES_OR_NO:
        a, b = both.columns
        interval = difference_of_proportions(a, b, clusters=both.clusters)
        return Tested(**asdict(interval), p=mcnemar_exact(a, b, both.clusters).p)
    return difference_of_means(*both.columns, ends=_ends(column), clusters=both.clusters)


def _ends(column: str) -> tuple[float, float] | None:
    """The ends of a score's scale; an amount has none."""
    return (0.0, 1.0) if column in SCORES else None


def _known(interval: Interval) -> Interval | None:
    return None if math.isnan(interval.estimate) else interval
