"""Candidates and their contrasts -> the architecture to use, or how many questions decide it.

1. Only architectures within the limits may be recommended: those whose intervals are at or below them.
2. An architecture that another of them beats (exact McNemar, Holm) isn't the most accurate. Where one alone is left, it
   is recommended.
3. Else it is the cheapest of those that are left, if it is shown not to be worse than any other of them by the margin
   or more: it has to show that against each (an intersection-union test, Berger 1982, Technometrics 24), with Holm's
   adjustment for the number of architectures that try.
4. Else nothing is recommended: a dearer one may be as good as the cheapest and no better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.stats.paired import (
    Interval,
    difference_of_proportions,
    discordant,
    mean_of,
    not_worse_p,
    proportion,
    quantile_interval,
    ratio_of_means,
)
from rewoo_bench.analysis.stats.tests import (
    holm,
    mcnemar_exact,
    quantiles,
    questions_for_difference,
    questions_for_margin,
)
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.rows import left_out, pairs_left_out

if TYPE_CHECKING:
    from rewoo_bench.analysis.advice.run_sets import RunSet


MARGIN = 0.05
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Terms:
    """Raises `UsageError` for a value out of range."""

    max_cost: float | None = None
    """US dollars per question, the mean."""
    max_latency: float | None = None
    """Seconds per question, the 95th percentile."""
    margin: float = MARGIN
    """How much less accurate a cheaper architecture may be, as a share: 0.05 is 5 points of exact match."""

    def __post_init__(self) -> None:
        for name, unit in (("max_cost", "dollars per question"), ("max_latency", "seconds")):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise UsageError(f"--{name.replace('_', '-')} {value}: expected {unit}, a number above 0")
        if not (_is_number(self.margin) and 0 < self.margin < 1):
            raise UsageError(f"--margin {self.margin}: expected a share between 0 and 1, such as 5% or 0.05 (5 points)")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


State = Literal["within", "may be within", "above", "not measured"]
LATENCY_SHARE = 0.95
ENOUGH_FOR_P95 = 72  # questions; of fewer the 95th percentile has no interval (analysis/stats/paired.py)


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """One limit, held against the interval of what it limits."""

    what: Literal["cost", "latency"]
    limit: float
    interval: Interval
    state: State
    questions: float
    """Questions that decide it with power 0.8, if the estimate is the truth; of interest where it `may be within`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An architecture with its figures; those of failed and unmetered rows are in none (runs/rows.py)."""

    architecture: str
    run_id: str
    questions: int
    rows: int
    failed: int
    """Rows that the infrastructure failed, or that were answered without a metered model call."""
    unanswered: dict[str, int]
    """Stop reason -> rows that it ended and that are wrong; `answered` and `error` are not among them."""
    accuracy: Interval
    cost: Interval
    """Per question: US dollars where all prices are known (`priced`), else tokens."""
    priced: bool
    has_called: bool
    """Whether it made a model call in any question that counts; one that crashes at its start makes none."""
    latency: Interval | None
    """The 95th percentile in seconds; None where no latency was measured."""
    limits: tuple[LimitCheck, ...]

    @property
    def state(self) -> State:
        """The worst state of its limits; within where there is none. `not measured`: no row counts, or no call."""
        if not self.accuracy.n or not self.has_called:
            return "not measured"
        states = [check.state for check in self.limits]
        return "above" if "above" in states else "may be within" if "may be within" in states else "within"

    @property
    def cut_off(self) -> dict[str, int]:
        """Rows that a limit of the question ended, by limit."""
        limits = ("step_limit", "token_limit", "time_limit", "cost_limit")
        return {reason: n for reason, n in self.unanswered.items() if reason in limits}


def candidates(runs: RunSet, terms: Terms) -> list[Candidate]:
    """The architectures of a set. Raises `UsageError` for a limit of something that wasn't measured."""
    priced = all(_priced(rows) for rows in runs.rows.values())
    if terms.max_cost is not None and not priced:
        unknown = [name for name, rows in runs.rows.items() if not _priced(rows)]
        raise UsageError(
            f"--max-cost {terms.max_cost:g}: the dollars of {', '.join(map(repr, unknown))} aren't known "
            f"({runs.model} on {runs.dataset} has no price); `rewoo-bench reprice` computes them for other prices; "
            "without --max-cost, tokens are compared"
        )
    return [_measured(name, rows, priced=priced, terms=terms) for name, rows in runs.rows.items()]


def _measured(name: str, rows: pd.DataFrame, *, priced: bool, terms: Terms) -> Candidate:
    there = rows[~left_out(rows)]
    clusters = questions_of(there)
    is_wrong = column(there, "exact_match") != 1  # with `answer_at_limit` a question may be right at the step limit
    stops = there["stop_reason"].astype(str)[is_wrong].value_counts()
    cost = mean_of(column(there, "cost_usd" if priced else "total_tokens"), clusters=clusters)
    has_called = "llm_calls" not in there or bool(np.any(column(there, "llm_calls")))
    latency = column(there, "latency_s")
    known = ~np.isnan(latency)
    of_known = None if clusters is None else clusters[known]
    seconds = quantile_interval(latency[known], LATENCY_SHARE, clusters=of_known) if known.any() else None
    if terms.max_latency is not None and seconds is None and len(there):
        raise UsageError(f"--max-latency {terms.max_latency:g}: {name!r} has no latency, as in a replay or an oracle")
    limits = []
    if terms.max_cost is not None:
        limits.append(LimitCheck("cost", terms.max_cost, cost, *_held(cost, terms.max_cost)))
    if terms.max_latency is not None and seconds is not None:
        limits.append(LimitCheck("latency", terms.max_latency, seconds, *_held(seconds, terms.max_latency)))
    return Candidate(
        architecture=name,
        run_id=str(rows["run_id"].iloc[0]),
        questions=rows["example_id"].nunique(),
        rows=len(rows),
        failed=len(rows) - len(there),
        unanswered={str(reason): int(n) for reason, n in stops.items() if n and reason != "answered"},
        accuracy=proportion(column(there, "exact_match"), clusters=clusters),
        cost=cost,
        priced=priced,
        has_called=has_called,
        latency=seconds,
        limits=tuple(limits) if len(there) and has_called else (),
    )


def questions_of(rows: pd.DataFrame) -> NDArray[Any] | None:
    """A number for the question of each row, where a question has several trials."""
    numbers: NDArray[Any] = np.unique(rows["example_id"].to_numpy(dtype=object), return_inverse=True)[1]
    return numbers if len(numbers) and numbers.max() + 1 < len(numbers) else None


def _priced(rows: pd.DataFrame) -> bool:
    return not np.isnan(column(rows[~left_out(rows)], "cost_usd")).any()


def _held(interval: Interval, limit: float) -> tuple[State, float]:
    """The state, and the questions that decide it: an interval's width falls with the root of their number."""
    if interval.high <= limit:
        return "within", interval.n
    if interval.low > limit:
        return "above", interval.n
    bound = interval.high if interval.estimate <= limit else interval.low
    gap, width = abs(limit - interval.estimate), abs(bound - interval.estimate)
    if not math.isfinite(width) or not gap:
        return "may be within", math.inf if not gap else ENOUGH_FOR_P95
    standard_error = width / NormalDist().inv_cdf(1 - ALPHA / 2)
    return "may be within", interval.n * (quantiles(ALPHA) * standard_error / gap) ** 2


@dataclass(frozen=True, slots=True)
class Contrast:
    """`one` against `other`, on the questions that neither failed."""

    one: str
    other: str
    accuracy: Interval
    """The accuracy of `one` minus that of `other`."""
    only_one: int
    """Rows that only `one` got right."""
    only_other: int
    p: float
    """Exact McNemar."""
    p_holm: float
    """Adjusted for the pairs of all architectures that may be recommended."""
    cost: Interval
    """The mean cost of `one` / that of `other`."""
    not_worse_p: float
    """That `one` isn't below `other` by the margin or more; unadjusted, two-sided."""
    rows: int
    pairs: float
    """Independent pairs that the rows are worth."""
    left_out: int

    @property
    def discordant_share(self) -> float:
        """The share of rows that one of the two alone got right; never zero, since a larger sample may have some."""
        return (self.only_one + self.only_other + 0.5) / (self.rows + 1)


Contrasts = Mapping[tuple[str, str], Contrast]
"""By (one, other): each pair in both directions."""


def contrasted(
    runs: RunSet, architectures: Sequence[str], margin: float, *, priced: bool
) -> dict[tuple[str, str], Contrast]:
    """Each of the architectures against each other one, with Holm's adjustment for all of these pairs."""
    found = {
        pair: _contrast(pair, (runs.rows[pair[0]], runs.rows[pair[1]]), margin, priced=priced)
        for pair in permutations(architectures, 2)
    }
    pairs = list(combinations(architectures, 2))
    for (one, other), p_holm in zip(pairs, holm([found[pair].p for pair in pairs]) if pairs else [], strict=True):
        for pair in ((one, other), (other, one)):
            found[pair] = replace(found[pair], p_holm=p_holm)
    return found


def _contrast(
    names: tuple[str, str], tables: tuple[pd.DataFrame, pd.DataFrame], margin: float, *, priced: bool
) -> Contrast:
    rows, against = tables
    compared = ~pairs_left_out(rows, against)
    left_out = len(rows) - int(compared.sum())
    rows, against = rows[compared], against[compared]
    clusters = questions_of(rows)
    b, a = column(rows, "exact_match"), column(against, "exact_match")
    test = mcnemar_exact(a, b, clusters)
    cost = "cost_usd" if priced else "total_tokens"
    return Contrast(
        one=names[0],
        other=names[1],
        accuracy=difference_of_proportions(a, b, clusters=clusters),
        only_one=test.only_b,
        only_other=test.only_a,
        p=test.p,
        p_holm=test.p,
        cost=ratio_of_means(column(against, cost), column(rows, cost), clusters=clusters),
        not_worse_p=not_worse_p(a, b, margin, clusters=clusters),
        rows=len(rows),
        pairs=discordant(a, b, clusters).worth,
        left_out=left_out,
    )


Kind = Literal[
    "most accurate",
    "cheapest that isn't worse",
    "only one within the limits",
    "undecided",
    "limits undecided",
    "none within the limits",
    "not measured",
    "oracle",
]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to use, and why."""

    kind: Kind
    recommended: str | None = None
    contenders: tuple[str, ...] = ()
    """Architectures within the limits that no other one within them is shown to beat."""
    not_worse: tuple[tuple[str, float], ...] = ()
    """Architectures within the limits, with Holm's p that they aren't worse than a contender by the margin."""
    open: tuple[str, ...] = ()
    """Architectures that more questions could make the recommended one."""
    near: tuple[str, ...] = ()
    """Those shown to be less than the margin worse than the most accurate; the interval of their cost says cheaper."""
    questions: float | None = None
    """Number of questions that decides between them with power 0.8, if the differences are as measured."""


def decide(candidates: Sequence[Candidate], contrasts: Contrasts, margin: float) -> Decision:
    """The decision by the rules above; `contrasts` are of the candidates within the limits."""
    if sum(each.state != "not measured" for each in candidates) < 2:
        return Decision("not measured")
    within = [each for each in candidates if each.state == "within"]
    maybe = [each for each in candidates if each.state == "may be within"]
    if not within:
        if not maybe:
            return Decision("none within the limits")
        needed = [check.questions for each in maybe for check in each.limits if check.state == "may be within"]
        return Decision("limits undecided", open=_names(maybe), questions=max(needed))
    if len(within) == 1:
        return Decision("only one within the limits", within[0].architecture, _names(within))
    contenders = _unbeaten(within, contrasts)
    if len(contenders) == 1:
        return _most_accurate(within, contenders[0], contrasts)
    return _cheapest(within, contenders, contrasts, margin)


def _unbeaten(within: Sequence[Candidate], contrasts: Contrasts) -> list[Candidate]:
    """Those that no other one beats. All of them, where failed questions make the pairs go round in a circle."""

    def is_beaten(one: Candidate) -> bool:
        against = [contrasts[other.architecture, one.architecture] for other in _others(within, one)]
        return any(contrast.p_holm < ALPHA and contrast.accuracy.estimate > 0 for contrast in against)

    return [one for one in within if not is_beaten(one)] or list(within)


def _most_accurate(within: Sequence[Candidate], best: Candidate, contrasts: Contrasts) -> Decision:
    others = _others(within, best)
    against = [contrasts[one.architecture, best.architecture] for one in others]
    p = holm([each.not_worse_p for each in against])
    shown = dict(zip(_names(others), p, strict=True))
    cheaper = [each.one for each in against if each.cost.high < 1 and not each.cost.rare]
    near = [one for one in others if shown[one.architecture] < ALPHA and one.architecture in cheaper]
    name = best.architecture
    return Decision("most accurate", name, (name,), tuple(shown.items()), near=_names(near))


def _cheapest(
    within: Sequence[Candidate], contenders: Sequence[Candidate], contrasts: Contrasts, margin: float
) -> Decision:
    worst = [
        max(contrasts[one.architecture, other.architecture].not_worse_p for other in _others(contenders, one))
        for one in within
    ]
    shown = dict(zip(_names(within), holm(worst), strict=True))
    names, name = _names(contenders), min(contenders, key=lambda one: one.cost.estimate).architecture
    if shown[name] < ALPHA:
        return Decision("cheapest that isn't worse", name, names, tuple(shown.items()))
    questions = max(_questions(one, other, contrasts, margin) for one, other in combinations(contenders, 2))
    return Decision("undecided", None, names, tuple(shown.items()), names, questions=questions)


def _questions(one: Candidate, other: Candidate, contrasts: Contrasts, margin: float) -> float:
    """Questions that show which of two is more accurate, or that the cheaper one isn't worse by the margin.

    The fewer of the two, if the difference is as measured; each test at the level that Holm's adjustment begins with.
    """
    cheap, dear = sorted((one, other), key=lambda each: each.cost.estimate)
    contrast = contrasts[cheap.architecture, dear.architecture]
    level = ALPHA / (len(contrasts) / 2)
    difference, share = contrast.accuracy.estimate, contrast.discordant_share
    pairs = min(
        questions_for_difference(share, difference, level), questions_for_margin(share, difference, margin, level)
    )
    n = contrast.accuracy.n
    if not n or not math.isfinite(pairs):
        return math.inf
    return max(pairs * n / contrast.pairs, n + 1)


def _others(candidates: Iterable[Candidate], one: Candidate) -> list[Candidate]:
    return [each for each in candidates if each.architecture != one.architecture]


def _names(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(each.architecture for each in candidates)
