"""A recommendation in plain sentences: what to use, what that rests on, what is uncertain, what to run.

sentences(part)     # ["Use rewoo: it is more accurate than every other architecture here.", …]
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from rewoo_bench.advice.candidates import ENOUGH_FOR_P95, Candidate, LimitCheck
from rewoo_bench.advice.contrasts import Contrast
from rewoo_bench.advice.more_questions import TOO_MANY
from rewoo_bench.advice.part import Part
from rewoo_bench.advice.terms import ALPHA
from rewoo_bench.advice.wording import (
    bounds_in_points,
    joined,
    money,
    number_of_seconds,
    p_value,
    points,
    share,
    times_of,
    tokens,
    with_bounds,
)
from rewoo_bench.analysis.pairs import A_RARE_EVENT, RARE
from rewoo_bench.analysis.verdict import dollars_at
from rewoo_bench.text.counts import counted, round_up

_MOST_COMPARED = 3
_MOST_WARNINGS = 2
_ORACLE = (
    "No recommendation: an oracle answered. It is given the answers, so its accuracy means nothing. "
    "Run a real model; `rewoo-bench compare` shows what these architectures cost."
)


def sentences(part: Part) -> list[str]:
    """The recommendation first."""
    if part.decision.kind == "oracle":
        return [_ORACLE]
    basis = [*_figures(part), *_comparisons(part), *_near(part), *_limits(part), *_failures(part), *_units(part)]
    return [_verdict(part), *basis, *_next(part), *_cautions(part)]


def _verdict(part: Part) -> str:
    name, margin = part.decision.recommended, f"{100 * part.terms.margin:g} points"
    others = "the others within the limits" if part.limited else "the others"
    match part.decision.kind:
        case "most accurate":
            return f"Use {name}: it is more accurate than {others}."
        case "cheapest that isn't worse":
            return (
                f"Use {name}: none is shown to be the most accurate, and this is the cheapest of those that may be; "
                f"it is shown to be less than {margin} worse than each other one of them."
            )
        case "only one within the limits":
            return f"Use {name}: it is the only architecture that is surely within the limits."
        case "not measured":
            return "No recommendation: it takes two architectures with rows that count and model calls."
        case "none within the limits":
            return "No recommendation: no architecture is within the limits."
        case "limits undecided":
            return f"Not decided: {joined(part.decision.open, 'or')} may be within the limits, but none surely is."
    contenders = part.decision.contenders
    cheapest = min(contenders, key=lambda each: part.candidate(each).cost.estimate)
    return (
        f"Not decided: {joined(contenders, 'or')} may be the best. None is shown to be more accurate than {others}, "
        f"and {cheapest}, the cheapest, isn't shown to be less than {margin} worse."
    )


def _figures(part: Part) -> Iterator[str]:
    """Accuracy, cost and latency of the recommended one."""
    if part.decision.recommended is None:
        return
    own = part.candidate(part.decision.recommended)
    cost = f"costs {with_bounds(own.cost, money)}" if own.priced else f"takes {with_bounds(own.cost, tokens)} tokens"
    yield (
        f"{own.architecture} answers {share(own.accuracy)} of the questions correctly (exact match, "
        f"n = {own.accuracy.n:,}) and {cost} a question; brackets are 95% intervals."
    )


def _comparisons(part: Part) -> Iterator[str]:
    shown = part.shown_contrasts()
    for contrast in shown[:_MOST_COMPARED]:
        yield _compared(part, contrast)
    if len(shown) > _MOST_COMPARED:
        yield f"Further comparisons are in --json: {joined([each.other for each in shown[_MOST_COMPARED:]])}."


def _compared(part: Part, contrast: Contrast) -> str:
    one, other, accuracy = contrast.one, contrast.other, contrast.accuracy
    tested = other in part.within
    facts = f"{bounds_in_points(accuracy)}, n = {accuracy.n:,}{f', {p_value(contrast.p_holm)}' if tested else ''}"
    cost = times_of(contrast.cost, "cost" if part.candidates[0].priced else "tokens")
    if tested and contrast.p_holm < ALPHA:
        side = "more" if accuracy.estimate > 0 else "less"
        return f"{one} is {points(abs(accuracy.estimate))} {side} accurate than {other} ({facts}) and takes {cost}."
    difference = f"{points(accuracy.estimate, signed=True)} ({facts})"
    if tested:
        return f"{one} against {other}: {difference}, so neither is shown to be more accurate; it takes {cost}."
    return f"{one} against {other}, which isn't surely within the limits: {difference}; it takes {cost}."


def _near(part: Part) -> Iterator[str]:
    """Cheaper ones than the most accurate that are nearly as accurate."""
    if near := part.decision.near:
        margin = f"{100 * part.terms.margin:g} points"
        yield f"{joined(near)}: less accurate, but shown to be less than {margin} worse, at less cost."


def _limits(part: Part) -> Iterator[str]:
    for state, start in (("above", "Above the limit"), ("may be within", "May be within the limit")):
        found = [_held(each, check) for each in part.candidates for check in each.limits if check.state == state]
        if found:
            yield f"{start}: {'; '.join(found)}."


def _held(own: Candidate, check: LimitCheck) -> str:
    interval = check.interval
    if check.what == "cost":
        fact = f"{own.architecture} costs {with_bounds(interval, money)} a question, limit {money(check.limit)}"
    else:
        measured = with_bounds(interval, number_of_seconds)
        fact = f"{own.architecture} has a 95th percentile of {measured} s, limit {check.limit:g} s"
    if check.state == "above":
        return f"{fact} (n = {interval.n:,})"
    if not math.isfinite(interval.high):
        return f"{fact} (n = {interval.n:,}; an interval takes {ENOUGH_FOR_P95} questions)"
    decide = "; the estimate is too near to the limit"
    if check.questions < TOO_MANY:
        decide = f"; about {counted(round_up(check.questions), 'question')} decide"
    return f"{fact} (n = {interval.n:,}{decide})"


def _failures(part: Part) -> Iterator[str]:
    """Rows without an answer, and rows that the infrastructure failed."""
    rows = part.candidates[0].rows
    of_each = f"of {counted(rows, 'row' if rows > part.questions else 'question')} each"
    ended = [
        f"{n:,} of {each.architecture} ({reason.replace('_', ' ')})"
        for each in part.candidates
        for reason, n in each.unanswered.items()
    ]
    if ended:
        yield f"Ended otherwise than by an answer, and wrong: {joined(ended)}, {of_each}."
    if idle := [each.architecture for each in part.candidates if each.accuracy.n and not each.has_called]:
        has = "made no model call in any question, and isn't" if len(idle) == 1 else "made no model call, and aren't"
        yield f"{joined(idle)} {has} compared: mend it first, `rewoo-bench show RUN --failed` has the errors."
    if missing := [each.architecture for each in part.candidates if not each.accuracy.n]:
        has = "has no row that counts, and isn't" if len(missing) == 1 else "have no rows that count, and aren't"
        yield f"{joined(missing)} {has} compared: every row failed, or was answered without a metered model call."
    failed = [f"{each.failed:,} of {each.architecture}" for each in part.candidates if each.failed]
    if failed:
        yield f"Left out, failed or unmetered: {joined(failed)}, {of_each}; no comparison includes such a pair."


def _units(part: Part) -> Iterator[str]:
    if part.candidates[0].priced:
        of_runs = {piece.run_id: piece.manifest for piece in part.runs.pieces if piece.manifest}
        yield f"Dollars are at {dollars_at(of_runs)}."
    else:
        yield f"Cost is in tokens: the price of {part.runs.model} isn't known."


def _next(part: Part) -> Iterator[str]:
    """What to run to decide what isn't decided."""
    more = part.more
    if more is None:
        return
    if more.questions is not None:
        number = (
            f"about {counted(more.questions, 'question')}, {max(more.questions - part.questions, 0):,} more than now"
        )
        yield f"To decide it takes {number}, if the truth is as measured (80% power)."
    if more.obstacle:
        yield more.obstacle if more.questions is not None else f"To decide it: {more.obstacle}"
    if more.command:
        yield f"    {more.command}"


def _cautions(part: Part) -> Iterator[str]:
    costs = [*(each.cost for each in part.contrasts.values()), *(each.cost for each in part.candidates)]
    rare = f"{RARE}: {A_RARE_EVENT}, few questions make the spread." if any(cost.rare for cost in costs) else ""
    adjusted = part.pairs_tested > 1 and part.contrasts
    p = f"p is exact McNemar's, adjusted for {part.pairs_tested} pairs (Holm); the intervals aren't adjusted."
    if said := " ".join(filter(None, [p if adjusted else "", rare])):
        yield said
    timed = any(each.latency is not None and math.isfinite(each.latency.high) for each in part.candidates)
    for warning in [*part.runs.warnings, *(part.runs.waits if timed else ())][:_MOST_WARNINGS]:
        yield f"Note: {warning}."
