"""A report on routing, as data and as text: for a terminal, as Markdown and as JSON.

print(render(report, "markdown"))
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rewoo_bench.escaping import markdown, one_line
from rewoo_bench.routing.ways import Against, Way
from rewoo_bench.stats.paired import Interval
from rewoo_bench.text.counts import counted
from rewoo_bench.text.tables import markdown_table, text_table

Format = Literal["terminal", "markdown", "json"]
_NOTES = (
    "out of fold: each question is routed by a model that was fitted on the other folds",
    "biased upward: it chooses by the outcome that it is scored on; no router can be held to it",
    "p is exact McNemar's for each line alone; the first sentence adjusts them for the number of policies (Holm)",
)


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """The ways of choosing, each against both parents, and the finding in a sentence."""

    parents: tuple[str, str]
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    questions: int
    rows: int
    left_out: int
    """Pairs of rows that the infrastructure failed for one of the two."""
    decided: int
    """Questions with different exact match of the two."""
    oracle: bool
    ways: tuple[Way, ...]
    missing: tuple[str, ...]
    """Ways that can't be told here, and why."""
    verdict: str

    def __str__(self) -> str:
        return render(self, "terminal")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; what isn't known, or is without a bound, is None."""
        known: dict[str, Any] = _known(asdict(self))
        return known


def render(report: RoutingReport, form: Format) -> str:
    """The report in one of the formats, without a newline at its end."""
    if form == "json":
        return json.dumps(report.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    as_markdown = form == "markdown"
    line: Callable[[str], str] = markdown if as_markdown else one_line
    table: Callable[[list[list[str]]], list[str]] = markdown_table if as_markdown else text_table
    blocks = [line(report.verdict), line(_title(report))]
    blocks += ["\n".join(table(cells)) for cells in (_means(report), _differences(report))]
    notes = [*_NOTES, *(f"left out: {reason}" for reason in report.missing)]
    blocks.append("\n".join(f"- {line(note)}" if as_markdown else line(note) for note in notes))
    return "\n\n".join(blocks)


def _title(report: RoutingReport) -> str:
    trials = f", {report.rows:,} rows with their trials" if report.rows > report.questions else ""
    failed = f"; {counted(report.left_out, 'pair')} of rows left out, because one failed" if report.left_out else ""
    return (
        f"{', '.join(report.datasets)}; {', '.join(report.models)}: {counted(report.questions, 'question')}{trials}, "
        f"{report.decided} with another exact match of the two{failed}; means per question [95% interval]"
    )


def _means(report: RoutingReport) -> list[list[str]]:
    header = ["choice", "n", f"to {report.parents[1]}", "EM", "F1", "tokens", "$ / 1000", "latency s"]
    return [header, *map(_mean_cells, report.ways)]


def _mean_cells(way: Way) -> list[str]:
    return [
        way.name,
        f"{way.exact_match.n:,}",
        f"{way.share:.0%}",
        _interval(way.exact_match, ".3f"),
        _interval(way.f1, ".3f"),
        _interval(way.total_tokens, ",.0f"),
        _interval(way.cost_usd, ".3f", 1000),
        _interval(way.latency_s, ".2f"),
    ]


def _differences(report: RoutingReport) -> list[list[str]]:
    header = ["choice, against", "n", "EM", "p", "F1", "tokens, ratio", "cost, ratio", "latency, ratio"]
    pairs = [(way, against) for way in report.ways for against in way.against if way.name != f"always {against.parent}"]
    return [header, *(_difference_cells(way, against) for way, against in pairs)]


def _difference_cells(way: Way, against: Against) -> list[str]:
    return [
        f"{way.name} - {against.parent}",
        f"{against.exact_match.n:,}",
        _interval(against.exact_match, "+.3f"),
        "-" if way.kind == "biased bound" else "<0.001" if against.p < 0.001 else f"{against.p:.3f}",
        _interval(against.f1, "+.3f"),
        _interval(against.total_tokens, ".3f"),
        _interval(against.cost_usd, ".3f"),
        _interval(against.latency_s, ".3f"),
    ]


def _interval(value: Interval | None, form: str, times: float = 1.0) -> str:
    if value is None or math.isnan(value.estimate):
        return "-"
    shown = [format(times * each, form) for each in (value.estimate, value.low, value.high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _known(value: Any) -> Any:
    """The same with None for every number that isn't finite."""
    if isinstance(value, dict):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
