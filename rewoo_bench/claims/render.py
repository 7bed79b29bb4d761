"""Findings as text for a terminal, as Markdown and as JSON.

print(render(check(read_claims(), gather("results/local/my-run")), "markdown"))
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, get_args

from rewoo_bench.claims.check import Finding
from rewoo_bench.claims.rules import VERDICTS, Verdict
from rewoo_bench.escaping import markdown, one_line

Format = Literal["terminal", "markdown", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
MARK = "*"
ORACLE = f"{MARK} by an oracle, which makes no mistake: a cost of the architecture, with no model's errors in it"
INTERVALS = "Each verdict is that of one 95% interval; none is adjusted for the number of claims."


def render(findings: Sequence[Finding], form: Format) -> str:
    """All findings in one of `FORMATS`, without a newline at the end."""
    if form == "json":
        shown = {"verdicts": _counts(findings), "findings": [as_dict(finding) for finding in findings]}
        return json.dumps(shown, indent=2, ensure_ascii=False, allow_nan=False)
    write = _terminal if form == "terminal" else _markdown
    return "\n\n".join([*write(findings), *_notes(findings, MARK if form == "terminal" else f"\\{MARK}")])


def as_dict(finding: Finding) -> dict[str, Any]:
    """JSON-ready; a bound that isn't finite is None."""
    claim, evidence, interval = finding.claim, finding.evidence, finding.interval
    told = {name: getattr(claim, name) for name in ("id", "topic", "says", "source", "number", "note")}
    bounds = ("estimate", "low", "high", "n", "level")
    found = {name: _finite(getattr(interval, name)) if interval else None for name in bounds}
    where = {name: getattr(evidence, name) if evidence else None for name in ("data", "dataset", "model", "oracle")}
    runs = list(evidence.runs) if evidence else []
    return {
        **told, "claimed": claim.claimed, "verdict": finding.verdict, "reason": finding.reason, **found,
        "left_out": finding.left_out, **where,
        "failure_rate": evidence.failure_rate if evidence else None, "runs": runs,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _counts(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many findings of each verdict there are."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict: found[verdict] for verdict in VERDICTS}


def _terminal(findings: Sequence[Finding]) -> Iterator[str]:
    for topic, group in groupby(findings, key=lambda finding: finding.claim.topic):
        yield topic.upper()
        for claim, found in groupby(group, key=lambda finding: finding.claim):
            note = [f"  note: {claim.note}"] if claim.note else []
            lines = [f"  {_verdict(each)}: {_details(each)}" for each in found]
            yield "\n".join([f"{claim.id}: {claim.says}", f"  source: {claim.source}", *note, *lines])


def _verdict(finding: Finding) -> str:
    return f"{finding.verdict}{MARK if finding.evidence and finding.evidence.oracle else ''}"


def _details(finding: Finding) -> str:
    if finding.evidence is None:
        return one_line(finding.reason)
    claimed = f", claimed {finding.claim.claimed}" if finding.claim.claimed else ""
    return f"{_measured(finding)}{claimed}; {one_line(_where(finding))}; {one_line(finding.reason)}"


def _measured(finding: Finding) -> str:
    """`2.66 [2.20, 4.34]`."""
    if finding.interval is None or finding.claim.proof is None:
        return ""
    show, found = finding.claim.proof.measure.show, finding.interval
    bounds = f"[{show(found.low)}, {show(found.high)}]"
    return f"{show(found.estimate)} {bounds}{finding.claim.proof.measure.suffix}"


def _where(finding: Finding) -> str:
    if finding.evidence is None or finding.interval is None:
        return ""
    without = f", {finding.left_out:,} rows left out" if finding.left_out else ""
    return f"{finding.evidence.label}, n = {finding.interval.n:,}{without}"


_COLUMNS: tuple[tuple[str, Callable[[Finding], str]], ...] = (
    ("measured [95% CI]", _measured),
    ("on", lambda f: markdown(_where(f))),
    ("verdict", lambda f: f"**{f.verdict}**{MARK if f.evidence and f.evidence.oracle else ''}"),
    ("why", lambda f: markdown(f.reason)),
)


def _markdown(findings: Sequence[Finding]) -> Iterator[str]:
    """How often each claim came out which way, then a table a topic, in which a claim is told once."""
    yield _overview(findings)
    for topic, group in groupby(findings, key=lambda finding: finding.claim.topic):
        rows = []
        for claim, found in groupby(group, key=lambda finding: finding.claim):
            told = [f"{claim.says} (`{claim.id}`)", claim.claimed, f"{claim.source}; {claim.note}".removesuffix("; ")]
            for finding in found:
                shown = [show(finding) for _, show in _COLUMNS]
                rows.append([*told[:2], *shown, told[2]])
                told = [""] * len(told)
        yield "\n".join([f"**{topic.capitalize()}**", "", *_table(["claim", "claimed", *_NAMES, "source"], rows)])


_NAMES = tuple(name for name, _ in _COLUMNS)
_REACHED: tuple[Verdict, ...] = ("reproduced", "not reproduced", "contradicted", "undecided")


def _overview(findings: Sequence[Finding]) -> str:
    """A row for each claim that something was measured for: in how many data sets and models it came out which way."""
    rows = []
    for claim, found in groupby(findings, key=lambda finding: finding.claim):
        counts = _counts(list(found))
        if any(counts[verdict] for verdict in _REACHED):
            rows.append([f"{claim.says} (`{claim.id}`)", *(str(counts[verdict] or "") for verdict in _REACHED)])
    return "\n".join(["**At a glance**", "", *_table(["claim", *_REACHED], rows)])


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (names, ["---"] * len(names), *rows):
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """Keeps a bar from ending the cell, and the mark from being taken for emphasis."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    return f"{text[:-1]}\\{MARK}" if text.endswith(f"**{MARK}") else text


def _notes(findings: Sequence[Finding], mark: str) -> Iterator[str]:
    yield ", ".join(f"{count} {verdict}" for verdict, count in _counts(findings).items() if count) + ". " + INTERVALS
    if any(finding.verdict == "by construction" for finding in findings):
        yield "By construction: the design of the architecture makes it so. It checks the harness, and is not counted."
    if any(finding.evidence and finding.evidence.oracle for finding in findings):
        yield ORACLE.replace(MARK, mark, 1)
