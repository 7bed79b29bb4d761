"""Findings as text for a terminal, as Markdown and as JSON.

print(render(check(read_claims(), gather("results/local/my-run")), "markdown"))

At a terminal a table of the verdicts comes first. Claims are grouped by the data that they are about. Those that none
of the runs can test are one line of their group. What a figure is of, and the figures of the other runs, are in the
JSON, and unfold in the report.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

from rewoo_bench.analysis.claims.check import SMALL, Figure, Finding, needed_by_all
from rewoo_bench.analysis.claims.rules import VERDICTS, Verdict
from rewoo_bench.text.escaping import markdown, one_line, text_table
from rewoo_bench.text.words import counted

Format = Literal["terminal", "markdown", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
MARK = "*"
ORACLE = f"{MARK} with the oracle, which makes no mistakes: the architecture's cost without the errors of a model."
INTERVALS = "Intervals are 95%, and none is adjusted for the number of claims."
_WIDTH = 80


def render(findings: Sequence[Finding], form: Format, *, everything: bool = False, details: bool = True) -> str:
    """The findings in one of `FORMATS`, without a newline at the end.

    `everything` has each claim without data, too; JSON always has. Without `details` the terminal's form is the table
    of verdicts alone.
    """
    if form == "json":
        shown = {"verdicts": _counts(findings), "findings": [as_dict(finding) for finding in findings]}
        return json.dumps(shown, indent=2, ensure_ascii=False, allow_nan=False)
    parts = [] if form == "markdown" else [*_notes(findings, form), *_overview(findings)]
    if form == "terminal" and not details:
        parts.append("What each claim says, which run decided and why, and what to run for the others: --details")
        return "\n\n".join(parts)
    for about, own in _grouped(findings).items():
        hidden = [] if everything else [finding for finding in own if finding.verdict == "no data"]
        shown_here = [finding for finding in own if finding not in hidden]
        missing = _without_data(hidden)
        if form == "markdown":
            parts += [f"## {about}", *_markdown(shown_here), markdown(missing)]
        elif not shown_here:
            parts.append("\n".join(_wrapped(f"{about.upper()}: {missing}", 0)))
        else:
            lines = [line for finding in shown_here for line in _terminal(finding)]
            parts.append("\n".join([about.upper(), *lines, *textwrap.wrap(missing, _WIDTH)]))
    return "\n\n".join([*filter(None, parts), *(_notes(findings, form) if form == "markdown" else ())])


def _overview(findings: Sequence[Finding]) -> Iterator[str]:
    """The table of verdicts: a line for each claim that a run can test, the same data together."""
    rows = [
        [finding.claim.id, _verdict(finding), finding.claim.claimed, ours(finding)]
        for own in _grouped(findings).values()
        for finding in own
        if finding.verdict not in ("no data", "not testable here")
    ]
    if rows:
        yield "\n".join(text_table([["claim", "verdict", "claimed", "ours [95%], n"], *rows], left=True))


def as_dict(finding: Finding) -> dict[str, Any]:
    """JSON-ready; a bound that isn't finite is None."""
    claim = finding.claim
    texts = {name: getattr(claim, name) for name in ("id", "about", "says", "number", "claimed", "tested", "note")}
    verdict = {"source": list(claim.cited), "verdict": finding.verdict, "reason": finding.reason}
    others = [{"verdict": one.verdict, "reason": one.reason, **_figure(one)} for one in finding.also]
    return {**texts, **verdict, **_figure(finding.decided), "also": others}


def _figure(figure: Figure | None) -> dict[str, Any]:
    bounds = ("estimate", "low", "high", "n", "level")
    names = ("measured", "data", "label", "model", "oracle", "complete", "left_out", "never_asked")
    return {
        **{name: _finite(getattr(figure.interval, name)) if figure else None for name in bounds},
        **{name: getattr(figure, name) if figure else None for name in names},
        "runs": list(figure.runs) if figure else [],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _counts(findings: Sequence[Finding]) -> dict[Verdict, int]:
    counts = Counter(finding.verdict for finding in findings)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def _grouped(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """By the data that they are about, in the order of the claims; those without a test are the last group."""
    groups: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: bool(finding.claim.untestable)):
        groups.setdefault(finding.claim.about, []).append(finding)
    return groups


def _without_data(findings: Sequence[Finding]) -> str:
    """How many claims no run can test, and what to run for them."""
    tests = [finding.claim.test for finding in findings if finding.claim.test]
    if not tests:
        return ""
    commands = needed_by_all(tests)
    more = f", and {counted(len(commands) - 1, 'other command')}" if len(commands) > 1 else ""
    return f"{counted(len(tests), 'claim')} without data here; to test: {commands[0]}{more} (--all shows each)"


def ours(finding: Finding) -> str:
    """`2.66 [2.20, 4.34], n = 100`; empty where nothing decided. What holds by construction has no interval."""
    figure = finding.decided
    if figure is None:
        return ""
    measured = figure.measured.partition(" [")[0] if finding.claim.by_construction else figure.measured
    return f"{measured}, n = {figure.interval.n:,}"


def _verdict(finding: Finding) -> str:
    return f"{finding.verdict}{MARK if finding.decided and finding.decided.oracle else ''}"


def run_of(finding: Finding) -> str:
    """The runs that decided, with what a reader must know of them."""
    figure = finding.decided
    return " + ".join(figure.runs) + ("" if figure.complete else " (unfinished)") if figure else ""


def also(finding: Finding) -> str:
    """`2 undecided, 1 smaller model`: where the figures of the other runs lie."""
    counts = Counter(figure.verdict for figure in finding.also)
    smaller = counts.pop(SMALL, 0)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return ", ".join([*parts, *([counted(smaller, "smaller model")] if smaller else [])])


def _terminal(finding: Finding) -> Iterator[str]:
    claim = finding.claim
    yield from _wrapped(f"{claim.id}: {claim.says}; {sources(finding)}", 0)
    facts = [
        f"claimed {claim.claimed}" if claim.claimed else "",
        ours(finding),
        run_of(finding),
        _why(finding) or (claim.untestable and finding.reason),
        f"also {also(finding)}" if finding.also and finding.decided and not claim.untestable else "",
    ]
    yield from _wrapped(one_line(f"{_verdict(finding)}: {'; '.join(filter(None, facts))}"), 2)


def _why(finding: Finding) -> str:
    """Why no figure decided, or why the verdict isn't where the interval lies."""
    return finding.decided.caveat if finding.decided else finding.reason


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2), break_on_hyphens=False
    )


def _short(source: str) -> str:
    """Without the numbers that stand there: `Xu 2023, Table 2`."""
    return source.partition(":")[0]


def _markdown(findings: Sequence[Finding]) -> Iterator[str]:
    """A table with a line for each claim; for those that can't be tested the reason is in the place of figures."""
    if not findings:
        return
    if findings[0].claim.untestable:
        head = ["claim", "source", "why not", "ours"]
        rows = [[finding.claim.says, sources(finding), markdown(finding.reason), ours(finding)] for finding in findings]
    else:
        head = ["claim", "source", "claimed", "ours [95%], n", "verdict", "run", "also", "note"]
        rows = [
            [finding.claim.says, sources(finding), finding.claim.claimed, ours(finding),
             f"**{finding.verdict}**{_verdict(finding).removeprefix(finding.verdict)}",
             markdown(run_of(finding)), also(finding),
             markdown("; ".join(filter(None, [_why(finding), finding.claim.note])))]
            for finding in findings
        ]  # fmt: skip
    yield "\n".join(f"|{'|'.join(map(_cell, row))}|" for row in (head, ["---"] * len(head), *rows))


def sources(finding: Finding) -> str:
    """`Xu 2023, Table 2; R5 card`."""
    return "; ".join(map(_short, finding.claim.source))


def _cell(text: str) -> str:
    """Escapes bars, and a final mark that Markdown would read as emphasis."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    return f"{text[:-1]}\\{MARK}" if text.endswith(f"**{MARK}") else text


def _notes(findings: Sequence[Finding], form: Format) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in _counts(findings).items() if count)
    notes = [f"{counts}. {INTERVALS}"]
    if any(finding.decided and finding.decided.oracle for finding in findings):
        notes.append(ORACLE)
    for note in notes:
        yield (
            f"\\{note}"
            if form == "markdown" and note == ORACLE
            else note
            if form == "markdown"
            else "\n".join(textwrap.wrap(note, _WIDTH))
        )
