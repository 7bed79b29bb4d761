"""A comparison as text: for a terminal, as Markdown, as LaTeX, as CSV (one row per estimate) and as JSON.

print(render(comparison, "markdown"))
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, get_args

from rewoo_bench.analysis.comparison_data import ComparisonData
from rewoo_bench.analysis.comparison_tables import DISCORDANT, MARK, Table, tables
from rewoo_bench.analysis.pairs import ALPHA, OF_RARE
from rewoo_bench.escaping import csv_cell, latex, markdown, one_line
from rewoo_bench.stats.mean_bounds import FEW
from rewoo_bench.text.tables import markdown_table, text_table

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


def _quoted(text: str) -> str:
    return f"> {markdown(text)}\n>"


def _paragraph(text: str) -> str:
    return rf"\noindent {latex(text)}\par"


# Writes a table, and a line of text between tables.
_WRITERS: dict[str, tuple[Callable[[Table], str], Callable[[str], str]]] = {
    "terminal": (_plain, one_line),
    "markdown": (_markdown, _quoted),
    "latex": (_latex, _paragraph),
}
