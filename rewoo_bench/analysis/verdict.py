"""What a comparison comes to, a sentence for each pair: tokens, dollars under named prices, accuracy.

    for line in verdicts(comparison):
        print(line)
    # react took 2.49 [1.95, 3.35] times the tokens of rewoo (n = 20; saving by rewoo shown by the data) and
    # 0.71 [0.48, 1.16] times the dollars of rewoo under gpt-5-mini's prices, cached input by OpenAI's rule, with up to
    # 8 questions at once (n = 20; saving not shown by the data); …

A saving is shown where the 95% interval of the ratio lies wholly on one side of 1, Holm's adjusted test agrees where
there is one (`pairs.FAMILY`), and no rare event may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.pairs import A_RARE_EVENT, ALPHA, PRICED, Effect, Pair, adjusted, measured, paired
from rewoo_bench.runs.oracle_rows import oracle_rows
from rewoo_bench.runs.table_columns import read_columns
from rewoo_bench.text.counts import brackets

if TYPE_CHECKING:
    import pyarrow as pa

    from rewoo_bench.runs.manifest import Manifests
    from rewoo_bench.stats.paired import Interval

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


def own_prices(manifests: Manifests) -> Pricing:
    """The prices that the runs were paid at, by the names of their models."""
    priced = [name for run in manifests.values() for name, prices in (run.prices or {}).items() if prices]
    names = " and ".join(f"{name}'s" for name in dict.fromkeys(priced))
    under = f"{names} prices, cached input as the endpoint counted it{at_once(manifests)}"
    return Pricing(under if priced else "")


def dollars_at(manifests: Manifests) -> str:
    """What the runs' own dollars are at, for a sentence beside them."""
    return own_prices(manifests).under or "prices that run.json doesn't name, cached input as the endpoint counted it"


def at_once(manifests: Manifests) -> str:
    """The number of questions at once, which decides what a cache holds when a call is sent; empty for older runs."""
    known = {(run.dataset.name, run.concurrency) for run in manifests.values() if run.concurrency}
    counts = sorted({count for _, count in known})
    if len(counts) > 1:
        by_data = len(known) == len({name for name, _ in known})
        why = ", by the data set" if by_data else ": the runs differ in it, and that alone changes cached input"
        return f", with up to {' or '.join(map(str, counts))} questions at once{why}"
    return "".join(f", with {'one question' if n == 1 else f'up to {n:,} questions'} at once" for n in counts)


def verdict(pair: Pair, pricing: Pricing | None = None) -> str:
    """The sentence of a pair; empty where nothing of it was measured."""
    figures = {figure.measure: figure for figure in pair.figures}
    costs = figures.get(PRICED) or figures.get("cost_usd")
    under = pricing.under if pricing else ""
    parts = []
    if tokens := figures.get("total_tokens"):
        parts.append(f"{_times(tokens.interval)} the tokens of {pair.a} {_saving(tokens, pair)}")
    if costs is not None:
        prices = f" under {under}" if under else ""
        parts.append(f"{_times(costs.interval)} the dollars of {pair.a}{prices} {_saving(costs, pair)}")
    said = [f"{pair.b} took {' and '.join(parts)}"] if parts else []
    if (some := pair.both_answered) is not None:
        said.append(f"where both answered, {_times(some)} (n = {some.n:,})")
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
    told = [(pair, verdict(pair, pricing)) for pair in pairs]
    lines = [f"{pair.dataset}: {line}" if several else line for pair, line in told if line]
    known = any(figure.kind == "ratio" for pair in pairs for figure in pair.figures)
    note = pricing.note if pricing else ""
    outcome = OUTCOME if any(pair.both_answered for pair in pairs) else ""
    return [*lines, "; ".join(filter(None, [SAVING, outcome, note]))] if lines and known else lines


def verdicts_of_run(rows: pa.Table, pricing: Pricing) -> list[str]:
    """The sentences of one run: each architecture beside the first, on the questions that all have ended.

    They are those of `compare`, without pandas, whose import takes longer than all else at the end of a small run.
    """
    columns, named = measured(rows), read_columns(rows, ["architecture", "dataset"])
    if pricing.cost_usd is not None:
        columns[PRICED] = pricing.cost_usd
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


def _times(ratio: Interval) -> str:
    return f"{bounds(ratio, 1.0)} times"


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
    doubt = A_RARE_EVENT if ratio.rare else ""
    if saver and not doubt and effect.p_holm >= ALPHA:
        doubt = f"p = {effect.p_holm:.3f} with Holm's adjustment"
    if not saver or doubt:
        return f"(n = {ratio.n:,}; saving not shown by the data{f': {doubt}' if doubt else ''})"
    unadjusted = ", unadjusted" if math.isnan(effect.p_holm) else ""
    return f"(n = {ratio.n:,}; saving by {saver} shown by the data{unadjusted})"
