"""A recommendation in plain sentences: what to use, what that rests on, what is uncertain, what to run.

sentences(part)     # ["Use rewoo: it is more accurate than every other architecture here.", …]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rewoo_bench.analysis.advice.decision import (
    ALPHA,
    ENOUGH_FOR_P95,
    Candidate,
    Contrast,
    Contrasts,
    Decision,
    LimitCheck,
    Terms,
)
from rewoo_bench.analysis.advice.run_sets import TOO_MANY, MoreQuestions, RunSet
from rewoo_bench.analysis.pairs import A_RARE_EVENT, RARE, dollars_at
from rewoo_bench.analysis.stats.paired import Interval, brackets
from rewoo_bench.text.escaping import text_table
from rewoo_bench.text.words import counted, round_up


def points(value: float, *, signed: bool = False) -> str:
    """A difference of shares in points."""
    return f"{100 * value:{'+' if signed else ''}.1f} points"


def share(interval: Interval) -> str:
    """`26.7% [22.0%, 31.9%]`."""
    return with_bounds(interval, lambda value: f"{100 * value:.1f}%")


def money(dollars: float) -> str:
    """Dollars with three digits: `$0.00397`."""
    decimals = 2 - math.floor(math.log10(dollars)) if 0 < dollars < 1 else 2
    return f"${dollars:,.{decimals}f}"


def tokens(number: float) -> str:
    """A whole number."""
    return f"{number:,.0f}"


def number_of_seconds(value: float) -> str:
    """With one decimal below ten seconds."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def times_of(ratio: Interval, unit: str) -> str:
    """`15% [14%, 15%] of its tokens` or `3.65 [2.70, 5.09] times its tokens`."""
    if ratio.estimate < 1:
        return f"{with_bounds(ratio, lambda value: f'{100 * value:.0f}%')} of its {unit}"
    return f"{with_bounds(ratio, lambda value: f'{value:.2f}')} times its {unit}"


def with_bounds(interval: Interval, show: Callable[[float], str]) -> str:
    """`1,433 [1,381, 1,502]`; a question mark behind it is of a rare event."""
    return f"{show(interval.estimate)} {brackets(interval.low, interval.high, show)}{RARE if interval.rare else ''}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    *most, end = names
    return f"{', '.join(most)} {last} {end}" if most else end


@dataclass(frozen=True, slots=True)
class Part:
    """A recommendation for one set of architectures."""

    runs: RunSet
    terms: Terms
    candidates: tuple[Candidate, ...]
    contrasts: Contrasts
    """Pairs of architectures within the limits, and of the recommended one with each other one."""
    decision: Decision
    more: MoreQuestions | None

    @property
    def title(self) -> str:
        """Data set, model, architectures and number of questions."""
        names = joined([each.architecture for each in self.candidates])
        return f"{self.runs.dataset}, {self.runs.model}: {names} on {counted(self.questions, 'question')}"

    @property
    def questions(self) -> int:
        """Questions that all of them were asked."""
        return self.candidates[0].questions

    @property
    def within(self) -> list[str]:
        """Architectures that are surely within the limits."""
        return [each.architecture for each in self.candidates if each.state == "within"]

    @property
    def pairs_tested(self) -> int:
        """Number of pairs that Holm's adjustment is for."""
        return len(self.within) * (len(self.within) - 1) // 2

    @property
    def limited(self) -> bool:
        """Whether a limit was given."""
        return any(each.limits for each in self.candidates)

    def candidate(self, name: str) -> Candidate:
        """The candidate of that name."""
        return next(each for each in self.candidates if each.architecture == name)

    def shown_contrasts(self) -> list[Contrast]:
        """The recommended one, or else the contender with the highest accuracy, against each other one.

        The contenders come first.
        """
        names = self.decision.contenders
        name = self.decision.recommended or max(
            names, key=lambda each: self.candidate(each).accuracy.estimate, default=None
        )
        shown = [each for (one, _), each in self.contrasts.items() if one == name]
        return sorted(shown, key=lambda each: each.other not in names)


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
    facts = f"[{100 * accuracy.low:+.1f}, {100 * accuracy.high:+.1f}], n = {accuracy.n:,}"
    if tested:
        p = contrast.p_holm
        facts += ", p < 0.001" if p < 0.001 else f", p = {p:.{2 if p >= 0.1 else 3}f}"
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


def table(part: Part) -> list[str]:
    """Accuracy, cost, 95th percentile of latency, rows without an answer, failed rows; and the state of the limits."""
    oracle, priced = part.decision.kind == "oracle", part.candidates[0].priced
    columns: list[tuple[str, Callable[[Candidate], str]]] = [
        ("architecture", lambda own: own.architecture),
        ("n", lambda own: f"{own.accuracy.n:,}"),
        ("EM [95% CI]", lambda own: "-" if oracle or not own.accuracy.n else share(own.accuracy)),
        ("$ / 1000 [95% CI]" if priced else "tokens [95% CI]", _cost),
        ("p95 s [95% CI]", lambda own: "-" if oracle else _latency(own)),
        ("no answer", lambda own: f"{sum(own.unanswered.values()):,}"),
        ("failed", lambda own: f"{own.failed:,}"),
    ]
    if part.limited:
        columns.append(("limits", lambda own: own.state))
    return text_table([[name for name, _ in columns], *([show(own) for _, show in columns] for own in part.candidates)])


def _cost(own: Candidate) -> str:
    if not own.cost.n:
        return "-"
    return with_bounds(own.cost, (lambda dollars: f"{1000 * dollars:,.3f}") if own.priced else tokens)


def _latency(own: Candidate) -> str:
    if own.latency is None or not math.isfinite(own.latency.high):
        return "-"
    return with_bounds(own.latency, number_of_seconds)
