"""Two systems on the same questions: differences of accuracy, ratios of tokens, cost and latency.

    paired("hotpotqa", ("rewoo", rows), ("react", others), oracle=False)["total_tokens"].interval.estimate

The rows of both are of the same questions and trials, in the same order. Where the infrastructure
failed either of a pair (runs/rows.py), the pair is left out of every estimate, and counted. A system that made no
model call in any of the questions, such as an agent that crashes at its start, is in no ratio: it isn't cheap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import (
    A_RARE_EVENT,
    FEWEST,
    Floats,
    Interval,
    difference_and_p,
    difference_of_proportions,
    discordant,
    ratio_and_p,
)
from rewoo_bench.analysis.stats.solved import by_trials, difference_of_passes, ratio_per_solved
from rewoo_bench.analysis.stats.tests import McNemar, holm, mcnemar_exact, minimum_detectable_difference
from rewoo_bench.runs.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

FAMILY = ("exact_match", "total_tokens", "cost_usd")
"""The measures that a comparison is made for: one family of tests. The others are exploratory and not adjusted."""
ALPHA = 0.05
"""The level that the family's tests share (Holm)."""
AMOUNTS = ("total_tokens", "input_tokens", "cost_usd", "latency_s")
PER_SOLVED = {"tokens_per_solved": "total_tokens", "usd_per_solved": "cost_usd"}
"""Measure -> its amount, of all questions for each one that was solved (an exact match)."""
PASS = "pass^"
"""What the measure of k trials that are all right begins with: `pass^4`."""


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


@dataclass(frozen=True, slots=True)
class Pair:
    """System b against system a: ratios are b / a, differences b - a (`way_round` says which of two is which)."""

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
    checked: bool = False
    """Whether a world's check is the score of both."""
    done: tuple[int, int] | None = None
    """Rows that a and b have right, of an oracle in a world: then amounts are of those that both have right."""
    attacked: bool = False
    """Whether an attacker's text stood in results, which an oracle may obey."""
    tests: int = 0
    """Number of tests of its data set, which Holm's adjustment is for (`adjusted`)."""

    @property
    def loop_and_plan(self) -> bool:
        """Whether it is a loop by a plan."""
        return _loopy(self.b) - _loopy(self.a) == 2

    def is_exploratory(self, effect: Effect) -> bool:
        """Whether the effect is outside the family (`FAMILY`), or an oracle's accuracy."""
        return effect.measure not in FAMILY or (self.oracle and effect.kind == "difference")

    def __getitem__(self, measure: str) -> Effect:
        return {effect.measure: effect for effect in self.figures}[measure]


@dataclass(frozen=True, slots=True)
class PairUnder:
    """Two systems under a price: dollars of b by those of a, paired by question."""

    a: str
    b: str
    ratio: Interval
    even_at: float
    """The price of cached input, by that of input, at which both cost the same; NaN where they do at none up to 1."""


@dataclass(frozen=True, slots=True)
class Under:
    """The dollars of a data set under one of several prices."""

    dataset: str
    price: str
    """As it was asked for: `openai`."""
    usd: Mapping[str, Interval]
    """Of each system the mean per question."""
    cached_tokens: Mapping[str, float]
    """Of each system the mean per question."""
    cached_price: float | None
    """The price of cached input, by that of input; None where some calls have other prices."""
    pairs: tuple[PairUnder, ...]


_PLANS = ("rewoo", "rewoo-json", "rewoo-lazy", "rewoo-code", "rewoo-react", "llmcompiler", "plan-execute")
_LOOPS = ("react", "react-json", "react-native", "react-code")


def way_round(first: str, second: str) -> tuple[str, str]:
    """Two architectures as (a, b): everywhere a loop is divided by a plan, and a plan is taken from a loop.

    So it is ReAct by ReWOO and ReAct less ReWOO, whatever order they stand in. Any other architecture comes between:
    it is divided by a plan, and a loop by it. Two of one kind stay as they are.
    """
    return (second, first) if _loopy(second) < _loopy(first) else (first, second)


def reference(labels: Iterable[str]) -> str:
    """The system that the others are compared with by default: the first that plans ahead, else the first."""
    names = list(labels)
    return next((name for name in names if _loopy(name) < 0), names[0])


def _loopy(label: str) -> int:
    """1 for a loop, -1 for a plan, by the name of an architecture: with settings, a model or a run behind it, too."""
    name = re.split(r"\?|, ", label)[0]
    return (name in _LOOPS) - (name in _PLANS)


def paired(dataset: str, a: tuple[str, Rows], b: tuple[str, Rows], *, oracle: bool, checked: bool = False) -> Pair:
    """All effects of a pair of systems; an amount that isn't known of both is not among them.

    Of an oracle whose score is a world's check (`checked`), amounts are of the rows that both have right: what an
    architecture leaves undone costs it little.
    """
    (first, rows_a), (second, rows_b) = a, b
    questions, total = len(np.unique(rows_a.question)), len(rows_a)
    compared = ~(rows_a.left_out | rows_b.left_out)
    rows_a, rows_b = rows_a.where(compared), rows_b.where(compared)
    clusters = rows_a.question if questions < total else None
    both = ((first, rows_a), (second, rows_b)) if compared.any() else ()
    # a system whose calls aren't known (NaN) isn't one without calls
    without_calls = tuple(name for name, rows in both if not np.any(rows["llm_calls"]))
    effects = _differences(rows_a, rows_b, clusters)
    answered = None
    if not without_calls:
        did = both_did(rows_a, rows_b)
        if not (oracle and checked):
            effects += _ratios(rows_a, rows_b, clusters, oracle)
        elif did.any():
            effects += _ratios(
                rows_a.where(did), rows_b.where(did), None if clusters is None else clusters[did], oracle
            )
        some = (rows_a["stop_reason"] == "answered") & (rows_b["stop_reason"] == "answered")
        tokens_a, tokens_b = (rows["total_tokens"][some] for rows in (rows_a, rows_b))
        if not some.all() and tokens_a.any() and tokens_b.any() and not np.isnan(tokens_a + tokens_b).any():
            answered, _ = ratio_and_p(tokens_a, tokens_b, None if clusters is None else clusters[some])
    excluded = int((~compared).sum())
    right = (int((rows_a["exact_match"] == 1).sum()), int((rows_b["exact_match"] == 1).sum()))
    return Pair(
        *(dataset, first, second, questions, total, excluded, oracle, tuple(effects), answered, without_calls),
        checked=checked,
        done=right if oracle and checked else None,
        attacked="new_calls" in rows_a and not np.isnan(rows_a["new_calls"]).all(),
    )


def both_did(a: Rows, b: Rows) -> NDArray[np.bool_]:
    """A mask of aligned rows: True where both are right."""
    mask: NDArray[np.bool_] = (a["exact_match"] == 1) & (b["exact_match"] == 1)
    return mask


def _differences(a: Rows, b: Rows, clusters: NDArray[Any] | None) -> list[Effect]:
    """The differences of exact match, F1 and pass^k, k all trials; none where no pair has both scores."""
    effects = []
    right, right_b, questions = _known_of_both("exact_match", a, b, clusters)
    if len(right):
        interval = difference_of_proportions(right, right_b, clusters=questions)
        test = mcnemar_exact(right, right_b, questions)
        share, pairs = (test.only_a + test.only_b) / len(right), discordant(right, right_b, questions).worth
        effects.append(Effect("exact_match", "difference", interval, test.p, test.p, test, share, pairs))
    first, second, of_f1 = _known_of_both("f1", a, b, clusters)
    if len(first):
        interval, p = difference_and_p(first, second, (0.0, 1.0), of_f1)
        effects.append(Effect("f1", "difference", interval, p, p))
    if questions is not None and len(right):
        outcomes = by_trials(right, questions), by_trials(right_b, questions)
        if (k := int(outcomes[0].trials.max())) > 1:
            interval, p = difference_of_passes(*outcomes, k)
            effects.append(Effect(f"{PASS}{k}", "difference", interval, p, p))
    return effects


def _ratios(a: Rows, b: Rows, clusters: NDArray[Any] | None, oracle: bool) -> list[Effect]:
    """The ratios of amounts, and of those per solved question; none where nothing of an amount is known.

    Of cost, and per solved question, it has to be known of all pairs: prices known of some would mislead.
    """
    effects = []
    for name in AMOUNTS:
        if oracle and name == "latency_s":  # an oracle's seconds are no model's
            continue
        first, second, questions = _known_of_both(name, a, b, clusters)
        if first.any() and (len(first) == len(a[name]) or name != "cost_usd"):
            interval, p = ratio_and_p(first, second, questions)
            effects.append(Effect(name, "ratio", interval, p, p))
    for name, amount in PER_SOLVED.items():
        if oracle or not a[amount].any() or not b[amount].any():
            continue
        if not np.isnan(a[amount] + b[amount] + a["exact_match"] + b["exact_match"]).any():
            each = ((rows[amount], rows["exact_match"]) for rows in (a, b))
            ratio = ratio_per_solved(*each, clusters=clusters)
            effects.append(Effect(name, "ratio", ratio, math.nan, math.nan))
    return effects


def _known_of_both(
    name: str, a: Rows, b: Rows, clusters: NDArray[Any] | None
) -> tuple[Floats, Floats, NDArray[Any] | None]:
    """A column of the pairs in which both have a value, and the question of each pair."""
    known = ~np.isnan(a[name] + b[name])
    return a[name][known], b[name][known], None if clusters is None else clusters[known]


def adjusted(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with Holm's p values: the tests of the family (`FAMILY`), of all pairs of a data set together.

    The detectable difference of exact match is that at Holm's first step: 0.05 by the number of tests.
    """
    families: dict[str, list[float]] = {pair.dataset: [] for pair in pairs}
    for pair in pairs:
        families[pair.dataset] += [effect.p for effect in pair.figures if not pair.is_exploratory(effect)]
    adjusted_p = {name: iter(holm(family)) for name, family in families.items()}
    found = []
    for pair in pairs:
        name, figures = pair.dataset, []
        for effect in pair.figures:
            p_holm, detectable = math.nan, None
            if not pair.is_exploratory(effect):
                p_holm = next(adjusted_p[name])
                if effect.discordant_share is not None and effect.pairs is not None:
                    level = ALPHA / len(families[name])
                    detectable = minimum_detectable_difference(effect.discordant_share, effect.pairs, level)
            figures.append(replace(effect, p_holm=p_holm, detectable=detectable))
        found.append(replace(pair, tests=len(families[name]), figures=tuple(figures)))
    return tuple(found)


def column(rows: pd.DataFrame, name: str) -> Floats:
    """A column as numbers, NaN for a missing value."""
    values: Floats = rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def of_rare(interval: Interval) -> str:
    """Why an interval with the mark `RARE` shows nothing, wherever it lies."""
    if interval.n < FEWEST:
        return "too few questions to rule out a rare event"
    return f"few questions make the spread, {A_RARE_EVENT}"
