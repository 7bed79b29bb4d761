"""What a comparison comes to, in one to three sentences: tokens, dollars at named prices, accuracy.

    verdict(pair, pricing)      # ["react took about 3.4 times the tokens of rewoo.", "At gpt-5-mini's prices …", …]
    verdicts(pairs, pricing)    # those of the loop and the plan, for each data set

`run`, `compare`, the report and a study's page all have them from here, and every number in them is rounded from the
tables below them. Whether something is shown is decided in one way: by the p of the pair's exact test, adjusted (Holm)
for the three claims of every pair of the data set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from rewoo_bench.analysis.pairs import ALPHA, Effect, Pair, adjusted, paired, reference, way_round
from rewoo_bench.analysis.prices import Pricing
from rewoo_bench.analysis.stats.paired import FEWEST
from rewoo_bench.runs.rows import Rows

_UNITS = {"total_tokens": "tokens", "cost_usd": "dollars", "exact_match": "accuracy"}
_MOST = 3
"""Sentences of several pairs of which none is a loop and a plan."""


def verdict(pair: Pair, pricing: Pricing) -> list[str]:
    """Up to three sentences on a pair; none of what wasn't measured, or of an oracle's accuracy."""
    return [sentence for _, sentence in _said(pair, pricing)]


def _said(pair: Pair, pricing: Pricing) -> list[tuple[float, str]]:
    """The sentences on a pair, each with its adjusted p."""
    if pair.without_calls:
        why = f"{' and '.join(pair.without_calls)} made no model call in any question, so tokens have no ratio."
        return [(math.nan, why)]
    figures = {effect.measure: effect for effect in pair.figures}
    said = []
    if tokens := figures.get("total_tokens"):
        said.append((tokens.p_holm, _amount(tokens, pair, "", "took", "tokens")))
    if dollars := figures.get("cost_usd"):
        where = f"At {pricing.name} " if pricing.name else ""
        said.append((dollars.p_holm, _amount(dollars, pair, where, "cost", "dollars")))
    if (score := figures.get("exact_match")) and not pair.oracle:
        said.append((score.p_holm, accuracy(score, pair)))
    return said


def _of_several(pairs: Sequence[Pair], pricing: Pricing) -> list[str]:
    """Of pairs of which none is a loop and a plan: the differences that are surest, or that none is shown."""
    said = [each for pair in pairs for each in _said(pair, pricing)]
    untold = [sentence for p, sentence in said if math.isnan(p)]
    shown = sorted(((p, sentence) for p, sentence in said if p < ALPHA), key=lambda each: each[0])
    if shown or untold or not said:
        return [*untold, *(sentence for _, sentence in shown)][:_MOST]
    measured = {each.measure for pair in pairs for each in pair.figures} - (
        {"exact_match"} if pairs[0].oracle else set()
    )
    units = [unit for measure, unit in _UNITS.items() if measure in measured]
    return [f"All {len(pairs)} pairs are too close to call in {' and '.join(units)}."]


def accuracy(score: Effect, pair: Pair) -> str:
    """The sentence on exact match."""
    if not score.p_holm < ALPHA:
        return f"In accuracy {pair.b} and {pair.a} are too close to call."
    points = score.interval.estimate
    better, worse = (pair.b, pair.a) if points > 0 else (pair.a, pair.b)
    return f"{better} is more accurate than {worse}, by about {two_digits(100 * abs(points))} points of exact match."


def _amount(effect: Effect, pair: Pair, where: str, took: str, unit: str) -> str:
    """`react took about 3.4 times the tokens of rewoo`, and what speaks against it."""
    ratio = effect.interval
    if not effect.p_holm < ALPHA or not math.isfinite(ratio.estimate):
        start = f"{where}{pair.b} and {pair.a}" if where else f"In {unit} {pair.b} and {pair.a}"
        return f"{start} are too close to call{f' in {unit}' if where else ''}."
    times = two_digits(ratio.estimate)
    said = f"{where}{pair.b} {took} about {times} times the {unit} of {pair.a}"
    if float(times) == 1:
        said = f"{where}{pair.b} {took} slightly {'more' if ratio.estimate > 1 else 'fewer'} {unit} than {pair.a}"
    if ratio.rare and ratio.n < FEWEST:
        return f"{said}, but {ratio.n} questions are too few to be sure."
    return f"{said}, but a few questions make most of the spread." if ratio.rare else f"{said}."


def two_digits(value: float) -> str:
    """A number with two significant digits: `3.4`, `0.84`, `12`, `110`."""
    rounded = float(f"{value:.2g}")
    digits = max(0, 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    return f"{rounded:.{digits}f}"


def verdicts(pairs: Sequence[Pair], pricing: Pricing) -> list[str]:
    """The sentences of a comparison, with their data set where there are several.

    They are of the pair of a loop and a plan, the first where there are several; of other pairs the surest ones.
    """
    datasets = list(dict.fromkeys(pair.dataset for pair in pairs))
    lines = []
    for dataset in datasets:
        own = [pair for pair in pairs if pair.dataset == dataset]
        main = [pair for pair in own if pair.loop_and_plan][:1] or own[: len(own) == 1]
        said = [line for pair in main for line in verdict(pair, pricing)]
        said = said or _of_several(own, pricing)
        lines += [f"{dataset}: {line}" if len(datasets) > 1 else line for line in said]
    return lines


def verdicts_of_run(rows: Rows, pricing: Pricing) -> list[str]:
    """The sentences of one run: each architecture beside the first that plans, on the questions that all have ended."""
    return verdicts(pairs_of_run(rows, pricing), pricing)


def pairs_of_run(rows: Rows, pricing: Pricing) -> Sequence[Pair]:
    """The pairs of one run; none where no question was ended by all."""
    rows = pricing.of(rows)
    keys = rows.question * (1 + rows["trial"].max(initial=0)) + rows["trial"]
    names, order = rows.texts("architecture"), np.argsort(keys, kind="stable")
    rows, keys = rows.where(order), keys[order]
    own = {name: rows["architecture"] == name for name in names}
    shared = reduce(np.intersect1d, (keys[some] for some in own.values()), keys)
    if not len(shared):
        return ()
    kept = {name: rows.where(some & np.isin(keys, shared)) for name, some in own.items()}
    first = reference(kept)
    dataset, oracle = rows["dataset"][0], bool(rows.oracle.any())
    pairs = [way_round(first, other) for other in kept if other != first]
    return adjusted([paired(dataset, (a, kept[a]), (b, kept[b]), oracle=oracle) for a, b in pairs])
