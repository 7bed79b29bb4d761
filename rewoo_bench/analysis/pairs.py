"""Two systems on the same questions: differences of accuracy, ratios of tokens, cost and latency.

    a, b = pair_columns(rows), pair_columns(others)
    paired("hotpotqa", ("rewoo", a), ("react", b), oracle=False)["total_tokens"].interval.estimate

The rows of both are of the same questions and trials, in the same order. Where the infrastructure
failed either of a pair (runs/rows.py), the pair is left out of every estimate, and counted. A system that made no
model call in any of the questions, such as an agent that crashes at its start, is in no ratio: it isn't cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import (
    A_RARE_EVENT,
    FEWEST,
    Floats,
    Interval,
    brackets,
    difference_and_p,
    difference_of_proportions,
    discordant,
    geometric_mean_ratio,
    ratio_and_p,
)
from rewoo_bench.analysis.stats.solved import by_trials, difference_of_passes, ratio_per_solved
from rewoo_bench.analysis.stats.tests import McNemar, holm, mcnemar_exact, minimum_detectable_difference
from rewoo_bench.runs.rows import left_out, oracle_rows, read_columns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from rewoo_bench.runs.manifest import Manifests


PairColumns = Mapping[str, NDArray[Any]]
FAMILY = ("exact_match", "total_tokens", "cost_usd")
"""The measures that a comparison is made for: one family of tests. The others are exploratory and not adjusted."""
ALPHA = 0.05
"""The level that the family's tests share (Holm)."""
PRICED = "priced_usd"
"""Column and measure of dollars under a price sheet."""
AMOUNTS = ("total_tokens", "input_tokens", "cost_usd", PRICED, "latency_s")
PER_SOLVED = {"tokens_per_solved": "total_tokens", "usd_per_solved": "cost_usd", "priced_usd_per_solved": PRICED}
"""Measure -> its amount, of all questions for each one that was solved (an exact match)."""
PASS = "pass^"
"""What the measure of k trials that are all right begins with: `pass^4`."""
LEFT_OUT = "left_out"
ANSWERED = "answered"


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

    def is_exploratory(self, effect: Effect) -> bool:
        """Whether the effect is outside the family (`FAMILY`), or an oracle's accuracy."""
        return effect.measure not in FAMILY or (self.oracle and effect.kind == "difference")

    def __getitem__(self, measure: str) -> Effect:
        return {effect.measure: effect for effect in self.figures}[measure]


def pair_columns(rows: pd.DataFrame | pa.Table) -> dict[str, NDArray[Any]]:
    """What `paired` reads of rows, as numbers: questions, trials, scores, amounts, `ANSWERED` and `LEFT_OUT`."""
    columns = read_columns(rows, ["example_id", "trial", "exact_match", "f1"], (*AMOUNTS, "llm_calls", "stop_reason"))
    stops = columns.pop("stop_reason", None)
    found = {name: column.values for name, column in columns.items()}
    if stops is not None:
        found[ANSWERED] = np.array([name == "answered" for name in [*stops.names, None]])[stops.values]
    return {**found, LEFT_OUT: left_out(rows)}


def paired(dataset: str, a: tuple[str, PairColumns], b: tuple[str, PairColumns], *, oracle: bool) -> Pair:
    """All effects of a pair of systems (`pair_columns`); an amount that isn't known of both is not among them."""
    (first, rows_a), (second, rows_b) = a, b
    questions, total = len(np.unique(rows_a["example_id"])), len(rows_a["example_id"])
    compared = ~(rows_a[LEFT_OUT] | rows_b[LEFT_OUT])
    rows_a, rows_b = ({name: values[compared] for name, values in rows.items()} for rows in (rows_a, rows_b))
    clusters = rows_a["example_id"] if questions < total else None
    both = ((first, rows_a), (second, rows_b)) if compared.any() else ()
    calls = "llm_calls"  # a system whose calls aren't known (NaN) isn't one without calls
    without_calls = tuple(name for name, rows in both if calls in rows and not np.any(rows[calls]))
    effects = _differences(rows_a, rows_b, clusters)
    answered = None
    if not without_calls:
        effects += _ratios(rows_a, rows_b, clusters, oracle)
        if ANSWERED in rows_a and ANSWERED in rows_b:
            some = rows_a[ANSWERED] & rows_b[ANSWERED]
            tokens_a, tokens_b = (rows["total_tokens"][some] for rows in (rows_a, rows_b))
            if not some.all() and tokens_a.any() and tokens_b.any() and not np.isnan(tokens_a + tokens_b).any():
                of_some = None if clusters is None else clusters[some]
                answered, _ = ratio_and_p(tokens_a, tokens_b, of_some)
    excluded = int((~compared).sum())
    return Pair(dataset, first, second, questions, total, excluded, oracle, tuple(effects), answered, without_calls)


def _differences(a: PairColumns, b: PairColumns, clusters: NDArray[Any] | None) -> list[Effect]:
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


def _ratios(a: PairColumns, b: PairColumns, clusters: NDArray[Any] | None, oracle: bool) -> list[Effect]:
    """The ratios of amounts, and of those per solved question; none where nothing of an amount is known.

    Of cost, and per solved question, it has to be known of all pairs: prices known of some would mislead.
    """
    effects = []
    for name in AMOUNTS:
        if name not in a or (oracle and name == "latency_s"):  # an oracle's seconds are no model's
            continue
        first, second, questions = _known_of_both(name, a, b, clusters)
        if first.any() and (len(first) == len(a[name]) or name not in ("cost_usd", PRICED)):
            interval, p = ratio_and_p(first, second, questions)
            geometric = geometric_mean_ratio(first, second, questions)
            effects.append(Effect(name, "ratio", interval, p, p, geometric=geometric))
    for name, amount in PER_SOLVED.items():
        if oracle or amount not in a or amount not in b or not a[amount].any() or not b[amount].any():
            continue
        if not np.isnan(a[amount] + b[amount] + a["exact_match"] + b["exact_match"]).any():
            each = ((rows[amount], rows["exact_match"]) for rows in (a, b))
            ratio = ratio_per_solved(*each, clusters=clusters)
            effects.append(Effect(name, "ratio", ratio, math.nan, math.nan))
    return effects


def _known_of_both(
    name: str, a: PairColumns, b: PairColumns, clusters: NDArray[Any] | None
) -> tuple[Floats, Floats, NDArray[Any] | None]:
    """A column of the pairs in which both have a value, and the question of each pair."""
    known = ~np.isnan(a[name] + b[name])
    return a[name][known], b[name][known], None if clusters is None else clusters[known]


def adjusted(pairs: Sequence[Pair], wholes: Mapping[str, str] | None = None) -> tuple[Pair, ...]:
    """The pairs with Holm's p values: the tests of the family (`FAMILY`), of all pairs of a data set together.

    `wholes` has the data set of each part that is compared for itself. The detectable difference of exact match is that
    at Holm's first step: 0.05 by the number of tests.
    """
    of = [(wholes or {}).get(pair.dataset, pair.dataset) for pair in pairs]
    families: dict[str, list[float]] = {name: [] for name in of}
    for name, pair in zip(of, pairs, strict=True):
        families[name] += [effect.p for effect in pair.figures if not pair.is_exploratory(effect)]
    adjusted_p = {name: iter(holm(family)) for name, family in families.items()}
    found = []
    for name, pair in zip(of, pairs, strict=True):
        figures = []
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


# What a comparison comes to, a sentence for each pair: "react took 2.49 [1.95, 3.35] times the tokens of rewoo (n = 20;
# the data show a saving by rewoo) and …". A saving is shown as `SAVING` says.


OUTCOME = "the ratio where both answered leaves out questions by how they ended, which may be the hard ones"
SAVING = (
    "the data show a saving where the 95% interval of the ratio lies wholly on one side of 1, p is below "
    f"{ALPHA:g} with Holm's adjustment (dollars at a price sheet have none), and no rare event may be missing"
)
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Pricing:
    """The prices that dollars are counted at: the run's own, or those of a sheet."""

    under: str = ""
    """The prices and the rule of the cache by their names; empty where dollars aren't known."""
    note: str = ""
    """Where they come from, or why dollars aren't known."""
    cost_usd: NDArray[np.float64] | None = None
    """Dollars of each row under a sheet, NaN where they aren't known; None for the run's own (`cost_usd`)."""
    column: str = PRICED
    """The column of these: `cost_usd` where they stand for the run's own."""


def own_prices(manifests: Manifests) -> Pricing:
    """The prices that the runs were paid at, by the names of their models."""
    priced = [name for run in manifests.values() for name, prices in (run.prices or {}).items() if prices]
    return Pricing(as_counted(priced, manifests) if priced else "")


def as_counted(models: Iterable[str], manifests: Manifests) -> str:
    """The prices of dollars that a run pays: its models' own, and cached input as it was reported."""
    names = " and ".join(f"{name}'s" for name in dict.fromkeys(models))
    return f"{names} prices, cached input as the endpoint counted it{at_once(manifests)}"


def dollars_at(manifests: Manifests) -> str:
    """What the runs' own dollars are at, for a sentence beside them."""
    return own_prices(manifests).under or "prices that run.json doesn't name, cached input as the endpoint counted it"


def at_once(manifests: Manifests) -> str:
    """The number of questions at once, which decides what a cache holds when a call is sent; empty if not known."""
    known = {(run.dataset.name, run.concurrency) for run in manifests.values() if run.concurrency}
    counts = sorted({count for _, count in known})
    if len(counts) > 1:
        by_data = len(known) == len({name for name, _ in known})
        why = ", by the data set" if by_data else ": the runs differ in it, and that alone changes cached input"
        return f", with up to {' or '.join(map(str, counts))} questions at once{why}"
    return "".join(f", with {'one question' if n == 1 else f'up to {n:,} questions'} at once" for n in counts)


def verdict(pair: Pair) -> str:
    """The sentence of a pair; empty where nothing of it was measured. `of_dollars` says at which prices dollars are."""
    figures = {figure.measure: figure for figure in pair.figures}
    taken = {"tokens": figures.get("total_tokens"), "dollars": figures.get(PRICED) or figures.get("cost_usd")}
    parts = [
        f"{bounds(ratio.interval, 1.0)} times the {unit} of {pair.a} {_saving(ratio, pair)}"
        for unit, ratio in taken.items()
        if ratio
    ]
    said = [f"{pair.b} took {' and '.join(parts)}"] if parts else []
    if (some := pair.both_answered) is not None:
        said.append(f"where both answered, {bounds(some, 1.0)} times (n = {some.n:,})")
    if pair.without_calls:
        names = " and ".join(pair.without_calls)
        said.append(f"{pair.b} and {pair.a} have no ratio, since {names} made no model call in any question")
    if (score := figures.get("exact_match")) is not None and not pair.oracle:
        difference = score.interval
        whose = "its" if parts else f"{pair.b}:"
        said.append(f"{whose} exact match differs by {bounds(difference, 0.0, '+')} (n = {difference.n:,})")
    return f"{'; '.join(said)}." if said else ""


def verdicts(pairs: Sequence[Pair], pricing: Pricing | None = None) -> list[str]:
    """The sentences of some pairs, with their data set where there are several, and what has to be known of them."""
    several = len({pair.dataset for pair in pairs}) > 1
    told = [(pair, verdict(pair)) for pair in pairs]
    lines = [f"{pair.dataset}: {line}" if several else line for pair, line in told if line]
    known = any(figure.kind == "ratio" for pair in pairs for figure in pair.figures)
    outcome = OUTCOME if any(pair.both_answered for pair in pairs) else ""
    notes = filter(None, [SAVING, outcome, of_dollars(pricing)])
    return [*lines, " ".join(map(sentence, notes))] if lines and known else lines


def of_dollars(pricing: Pricing | None) -> str:
    """At which prices dollars are, and why; or why there are none."""
    if pricing is None:
        return ""
    return "; ".join(filter(None, [pricing.under and f"dollars are under {pricing.under}", pricing.note]))


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def verdicts_of_run(rows: pa.Table, pricing: Pricing) -> list[str]:
    """The sentences of one run: each architecture beside the first, on the questions that all have ended.

    They are those of `compare`, without pandas, whose import takes longer than all else at the end of a small run.
    """
    columns, named = pair_columns(rows), read_columns(rows, ["architecture", "dataset"])
    if pricing.cost_usd is not None:
        columns[pricing.column] = pricing.cost_usd
    keys = columns["example_id"] * (1 + columns["trial"].max(initial=0)) + columns["trial"]
    order, systems = np.argsort(keys, kind="stable"), named["architecture"]
    own = {name: order[systems.values[order] == systems.names.index(name)] for name in systems.names_in_use}
    shared = reduce(np.intersect1d, (keys[places] for places in own.values()), keys)
    if not len(shared):
        return []
    kept = [(name, places[np.isin(keys[places], shared)]) for name, places in own.items()]
    first, *others = [(name, {each: values[places] for each, values in columns.items()}) for name, places in kept]
    (dataset,), oracle = named["dataset"].names_in_use, bool(oracle_rows(rows).any())
    return verdicts(adjusted([paired(dataset, first, other, oracle=oracle) for other in others]), pricing)


def of_rare(interval: Interval) -> str:
    """Why an interval with the mark `RARE` shows nothing, wherever it lies."""
    if interval.n < FEWEST:
        return "too few questions to rule out a rare event"
    return f"few questions make the spread, {A_RARE_EVENT}"


def bounds(interval: Interval, no_effect: float, sign: str = "") -> str:
    """The estimate and its interval with two digits, or more where a bound would be rounded to that of no effect."""
    apart = [each for each in (interval.low, interval.high) if abs(each - no_effect) > 10**-_MOST_DIGITS]
    fitting = (n for n in range(2, _MOST_DIGITS) if all(round(each, n) != no_effect for each in apart))
    digits = next(fitting, _MOST_DIGITS)

    def show(value: float) -> str:
        return f"{round(value, digits) + 0.0:{sign}.{digits}f}"

    return f"{show(interval.estimate)} {brackets(interval.low, interval.high, show)}"


def _saving(effect: Effect, pair: Pair) -> str:
    ratio = effect.interval
    saver = "" if not math.isfinite(ratio.estimate) else pair.a if ratio.low > 1 else pair.b if ratio.high < 1 else ""
    if saver and ratio.rare:
        return f"(n = {ratio.n:,}; {of_rare(ratio)})"
    doubt = f": p = {effect.p_holm:.3f} with Holm's adjustment" if saver and effect.p_holm >= ALPHA else ""
    if not saver or doubt:
        return f"(n = {ratio.n:,}; the data don't show a saving{doubt})"
    return f"(n = {ratio.n:,}; the data show a saving by {saver})"
