"""What a comparison comes to, in one to three sentences: tokens, dollars at named prices, accuracy.

    verdict(pair, pricing)      # ["react took about 3.4 times the tokens of rewoo.", "At gpt-5-mini's prices …", …]
    verdicts(pairs, pricing)    # those of the loop and the plan, for each data set

`run`, `compare`, the report and a study's page all have them from here, and every number in them is rounded from the
tables below them. Whether something is shown is decided in one way: by the p of the pair's exact test, adjusted (Holm)
for the three claims of every pair of the data set. Dollars under several prices aren't tested: their sentence names the
lowest ratio and the highest, and the table below has the intervals.
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
"""Sentences of several pairs."""


def verdicts(pairs: Sequence[Pair], pricing: Pricing, under: Sequence[Under] = ()) -> list[str]:
    """The sentences of a comparison, with their data set where there are several.

    Of two systems up to three; of more a sentence for each pair, that of a loop and a plan first, as long as three are
    enough.
    """
    datasets = list(dict.fromkeys(pair.dataset for pair in pairs))
    lines = []
    for dataset in datasets:
        own = sorted((pair for pair in pairs if pair.dataset == dataset), key=lambda pair: not pair.loop_and_plan)
        if len(own) == 1:
            said = verdict(own[0], pricing, under)
        else:
            most = len(own) if len(own) <= _MOST else _MOST - 1
            said = [sentence for pair in own[:most] if (sentence := in_one(pair, pricing, under))]
            if rest := len(own) - most:
                said.append(f"The tables have {counted(rest, 'more pair')}.")
        lines += [f"{dataset}: {line}" if len(datasets) > 1 else line for line in said]
    return lines


def verdict(pair: Pair, pricing: Pricing, under: Sequence[Under] = ()) -> list[str]:
    """Up to three sentences on a pair; none of what wasn't measured, or of an oracle's accuracy."""
    if pair.without_calls:
        return [f"{' and '.join(pair.without_calls)} made no model call in any question, so tokens have no ratio."]
    figures = {effect.measure: effect for effect in pair.figures}
    said, some = [], ""
    if pair.done is not None and pair.done[0] != pair.done[1]:
        what = "tasks" if pair.rows == pair.questions else "answers"
        did = f"{pair.a} did {pair.done[0]} of {pair.rows - pair.left_out} {what}, and {pair.b} {pair.done[1]}"
        said.append(
            f"Under attack {did}." if pair.attacked else f"Without a mistake {did}, by what their gold calls say."
        )
        some = "where both did, "
    if tokens := figures.get("total_tokens"):
        said.append(_amount(tokens, pair, some.capitalize(), "took", "tokens"))
    if sentence := _under_prices(pair, under):
        said.append(sentence)
    elif dollars := figures.get("cost_usd"):
        where = f"At {pricing.name}{', ' if some else ' '}{some}" if pricing.name else some.capitalize()
        said.append(_amount(dollars, pair, where, "cost", "dollars"))
    if (score := figures.get("exact_match")) and not pair.oracle:
        said.append(_accuracy(score, pair))
    return said


def _under_prices(pair: Pair, under: Sequence[Under]) -> str:
    """The sentence on dollars under several prices; empty where none are known."""
    sides = (pair.dataset, pair.a, pair.b)
    ratios = {each.price: two.ratio for each in under for two in each.pairs if (each.dataset, two.a, two.b) == sides}
    if not ratios:
        return ""
    ordered = sorted(ratios.items(), key=lambda item: item[1].estimate)
    (cheap, low), (dear, high) = ordered[0], ordered[-1]
    if all(each.low <= 1 <= each.high for each in ratios.values()):
        return f"Under {counted(len(ratios), 'price')} {pair.b} and {pair.a} are too close to call in dollars."
    times = f"about {two_digits(low.estimate)} times the dollars of {pair.a} at {cheap!r}"
    if cheap == dear:
        return f"{pair.b} cost {times}{_doubt(low)}."
    return (
        f"{pair.b} cost {times}, and about {two_digits(high.estimate)} times at {dear!r}{_doubt(low) or _doubt(high)}."
    )


def in_one(pair: Pair, pricing: Pricing, under: Sequence[Under] = ()) -> str:
    """One sentence on a pair: `react took about 3.4 times the tokens of rewoo, cost about 0.84 times the dollars …`.

    What is too close to call is named at its end.
    """
    figures = {effect.measure: effect for effect in pair.figures}
    whole = verdict(pair, pricing, under)
    if len(whole) == 1 or pair.done is not None or under:  # nothing to join, or a sentence that needs its own room
        return whole[0] if whole else ""
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
            more = "more" if score.interval.estimate > 0 else "less"
            told.append(f"is {more} accurate{'' if told else f' than {pair.a}'}")
        else:
            close.append("accuracy")
    if not told:
        few = _for(next(iter(pair.figures)).interval)
        return f"{pair.b} and {pair.a} are too close to call in {listed(close)}{few}."
    open_ = f"; {listed(close)} {'is' if close == ['accuracy'] else 'are'} too close to call" if close else ""
    return f"{pair.b} {listed(told)}{doubt}{open_}."


def _accuracy(score: Effect, pair: Pair) -> str:
    """The sentence on exact match."""
    if not score.p_holm < ALPHA:
        return f"In accuracy {pair.b} and {pair.a} are too close to call{_for(score.interval)}."
    points = score.interval.estimate
    better, worse = (pair.b, pair.a) if points > 0 else (pair.a, pair.b)
    of = "solved tasks" if pair.checked else "exact match"
    return f"{better} is more accurate than {worse}, by about {two_digits(100 * abs(points))} points of {of}."


def _amount(effect: Effect, pair: Pair, where: str, took: str, unit: str) -> str:
    """`react took about 3.4 times the tokens of rewoo`, and what speaks against it."""
    ratio = effect.interval
    if not _is_shown(effect):
        start = f"{where}{pair.b} and {pair.a}" if where else f"In {unit} {pair.b} and {pair.a}"
        return f"{start} are too close to call{f' in {unit}' if where else ''}{_for(ratio)}."
    return f"{where}{pair.b} {_times(ratio, took, unit, pair.a)}{_doubt(ratio)}."


def _is_shown(effect: Effect) -> bool:
    """Whether a ratio is more than chance, and one that has a number."""
    return effect.p_holm < ALPHA and math.isfinite(effect.interval.estimate)


def _times(ratio: Interval, took: str, unit: str, a: str = "") -> str:
    """`took about 3.4 times the tokens of rewoo`; without `a` where a clause before has it."""
    times = two_digits(ratio.estimate)
    if float(f"{ratio.estimate:.2g}") == 1:
        more = "more" if ratio.estimate > 1 else "fewer"
        return f"{took} slightly {more} {unit}{f' than {a}' if a else ''}"
    return f"{took} about {times} times the {unit}{f' of {a}' if a else ''}"


def _doubt(ratio: Interval) -> str:
    """What speaks against a ratio, behind its sentence."""
    if not ratio.rare:
        return ""
    few = f"{ratio.n} questions are too few to be sure"
    return f", but {few if ratio.n < FEWEST else 'a few questions make most of the spread'}"


def _for(interval: Interval) -> str:
    """Behind `too close to call`, where that may be for lack of questions: ` with 5 questions`."""
    return f" with {counted(interval.n, 'question')}" if interval.n < FEWEST else ""


def two_digits(value: float) -> str:
    """A number with two significant digits: `3.4`, `0.84`, `12`, `7,600`."""
    rounded = float(f"{value:.2g}")
    digits = max(0, 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    return f"{rounded:,.{digits}f}"


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
