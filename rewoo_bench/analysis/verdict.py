"""What a comparison comes to, in one to three sentences: tokens, dollars at named prices, accuracy.

    verdict(pair, pricing)      # ["react took about 3.4 times the tokens of rewoo.", "At gpt-5-mini's prices …", …]
    verdicts(pairs, pricing)    # those of the loop and the plan, for each data set

`run`, `compare`, the report and a study's page all have them from here, and every number in them is rounded from the
tables below them. Whether something is shown is decided in one way: by the p of the pair's exact test, adjusted (Holm)
for the three claims of every pair of the data set. Dollars under several prices are one sentence, and go by the
intervals: only those of one price are tested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rewoo_bench.analysis.pairs import ALPHA, Effect, Pair, Under
from rewoo_bench.analysis.prices import Pricing
from rewoo_bench.analysis.stats.paired import FEWEST, Interval
from rewoo_bench.text.words import counted

_UNITS = {"total_tokens": "tokens", "cost_usd": "dollars", "exact_match": "accuracy"}
_MOST = 3
"""Sentences of several pairs of which none is a loop and a plan."""


def verdict(pair: Pair, pricing: Pricing, under: Sequence[Under] = ()) -> list[str]:
    """Up to three sentences on a pair; none of what wasn't measured, or of an oracle's accuracy."""
    return [sentence for _, sentence in _said(pair, pricing, under)]


def _said(pair: Pair, pricing: Pricing, under: Sequence[Under]) -> list[tuple[float, str]]:
    """The sentences on a pair, each with its adjusted p."""
    if pair.without_calls:
        why = f"{' and '.join(pair.without_calls)} made no model call in any question, so tokens have no ratio."
        return [(math.nan, why)]
    figures = {effect.measure: effect for effect in pair.figures}
    said, some = [], ""
    if pair.done is not None and pair.done[0] != pair.done[1]:
        what = "tasks" if pair.rows == pair.questions else "answers"
        did = f"{pair.a} did {pair.done[0]} of {pair.rows - pair.left_out} {what}, and {pair.b} {pair.done[1]}"
        line = f"Under attack {did}." if pair.attacked else f"Without a mistake {did}, by what their gold calls say."
        said, some = [(0.0, line)], "where both did, "
    if tokens := figures.get("total_tokens"):
        said.append((tokens.p_holm, _amount(tokens, pair, some.capitalize(), "took", "tokens")))
    if ratios := _under_prices(pair, under):
        said.append(_dollars_under(pair, ratios))
    elif dollars := figures.get("cost_usd"):
        where = f"At {pricing.name}{some and f', {some}'}" if pricing.name else some.capitalize()
        where = where if not where or where.endswith(" ") else f"{where} "
        said.append((dollars.p_holm, _amount(dollars, pair, where, "cost", "dollars")))
    if (score := figures.get("exact_match")) and not pair.oracle:
        said.append((score.p_holm, accuracy(score, pair)))
    return said


def _under_prices(pair: Pair, under: Sequence[Under]) -> dict[str, Interval]:
    """The pair's ratio of dollars under each price, cheapest for b first."""
    sides = (pair.a, pair.b)
    found = {
        each.price: two.ratio
        for each in under
        if each.dataset == pair.dataset
        for two in each.pairs
        if (two.a, two.b) == sides
    }
    return dict(sorted(found.items(), key=lambda item: item[1].estimate))


def _dollars_under(pair: Pair, ratios: dict[str, Interval]) -> tuple[float, str]:
    """The sentence on dollars under several prices. Its p is 0 where an interval leaves 1 out, else 1."""
    dearer = [price for price, ratio in ratios.items() if ratio.low > 1]
    cheaper = [price for price, ratio in ratios.items() if ratio.high < 1]
    a, b, prices = pair.a, pair.b, counted(len(ratios), "price")
    each = f"Under each of the {prices}" if len(ratios) > 1 else f"At {next(iter(ratios))!r}"
    if not dearer and not cheaper:
        return 1.0, f"{each} {b} and {a} are too close to call in dollars."
    marked = [ratios[price] for price in (*dearer, *cheaper) if ratios[price].rare]
    doubt = _doubt(marked[0]) if marked else ""
    if dearer and cheaper:
        low, high = two_digits(ratios[cheaper[0]].estimate), two_digits(ratios[dearer[-1]].estimate)
        times = f"about {high} times the dollars of {a} at {dearer[-1]!r}, and about {low} times at {cheaper[0]!r}"
        return 0.0, f"Which is cheaper depends on the price: {b} cost {times}{doubt}."
    side, more = (dearer, "more") if dearer else (cheaper, "fewer")
    if len(side) == len(ratios):
        return 0.0, f"{each} {b} cost {more} dollars than {a}{doubt}."
    others = "the others are too close to call"
    return 0.0, f"Under {len(side)} of {prices} {b} cost {more} dollars than {a}{doubt}; {others}."


def _doubt(ratio: Interval) -> str:
    """What speaks against a ratio, behind its sentence."""
    if not ratio.rare:
        return ""
    few = f"{ratio.n} questions are too few to be sure"
    return f", but {few if ratio.n < FEWEST else 'a few questions make most of the spread'}"


def _for(interval: Interval) -> str:
    """Behind `too close to call`, where that may be for lack of questions: ` with 5 questions`."""
    return f" with {counted(interval.n, 'question')}" if interval.n < FEWEST else ""


def _of_several(pairs: Sequence[Pair], pricing: Pricing, under: Sequence[Under]) -> list[str]:
    """Of pairs of which none is a loop and a plan: the differences that are surest, or that none is shown."""
    said = [each for pair in pairs for each in _said(pair, pricing, under)]
    untold = [sentence for p, sentence in said if math.isnan(p)]
    shown = sorted(((p, sentence) for p, sentence in said if p < ALPHA), key=lambda each: each[0])
    if shown or untold or not said:
        return [*untold, *(sentence for _, sentence in shown)][:_MOST]
    measured = {each.measure for pair in pairs for each in pair.figures} - (
        {"exact_match"} if pairs[0].oracle else set()
    )
    units = [unit for measure, unit in _UNITS.items() if measure in measured]
    return [f"All {len(pairs)} pairs are too close to call in {listed(units)}."]


def accuracy(score: Effect, pair: Pair) -> str:
    """The sentence on exact match."""
    if not score.p_holm < ALPHA:
        return f"In accuracy {pair.b} and {pair.a} are too close to call{_for(score.interval)}."
    points = score.interval.estimate
    better, worse = (pair.b, pair.a) if points > 0 else (pair.a, pair.b)
    of = "solved tasks" if pair.checked else "exact match"
    return f"{better} is more accurate than {worse}, by about {two_digits(100 * abs(points))} points of {of}."


def _is_shown(effect: Effect) -> bool:
    """Whether a ratio is more than chance, and one that has a number."""
    return effect.p_holm < ALPHA and math.isfinite(effect.interval.estimate)


def _amount(effect: Effect, pair: Pair, where: str, took: str, unit: str) -> str:
    """`react took about 3.4 times the tokens of rewoo`, and what speaks against it."""
    ratio = effect.interval
    if not _is_shown(effect):
        start = f"{where}{pair.b} and {pair.a}" if where else f"In {unit} {pair.b} and {pair.a}"
        return f"{start} are too close to call{f' in {unit}' if where else ''}{_for(ratio)}."
    return f"{where}{pair.b} {_times(ratio, took, unit, pair.a)}{_doubt(ratio)}."


def two_digits(value: float) -> str:
    """A number with two significant digits: `3.4`, `0.84`, `12`, `7,600`."""
    rounded = float(f"{value:.2g}")
    digits = max(0, 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    return f"{rounded:,.{digits}f}"


def verdicts(pairs: Sequence[Pair], pricing: Pricing, under: Sequence[Under] = ()) -> list[str]:
    """The sentences of a comparison, with their data set where there are several.

    Of two systems up to three; of more a sentence for each that is compared with the same one, the pair of a loop and a
    plan first, as long as three are enough. Of pairs without a system in common the surest ones.
    """
    datasets = list(dict.fromkeys(pair.dataset for pair in pairs))
    lines = []
    for dataset in datasets:
        own = [pair for pair in pairs if pair.dataset == dataset]
        shared = set.intersection(*({pair.a, pair.b} for pair in own))
        if len(own) == 1:
            said = verdict(own[0], pricing, under)
        elif shared:
            said = _of_each(sorted(own, key=lambda pair: not pair.loop_and_plan), pricing, under)
        else:
            main = [pair for pair in own if pair.loop_and_plan][:1]
            said = [line for pair in main for line in verdict(pair, pricing, under)]
            said = said or _of_several(own, pricing, under)
        lines += [f"{dataset}: {line}" if len(datasets) > 1 else line for line in said]
    return lines


def _of_each(pairs: Sequence[Pair], pricing: Pricing, under: Sequence[Under]) -> list[str]:
    """A sentence for each pair, at most three in all."""
    most = _MOST if len(pairs) <= _MOST else _MOST - 1
    said = [sentence for pair in pairs[:most] if (sentence := in_one(pair, pricing, under))]
    rest = [each.b for each in pairs[most:]]
    return [*said, f"The tables have {', '.join(rest)}, too."] if rest else said


def in_one(pair: Pair, pricing: Pricing, under: Sequence[Under] = ()) -> str:
    """One sentence on a pair: `react took about 3.4 times the tokens of rewoo, cost about 0.84 times the dollars …`.

    What is too close to call is named at its end.
    """
    figures = {effect.measure: effect for effect in pair.figures}
    whole = _said(pair, pricing, under)
    if len(whole) == 1 or pair.done is not None or under:  # nothing to join, or a sentence that needs its own room
        return whole[0][1] if whole else ""
    told, close, doubt = list[str](), list[str](), ""
    for measure, took in (("total_tokens", "took"), ("cost_usd", "cost")):
        if effect := figures.get(measure):
            unit, ratio = _UNITS[measure], effect.interval
            if _is_shown(effect):
                told.append(_times(ratio, took, unit, "" if told else pair.a))
                doubt = doubt or _doubt(ratio)
            else:
                close.append(unit)
    if (score := figures.get("exact_match")) and not pair.oracle:
        if score.p_holm < ALPHA:
            told.append(
                f"is {'more' if score.interval.estimate > 0 else 'less'} accurate{'' if told else f' than {pair.a}'}"
            )
        else:
            close.append("accuracy")
    if not told:
        few = _for(next(iter(pair.figures)).interval)
        return f"{pair.b} and {pair.a} are too close to call in {listed(close)}{few}."
    open_ = f"; {listed(close)} {'is' if close == ['accuracy'] else 'are'} too close to call" if close else ""
    return f"{pair.b} {listed(told)}{doubt}{open_}."


def _times(ratio: Interval, took: str, unit: str, a: str = "") -> str:
    """`took about 3.4 times the tokens of rewoo`; without `a` where a clause before has it."""
    times = two_digits(ratio.estimate)
    if float(times) == 1:
        more = "more" if ratio.estimate > 1 else "fewer"
        return f"{took} slightly {more} {unit}{f' than {a}' if a else ''}"
    return f"{took} about {times} times the {unit}{f' of {a}' if a else ''}"


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
