"""Which of these architectures for my questions: runs -> a recommendation, in words and as data.

    advice = rewoo_bench.advise("results/local/a", max_cost=0.004)
    advice.parts[0].decision.recommended        # "rewoo", or None where nothing is
    print(advice)                               # sentences and a small table

    run_sets, decide (decision.py) -> advice_sentences(part)

Everything is paired by question and has an interval and its number of questions.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rewoo_bench.analysis.advice.decision import (
    ENOUGH_FOR_P95,
    TOO_MANY,
    Candidate,
    Contrast,
    Contrasts,
    Decision,
    LimitCheck,
    MoreQuestions,
    RunSet,
    Terms,
    candidates,
    contrasted,
    decide,
    more_questions,
    run_sets,
)
from rewoo_bench.analysis.pairs import ALPHA, dollars_at, sentence
from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.analysis.stats.paired import A_RARE_EVENT, RARE, Interval, brackets
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.text.escaping import text_table, with_finite_numbers
from rewoo_bench.text.words import counted, round_up

_MOST_COMPARED = 3
_MOST_WARNINGS = 2
_REPLAYED = "rewoo,rewoo-lazy,react"  # to be measured on the tasks of a recorded loop
_ORACLE = (
    "No recommendation: an oracle answered. It is given the answers, so its accuracy means nothing. "
    "Run a real model; `rewoo-bench compare` shows what these architectures cost."
)


def _money(dollars: float) -> str:
    """Dollars with three digits: `$0.00397`."""
    decimals = 2 - math.floor(math.log10(dollars)) if 0 < dollars < 1 else 2
    return f"${dollars:,.{decimals}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _whole(number: float) -> str:
    return f"{number:,.0f}"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _with_bounds(interval: Interval, show: Callable[[float], str]) -> str:
    """`1,433 [1,381, 1,502]`; a question mark behind it is of a rare event."""
    return f"{show(interval.estimate)} {brackets(interval.low, interval.high, show)}{RARE if interval.rare else ''}"


def _joined(names: Sequence[str], last: str = "and") -> str:
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
    dollars: str = ""
    """What the dollars are at, where it isn't the runs' own prices."""

    @property
    def title(self) -> str:
        """Data set, model, architectures and number of questions."""
        names = _joined([each.architecture for each in self.candidates])
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


def advice_sentences(part: Part) -> list[str]:
    """The recommendation first, then what it rests on, what is uncertain, and what to run."""
    if part.decision.kind == "oracle":
        return [_ORACLE]
    said = [_verdict(part), *_comparisons(part)]
    for state, start in (("above", "Above the limit"), ("may be within", "May be within the limit")):
        found = [_limit_text(each, check) for each in part.candidates for check in each.limits if check.state == state]
        said += [f"{start}: {'; '.join(found)}."] if found else []
    said += _failures(part)
    if part.candidates[0].priced:
        of_runs = {piece.run_id: piece.manifest for piece in part.runs.pieces if piece.manifest}
        said.append(sentence(part.dollars or f"dollars are at {dollars_at(of_runs)}"))
    else:
        said.append(f"Cost is in tokens: {part.runs.no_dollars}.")
    if (more := part.more) and more.questions is not None:
        beyond = max(more.questions - part.questions, 0)
        number = f"about {counted(more.questions, 'question')}, {beyond:,} more than now"
        said.append(f"To decide it takes {number}, if the truth is as measured (80% power).")
    if more and more.obstacle:
        said.append(more.obstacle if more.questions is not None else f"To decide it: {more.obstacle}")
    if more and more.command:
        said.append(f"    {more.command}")
    notes = []
    if part.pairs_tested > 1 and part.contrasts and part.decision.kind != "not scored":
        adjusted = f"adjusted for {part.pairs_tested} pairs (Holm); the intervals aren't adjusted."
        notes.append(f"p is exact McNemar's, {adjusted}")
    costs = [*(each.cost for each in part.contrasts.values()), *(each.cost for each in part.candidates)]
    if any(cost.rare for cost in costs):
        notes.append(f"{RARE}: {A_RARE_EVENT}, few questions make the spread.")
    said += [" ".join(notes)] if notes else []
    timed = any(each.latency is not None and math.isfinite(each.latency.high) for each in part.candidates)
    warnings = [*part.runs.warnings, *(part.runs.waits if timed else ())]
    return [*said, *(f"Note: {warning}." for warning in warnings[:_MOST_WARNINGS])]


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
        case "not scored":
            return "No recommendation: accuracy isn't known, since no answer was scored. Costs alone are compared."
        case "not measured":
            return "No recommendation: it takes two architectures with rows that count and model calls."
        case "none within the limits":
            return "No recommendation: no architecture is within the limits."
        case "limits undecided":
            return f"Not decided: {_joined(part.decision.open, 'or')} may be within the limits, but none surely is."
    contenders = part.decision.contenders
    cheapest = min(contenders, key=lambda each: part.candidate(each).cost.estimate)
    return (
        f"Not decided: {_joined(contenders, 'or')} may be the best. None is shown to be more accurate than {others}, "
        f"and {cheapest}, the cheapest, isn't shown to be less than {margin} worse."
    )


def _comparisons(part: Part) -> Iterator[str]:
    """The figures of the recommended architecture, or else of the contender with the highest accuracy, and each other.

    The other contenders come first.
    """
    decision, contenders = part.decision, part.decision.contenders
    cheapest = contenders[0] if decision.kind == "not scored" else None
    most_accurate = max(contenders, key=lambda each: part.candidate(each).accuracy.estimate, default=None)
    if name := decision.recommended or cheapest:
        own = part.candidate(name)
        cost = _with_bounds(own.cost, _money if own.priced else _whole)
        takes = f"costs {cost} a question" if own.priced else f"takes {cost} tokens a question"
        if cheapest:
            yield f"{name} {takes}, the least of {'those within the limits' if part.limited else 'all'}."
        else:
            yield (
                f"{name} answers {_with_bounds(own.accuracy, _percent)} of the questions correctly (exact match, "
                f"n = {own.accuracy.n:,}) and {takes}; brackets are 95% intervals."
            )
    shown = [each for (one, _), each in part.contrasts.items() if one == (name or most_accurate)]
    shown.sort(key=lambda each: each.other not in contenders)
    for contrast in shown[:_MOST_COMPARED]:
        yield _compared(part, contrast)
    if len(shown) > _MOST_COMPARED:
        yield f"Further comparisons are in --json: {_joined([each.other for each in shown[_MOST_COMPARED:]])}."
    if decision.near:
        margin = f"{100 * part.terms.margin:g} points"
        yield f"{_joined(decision.near)}: less accurate, but shown to be less than {margin} worse, at less cost."


def _compared(part: Part, contrast: Contrast) -> str:
    one, other, accuracy, ratio = contrast.one, contrast.other, contrast.accuracy, contrast.cost
    unit = "cost" if part.candidates[0].priced else "tokens"
    if ratio.estimate < 1:
        cost = f"{_with_bounds(ratio, lambda value: f'{100 * value:.0f}%')} of its {unit}"
    else:
        cost = f"{_with_bounds(ratio, lambda value: f'{value:.2f}')} times its {unit}"
    if not accuracy.n:
        return f"{one} against {other}: accuracy isn't known; it takes {cost} (n = {ratio.n:,})."
    tested, points = other in part.within, 100 * accuracy.estimate
    facts = f"[{100 * accuracy.low:+.1f}, {100 * accuracy.high:+.1f}], n = {accuracy.n:,}"
    if tested:
        p = contrast.p_holm
        facts += ", p < 0.001" if p < 0.001 else f", p = {p:.{2 if p >= 0.1 else 3}f}"
    if tested and contrast.p_holm < ALPHA:
        side = "more" if points > 0 else "less"
        return f"{one} is {abs(points):.1f} points {side} accurate than {other} ({facts}) and takes {cost}."
    difference = f"{points:+.1f} points ({facts})"
    if tested:
        return f"{one} against {other}: {difference}, so neither is shown to be more accurate; it takes {cost}."
    return f"{one} against {other}, which isn't surely within the limits: {difference}; it takes {cost}."


def _limit_text(own: Candidate, check: LimitCheck) -> str:
    interval = check.interval
    if check.what == "cost":
        fact = f"{own.architecture} costs {_with_bounds(interval, _money)} a question, limit {_money(check.limit)}"
    else:
        measured = _with_bounds(interval, _seconds)
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
        wrong = "" if part.decision.kind == "not scored" else ", and wrong"
        yield f"Ended otherwise than by an answer{wrong}: {_joined(ended)}, {of_each}."
    if idle := [each.architecture for each in part.candidates if each.cost.n and not each.has_called]:
        has = "made no model call in any question, and isn't" if len(idle) == 1 else "made no model call, and aren't"
        yield f"{_joined(idle)} {has} compared: mend it first, `rewoo-bench show RUN --failed` has the errors."
    if missing := [each.architecture for each in part.candidates if not each.cost.n]:
        has = "has no row that counts, and isn't" if len(missing) == 1 else "have no rows that count, and aren't"
        yield f"{_joined(missing)} {has} compared: every row failed, or was answered without a metered model call."
    if failed := [f"{each.failed:,} of {each.architecture}" for each in part.candidates if each.failed]:
        yield f"Left out, failed or unmetered: {_joined(failed)}, {of_each}; no comparison includes such a pair."


def advice_table(part: Part) -> list[str]:
    """Accuracy, cost, 95th percentile of latency, rows without an answer, failed rows; and the state of the limits."""
    oracle, priced = part.decision.kind == "oracle", part.candidates[0].priced
    cost = "$ / 1000 [95% CI]" if priced else "tokens [95% CI]"
    cells = [["architecture", "n", "EM [95% CI]", cost, "p95 s [95% CI]", "no answer", "failed"]]
    show = (lambda dollars: f"{1000 * dollars:,.3f}") if priced else _whole
    for own in part.candidates:
        is_timed = not oracle and own.latency is not None and math.isfinite(own.latency.high)
        cells.append(
            [
                own.architecture,
                f"{own.accuracy.n or own.cost.n:,}",
                "-" if oracle or not own.accuracy.n else _with_bounds(own.accuracy, _percent),
                _with_bounds(own.cost, show) if own.cost.n else "-",
                _with_bounds(own.latency, _seconds) if own.latency and is_timed else "-",
                f"{sum(own.unanswered.values()):,}",
                f"{own.failed:,}",
            ]
        )
    if part.limited:
        states = ["limits", *(own.state for own in part.candidates)]
        cells = [[*row, state] for row, state in zip(cells, states, strict=True)]
    return text_table(cells)


@dataclass(frozen=True, slots=True)
class LoopAdvice:
    """What a plan could have saved of a loop that there is nothing to compare with, and how to measure it."""

    run: str
    """Its folder."""
    architecture: str
    sentences: tuple[str, ...]
    measured: tuple[str, ...]
    """Lines: what planners took of such a prediction, where it was measured."""
    savings: tuple[Mapping[Any, Any], ...]
    """A row for each horizon and measure, as of `rewoo-bench plannable --format json`."""
    command: str

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.run} has one architecture, {self.architecture!r}: there is nothing to compare it with. "
                "What a plan could have saved of it:",
                *(f"- {sentence}" for sentence in self.sentences),
                *("", *self.measured, ""),
                "To measure it, let others answer the same tasks, with tools that answer from this recording:",
                f"    {self.command}",
            ]
        )


@dataclass(frozen=True, slots=True)
class Advice:
    """A part for each set of architectures that may be compared; printed, it is sentences and a table each."""

    parts: tuple[Part, ...]
    not_compared: tuple[str, ...]
    """Why some runs aren't compared with others; a sentence each."""
    loop: LoopAdvice | None = None
    """Where the runs have one architecture alone, and it is a loop."""

    def __str__(self) -> str:
        blocks = [str(self.loop)] if self.loop else []
        for part in self.parts:
            blocks.append("\n\n".join([part.title, *map("\n".join, (advice_sentences(part), advice_table(part)))]))
        lines = [f"Not compared: {reason}." for reason in self.not_compared]
        return "\n\n".join([*blocks, *(["\n".join(lines)] if lines else [])])

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; what isn't known, or is without bound, is None."""
        parts = [
            {
                "dataset": part.runs.dataset,
                "model": part.runs.model,
                "runs": [piece.run_id for piece in part.runs.pieces],
                "kind": part.decision.kind,
                "recommended": part.decision.recommended,
                "sentences": advice_sentences(part),
                "terms": asdict(part.terms),
                "contenders": part.decision.contenders,
                "not_worse_p_holm": dict(part.decision.not_worse),
                "could_change": part.decision.open,
                "more_questions": asdict(part.more) if part.more else None,
                "architectures": [
                    {**asdict(each), "state": each.state, "cost_unit": "usd" if each.priced else "tokens"}
                    for each in part.candidates
                ],
                "pairs": [
                    {**asdict(each), "tested": {each.one, each.other} <= set(part.within)}
                    for each in part.contrasts.values()
                ],
                "warnings": [*part.runs.warnings, *part.runs.waits],
            }
            for part in self.parts
        ]
        loop = asdict(self.loop) if self.loop else None
        known: dict[str, Any] = with_finite_numbers({"parts": parts, "not_compared": self.not_compared, "loop": loop})
        return known

    def as_json(self) -> str:
        """The same as text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def advise_on(
    rows: pd.DataFrame,
    *,
    manifests: Manifests,
    terms: Terms,
    intersect: bool,
    folders: Mapping[str, Path],
    dollars: str = "",
) -> Advice:
    """A recommendation for each set of comparable architectures. `folders` are the runs' folders by run id.

    `dollars` says at which prices the rows' dollars are, where these aren't the runs' own. A run of one loop alone has
    what a plan could have saved of it (`Advice.loop`). Raises `UsageError` where no two architectures can be compared,
    or a limit is of something that wasn't measured.
    """
    sets, reasons = run_sets(rows, manifests, intersect=intersect)
    lonely = [runs for runs in sets if len(runs.rows) < 2]
    compared = [runs for runs in sets if len(runs.rows) > 1]
    if not compared:
        if len(sets) == 1 and (loop := _loop_advice(lonely[0], folders)):
            return Advice((), (), loop)
        why = reasons or [f"{lonely[0].pieces[0].name} has one architecture, {next(iter(lonely[0].rows))!r}"]
        raise UsageError(f"nothing to compare: {'; '.join(why)}")
    reasons += [
        f"{runs.pieces[0].name} has one architecture, {next(iter(runs.rows))!r}, and nothing to compare it with"
        for runs in lonely
        if not any(reason.startswith(f"{runs.pieces[0].name} ") for reason in reasons)
    ]
    parts = []
    for runs in compared:
        if runs.oracle:
            own = Terms(margin=terms.margin)
            parts.append(Part(runs, terms, tuple(candidates(runs, own)), {}, Decision("oracle"), None))
            continue
        found = candidates(runs, terms)
        within = [each.architecture for each in found if each.state == "within"]
        priced = found[0].priced
        contrasts = contrasted(runs, within, terms.margin, priced=priced)
        decision = decide(found, contrasts, terms.margin)
        more = None
        if decision.questions is not None:
            names = list(dict.fromkeys([*decision.contenders, *decision.open]))
            more = more_questions(runs, names, decision.questions, folders)
        if decision.recommended and len(within) < len(found):  # those outside are compared with it, but not tested
            measured = [each.architecture for each in found if each.state != "not measured"]
            every = contrasted(runs, measured, terms.margin, priced=priced)
            contrasts = {**{pair: each for pair, each in every.items() if decision.recommended in pair}, **contrasts}
        parts.append(Part(runs, terms, tuple(found), contrasts, decision, more, dollars))
    return Advice(tuple(parts), tuple(reasons))


def _loop_advice(runs: RunSet, folders: Mapping[str, Path]) -> LoopAdvice | None:
    """Of a set with one architecture; None where that is no loop with tool calls and traces."""
    folder = folders.get(runs.pieces[0].run_id)
    if folder is None:
        return None
    try:
        found = plannable(folder)
    except DataError:
        return None
    (architecture,) = found.architectures()
    assumption, *left_out = tables.notes(found)
    said = [*(tables.verdict(found, architecture, price) for price in found.prices), f"It is {assumption}", *left_out]
    words = ["--arch", _REPLAYED, "--dataset", str(folder), "--tools", f"recorded:{folder}", "--model", "NAME"]
    return LoopAdvice(
        str(folder),
        architecture,
        tuple(f"{each}." for each in said if each),
        (*text_table(tables.trust_table(found.prices)), tables.trust_note()),
        tuple(tables.savings(found, architecture).to_dict("records")),
        shlex.join(["rewoo-bench", "run", *words]),
    )
