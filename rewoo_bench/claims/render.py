"""Findings as text for a terminal, as Markdown and as JSON.

print(render(check(read_claims(), gather("results/local/my-run")), "markdown"))

Claims are grouped by the data that they are about. Those that none of the runs can test are one line of their group.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args

from rewoo_bench.claims.check import Finding
from rewoo_bench.claims.needed import needed_by_all
from rewoo_bench.claims.rules import VERDICTS, Verdict
from rewoo_bench.escaping import markdown, one_line
from rewoo_bench.text.counts import counted

Format = Literal["terminal", "markdown", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
MARK = "*"
ORACLE = f"{MARK} with the oracle, which makes no mistakes: the architecture's cost without the errors of a model"
INTERVALS = "Each verdict is from one 95% interval; no interval is adjusted for the number of claims."


def render(findings: Sequence[Finding], form: Format, *, everything: bool = False) -> str:
    """The findings in one of `FORMATS`, without a newline at the end.

    `everything` has each claim without data, too; JSON always has.
    """
    if form == "json":
        shown = {"verdicts": _counts(findings), "findings": [as_dict(finding) for finding in findings]}
        return json.dumps(shown, indent=2, ensure_ascii=False, allow_nan=False)
    write, mark = (_terminal, MARK) if form == "terminal" else (_markdown, f"\\{MARK}")
    return "\n\n".join([*write(_grouped(findings, everything=everything)), *_notes(findings, mark)])


def as_dict(finding: Finding) -> dict[str, Any]:
    """JSON-ready; a bound that isn't finite is None."""
    claim, group, interval = finding.claim, finding.group, finding.interval
    texts = {name: getattr(claim, name) for name in ("id", "topic", "says", "source", "number", "note")}
    bounds = ("estimate", "low", "high", "n", "level")
    measured = {name: _finite(getattr(interval, name)) if interval else None for name in bounds}
    where = {name: getattr(group, name) if group else None for name in ("data", "dataset", "model", "oracle")}
    runs = list(group.runs) if group else []
    return {
        **texts, "claimed": claim.claimed, "verdict": finding.verdict, "reason": finding.reason, **measured,
        "left_out": finding.left_out, "never_asked": finding.never_asked, **where,
        "failure_rate": group.failure_rate if group else None, "runs": runs,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _counts(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """Number of findings of each verdict."""
    counts = Counter(finding.verdict for finding in findings)
    return {verdict: counts[verdict] for verdict in VERDICTS}


@dataclass(frozen=True, slots=True)
class _Group:
    """Claims about the same data."""

    about: str
    shown: list[Finding]
    without_data: str
    """A line about the claims that aren't shown, because no run can test them; empty where all are."""


def _grouped(findings: Sequence[Finding], *, everything: bool) -> list[_Group]:
    """In the order of the claims; those that no run could test are the last group."""
    groups: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.claim.test is None):
        groups.setdefault(finding.claim.about, []).append(finding)
    made = []
    for about, own in groups.items():
        hidden = [] if everything else [finding for finding in own if finding.verdict == "no data"]
        made.append(_Group(about, [finding for finding in own if finding not in hidden], _without_data(hidden)))
    return made


def _without_data(findings: Sequence[Finding]) -> str:
    """How many claims no run can test, and what to run for them."""
    tests = [finding.claim.test for finding in findings if finding.claim.test]
    if not tests:
        return ""
    commands = needed_by_all(tests)
    more = f", and {counted(len(commands) - 1, 'other command')}" if len(commands) > 1 else ""
    return f"{counted(len(tests), 'claim')} without data here; to test: {commands[0]}{more} (--all shows each)"


def _terminal(groups: Sequence[_Group]) -> Iterator[str]:
    for group in groups:
        if not group.shown:
            yield f"{group.about.upper()}: {group.without_data}"
            continue
        yield group.about.upper()
        for claim, own in groupby(group.shown, key=lambda finding: finding.claim):
            note = [f"  note: {claim.note}"] if claim.note else []
            lines = [f"  {_verdict(each)}: {_details(each)}" for each in own]
            yield "\n".join([f"{claim.id}: {claim.says}", f"  source: {claim.source}", *note, *lines])
        if group.without_data:
            yield group.without_data


def _verdict(finding: Finding) -> str:
    return f"{finding.verdict}{MARK if finding.group and finding.group.oracle else ''}"


def _details(finding: Finding) -> str:
    if finding.group is None:
        return one_line(finding.reason)
    claimed = f", claimed {finding.claim.claimed}" if finding.claim.claimed else ""
    return f"{measured(finding)}{claimed}; {one_line(_where(finding))}; {one_line(finding.reason)}"


def measured(finding: Finding) -> str:
    """`2.66 [2.20, 4.34]`; empty where nothing was measured."""
    if finding.interval is None or finding.claim.test is None:
        return ""
    show, interval = finding.claim.test.measure.show, finding.interval
    low, high = (show(each) if math.isfinite(each) else "no bound" for each in (interval.low, interval.high))
    bounds = f"[{low}, {high}]"
    return f"{show(interval.estimate)} {bounds}{finding.claim.test.measure.suffix}"


def _where(finding: Finding) -> str:
    if finding.group is None or finding.interval is None:
        return ""
    stopped = f"the run was stopped: {finding.never_asked:,} of its questions x architectures were never asked"
    parts = [
        f"{finding.group.label}, n = {finding.interval.n:,}",
        f"{finding.left_out:,} rows left out" if finding.left_out else "",
        stopped if finding.never_asked else "",
    ]
    return ", ".join(filter(None, parts))


_COLUMNS: tuple[tuple[str, Callable[[Finding], str]], ...] = (
    ("measured [95% CI]", measured),
    ("on", lambda f: markdown(_where(f))),
    ("verdict", lambda f: f"**{f.verdict}**{MARK if f.group and f.group.oracle else ''}"),
    ("why", lambda f: markdown(f.reason)),
)


def _markdown(groups: Sequence[_Group]) -> Iterator[str]:
    """The number of verdicts of each claim, then a table for each group of claims that states each claim once."""
    yield _overview([finding for group in groups for finding in group.shown])
    for group in groups:
        if not group.shown:
            yield f"**{group.about}**: {markdown(group.without_data)}"
            continue
        rows = []
        for claim, own in groupby(group.shown, key=lambda finding: finding.claim):
            stated = [f"{claim.says} (`{claim.id}`)", claim.claimed, f"{claim.source}; {claim.note}".removesuffix("; ")]
            for finding in own:
                shown = [show(finding) for _, show in _COLUMNS]
                rows.append([*stated[:2], *shown, stated[2]])
                stated = [""] * len(stated)
        yield "\n".join([f"**{group.about}**", "", *_table(["claim", "claimed", *_NAMES, "source"], rows)])
        if group.without_data:
            yield markdown(group.without_data)


_NAMES = tuple(name for name, _ in _COLUMNS)
_REACHED: tuple[Verdict, ...] = ("reproduced", "not reproduced", "contradicted", "undecided")


def _overview(findings: Sequence[Finding]) -> str:
    """A row for each measured claim: the number of data sets and models with each verdict."""
    rows = []
    for claim, own in groupby(findings, key=lambda finding: finding.claim):
        counts = _counts(list(own))
        if any(counts[verdict] for verdict in _REACHED):
            rows.append([f"{claim.says} (`{claim.id}`)", *(str(counts[verdict] or "") for verdict in _REACHED)])
    return "\n".join(["**At a glance**", "", *_table(["claim", *_REACHED], rows)])


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (names, ["---"] * len(names), *rows):
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """Escapes bars, and a final mark that Markdown would read as emphasis."""
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    return f"{text[:-1]}\\{MARK}" if text.endswith(f"**{MARK}") else text


def _notes(findings: Sequence[Finding], mark: str) -> Iterator[str]:
    yield ", ".join(f"{count} {verdict}" for verdict, count in _counts(findings).items() if count) + ". " + INTERVALS
    if any(finding.verdict == "by construction" for finding in findings):
        yield "By construction: true by the design of the architecture or of the measure. Not counted as reproduced."
    if any(finding.group and finding.group.oracle for finding in findings):
        yield ORACLE.replace(MARK, mark, 1)
