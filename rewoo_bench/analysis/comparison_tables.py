"""A comparison as data (`ComparisonData`), as tables (`tables`) and as text (`render`).

for table in tables(comparison):
    table.title, table.cells            # the first row of the cells is the header
print(render(comparison, "markdown"))   # or terminal, latex, csv (one row per estimate), json
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from rewoo_bench.analysis.pairs import ALPHA, OF_RARE, PER_SOLVED, PRICED, RARE, Effect, Pair, Pricing, verdicts
from rewoo_bench.analysis.stats.paired import FEW, Interval
from rewoo_bench.analysis.stats.per_solved import LEAST_SOLVED
from rewoo_bench.analysis.summary import LOOPS, Estimate, Summary, has_loops, loops_text, per_solved_text, reasons
from rewoo_bench.text.escaping import (
    csv_cell,
    latex,
    markdown,
    markdown_table,
    one_line,
    text_table,
    with_finite_numbers,
)
from rewoo_bench.text.words import brackets

if TYPE_CHECKING:
    import pandas as pd


FRAME_COLUMNS = (
    *("dataset", "system", "against", "measure", "kind", "estimate", "low", "high", "n"),
    *("p", "p_holm", "only_system", "only_against", "detectable", "meaningless", "exploratory"),
)
_SCORES = ("exact_match", "f1", "judged_correct")
_PER_SOLVED = ("tokens_per_solved", "usd_per_solved")
_COUNTS = ("total", "answered", "failed")
_MEANS = (
    *("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"),
    *("loop_share", "loop_token_share", "cost_usd", "latency_p50_s", "latency_p95_s"),
)


@dataclass(frozen=True, slots=True)
class System:
    """An architecture with a model, in a run, on a data set; `label` names what differs from the others."""

    label: str
    run_id: str
    questions: int
    """Failed ones included."""
    summary: Summary
    means: Mapping[str, float | None]

    @property
    def oracle(self) -> bool:
        """Whether its accuracy means nothing, and it has no latency."""
        return self.summary.oracle


@dataclass(frozen=True, slots=True)
class ComparisonData:
    """The systems, and pairs of them. `warnings` apply to every estimate."""

    systems: tuple[System, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pricing: Pricing | None = None
    """The prices of the dollars in `verdicts`; None for the run's own, unnamed."""

    @property
    def verdicts(self) -> list[str]:
        """What each pair comes to, in a sentence."""
        return verdicts(self.pairs, self.pricing)

    @property
    def tests(self) -> int:
        """Number of p values that Holm's adjustment is for: those of exact match, total tokens and cost."""
        return sum(not pair.is_exploratory(effect) for pair in self.pairs for effect in pair.figures)

    def to_frame(self) -> pd.DataFrame:
        """One row per estimate: dataset, system, against, measure, kind, estimate, low, high, n, p, p_holm, …

        `against` is empty where there is no pair. `meaningless` marks an oracle's accuracy, `exploratory` a test
        outside the family that Holm's adjustment is for.
        """
        import pandas as pd

        rows = [row for system in self.systems for row in _of_system(system)]
        rows += [row for pair in self.pairs for effect in pair.figures for row in _of_effect(pair, effect)]
        for pair in self.pairs:
            if pair.both_answered is not None:
                key = {"dataset": pair.dataset, "system": pair.b, "against": pair.a, "measure": "total_tokens"}
                rows.append({**key, "kind": "ratio where both answered", **_bounds(pair.both_answered)})
        made = pd.DataFrame([with_finite_numbers(row) for row in rows], columns=list(FRAME_COLUMNS))
        return made.astype(dict.fromkeys(("n", "only_system", "only_against"), "Int64"))

    def as_dict(self) -> dict[str, Any]:
        """Systems, pairs, warnings and notes, JSON-ready; what isn't known, or is without bound, is None."""
        nested: dict[str, Any] = with_finite_numbers(
            {
                "systems": [
                    {
                        **{"label": each.label, "run_id": each.run_id, "questions": each.questions},
                        **{"oracle": each.oracle, **each.summary.as_dict(), **each.means},
                    }
                    for each in self.systems
                ],
                "pairs": [asdict(pair) for pair in self.pairs],
                "verdicts": self.verdicts,
                "tests": self.tests,
                "warnings": list(self.warnings),
                "notes": list(self.notes),
            }
        )
        return nested


def _of_system(system: System) -> Iterator[dict[str, Any]]:
    summary = system.summary
    key = {"dataset": summary.dataset, "system": system.label}
    for measure in (*_SCORES, *(() if system.oracle else _PER_SOLVED)):
        value, is_score = getattr(summary, measure), measure in _SCORES
        if value.n:
            bounds = {"estimate": value.mean, "low": value.low, "high": value.high, "n": value.n}
            marks = {"kind": "mean", "meaningless": system.oracle} if is_score else {"kind": "per solved"}
            yield {**key, "measure": measure, **bounds, **marks}
    for measure in _COUNTS:
        yield {**key, "measure": measure, "kind": "count", "estimate": getattr(summary, measure)}
    means = {**{name: getattr(summary, name) for name in _MEANS}, **system.means}
    for measure, value in means.items():
        kind = "quantile" if "_p50" in measure or "_p95" in measure else "mean"
        yield {**key, "measure": measure, "kind": kind, "estimate": value, "n": summary.exact_match.n}


def _of_effect(pair: Pair, effect: Effect) -> Iterator[dict[str, Any]]:
    key = {"dataset": pair.dataset, "system": pair.b, "against": pair.a, "measure": effect.measure}
    tested = {"p": effect.p, "p_holm": effect.p_holm, "detectable": effect.detectable}
    if effect.discordant:
        tested |= {"only_system": effect.discordant.only_b, "only_against": effect.discordant.only_a}
    meaningless = pair.oracle and effect.kind == "difference"
    marks = {"meaningless": meaningless, "exploratory": pair.is_exploratory(effect)}
    yield {**key, "kind": effect.kind, **_bounds(effect.interval), **tested, **marks}
    if effect.geometric:
        yield {**key, "kind": "geometric mean ratio", **_bounds(effect.geometric)}


def _bounds(interval: Any) -> dict[str, Any]:
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high, "n": interval.n}


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
            yield Table(
                f"{about}: per solved question (exact match) [95% interval]", _rows(_PER_SOLVED_COLUMNS, solvers)
            )
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
    discordant: Column[Pair] = (
        name,
        _of("exact_match", lambda e: f"{e.discordant.only_b} / {e.discordant.only_a}" if e.discordant else "-"),
    )
    place = [column[0] for column in _ACCURACY].index("EM") + 1
    return [*_ACCURACY[:place], discordant, *_ACCURACY[place:]]


def _endings(systems: Sequence[System]) -> list[Column[System]]:
    """Columns: rows, those answered, those of each reason for which one ended without an answer; a router's choices;
    those in loops."""
    summaries = [system.summary for system in systems]
    known = any(system.means["gold_pages_found"] is not None for system in systems)
    pages = [("gold pages found", lambda s: _number(s.means["gold_pages_found"], ".2f"))] if known else []
    chosen = dict.fromkeys(name for system in systems for name in system.summary.routed_to)
    routed = [(f"routed to {name}", lambda s, name=name: f"{s.summary.routed_to.get(name, 0):,}") for name in chosen]
    return [
        *_ENDINGS,
        *routed,
        *pages,
        *((name, lambda s, name=name: f"{s.summary.not_answered.get(name, 0):,}") for name in reasons(summaries)),
        *([(LOOPS, lambda s: loops_text(s.summary))] if has_loops(summaries) else []),
    ]


def _rows(columns: Sequence[Column[T]], items: Sequence[T]) -> list[list[str]]:
    return [[name for name, _ in columns], *([show(item) for _, show in columns] for item in items)]


def _share(value: Estimate, oracle: bool) -> str:
    if value.mean is None:
        return "-"
    bounds = "" if value.low is None or value.high is None else f" [{value.low:.3f}, {value.high:.3f}]"
    return f"{value.mean:.3f}{bounds}{MARK if oracle else ''}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def _seconds(summary: Summary, value: float | None) -> str:
    """With its own number of rows where some weren't timed in this run."""
    timed = value is None or summary.latency_n == summary.total - summary.failed
    return _number(value, ".2f") + ("" if timed else f" (n = {summary.latency_n:,})")


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


_SYSTEM: tuple[Column[System], ...] = (
    ("system", lambda s: s.label),
    ("n", lambda s: f"{s.summary.exact_match.n:,}"),
    ("EM", lambda s: _share(s.summary.exact_match, s.oracle)),
    ("F1", lambda s: _share(s.summary.f1, s.oracle)),
    ("judged", lambda s: _share(s.summary.judged_correct, s.oracle)),
    ("LLM calls", lambda s: _number(s.summary.llm_calls, ".2f")),
    ("steps", lambda s: _number(s.means["steps"], ".2f")),
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
    ("input", lambda s: _number(s.summary.input_tokens, ",.0f")),
    ("cached", lambda s: _number(s.summary.cached_input_tokens, ",.0f")),
    ("output", lambda s: _number(s.summary.output_tokens, ",.0f")),
    ("total", lambda s: _number(s.summary.total_tokens, ",.0f")),
    ("planner", lambda s: _number(s.means["planner_tokens"], ",.0f")),
    ("solver", lambda s: _number(s.means["solver_tokens"], ",.0f")),
    ("LLM tool", lambda s: _number(s.means["tool_llm_tokens"], ",.0f")),
    ("agent", lambda s: _number(s.means["agent_tokens"], ",.0f")),
    ("router", lambda s: _number(s.means["router_tokens"], ",.0f")),
    ("billed", lambda s: _number(s.means["billed_tokens"], ",.0f")),
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
    ("detectable", _of("exact_match", lambda e: _number(e.detectable, ".3f") if e.detectable != math.inf else "-")),
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


Format = Literal["terminal", "markdown", "csv", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
ORACLE = "accuracy is that of an oracle and means nothing"
_RIGHT_ALONE = "rows that only one of the two got right; in `a - b` the first is a and the second is b"


class Comparison(ComparisonData):
    """Systems and pairs; printed, it is tables."""

    def __str__(self) -> str:
        return render(self, "terminal")


def render(comparison: ComparisonData, form: Format) -> str:
    """The whole comparison in one of `FORMATS`, without a newline at its end."""
    if form == "json":
        return json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        cells = comparison.to_frame().map(lambda cell: csv_cell(cell) if isinstance(cell, str) else cell)
        text: str = cells.to_csv(index=False, lineterminator="\n")
        return text.removesuffix("\n")
    write, line = _WRITERS[form]
    parts = ["\n".join(line(f"WARNING: {warning}") for warning in comparison.warnings).removesuffix("\n>")]
    parts += [write(table) for table in tables(comparison)]
    for lines in (notes(comparison), comparison.verdicts):
        parts.append("\n".join(map(line, lines)).removesuffix("\n>"))
    return "\n\n".join(part for part in parts if part)


def notes(comparison: ComparisonData) -> list[str]:
    """What has to be known to read the tables."""
    lines = list(comparison.notes)
    if any(system.oracle for system in comparison.systems):
        lines.insert(0, f"{MARK} {ORACLE}")
    if comparison.pricing and comparison.pricing.cost_usd is not None:
        lines.append(f"price sheet: {comparison.pricing.under}")
    if any(system.summary.usage_source in ("estimated", "mixed") for system in comparison.systems):
        lines.append("tokens are estimated, in part or all, where the provider gave no usage")
    ratios = [effect.interval for pair in comparison.pairs for effect in pair.figures if effect.kind == "ratio"]
    if ratios:
        n = min(ratio.n for ratio in ratios)
        lines.append(
            f"an event that fewer than 3 in {n:,} questions have may be missing here, and no interval of a ratio "
            "allows for it (results/coverage.md)"
            if n > FEW
            else f"n = {n:,}: too few questions for an interval to say much"
        )
    if any(effect.interval.rare for pair in comparison.pairs for effect in pair.figures):
        lines.append(OF_RARE)
    if any(pair.rows > pair.questions for pair in comparison.pairs):
        lines.append("n: questions; rows: questions times trials, the trials of a question are one observation")
    if len(comparison.pairs) > len({pair.dataset for pair in comparison.pairs}):
        lines.append(f"{DISCORDANT}: {_RIGHT_ALONE}")
    if comparison.pairs:
        sizes = sorted({max(pair.tests, 1) for pair in comparison.pairs})
        size = " or ".join(map(str, sizes))
        each = " of each data set" if comparison.tests > sizes[-1] else ""
        lines.append(
            "p: exact McNemar for EM; for the others the test of the estimate before it, below 0.05 where its interval "
            f"leaves out no effect. Holm: adjusted for the {size} test{'s' * (size != '1')} of EM, total tokens and "
            f"cost{each}; the others are exploratory. "
            "Detectable: the smallest EM difference that exact McNemar at Holm's first step "
            f"({ALPHA:g} / {size}) shows 4 times in 5, if as many questions differ as here."
        )
    return lines


def _plain(table: Table) -> str:
    return "\n".join([one_line(table.title), "", *text_table(table.cells)])


def _markdown(table: Table) -> str:
    return "\n".join([f"**{markdown(table.title)}**", "", *markdown_table(table.cells)])


def _latex(table: Table) -> str:
    header, *rows = [" & ".join(map(latex, row)) + r" \\" for row in table.cells]
    body = [r"\toprule", header, r"\midrule", *rows, r"\bottomrule"]
    columns = f"l{'r' * (len(table.cells[0]) - 1)}"
    return "\n".join([f"% {one_line(table.title)}", rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


# Writes a table, and a line of text between tables.
_WRITERS: dict[str, tuple[Callable[[Table], str], Callable[[str], str]]] = {
    "terminal": (_plain, one_line),
    "markdown": (_markdown, lambda text: f"> {markdown(text)}\n>"),
    "latex": (_latex, lambda text: rf"\noindent {latex(text)}\par"),
}
