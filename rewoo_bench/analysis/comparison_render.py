"""A comparison as text: for a terminal, as Markdown, as LaTeX, as CSV (a row a figure) and as JSON.

print(render(comparison, "markdown"))
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from rewoo_bench.analysis.comparison_data import ComparisonData, System
from rewoo_bench.analysis.pairs import Figure, Pair
from rewoo_bench.analysis.summary import Estimate, aligned, reasons
from rewoo_bench.escaping import csv_cell, latex, markdown, one_line
from rewoo_bench.stats.paired import ENOUGH_FOR_TAILS, Interval, too_few_for_tails

Format = Literal["terminal", "markdown", "csv", "latex", "json"]
T = TypeVar("T")
FORMATS: tuple[Format, ...] = get_args(Format)
ORACLE = "accuracy is that of an oracle and means nothing"
MARK = "*"
_NAMES = {
    "total_tokens": "total tokens",
    "input_tokens": "input tokens",
    "cost_usd": "cost",
    "latency_s": "latency",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A title and cells; the first row is the header."""

    title: str
    cells: list[list[str]]


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
    parts += ["\n".join(line(note) for note in notes(comparison)).removesuffix("\n>")]
    return "\n\n".join(part for part in parts if part)


def tables(comparison: ComparisonData) -> Iterator[Table]:
    """For each data set: what each system did, its tokens, and how pairs differ in accuracy and in cost."""
    for dataset in dict.fromkeys(system.summary.dataset for system in comparison.systems):
        systems = [system for system in comparison.systems if system.summary.dataset == dataset]
        yield Table(f"{dataset}: means per question [95% interval]", _rows(_SYSTEM, systems))
        yield Table(f"{dataset}: how the questions ended", _rows(_endings(systems), systems))
        yield Table(f"{dataset}: tokens per question", _rows(_TOKENS, systems))
    for dataset in dict.fromkeys(pair.dataset for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.dataset == dataset]
        yield Table(f"{dataset}: differences of accuracy, paired by question", _rows(_ACCURACY, pairs))
        amounts = [(pair, figure) for pair in pairs for figure in pair.figures if figure.kind == "ratio"]
        if amounts:
            yield Table(f"{dataset}: ratios, paired by question", _rows(_AMOUNT, amounts))


def _endings(systems: Sequence[System]) -> list[tuple[str, Callable[[System], str]]]:
    """Columns: rows, those answered, and those of each reason for which one ended without an answer."""

    def count(reason: str) -> Callable[[System], str]:
        return lambda system: f"{system.summary.not_answered.get(reason, 0):,}"

    known = any(system.means["gold_pages_found"] is not None for system in systems)
    pages = [("gold pages found", lambda s: _decimals(s.means["gold_pages_found"]))] if known else []
    return [*_ENDINGS, *pages, *((reason, count(reason)) for reason in reasons([system.summary for system in systems]))]


def notes(comparison: ComparisonData) -> list[str]:
    """What has to be known to read the tables."""
    said = list(comparison.notes)
    if any(system.oracle for system in comparison.systems):
        said.insert(0, f"{MARK} {ORACLE}")
    if any(system.summary.usage_source in ("estimated", "mixed") for system in comparison.systems):
        said.append("tokens are estimated, in part or all, where the provider gave no usage")
    ratios = [figure.interval for pair in comparison.pairs for figure in pair.figures if figure.kind == "ratio"]
    if any(too_few_for_tails(ratio) for ratio in ratios):
        said.append(
            f"ratios of fewer than {ENOUGH_FOR_TAILS} questions: where one question in 100 costs many times the "
            "others, the 95% interval may hold the truth less than 90 times in 100 (results/coverage.md)"
        )
    if comparison.pairs:
        said.append(
            "p: exact McNemar for EM, Wilcoxon's signed ranks for the others. Holm: adjusted for the "
            f"{comparison.tests} tests of EM, total tokens and cost; the others are exploratory. "
            "Detectable: the smallest EM difference that so many questions show 4 times in 5."
        )
    return said


def _rows(columns: Sequence[tuple[str, Callable[[T], str]]], items: Sequence[T]) -> list[list[str]]:
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


def _cost(system: System) -> str:
    cost = system.summary.cost_usd
    return "unknown" if cost is None else f"{1000 * cost:.3f}"


def _interval(value: Interval, form: str) -> str:
    shown = "-" if math.isnan(value.estimate) else format(value.estimate, form)
    return f"{shown} [{format(value.low, form)}, {format(value.high, form)}]"


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _of(measure: str, show: Callable[[Figure], str]) -> Callable[[Pair], str]:
    """A cell of one measure of a pair, where it was compared."""

    def cell(pair: Pair) -> str:
        found = [figure for figure in pair.figures if figure.measure == measure]
        return show(found[0]) if found else "-"

    return cell


def _difference(measure: str) -> Callable[[Pair], str]:
    shown = _of(measure, lambda figure: _interval(figure.interval, "+.3f"))
    return lambda pair: shown(pair) + (MARK if pair.oracle else "")


def _discordant(figure: Figure) -> str:
    return f"{figure.discordant.only_a} / {figure.discordant.only_b}" if figure.discordant else "-"


def _detectable(figure: Figure) -> str:
    value = figure.detectable
    return "-" if value is None or math.isinf(value) else f"{value:.3f}"


_SYSTEM: tuple[tuple[str, Callable[[System], str]], ...] = (
    ("system", lambda s: s.label),
    ("n", lambda s: f"{s.questions:,}"),
    ("EM", lambda s: _share(s.summary.exact_match, s.oracle)),
    ("F1", lambda s: _share(s.summary.f1, s.oracle)),
    ("LLM calls", lambda s: _decimals(s.summary.llm_calls)),
    ("steps", lambda s: _decimals(s.means["steps"])),
    ("$ / 1000", _cost),
    ("p50 s", lambda s: _decimals(s.summary.latency_p50_s)),
    ("p95 s", lambda s: _decimals(s.summary.latency_p95_s)),
)

_ENDINGS: tuple[tuple[str, Callable[[System], str]], ...] = (
    ("system", lambda s: s.label),
    ("rows", lambda s: f"{s.summary.total:,}"),
    ("answered", lambda s: f"{s.summary.answered:,}"),
    ("failed", lambda s: f"{s.summary.failed:,}"),
)

_TOKENS: tuple[tuple[str, Callable[[System], str]], ...] = (
    ("system", lambda s: s.label),
    ("input", lambda s: _count(s.summary.input_tokens)),
    ("cached", lambda s: _count(s.summary.cached_input_tokens)),
    ("output", lambda s: _count(s.summary.output_tokens)),
    ("total", lambda s: _count(s.summary.total_tokens)),
    ("planner", lambda s: _count(s.means["planner_tokens"])),
    ("solver", lambda s: _count(s.means["solver_tokens"])),
    ("LLM tool", lambda s: _count(s.means["tool_llm_tokens"])),
    ("agent", lambda s: _count(s.means["agent_tokens"])),
    ("billed", lambda s: _count(s.means["billed_tokens"])),
)

_ACCURACY: tuple[tuple[str, Callable[[Pair], str]], ...] = (
    ("difference", lambda p: f"{p.b} - {p.a}"),
    ("n", lambda p: f"{p.questions:,}"),
    ("left out", lambda p: f"{p.left_out:,}"),
    ("EM", _difference("exact_match")),
    ("only second / only first", _of("exact_match", _discordant)),
    ("p", _of("exact_match", lambda f: _p(f.p))),
    ("Holm", _of("exact_match", lambda f: _p(f.p_holm))),
    ("detectable", _of("exact_match", _detectable)),
    ("F1", _difference("f1")),
    ("p", _of("f1", lambda f: _p(f.p))),
)

_AMOUNT: tuple[tuple[str, Callable[[tuple[Pair, Figure]], str]], ...] = (
    ("ratio", lambda each: f"{each[0].b} / {each[0].a}"),
    ("of", lambda each: _NAMES[each[1].measure]),
    ("n", lambda each: f"{each[1].interval.n:,}"),
    ("of means", lambda each: _interval(each[1].interval, ".3f")),
    ("geometric mean", lambda each: _interval(each[1].geometric, ".3f") if each[1].geometric else "-"),
    ("p", lambda each: _p(each[1].p)),
    ("Holm", lambda each: _p(each[1].p_holm)),
)


def _plain(table: Table) -> str:
    return "\n".join([one_line(table.title), "", *aligned(table.cells)])


def _markdown(table: Table) -> str:
    header, *rows = [list(map(markdown, row)) for row in table.cells]
    sides = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(
        [f"**{markdown(table.title)}**", "", *(f"| {' | '.join(row)} |" for row in (header, sides, *rows))]
    )


def _latex(table: Table) -> str:
    header, *rows = [" & ".join(map(latex, row)) + r" \\" for row in table.cells]
    body = [r"\toprule", header, r"\midrule", *rows, r"\bottomrule"]
    columns = f"l{'r' * (len(table.cells[0]) - 1)}"
    return "\n".join([f"% {one_line(table.title)}", rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _quoted(text: str) -> str:
    return f"> {markdown(text)}\n>"


def _paragraph(text: str) -> str:
    return rf"\noindent {latex(text)}\par"


# How a table is written, and a line of text beside it.
_WRITERS: dict[str, tuple[Callable[[Table], str], Callable[[str], str]]] = {
    "terminal": (_plain, one_line),
    "markdown": (_markdown, _quoted),
    "latex": (_latex, _paragraph),
}
