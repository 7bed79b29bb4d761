"""Findings as text for a terminal, as Markdown and as JSON.

print(render_claims(check(read_claims(), gather("results/local/my-run")), "markdown"))

At a terminal a table of the verdicts comes first. Claims are grouped by the data that they are about. Those that none
of the runs can test are one line of their group. What a figure is of, and the figures of the other runs, are in the
JSON, and unfold in the report.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from rewoo_bench.analysis.claims.check import TOO_SMALL, Figure, Finding, needed_by_all
from rewoo_bench.analysis.claims.rules import VERDICTS, ClaimVerdict
from rewoo_bench.analysis.pairs import OF_RARE, RARE
from rewoo_bench.text.escaping import plain_line, plain_markdown, text_table, with_finite_numbers
from rewoo_bench.text.words import counted

ClaimsFormat = Literal["terminal", "markdown", "json"]
_MARK = "*"
_ORACLE = f"{_MARK} with the oracle, which makes no mistakes: the architecture's cost without the errors of a model."
_INTERVALS = "Intervals are 95%, and none is adjusted for the number of claims."
_EACH = " (one about two data sets counts as two)"
_WIDTH = 80
_BAR, _ESCAPED_BAR = re.compile(r"(?<!\\)\|"), r"\\|"


def render_claims(
    findings: Sequence[Finding], form: ClaimsFormat, *, everything: bool = False, details: bool = True
) -> str:
    """The findings in one of the formats, without a newline at the end.

    `everything` has each claim without data, too; JSON always has. Without `details` the terminal's form is the table
    of verdicts alone.
    """
    counts = Counter(finding.verdict for finding in findings)
    if form == "json":
        verdicts: dict[ClaimVerdict, int] = {verdict: counts[verdict] for verdict in VERDICTS}
        shown = {"verdicts": verdicts, "findings": [_as_dict(finding) for finding in findings]}
        return json.dumps(with_finite_numbers(shown), indent=2, ensure_ascii=False, allow_nan=False)
    groups: dict[str, list[Finding]] = {}  # by the data that they are about; those without a test are the last group
    for finding in sorted(findings, key=lambda finding: bool(finding.claim.untestable)):
        groups.setdefault(finding.claim.about, []).append(finding)
    all_of = counted(len(findings), "claim") + (_EACH if len(groups) > 1 else "")
    notes = [f"{all_of}: {', '.join(f'{counts[name]} {name}' for name in VERDICTS if counts[name])}. {_INTERVALS}"]
    if any(finding.decided and finding.decided.oracle for finding in findings):
        notes.append(f"\\{_ORACLE}" if form == "markdown" else _ORACLE)
    if any(RARE in ours(finding) for finding in findings):
        notes.append(f"{OF_RARE}.")
    if form == "markdown":
        parts = []
        for about, own in groups.items():
            here, missing = _parted(own, everything)
            parts += [f"## {about}", _markdown_table(here), plain_markdown(missing)]
        return "\n\n".join([*filter(None, parts), *notes])
    parts = ["\n".join(textwrap.wrap(note, _WIDTH)) for note in notes]
    overview = [
        [finding.claim.id, verdict_shown(finding), finding.claim.claimed, ours(finding)]
        for own in groups.values()
        for finding in own
        if finding.verdict not in ("no data", "not testable here")
    ]
    if overview:
        parts.append("\n".join(text_table([["claim", "verdict", "claimed", "ours [95%], n"], *overview], left=True)))
    if not details:
        parts.append("What each claim says, which run decided and why, and what to run for the others: --details")
        return "\n\n".join(parts)
    for about, own in groups.items():
        here, missing = _parted(own, everything)
        if here:
            lines = [line for finding in here for line in _lines(finding)]
            parts.append("\n".join([about.upper(), *lines, *textwrap.wrap(missing, _WIDTH)]))
        else:
            parts.append("\n".join(_wrapped(f"{about.upper()}: {missing}", 0)))
    return "\n\n".join(parts)


def _parted(findings: Sequence[Finding], everything: bool) -> tuple[list[Finding], str]:
    """The findings to show; of the others, how many claims no run can test, and what to run for them."""
    here = [finding for finding in findings if everything or finding.verdict != "no data"]
    tests = [finding.claim.test for finding in findings if finding not in here and finding.claim.test]
    if not tests:
        return here, ""
    commands = needed_by_all(tests)
    more = f", and {counted(len(commands) - 1, 'other command')}" if len(commands) > 1 else ""
    return here, f"{counted(len(tests), 'claim')} without data here; to test: {commands[0]}{more} (--all shows each)"


def _as_dict(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    texts = {name: getattr(claim, name) for name in ("id", "about", "says", "number", "claimed", "tested", "note")}
    verdict = {"source": list(claim.cited), "verdict": finding.verdict, "reason": finding.reason}
    others = [{"verdict": one.verdict, "reason": one.reason, **_figure(one)} for one in finding.also]
    return {**texts, **verdict, **_figure(finding.decided), "also": others}


def _figure(figure: Figure | None) -> dict[str, Any]:
    bounds = ("estimate", "low", "high", "n", "level")
    names = ("measured", "data", "label", "model", "oracle", "complete", "left_out", "never_asked")
    return {
        **{name: getattr(figure.interval, name) if figure else None for name in bounds},
        **{name: getattr(figure, name) if figure else None for name in names},
        "runs": list(figure.runs) if figure else [],
    }


def _lines(finding: Finding) -> Iterator[str]:
    """A finding at a terminal."""
    claim = finding.claim
    yield from _wrapped(f"{claim.id}: {claim.says}; {sources(finding)}", 0)
    facts = [
        f"claimed {claim.claimed}" if claim.claimed else "",
        ours(finding),
        run_of(finding),
        _why(finding) or (claim.untestable and finding.reason),
        f"also {also(finding)}" if finding.also and finding.decided and not claim.untestable else "",
    ]
    yield from _wrapped(plain_line(f"{verdict_shown(finding)}: {'; '.join(filter(None, facts))}"), 2)


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2), break_on_hyphens=False
    )


def _markdown_table(findings: Sequence[Finding]) -> str:
    """A line for each claim; for those that can't be tested the reason is in the place of figures."""
    if not findings:
        return ""
    if findings[0].claim.untestable:
        rows = [["claim", "source", "why not", "ours"]]
        rows += [[each.claim.says, sources(each), plain_markdown(each.reason), ours(each)] for each in findings]
    else:
        rows = [["claim", "source", "claimed", "ours [95%], n", "verdict", "run", "also", "note"]]
        for each in findings:
            shown = verdict_shown(each)
            verdict = f"**{shown.removesuffix(_MARK)}**" + (rf"\{_MARK}" if shown.endswith(_MARK) else "")
            why = "; ".join(filter(None, [plain_markdown(_why(each)), each.claim.note]))
            rows.append(
                [each.claim.says, sources(each), each.claim.claimed, ours(each), verdict, plain_markdown(run_of(each)),
                 also(each), why]
            )  # fmt: skip
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"|{'|'.join(_BAR.sub(_ESCAPED_BAR, cell) for cell in row)}|" for row in rows)


def ours(finding: Finding) -> str:
    """`2.66 [2.20, 4.34], n = 100`; empty where nothing decided. What holds by construction has no interval."""
    figure = finding.decided
    if figure is None:
        return ""
    measured = figure.measured.partition(" [")[0] if finding.claim.by_construction else figure.measured
    return f"{measured}, n = {figure.interval.n:,}"


def verdict_shown(finding: Finding) -> str:
    """`contradicted: higher than claimed`, with a mark where an oracle decided."""
    figure, number = finding.decided, finding.claim.number
    side = ""
    if figure is not None and number is not None and finding.verdict == "contradicted":
        side = f": {'higher' if figure.interval.estimate > number else 'lower'} than claimed"
    return f"{finding.verdict}{side}{_MARK if figure and figure.oracle else ''}"


def run_of(finding: Finding) -> str:
    """The runs that decided, with what a reader must know of them."""
    figure = finding.decided
    return " + ".join(figure.runs) + ("" if figure.complete else " (unfinished)") if figure else ""


def also(finding: Finding) -> str:
    """`2 undecided, 1 smaller model`: where the figures of the other runs lie."""
    counts = Counter(figure.verdict for figure in finding.also)
    smaller = counts.pop(TOO_SMALL, 0)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return ", ".join([*parts, *([counted(smaller, "smaller model")] if smaller else [])])


def _why(finding: Finding) -> str:
    """Why no figure decided, or why the verdict isn't where the interval lies."""
    return finding.decided.caveat if finding.decided else finding.reason


def sources(finding: Finding) -> str:
    """`Xu 2023, Table 2; R5 card`: without the numbers that stand there."""
    return "; ".join(source.partition(":")[0] for source in finding.claim.source)
