"""Rows of runs -> sets of architectures that may be compared -> the one to use, or how many questions decide it.

    sets, reasons = run_sets(rows, manifests, intersect=False)
    sets[0].rows                    # {"rewoo": rows, "react": rows}, of the same questions in the same order
    reasons                         # ["run b isn't compared with run a: the model: openai/x (a), openai/y (b)"]

Two runs belong to one set where they have the same data, questions, models, corpus and settings, and no architecture
in common. Of a set's candidates and their contrasts one is chosen:

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
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.compare import aligned, run_names
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
from rewoo_bench.config.price_sheets import unlisted
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.comparability import noted_differences, refusals, unfinished, wait
from rewoo_bench.runs.manifest import LOOSE, MANIFEST, Manifest, Manifests, changed_values
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import MODELS, check_columns, left_out, oracle_rows
from rewoo_bench.text.words import counted, round_up

_NEEDED = ("run_id", "architecture", "dataset", "model", "example_id", "trial", "exact_match", "total_tokens")
_MOST_REASONS = 2  # of one pair of runs; the first ones say enough
# Options that runs of one set must share: they change what is asked, answered or scored.
_CONDITIONS = (
    *options_that(lambda role: role.claims or (role.baseline and role.compare == "note")),
    *("tools", "mcp"),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run's rows of one data set and model."""

    run_id: str
    name: str
    rows: pd.DataFrame
    manifest: Manifest | None

    @property
    def architectures(self) -> list[str]:
        """Its architectures, in the order of the rows."""
        return list(map(str, self.rows["architecture"].unique()))


@dataclass(frozen=True, slots=True)
class RunSet:
    """Architectures that answered the same questions with the same model under the same conditions."""

    dataset: str
    model: str
    pieces: tuple[Piece, ...]
    rows: Mapping[str, pd.DataFrame]
    """By architecture, aligned: the same questions and trials in the same order."""
    warnings: tuple[str, ...]
    waits: tuple[str, ...] = ()
    """Runs in which latency includes waiting for a shared model; a sentence each."""

    @property
    def no_dollars(self) -> str:
        """Why dollars aren't known."""
        first = self.pieces[0].rows.iloc[0]
        unknown = unlisted(first[name] for name in MODELS if isinstance(first.get(name), str))
        return f"the price of {' and '.join(unknown)} isn't known" if unknown else "dollars weren't recorded"

    @property
    def oracle(self) -> bool:
        """Whether an oracle answered: accuracy and latency mean nothing."""
        return any(bool(oracle_rows(piece.rows).any()) for piece in self.pieces)


def run_sets(rows: pd.DataFrame, manifests: Manifests, *, intersect: bool) -> tuple[list[RunSet], list[str]]:
    """The sets, in the order of the runs, and a sentence for each pair of runs that isn't compared."""
    check_columns(rows.columns, _NEEDED)
    if not len(rows):
        raise DataError("no rows: the runs have no finished question")
    groups: list[list[Piece]] = []
    reasons: list[str] = []
    names = run_names(rows)
    by = [name for name in ("run_id", "dataset", *MODELS) if name in rows.columns]
    for _, own in rows.groupby([rows[name].astype(str) for name in by], sort=False):
        run_id = str(own["run_id"].iloc[0])
        piece = Piece(run_id, names[run_id], own, manifests.get(run_id))
        against = [
            (group, [why for other in group for why in _against(piece, other, intersect=intersect)]) for group in groups
        ]
        fitting = next((group for group, why in against if not why), None)
        if fitting is not None:
            fitting.append(piece)
            continue
        # a reader may have expected a comparison only with runs of the same data set
        expected = [pair for pair in against if set(own["dataset"]) & set(pair[0][0].rows["dataset"])]
        if expected:
            group, why = min(expected, key=lambda pair: len(pair[1]))
            shown = list(dict.fromkeys(why))
            more = f"; and {len(shown) - _MOST_REASONS} more differences" if len(shown) > _MOST_REASONS else ""
            told = "; ".join(shown[:_MOST_REASONS])
            reasons.append(f"{piece.name} isn't compared with {group[0].name}: {told}{more}")
        groups.append([piece])
    return [_set(group, intersect=intersect) for group in groups], reasons


def _against(piece: Piece, other: Piece, *, intersect: bool) -> Iterator[str]:
    """Reasons against comparing two runs."""
    for name in ("dataset", *MODELS):
        first, second = (_one(each.rows, name) for each in (other, piece))
        if first != second:
            yield f"the {name.replace('_', ' ')}: {first} ({other.name}), {second} ({piece.name})"
            return
    if other.manifest and piece.manifest:
        named = {other.name: other.manifest, piece.name: piece.manifest}
        yield from refusals(named)
        for option in _CONDITIONS:
            a, b = (each.options.get(option) for each in named.values())
            if a != b:
                yield f"--{option.replace('_', '-')}: {a} ({other.name}), {b} ({piece.name})"
        corpora = {each.corpus.content_hash if each.corpus else None for each in named.values()}
        if len(corpora) > 1:
            yield "the corpus of the search tool"
        for difference in changed_values(other.manifest.models, piece.manifest.models, "models", LOOSE):
            yield f"the setting {difference.partition(' was ')[0]}"
    if twice := [name for name in piece.architectures if name in other.architectures]:
        yield f"both have the architecture {twice[0]!r}; `rewoo-bench compare` shows how they differ"
    before, now = (set(zip(each.rows["example_id"], each.rows["trial"], strict=True)) for each in (other, piece))
    if before != now and not intersect:
        shared = len(before & now)
        yield (
            f"{other.name} has {counted(len(before), 'row')} of each architecture, {piece.name} {len(now):,}, "
            f"and {shared:,} are of the same question{'; --intersect compares on those' if shared else ''}"
        )


def _one(rows: pd.DataFrame, column: str) -> str:
    return str(rows[column].iloc[0]) if column in rows.columns else ""


def _set(group: list[Piece], *, intersect: bool) -> RunSet:
    rows = {name: piece.rows[piece.rows["architecture"] == name] for piece in group for name in piece.architectures}
    same, cautions = aligned(rows, [], intersect=intersect or len(group) == 1)
    dataset, model = (_one(group[0].rows, column) for column in ("dataset", "model"))
    manifests = {piece.name: piece.manifest for piece in group if piece.manifest is not None}
    warnings = list(cautions)
    if len(manifests) < len(group):
        warnings.append(f"{group[0].name} has no run.json, so the conditions of the runs aren't checked")
    warnings += unfinished(manifests)
    shown = noted_differences(manifests)
    if len(manifests) > 1 and shown:
        warnings.append(f"the runs also differ in this: {'; '.join(shown)}")
    waits = [f"in {name}, {note}" for name, manifest in manifests.items() if (note := wait(manifest))]
    return RunSet(dataset, model, tuple(group), same, tuple(warnings), tuple(waits))


TOO_MANY = 100_000  # questions; more than that is "nobody will ask so many"


@dataclass(frozen=True, slots=True)
class MoreQuestions:
    """How many questions decide, in all, and how to ask them."""

    questions: int | None
    """Rounded up to two digits; None where it would be more than `TOO_MANY`."""
    command: str | None
    """None where it isn't known how to ask as many."""
    obstacle: str = ""
    """What else there is to do, or why there is no command."""


def more_questions(
    runs: RunSet, architectures: Sequence[str], needed: float, folders: Mapping[str, Path]
) -> MoreQuestions:
    """The number, and a command with the flags of the first run that has one of these architectures."""
    if not math.isfinite(needed) or needed > TOO_MANY:
        return MoreQuestions(None, None, f"It takes more than {TOO_MANY:,} questions: call it a tie.")
    questions = round_up(needed)
    pieces = [piece for piece in runs.pieces if set(piece.architectures) & set(architectures)]
    first = pieces[0]
    if first.manifest is None or first.run_id not in folders:
        return MoreQuestions(questions, None, "Run the same with that many questions.")
    if first.manifest.options.get("ids"):
        return MoreQuestions(questions, None, "The run asked chosen questions (--ids): choose more.")
    names = []
    for piece in pieces:
        # how `--arch` named the architecture: a folder keeps its path
        given = list(map(str, piece.manifest.options.get("architectures") or [])) if piece.manifest else []
        known = [each.name for each in piece.manifest.architectures] if piece.manifest else []
        by_name = dict(zip(known, given, strict=True)) if len(known) == len(given) else {}
        names += [by_name.get(name, name) for name in piece.architectures if name in architectures]
    words = ["rewoo-bench", "run", "--from", str(folders[first.run_id] / MANIFEST), "--arch", ",".join(names)]
    available = None if first.manifest.dataset.source.get("generator") else first.manifest.dataset.rows
    if available is None or available >= questions:
        return MoreQuestions(questions, shlex.join([*words, "-n", str(questions)]))
    few = f"The data set has only {counted(available, 'question')}: put a larger one in the place of DATASET."
    return MoreQuestions(questions, shlex.join([*words, "--dataset", "DATASET", "-n", str(questions)]), few)


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
            f"({runs.no_dollars}); `rewoo-bench reprice` computes them for other prices; "
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
        compared = ~(left_out(every) | left_out(against))
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
    for (one, other), p_holm in zip(pairs, holm([found[pair].p for pair in pairs]), strict=True):
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
