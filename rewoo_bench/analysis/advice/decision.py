"""Candidates and their contrasts -> the architecture to use, or how many questions decide it.

1. Only architectures within the limits may be recommended: those whose intervals are at or below them.
2. An architecture that another of them beats (exact McNemar, Holm) isn't the most accurate. Where one alone is left, it
   is recommended.
3. Else it is the cheapest of those that are left, if it is shown not to be worse than any other of them by the margin
   or more: it has to show that against each (an intersection-union test, Berger 1982, Technometrics 24), with Holm's
   adjustment for the number of architectures that try.
4. Else nothing is recommended: a dearer one may be as good as the cheapest and no better.

Where no answer was scored, nothing is recommended, and costs alone are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.advice.run_sets import RunSet
from rewoo_bench.analysis.pairs import ALPHA, column
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


@dataclass(frozen=True, slots=True)
class Terms:
    """What a recommended architecture may cost, and how much accuracy a cheaper one may lose.

    Raises `UsageError` for a value out of range.
    """

    max_cost: float | None = None
    """US dollars per question, the mean."""
    max_latency: float | None = None
    """Seconds per question, the 95th percentile."""
    margin: float = 0.05
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
    """Of the rows that were scored; n is 0 where none was."""
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
        if not self.cost.n or not self.has_called:
            return "not measured"
        states = [check.state for check in self.limits]
        return "above" if "above" in states else "may be within" if "may be within" in states else "within"


def candidates(runs: RunSet, terms: Terms) -> list[Candidate]:
    """The architectures of a set. Raises `UsageError` for a limit of something that wasn't measured."""
    dollars = {name: column(rows[~left_out(rows)], "cost_usd") for name, rows in runs.rows.items()}
    unknown = [name for name, values in dollars.items() if np.isnan(values).any()]
    if terms.max_cost is not None and unknown:
        raise UsageError(
            f"--max-cost {terms.max_cost:g}: the dollars of {', '.join(map(repr, unknown))} aren't known "
            f"({runs.model} on {runs.dataset} has no price); `rewoo-bench reprice` computes them for other prices; "
            "without --max-cost, tokens are compared"
        )
    return [_candidate(name, rows, priced=not unknown, terms=terms) for name, rows in runs.rows.items()]


def _candidate(name: str, rows: pd.DataFrame, *, priced: bool, terms: Terms) -> Candidate:
    there = rows[~left_out(rows)]
    clusters = _questions_of(there)
    scores = column(there, "exact_match")
    scored = ~np.isnan(scores)
    stops = there["stop_reason"].astype(str)[scores != 1].value_counts()  # one may be right (`answer_at_limit`)
    cost = mean_of(column(there, "cost_usd" if priced else "total_tokens"), clusters=clusters)
    has_called = "llm_calls" not in there or bool(np.any(column(there, "llm_calls")))
    latency = column(there, "latency_s")
    known = ~np.isnan(latency)
    of_known = None if clusters is None else clusters[known]
    seconds = quantile_interval(latency[known], 0.95, clusters=of_known) if known.any() else None
    if terms.max_latency is not None and seconds is None and len(there):
        raise UsageError(f"--max-latency {terms.max_latency:g}: {name!r} has no latency, as in a replay or an oracle")
    limits = []
    if has_called and len(there) and terms.max_cost is not None:
        limits.append(LimitCheck("cost", terms.max_cost, cost, *_held(cost, terms.max_cost)))
    if has_called and terms.max_latency is not None and seconds is not None:
        limits.append(LimitCheck("latency", terms.max_latency, seconds, *_held(seconds, terms.max_latency)))
    return Candidate(
        architecture=name,
        run_id=str(rows["run_id"].iloc[0]),
        questions=rows["example_id"].nunique(),
        rows=len(rows),
        failed=len(rows) - len(there),
        unanswered={str(reason): int(n) for reason, n in stops.items() if n and reason != "answered"},
        accuracy=proportion(scores[scored], clusters=None if clusters is None else clusters[scored]),
        cost=cost,
        priced=priced,
        has_called=has_called,
        latency=seconds,
        limits=tuple(limits),
    )


def _questions_of(rows: pd.DataFrame) -> NDArray[Any] | None:
    """A number for the question of each row, where a question has several trials."""
    numbers: NDArray[Any] = np.unique(rows["example_id"].to_numpy(dtype=object), return_inverse=True)[1]
    return numbers if len(numbers) and numbers.max() + 1 < len(numbers) else None


def _held(interval: Interval, limit: float) -> tuple[State, float]:
    """The state, and the questions that decide it: an interval's width falls with the root of their number."""
    if interval.high <= limit:
        return "within", interval.n
    if interval.low > limit:
        return "above", interval.n
    bound = interval.high if interval.estimate <= limit else interval.low
    gap, width = abs(limit - interval.estimate), abs(bound - interval.estimate)
    if not gap:
        return "may be within", math.inf
    if not math.isfinite(width):
        return "may be within", ENOUGH_FOR_P95
    standard_error = width / NormalDist().inv_cdf(1 - ALPHA / 2)
    return "may be within", interval.n * (quantiles(ALPHA) * standard_error / gap) ** 2


@dataclass(frozen=True, slots=True)
class Contrast:
    """`one` against `other`, on the questions that neither failed."""

    one: str
    other: str
    accuracy: Interval
    """The accuracy of `one` minus that of `other`, of the pairs that were scored; n is 0 where none was."""
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
    """Those that were scored."""
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
    found = {}
    cost = "cost_usd" if priced else "total_tokens"
    for one, other in permutations(architectures, 2):
        every, against = runs.rows[one], runs.rows[other]
        compared = ~pairs_left_out(every, against)
        rows, against = every[compared], against[compared]
        clusters = _questions_of(rows)
        b, a = column(rows, "exact_match"), column(against, "exact_match")
        scored = ~np.isnan(a + b)
        a, b, of_scored = a[scored], b[scored], None if clusters is None else clusters[scored]
        test = mcnemar_exact(a, b, of_scored)
        found[one, other] = Contrast(
            one=one,
            other=other,
            accuracy=difference_of_proportions(a, b, clusters=of_scored),
            only_one=test.only_b,
            only_other=test.only_a,
            p=test.p,
            p_holm=test.p,
            cost=ratio_of_means(column(against, cost), column(rows, cost), clusters=clusters),
            not_worse_p=not_worse_p(a, b, margin, clusters=of_scored),
            rows=len(a),
            pairs=discordant(a, b, of_scored).worth,
            left_out=len(every) - len(rows),
        )
    pairs = list(combinations(architectures, 2))
    for (one, other), p_holm in zip(pairs, holm([found[pair].p for pair in pairs]) if pairs else [], strict=True):
        for pair in ((one, other), (other, one)):
            found[pair] = replace(found[pair], p_holm=p_holm)
    return found


DecisionKind = Literal[
    "most accurate",
    "cheapest that isn't worse",
    "only one within the limits",
    "undecided",
    "limits undecided",
    "none within the limits",
    "not measured",
    "not scored",
    "oracle",
]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to use, and why."""

    kind: DecisionKind
    recommended: str | None = None
    contenders: tuple[str, ...] = ()
    """Architectures within the limits that no other one within them is shown to beat; the cheapest first where none of
    them was scored."""
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
    costs = {each.architecture: each.cost.estimate for each in candidates if each.state == "within"}
    maybe = [each for each in candidates if each.state == "may be within"]
    if not costs:
        if not maybe:
            return Decision("none within the limits")
        needed = [check.questions for each in maybe for check in each.limits if check.state == "may be within"]
        return Decision("limits undecided", open=tuple(each.architecture for each in maybe), questions=max(needed))
    within = list(costs)
    if not any(each.accuracy.n for each in candidates):
        return Decision("not scored", contenders=tuple(sorted(within, key=costs.__getitem__)))
    if len(within) == 1:
        return Decision("only one within the limits", within[0], tuple(within))

    beaten = {
        one
        for other, one in permutations(within, 2)
        if contrasts[other, one].p_holm < ALPHA and contrasts[other, one].accuracy.estimate > 0
    }
    # all of them, where failed questions make the pairs go round in a circle
    contenders = tuple(one for one in within if one not in beaten) or tuple(within)
    if len(contenders) == 1:
        (best,) = contenders
        others = [one for one in within if one != best]
        p = holm([contrasts[one, best].not_worse_p for one in others])
        shown = dict(zip(others, p, strict=True))
        ratios = {one: contrasts[one, best].cost for one in others if shown[one] < ALPHA}
        near = tuple(one for one, cost in ratios.items() if cost.high < 1 and not cost.rare)
        return Decision("most accurate", best, contenders, tuple(shown.items()), near=near)

    worst = [max(contrasts[one, other].not_worse_p for other in contenders if other != one) for one in within]
    not_worse = dict(zip(within, holm(worst), strict=True))
    cheapest = min(contenders, key=costs.__getitem__)
    if not_worse[cheapest] < ALPHA:
        return Decision("cheapest that isn't worse", cheapest, contenders, tuple(not_worse.items()))
    level = ALPHA / (len(contrasts) / 2)  # at which Holm's adjustment begins
    pairs = combinations(sorted(contenders, key=costs.__getitem__), 2)
    questions = max(_questions(contrasts[pair], margin, level) for pair in pairs)
    return Decision("undecided", None, contenders, tuple(not_worse.items()), contenders, questions=questions)


def _questions(contrast: Contrast, margin: float, level: float) -> float:
    """Questions that show which of two is more accurate, or that the cheaper one, which comes first, isn't worse.

    The fewer of the two, if the difference is as measured.
    """
    difference, share, n = contrast.accuracy.estimate, contrast.discordant_share, contrast.accuracy.n
    pairs = min(
        questions_for_difference(share, difference, level), questions_for_margin(share, difference, margin, level)
    )
    if not n or not math.isfinite(pairs):
        return math.inf
    return max(pairs * n / contrast.pairs, n + 1)
