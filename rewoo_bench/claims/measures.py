"""What a claim is about, measured: chosen by name in claims.toml, with the columns and architectures it is of.

    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }   # mean(react) / mean(rewoo)

A measure gives an interval of `rewoo_bench.stats.paired`, paired by question, or None where the evidence
lacks an architecture or a column. Where the infrastructure failed either of a pair (failed_rows.py), the
pair is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rewoo_bench.claims.derived_columns import COLUMNS, NOT_OF_AN_ORACLE, SCORES, SHARES, YES_OR_NO
from rewoo_bench.claims.pairing import Pairs, by_steps, pairs
from rewoo_bench.claims.run_groups import Evidence, before
from rewoo_bench.errors import unknown
from rewoo_bench.stats.columns import by_question
from rewoo_bench.stats.paired import (
    Interval,
    difference_of_means,
    difference_of_proportions,
    mean_of,
    proportion,
    ratio_of_means,
)
from rewoo_bench.stats.polynomial import curvature, trend

Floats = NDArray[np.float64]


def _known_column(name: str) -> str:
    if name not in COLUMNS:
        raise ValueError(unknown("column", name, COLUMNS))
    return name


Column = Annotated[str, AfterValidator(_known_column)]


class Measure(BaseModel):
    """What all measures share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: ClassVar[str] = "its column's"
    beside: ClassVar[str] = ""
    """What has to be there beside the run itself."""
    of_a_chain: ClassVar[int] = 96
    """So many questions of the chain data set decide a claim."""

    column: Column
    of: str
    """The architecture it is about."""

    def architectures(self) -> list[str]:
        """All that have to have run."""
        others = (getattr(self, name, None) for name in ("to", "minus"))
        return list(dict.fromkeys(name for name in (self.of, *others) if name))

    def columns(self) -> set[str]:
        """All that are read."""
        return {name for name in (self.column, getattr(self, "against", None)) if name}

    def serves_oracle(self) -> bool:
        """Whether an oracle's run can say anything about it: of costs, not of accuracy or latency."""
        return not self.columns() & NOT_OF_AN_ORACLE

    def show(self, value: float) -> str:
        """A value in the measure's unit, but for the `suffix`."""
        if self.unit == "share":
            return f"{100 * value:.1f}%"
        if self.unit == "times":
            return f"{value:.2f}"
        return f"{100 * value:+.1f}" if self.column in SHARES else f"{value:+,.2f}"

    @property
    def suffix(self) -> str:
        """What comes behind a value."""
        return " points" if self.unit == Measure.unit and self.column in SHARES else ""

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        """The estimate with its 95% interval; `gathered` is all evidence, for what holds one against another."""
        raise NotImplementedError


class Ratio(Measure):
    """mean(column of `of`) / mean(column of `to`); with `against` the second mean is of that column."""

    unit: ClassVar[str] = "times"

    to: str
    against: Column | None = None

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = pairs((evidence, self.to, self.against or self.column), (evidence, self.of, self.column))
        return (
            ratio_of_means(*found.columns, clusters=found.clusters)
            if found and all(map(np.any, found.columns))
            else None
        )


class Saving(Ratio):
    """1 - Ratio: by which share `of` takes less than `to`."""

    unit: ClassVar[str] = "share"

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = super().measure(evidence, gathered)
        return found and replace(found, estimate=1 - found.estimate, low=1 - found.high, high=1 - found.low)


class Difference(Measure):
    """mean(column of `of`) - mean(column of `minus`), in points where it is of shares."""

    minus: str

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = pairs((evidence, self.minus, self.column), (evidence, self.of, self.column))
        return _difference(found, self.column) if found else None


class Mean(Measure):
    """mean(column of `of`)."""

    unit: ClassVar[str] = "plain"

    def show(self, value: float) -> str:
        return f"{100 * value:.1f}%" if self.column in SHARES else f"{value:,.2f}"

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = pairs((evidence, self.of, self.column))
        if not found:
            return None
        (values,) = found.columns
        if self.column in YES_OR_NO:
            return proportion(values, clusters=found.clusters)
        return mean_of(values, ends=_ends(self.column), clusters=found.clusters)


class QuantileRatio(Measure):
    """A quantile of `of` / the same quantile of `to`; bootstrap percentiles over questions."""

    unit: ClassVar[str] = "times"

    to: str
    quantile: float = Field(gt=0, lt=1)

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = pairs((evidence, self.to, self.column), (evidence, self.of, self.column))
        if not found:
            return None
        below, above = by_question(found.columns[0], found.columns[1], found.clusters)
        at = partial(np.quantile, q=self.quantile)
        estimate = float(at(above) / at(below))
        if len(above) < 2:
            return Interval(estimate, 0.0, math.inf, len(above))
        draw = np.random.default_rng(0)
        drawn = (draw.integers(len(above), size=len(above)) for _ in range(2_000))
        low, high = np.quantile([at(above[rows]) / at(below[rows]) for rows in drawn], [0.025, 0.975])
        return Interval(estimate, float(low), float(high), len(above))


class Curvature(Measure):
    """The share of the growth with look-ups that a quadratic term makes: 0 is linear growth. For the chain data set."""

    unit: ClassVar[str] = "share"
    of_a_chain: ClassVar[int] = 240

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = by_steps((evidence, self.of, self.column))
        return found and _known(curvature(found[0], found[1][0]))


class RatioTrend(Measure):
    """By how much a question's own ratio, `of` / `to`, grows with one look-up more. For the chain data set."""

    to: str

    def show(self, value: float) -> str:
        return f"{value:+.3f}"

    @property
    def suffix(self) -> str:
        return " a look-up"

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        found = by_steps((evidence, self.to, self.column), (evidence, self.of, self.column))
        if not found:
            return None
        steps, (below, above) = found
        there = below > 0
        return _known(trend(steps[there], above[there] / below[there]))


class Change(Measure):
    """mean(column of `of`) where tools fail - the same where none does; with `minus`, less that one's own change."""

    beside: ClassVar[str] = "and the same without failing tools"

    minus: str | None = None

    def serves_oracle(self) -> bool:
        """What an agent does after a failure is up to its model; an oracle's policy is one that we made."""
        return False

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        for other in before(evidence, gathered):
            ways = [(each, name, self.column) for name in self.architectures() for each in (other, evidence)]
            found = pairs(*ways)
            if found and len(found.columns) == 2:
                return _difference(found, self.column)
            if found:
                clean, failing, clean_minus, failing_minus = found.columns
                return difference_of_means(failing_minus - clean_minus, failing - clean, clusters=found.clusters)
        return None


class MoreTools(Measure):
    """mean(column of `of`) with the most tools that it was offered - the same with the fewest."""

    beside: ClassVar[str] = "and beside it the same with more tools, as in --arch 'rewoo,rewoo?tools=Search+LLM+Lookup'"

    def measure(self, evidence: Evidence, gathered: Sequence[Evidence]) -> Interval | None:
        own = self._offers(evidence)
        others = [each for each in gathered if each.base == evidence.base and not each.failure_rate]
        offered = {tools: (each, name) for each in others for tools, name in self._offers(each).items()}
        if not own or len(offered) < 2 or max(own) < max(offered):
            return None
        found = pairs((*offered[min(offered)], self.column), (evidence, own[max(own)], self.column))
        return _difference(found, self.column) if found else None

    def _offers(self, evidence: Evidence) -> dict[int, str]:
        """How many tools were offered -> to which architecture: `of`, or the same with other tools and nothing else."""
        return {
            system.tools: name
            for name, system in evidence.systems.items()
            if system.tools is not None and (name == self.of or _only_tools(name, self.of))
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


def _difference(found: Pairs, column: str) -> Interval:
    if column in YES_OR_NO:
        return difference_of_proportions(*found.columns, clusters=found.clusters)
    return difference_of_means(*found.columns, ends=_ends(column), clusters=found.clusters)


def _ends(column: str) -> tuple[float, float] | None:
    """The ends of a score's scale; an amount has none."""
    return (0.0, 1.0) if column in SCORES else None


def _only_tools(name: str, plain: str) -> bool:
    """Whether an architecture is another with other tools and nothing else: `rewoo?tools=Search` is `rewoo` so."""
    return name.startswith(f"{plain}?tools=") and "&" not in name


def _known(found: Interval) -> Interval | None:
    return None if math.isnan(found.estimate) else found
