"""A way of choosing between two parents, as measured: what it buys and costs, and how it differs from each parent.

way = way_of("rule", "policy", share, taken, columns)
way.exact_match, way.against[0].exact_match     # Interval(0.41, …), its difference from the first parent
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rewoo_bench.routing.outcomes import Floats, Whole
from rewoo_bench.stats.paired import (
    Interval,
    difference_of_means,
    difference_of_proportions,
    mean_of,
    proportion,
    ratio_of_means,
)
from rewoo_bench.stats.tests import mcnemar_exact

Kind = Literal["parent", "policy", "bound", "biased bound"]
F1_ENDS = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Columns:
    """The parents' measures, a row for each of them, and the question of each column."""

    parents: tuple[str, str]
    measures: Mapping[str, Floats]
    question: Whole
    oracle: bool


@dataclass(frozen=True, slots=True)
class Against:
    """A way minus a parent, and its amounts as multiples of the parent's; None where they aren't known."""

    parent: str
    exact_match: Interval
    p: float
    """Exact McNemar, of no difference of exact match."""
    f1: Interval
    total_tokens: Interval | None
    cost_usd: Interval | None
    latency_s: Interval | None


@dataclass(frozen=True, slots=True)
class Way:
    """A way of choosing: always one parent, a policy, or a bound that no policy can be held to."""

    name: str
    kind: Kind
    share: float
    """Share of the rows that go to the second parent."""
    exact_match: Interval
    f1: Interval
    total_tokens: Interval | None
    cost_usd: Interval | None
    latency_s: Interval | None
    against: tuple[Against, Against]


def way_of(name: str, kind: Kind, share: float, taken: Mapping[str, Floats], columns: Columns) -> Way:
    """The way with these measures by row. Rows that failed are left out of its estimates."""
    there = np.isfinite(taken["exact_match"])
    own = {measure: values[there] for measure, values in taken.items()}
    parents = {measure: values[:, there] for measure, values in columns.measures.items()}
    question = columns.question[there]
    clusters = question if len(np.unique(question)) < len(question) else None
    return Way(
        name,
        kind,
        share,
        proportion(own["exact_match"], clusters=clusters),
        mean_of(own["f1"], ends=F1_ENDS, clusters=clusters),
        _mean(own["total_tokens"], clusters),
        _mean(own["cost_usd"], clusters),
        None if columns.oracle else _mean(own["latency_s"], clusters),
        (_against(own, parents, clusters, columns, 0), _against(own, parents, clusters, columns, 1)),
    )


def _against(
    own: Mapping[str, Floats], parents: Mapping[str, Floats], clusters: Whole | None, columns: Columns, place: int
) -> Against:
    of = {measure: values[place] for measure, values in parents.items()}
    return Against(
        columns.parents[place],
        difference_of_proportions(of["exact_match"], own["exact_match"], clusters=clusters),
        mcnemar_exact(of["exact_match"], own["exact_match"], clusters).p,
        difference_of_means(of["f1"], own["f1"], ends=F1_ENDS, clusters=clusters),
        _ratio(of["total_tokens"], own["total_tokens"], clusters),
        _ratio(of["cost_usd"], own["cost_usd"], clusters),
        None if columns.oracle else _ratio(of["latency_s"], own["latency_s"], clusters),
    )


def _mean(values: Floats, clusters: Whole | None) -> Interval | None:
    """None where a value isn't known: a mean of the others would mislead."""
    return mean_of(values, clusters=clusters) if np.isfinite(values).all() else None


def _ratio(parent: Floats, own: Floats, clusters: Whole | None) -> Interval | None:
    return ratio_of_means(parent, own, clusters=clusters) if np.isfinite(parent + own).all() and parent.any() else None
