"""Two systems on the same questions: differences of accuracy, ratios of tokens, cost and latency.

    a, b = measured(rows), measured(others)
    paired("hotpotqa", ("rewoo", a), ("react", b), oracle=False)["total_tokens"].interval.estimate

The rows of both are of the same questions and trials, in the same order. Where the infrastructure
failed either of a pair (failed_rows.py), the pair is left out of every estimate, and counted. A system that made no
model call in any of the questions, such as an agent that crashes at its start, is in no ratio: it isn't cheap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.runs.failed_rows import left_out
from rewoo_bench.runs.table_columns import read_columns, there
from rewoo_bench.stats.mean_bounds import FEW, FEWEST
from rewoo_bench.stats.paired import (
    Interval,
    difference_of_means,
    difference_of_proportions,
    difference_p,
    effective_pairs,
    geometric_mean_ratio,
    ratio_of_means,
    ratio_p,
)
from rewoo_bench.stats.per_solved import ratio_per_solved
from rewoo_bench.stats.tests import McNemar, holm, mcnemar_exact

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Floats = NDArray[np.float64]
Measured = Mapping[str, NDArray[Any]]
FAMILY = ("exact_match", "total_tokens", "cost_usd")
"""The measures that a comparison is made for: one family of tests. The others are exploratory and not adjusted."""
ALPHA = 0.05
"""The level that the family's tests share (Holm)."""
A_RARE_EVENT = "a rare event may be missing"
"""What is said of an interval where few questions make the spread (`Interval.rare`), and its mark."""
RARE = "?"
OF_RARE = f"{RARE} {A_RARE_EVENT}: fewer than {FEWEST} questions, or fewer than {FEW:.0f} make most of the spread"
PRICED = "priced_usd"
"""Column and measure of dollars under a price sheet."""
AMOUNTS = ("total_tokens", "input_tokens", "cost_usd", PRICED, "latency_s")
PER_SOLVED = {"tokens_per_solved": "total_tokens", "usd_per_solved": "cost_usd", "priced_usd_per_solved": PRICED}
"""Measure -> its amount, of all questions for each one that was solved (an exact match)."""
LEFT_OUT = "left_out"
ANSWERED = "answered"
_CALLS = "llm_calls"


@dataclass(frozen=True, slots=True)
class Effect:
    """One measure of a pair: b - a or mean(b) / mean(a), and the p of no difference."""

    measure: str
    kind: Literal["difference", "ratio"]
    interval: Interval
    p: float
    """Exact McNemar for exact match; of the others below 0.05 exactly where `interval` (95%) leaves out no effect."""
    p_holm: float
    """Adjusted for all tests of the family (`FAMILY`) on the data set (`adjusted`); NaN for an exploratory test."""
    discordant: McNemar | None = None
    discordant_share: float | None = None
    pairs: float | None = None
    """Independent pairs that the rows are worth."""
    detectable: float | None = None
    """The smallest difference that exact McNemar at Holm's first step shows 4 times in 5 (`adjusted`)."""
    geometric: Interval | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """System b against system a."""

    dataset: str
    a: str
    b: str
    questions: int
    rows: int
    """Pairs: questions times trials, the ones left out included."""
    left_out: int
    """Pairs that are in no estimate, because the infrastructure failed one of the two."""
    oracle: bool
    """Whether the accuracy of either means nothing."""
    figures: tuple[Effect, ...]
    both_answered: Interval | None = None
    """The ratio of total tokens where both answered; None where that is all questions, or none."""
    without_calls: tuple[str, ...] = ()
    """Those of the two that made no model call in any compared question: the pair has no ratio."""
    tests: int = 0
    """Number of tests of its data set, which Holm's adjustment is for (`adjusted`)."""

    @property
    def compared(self) -> int:
        """Questions behind the differences of accuracy."""
        return self.figures[0].interval.n if self.figures else 0

    def is_exploratory(self, effect: Effect) -> bool:
        """Whether the effect is outside the family (`FAMILY`), or an oracle's accuracy."""
        return effect.measure not in FAMILY or (self.oracle and effect.kind == "difference")

    def __getitem__(self, measure: str) -> Effect:
        for effect in self.figures:
            if effect.measure == measure:
                return effect
        raise KeyError(measure)


def measured(rows: pd.DataFrame | pa.Table) -> dict[str, NDArray[Any]]:
    """What `paired` reads of rows, as numbers: questions, trials, scores, amounts, `ANSWERED` and `LEFT_OUT`."""
    names = ["example_id", "trial", "exact_match", "f1", *there(rows, (*AMOUNTS, _CALLS))]
    found = {name: column.values for name, column in read_columns(rows, names).items()}
    for stops in read_columns(rows, there(rows, ["stop_reason"])).values():
        found[ANSWERED] = np.array([name == "answered" for name in [*stops.names, None]])[stops.values]
    return {**found, LEFT_OUT: left_out(rows)}


def paired(dataset: str, a: tuple[str, Measured], b: tuple[str, Measured], *, oracle: bool) -> Pair:
    """All effects of a pair of systems (`measured`); an amount that isn't known of both is not among them."""
    (first, rows_a), (second, rows_b) = a, b
    questions, total = len(np.unique(rows_a["example_id"])), len(rows_a["example_id"])
    compared = ~(rows_a[LEFT_OUT] | rows_b[LEFT_OUT])
    rows_a, rows_b = ({name: values[compared] for name, values in rows.items()} for rows in (rows_a, rows_b))
    clusters = rows_a["example_id"] if questions < total else None
    figures = (
        _exact_match(*_both(rows_a["exact_match"], rows_b["exact_match"], clusters)),
        _f1(*_both(rows_a["f1"], rows_b["f1"], clusters)),
    )
    both = ((first, rows_a), (second, rows_b)) if compared.any() else ()
    idle = tuple(name for name, rows in both if _CALLS in rows and not np.any(rows[_CALLS]))  # NaN: not known, not idle
    timed = not oracle  # an oracle's seconds are no model's
    names = [name for name in AMOUNTS if name in rows_a and not idle and (timed or name != "latency_s")]
    amounts = (_amount(name, rows_a[name], rows_b[name], clusters) for name in names)
    solved = () if oracle or idle else (_per_solved(name, rows_a, rows_b, clusters) for name in PER_SOLVED)
    known = tuple(effect for effect in (*figures, *amounts, *solved) if effect is not None)
    answered = None if idle else _where_answered(rows_a, rows_b, clusters)
    return Pair(dataset, first, second, questions, total, int((~compared).sum()), oracle, known, answered, idle)


def adjusted(pairs: Sequence[Pair], parts: Mapping[str, str] | None = None) -> tuple[Pair, ...]:
    """The pairs with Holm's p values: the tests of the family (`FAMILY`), of all pairs of a data set together.

    `parts` has the data set of each part that is compared for itself. The detectable difference of exact match is that
    at Holm's first step: 0.05 by the number of tests.
    """
    from rewoo_bench.stats.power import minimum_detectable_difference

    of = [(parts or {}).get(pair.dataset, pair.dataset) for pair in pairs]
    families: dict[str, list[float]] = {name: [] for name in of}
    for name, pair in zip(of, pairs, strict=True):
        families[name] += [effect.p for effect in pair.figures if not pair.is_exploratory(effect)]
    adjusted_p = {name: iter(holm(family) if family else []) for name, family in families.items()}

    def settled(name: str, pair: Pair, effect: Effect) -> Effect:
        if pair.is_exploratory(effect):
            return replace(effect, p_holm=math.nan)
        effect = replace(effect, p_holm=next(adjusted_p[name]))
        if effect.discordant_share is None or effect.pairs is None:
            return effect
        level = ALPHA / len(families[name])
        return replace(effect, detectable=minimum_detectable_difference(effect.discordant_share, effect.pairs, level))

    return tuple(
        replace(pair, tests=len(families[name]), figures=tuple(settled(name, pair, effect) for effect in pair.figures))
        for name, pair in zip(of, pairs, strict=True)
    )


def column(rows: pd.DataFrame, name: str) -> Floats:
    """A column as numbers, NaN where there is none."""
    values: Floats = rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _both(a: Floats, b: Floats, clusters: NDArray[Any] | None) -> tuple[Floats, Floats, NDArray[Any] | None]:
    """The pairs that both have."""
    there = ~np.isnan(a + b)
    return a[there], b[there], None if clusters is None else clusters[there]


def _exact_match(a: Floats, b: Floats, clusters: NDArray[Any] | None) -> Effect | None:
    if not len(a):
        return None
    interval = difference_of_proportions(a, b, clusters=clusters)
    test = mcnemar_exact(a, b, clusters)
    share, pairs = (test.only_a + test.only_b) / len(a), effective_pairs(a, b, clusters)
    return Effect("exact_match", "difference", interval, test.p, test.p, test, share, pairs)


def _f1(a: Floats, b: Floats, clusters: NDArray[Any] | None) -> Effect | None:
    if not len(a):
        return None
    ends = (0.0, 1.0)
    interval = difference_of_means(a, b, ends=ends, clusters=clusters)
    p = difference_p(a, b, ends=ends, clusters=clusters)
    return Effect("f1", "difference", interval, p, p)


def _amount(name: str, a: Floats, b: Floats, clusters: NDArray[Any] | None) -> Effect | None:
    """A ratio; None where nothing of it is known. Of cost all has to be: prices known of some would mislead."""
    complete = not np.isnan(a + b).any()
    a, b, clusters = _both(a, b, clusters)
    if not len(a) or not a.any() or (name in ("cost_usd", PRICED) and not complete):
        return None
    p = ratio_p(a, b, clusters=clusters)
    geometric = geometric_mean_ratio(a, b, clusters)
    return Effect(name, "ratio", ratio_of_means(a, b, clusters=clusters), p, p, geometric=geometric)


def _where_answered(a: Measured, b: Measured, clusters: NDArray[Any] | None) -> Interval | None:
    if ANSWERED not in a or ANSWERED not in b:
        return None
    both = a[ANSWERED] & b[ANSWERED]
    first, second = (rows["total_tokens"][both] for rows in (a, b))
    if both.all() or not first.any() or not second.any() or np.isnan(first + second).any():
        return None
    return ratio_of_means(first, second, clusters=None if clusters is None else clusters[both])


def _per_solved(name: str, a: Measured, b: Measured, clusters: NDArray[Any] | None) -> Effect | None:
    """The ratio of what the two take for each solved question; None where its amount isn't known of all."""
    column = PER_SOLVED[name]
    known = (
        column in a and column in b and not np.isnan(a[column] + b[column] + a["exact_match"] + b["exact_match"]).any()
    )
    if not known or not a[column].any() or not b[column].any():
        return None
    each = ((rows[column], rows["exact_match"]) for rows in (a, b))
    return Effect(name, "ratio", ratio_per_solved(*each, clusters=clusters), math.nan, math.nan)
