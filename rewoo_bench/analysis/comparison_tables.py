"""The tables of a comparison, as cells: what each system did, and how pairs of them differ.

for table in tables(comparison):
    table.title, table.cells        # the first row of the cells is the header
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rewoo_bench.analysis.comparison_data import ComparisonData, System
from rewoo_bench.analysis.pairs import PER_SOLVED, PRICED, RARE, Effect, Pair
from rewoo_bench.analysis.summary import (
    LOOPS,
    Estimate,
    Summary,
    has_loops,
    loops_text,
    per_solved_text,
    reasons,
)
from rewoo_bench.stats.paired import Interval
from rewoo_bench.stats.per_solved import LEAST_SOLVED
from rewoo_bench.text.counts import brackets

T = TypeVar("T")
Column = tuple[str, Callable[[T], str]]
DISCORDANT = "only first / only second"
MARK = "*"
"""Behind an accuracy that means nothing."""
_PAID, _PRICED = "$ / 1000", "$ / 1000, price sheet"
_NAMES = {
    "total_tokens": "total tokens",
    "input_tokens": "input tokens",
    "cost_usd": "cost",
    PRICED: "cost, price sheet",
    "latency_s": "latency",
    "tokens_per_solved": "total tokens",
    "usd_per_solved": "cost",
    "priced_usd_per_solved": "cost, price sheet",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A title and cells; the first row is the header."""

    title: str
    cells: list[list[str]]


def tables(comparison: ComparisonData) -> Iterator[Table]:
    """For each data set: what each system did, its tokens, and how pairs differ in accuracy and in cost."""
    for dataset in dict.fromkeys(system.summary.dataset for system in comparison.systems):
        systems = [system for system in comparison.systems if system.summary.dataset == dataset]
        about = ", ".join([dataset, *_other_models(systems)])
        yield Table(f"{about}: means per question [95% interval]", _rows(_means(systems), systems))
        yield Table(f"{about}: how the questions ended", _rows(_endings(systems), systems))
        yield Table(f"{about}: tokens per question", _rows(_tokens(systems), systems))
        if solvers := [system for system in systems if not system.oracle]:
            yield Table(f"{about}: per solved question (exact match) [95% interval]", _rows(_PER_SOLVED_COLUMNS, solvers))
    for dataset in dict.fromkeys(pair.dataset for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.dataset == dataset]
        yield Table(f"{dataset}: differences of accuracy, paired by question", _rows(_accuracy(pairs), pairs))
        ratios = [(pair, effect) for pair in pairs for effect in pair.figures if effect.kind == "ratio"]
        if amounts := [each for each in ratios if each[1].measure not in PER_SOLVED]:
            yield Table(f"{dataset}: ratios, paired by question", _rows(_AMOUNT, amounts))
        if solved := [each for each in ratios if each[1].measure in PER_SOLVED]:
            yield Table(f"{dataset}: ratios per solved question, paired by question", _rows(_SOLVED, solved))


def _other_models(systems: Sequence[System]) -> list[str]:
    """The models of systems in which the planner or solver has one of its own, with its system where others differ."""
    named = {system.label: system.summary.models for system in systems}
    if len(set(named.values())) == 1:
        return [system.summary.models for system in systems[:1] if system.summary.models != system.summary.model]
    others = [system for system in systems if system.summary.models != system.summary.model]
    return [f"{system.label}: {system.summary.models}" for system in others]


def _means(systems: Sequence[System]) -> list[Column[System]]:
    """Columns: scores, calls, cost and latency; the judge's where it judged, and dollars at a sheet's price for those
    that aren't known."""
    absent = set() if any(system.summary.judged_correct.n for system in systems) else {"judged"}
    if not any(PRICED in system.means for system in systems):
        absent.add(_PRICED)
    elif all(system.summary.cost_usd is None for system in systems):
        absent.add(_PAID)
    return [column for column in _SYSTEM if column[0] not in absent]


def _tokens(systems: Sequence[System]) -> list[Column[System]]:
    """Columns: tokens by kind and by role; a router's where one asked a model."""
    asked = any(system.means["router_tokens"] for system in systems)
    return [column for column in _TOKENS if asked or column[0] != "router"]


def _accuracy(pairs: Sequence[Pair]) -> list[Column[Pair]]:
    """Columns: differences of accuracy. Those that only one got right are named where there is one pair."""
    (only, *others), name = pairs, DISCORDANT
    if not others:
        name = f"only {only.b} / only {only.a}"
    discordant: Column[Pair] = (name, _of("exact_match", _discordant))
    place = [column[0] for column in _ACCURACY].index("EM") + 1
    return [*_ACCURACY[:place], discordant, *_ACCURACY[place:]]


def _endings(systems: Sequence[System]) -> list[Column[System]]:
    """Columns: rows, those answered, those of each reason for which one ended without an answer; a router's choices;
    those in loops."""

    summaries = [system.summary for system in systems]

    def count(reason: str) -> Callable[[System], str]:
        return lambda system: f"{system.summary.not_answered.get(reason, 0):,}"

    known = any(system.means["gold_pages_found"] is not None for system in systems)
    pages = [("gold pages found", lambda s: _decimals(s.means["gold_pages_found"]))] if known else []
    chosen = dict.fromkeys(name for system in systems for name in system.summary.routed_to)
    routed = [(f"routed to {name}", lambda s, name=name: f"{s.summary.routed_to.get(name, 0):,}") for name in chosen]
    return [
        *_ENDINGS,
        *routed,
        *pages,
        *((reason, count(reason)) for reason in reasons(summaries)),
        *([(LOOPS, lambda s: loops_text(s.summary))] if has_loops(summaries) else []),
    ]


def _rows(columns: Sequence[Column[T]], items: Sequence[T]) -> list[list[str]]:
    return [[name for name, _ in columns], *([show(item) for _, show in columns] for item in items)]


def _share(value: Estimate, oracle: bool) -> str:
    if value.mean is None:
        return "-"
    bounds = "" if value.low is None or value.high is None else f" [{value.low:.3f}, {value.high:.3f}]"
    return f"{value.mean:.3f}{bounds}{MARK if oracle else ''}"


def _count(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:,.0f}"


def _decimals(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def _seconds(summary: Summary, value: float | None) -> str:
    """With its own number of rows where some weren't timed in this run."""
    timed = value is None or summary.latency_n == summary.total - summary.failed
    return _decimals(value) + ("" if timed else f" (n = {summary.latency_n:,})")


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{1000 * cost:.3f}"


def _interval(value: Interval, form: str, mark: str = "") -> str:
    shown = "-" if math.isnan(value.estimate) else format(value.estimate, form)
    between = brackets(value.low, value.high, lambda bound: format(bound, form))
    return f"{shown} {between}{mark}{RARE if value.rare else ''}"


def _solved(value: Interval) -> str:
    """A ratio per solved question; words where it, or its interval, isn't known."""
    if math.isnan(value.estimate):
        return "none solved"
    if not 0 < value.estimate < math.inf:
        return "none solved by one"
    too_few = f"{value.estimate:.3f}, fewer than {LEAST_SOLVED} solved by one: no interval"
    return _interval(value, ".3f") if math.isfinite(value.high) else too_few


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _of(measure: str, show: Callable[[Effect], str]) -> Callable[[Pair], str]:
    """A cell of one measure of a pair, where it was compared."""

    def cell(pair: Pair) -> str:
        effect = next((effect for effect in pair.figures if effect.measure == measure), None)
        return show(effect) if effect else "-"

    return cell


def _difference(measure: str) -> Callable[[Pair], str]:
    return lambda pair: _of(measure, lambda e: _interval(e.interval, "+.3f", MARK if pair.oracle else ""))(pair)


def _discordant(effect: Effect) -> str:
    return f"{effect.discordant.only_b} / {effect.discordant.only_a}" if effect.discordant else "-"


def _detectable(effect: Effect) -> str:
    value = effect.detectable
    return "-" if value is None or math.isinf(value) else f"{value:.3f}"


_SYSTEM: tuple[Column[System], ...] = (
    ("system", lambda s: s.label),
    ("n", lambda s: f"{s.summary.exact_match.n:,}"),
    ("EM", lambda s: _share(s.summary.exact_match, s.oracle)),
    ("F1", lambda s: _share(s.summary.f1, s.oracle)),
    ("judged", lambda s: _share(s.summary.judged_correct, s.oracle)),
    ("LLM calls", lambda s: _decimals(s.summary.llm_calls)),
    ("steps", lambda s: _decimals(s.means["steps"])),
    (_PAID, lambda s: _cost(s.summary.cost_usd)),
    (_PRICED, lambda s: _cost(s.means.get(PRICED))),
    ("p50 s", lambda s: _seconds(s.summary, s.summary.latency_p50_s)),
    ("p95 s", lambda s: _seconds(s.summary, s.summary.latency_p95_s)),
)

_ENDINGS: tuple[Column[System], ...] = (
    ("system", lambda s: s.label),
    ("rows", lambda s: f"{s.summary.total:,}"),
    ("answered", lambda s: f"{s.summary.answered:,}"),
    ("failed", lambda s: f"{s.summary.failed:,}"),
)

_TOKENS: tuple[Column[System], ...] = (
    ("system", lambda s: s.label),
    ("input", lambda s: _count(s.summary.input_tokens)),
    ("cached", lambda s: _count(s.summary.cached_input_tokens)),
    ("output", lambda s: _count(s.summary.output_tokens)),
    ("total", lambda s: _count(s.summary.total_tokens)),
    ("planner", lambda s: _count(s.means["planner_tokens"])),
    ("solver", lambda s: _count(s.means["solver_tokens"])),
    ("LLM tool", lambda s: _count(s.means["tool_llm_tokens"])),
    ("agent", lambda s: _count(s.means["agent_tokens"])),
    ("router", lambda s: _count(s.means["router_tokens"])),
    ("billed", lambda s: _count(s.means["billed_tokens"])),
)

_PER_SOLVED_COLUMNS: tuple[Column[System], ...] = (
    ("system", lambda s: s.label),
    ("tokens", lambda s: per_solved_text(s.summary.tokens_per_solved, ",.0f")),
    ("$", lambda s: per_solved_text(s.summary.usd_per_solved, ".3g")),
)

_ACCURACY: tuple[Column[Pair], ...] = (
    ("difference", lambda p: f"{p.b} - {p.a}"),
    ("n", lambda p: f"{p.compared:,}"),
    ("rows left out", lambda p: f"{p.left_out:,} of {p.rows:,}"),
    ("EM", _difference("exact_match")),
    ("p", _of("exact_match", lambda f: _p(f.p))),
    ("Holm", _of("exact_match", lambda f: _p(f.p_holm))),
    ("detectable", _of("exact_match", _detectable)),
    ("F1", _difference("f1")),
    ("p", _of("f1", lambda f: _p(f.p))),
)

_AMOUNT: tuple[Column[tuple[Pair, Effect]], ...] = (
    ("ratio", lambda each: f"{each[0].b} / {each[0].a}"),
    ("of", lambda each: _NAMES[each[1].measure]),
    ("n", lambda each: f"{each[1].interval.n:,}"),
    ("of means", lambda each: _interval(each[1].interval, ".3f")),
    ("p", lambda each: _p(each[1].p)),
    ("Holm", lambda each: _p(each[1].p_holm)),
    ("geometric mean", lambda each: _interval(each[1].geometric, ".3f") if each[1].geometric else "-"),
)

_SOLVED: tuple[Column[tuple[Pair, Effect]], ...] = (
    *_AMOUNT[:3],
    ("ratio [95%]", lambda each: _solved(each[1].interval)),
)
