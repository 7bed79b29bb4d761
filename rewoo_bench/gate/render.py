"""A verdict as text: for the terminal, and as Markdown for a pull request or a job's summary.

FAILED: 2 of 31 checks, 0 warnings
n = 120 questions

rewoo, sample, oracle
  fail  total_tokens +42.0 a question, 1,283.0 -> 1,325.0 (+3.3%), 2% is allowed; the planner's …
        sample-017 +42 (planner, 1,290 -> 1,332)
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from rewoo_bench.analysis.stats.paired import FEWEST
from rewoo_bench.errors import UsageError
from rewoo_bench.gate.budgets import GROUP_KEYS
from rewoo_bench.gate.verdict import Check, Group, Verdict, shown
from rewoo_bench.runs.rows import left_out
from rewoo_bench.system.files import replaced
from rewoo_bench.text.escaping import controls_as_json, markdown_table, one_line, terminal, text_table
from rewoo_bench.text.escaping import markdown as plain
from rewoo_bench.text.words import counted


def text(verdict: Verdict) -> str:
    """The verdict first, then failures and warnings with their reasons, then all figures."""
    parts = ["\n".join([one_line(headline(verdict)), *_size(verdict)])]
    for group, checks in _grouped(verdict):
        parts.append("\n".join([one_line(str(group)), *_reasons(checks)]))
    for head, rows in _tables(verdict):
        parts.append("\n".join(text_table([head, *rows])))
    return "\n\n".join(parts)


def markdown(verdict: Verdict) -> str:
    """The same, for GitHub: the questions that grew most and the tables can be unfolded."""
    parts = [f"### Token budgets: {plain(headline(verdict))}", *_size(verdict)]
    for group, checks in _grouped(verdict):
        lines = [f"- {'❌' if check.status == 'fail' else '⚠️'} {plain(check.text)}" for check in checks]
        parts.append("\n".join([f"**{plain(str(group))}**", "", *lines]))
        grown = next((check.grown for check in checks if check.grown), ())
        if grown:
            listed = "\n".join(f"- {plain(str(question))}" for question in grown)
            parts.append(_folded("questions that grew most", listed))
    for head, rows in _tables(verdict):
        parts.append(_folded(counted(len(rows), "figure"), "\n".join(markdown_table([head, *rows]))))
    return "\n\n".join(parts) + "\n"


def headline(verdict: Verdict) -> str:
    """`FAILED: 2 of 31 checks, 1 warning`."""
    if verdict.incomplete is not None:
        return f"INCOMPLETE: {verdict.incomplete}; nothing was judged, --allow-incomplete judges the rows there are"
    checks, warnings = counted(len(verdict.checks), "check"), counted(len(verdict.warnings), "warning")
    if verdict.undecided:
        warnings += f", can't tell {counted(len(verdict.undecided), 'time')}"
    failed = len(verdict.failures)
    return f"FAILED: {failed:,} of {checks}, {warnings}" if failed else f"PASSED: {checks}, {warnings}"


def _size(verdict: Verdict) -> Iterator[str]:
    """`n = 5 questions`, and a warning where these are few; nothing where tools are judged."""
    sizes = [check.n for check in verdict.checks if check.n]
    if sizes:
        least, most = min(sizes), max(sizes)
        yield f"n = {counted(most, 'question')}" if least == most else f"n = {least:,} to {most:,} questions"
        if least < FEWEST:
            yield f"WARNING: fewer than {FEWEST} questions: what is rare may be missing"


def _grouped(verdict: Verdict) -> Iterable[tuple[Group, list[Check]]]:
    """Failures, then warnings, by group."""
    groups: dict[Group, list[Check]] = {}
    for check in (*verdict.failures, *verdict.warnings):
        groups.setdefault(check.group, []).append(check)
    return groups.items()


def _reasons(checks: Sequence[Check]) -> Iterator[str]:
    """A line for each check; under the first that has them, the questions that grew most."""
    grown = next((check for check in checks if check.grown), None)
    for check in checks:
        yield f"  {check.status}  {one_line(check.text)}"
        if check is grown:
            yield from (f"          {one_line(str(question))}" for question in check.grown)


def _tables(verdict: Verdict) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Figures with their budgets; and of a comparison with a baseline total tokens, and the figures that changed."""
    budgets = [check for check in verdict.checks if check.limit is not None and check.before is None]
    against = [check for check in verdict.checks if check.before is not None]
    if budgets:
        rows: list[tuple[str, ...]] = [
            (_label(check), _measured(check), shown(check.metric, check.limit), _room(check)) for check in budgets
        ]
        yield ("", "measured", "limit", "head room"), rows
    if against:
        moved = [check for check in against if check.metric == "total_tokens" or check.measured != check.before]
        yield ("", "baseline", "now", "change", "limit"), [_compared(check) for check in moved]


def _compared(check: Check) -> tuple[str, ...]:
    before, now = check.before or 0.0, check.measured or 0.0
    if check.kind == "accuracy":
        change = f"{now - before:+.3f}"
    else:
        change = f"{now / before - 1:+,.1%}" if before else "from none" if now else "+0.0%"
    values = (shown(check.metric, value) for value in (check.before, check.measured))
    return (_label(check), *values, change, shown(check.metric, check.limit))


def _measured(check: Check) -> str:
    if check.measured is None:
        return "unknown" if check.kind == "cost unknown" else "-"
    return shown(check.metric, check.measured)


def _label(check: Check) -> str:
    return f"{check.group}: {check.name}" + (" (an oracle's: means nothing)" if check.oracle else "")


def _room(check: Check) -> str:
    """How far a figure is below its limit, as a share of the limit; negative where it is over."""
    if check.measured is None or check.limit is None:
        return "-"
    if check.kind == "accuracy":
        return f"{check.measured - check.limit:+.3f}"
    if check.kind == "prefix cache":
        return f"{check.measured / check.limit - 1:.1%}" if check.limit else "-"
    if not check.limit:
        return "0.0%" if not check.measured else "none"
    room = 1 - check.measured / check.limit
    return f"{room:.1%}" if room > -9 else f"{1 - room:,.3g} times the limit"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


UNITS = {
    "total_tokens": "tokens/question",
    "input_tokens": "tokens/question",
    "output_tokens": "tokens/question",
    "llm_calls": "calls/question",
    "tool_calls": "calls/question",
    "cost_usd": "USD/question",
}
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdict: Verdict) -> str:
    """A test case a check, in the form that Jenkins' schema (junit-10.xsd) and GitLab take.

    A warning passes, with its text as the case's output; an incomplete run is one failed case.
    """
    incomplete = verdict.incomplete is not None
    counts = {"tests": len(verdict.checks) + incomplete, "failures": len(verdict.failures) + incomplete, "errors": 0}
    attributes = {"name": "rewoo-bench gate", **{name: str(count) for name, count in counts.items()}}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", {**attributes, "skipped": "0", "time": "0"})
    for check in verdict.checks:
        _case(suite, check)
    if verdict.incomplete is not None:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "run", "name": "is complete", "time": "0"})
        ElementTree.SubElement(case, "failure", {"type": "incomplete", "message": _sound(verdict.incomplete)})
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, check: Check) -> None:
    # Dots part the packages of a class in most viewers.
    names = [_sound(part).replace(".", "_") for part in check.group]
    attributes = {"classname": ".".join(names), "name": _sound(f"{check.name} ({check.kind})"), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if check.status == "fail":
        failure = ElementTree.SubElement(case, "failure", {"type": check.kind, "message": _sound(check.text)})
        failure.text = _sound("\n".join([check.text, *map(str, check.grown)]))
    elif check.status == "warn":
        ElementTree.SubElement(case, "system-out").text = _sound(f"warning: {check.text}")


def _sound(value: str) -> str:
    """Without what XML can't hold, raw control characters, and lines that are commands to GitHub's runner."""
    return terminal(_NOT_IN_XML.sub("?", value))


def tracked(rows: pd.DataFrame) -> str:
    """Means per question as github-action-benchmark takes them (`tool: customSmallerIsBetter`).

    Failed questions are in no mean; `extra` has their number. A group without a mean has no point.
    """
    points = json.dumps(list(_points(rows)), indent=2, ensure_ascii=False, allow_nan=False)
    return controls_as_json(points) + "\n"


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for key, group in rows.groupby(GROUP_KEYS, sort=False, observed=True):
        scored = group[~left_out(group)]
        for metric, unit in UNITS.items():
            values = scored[metric].astype("float64")
            if not len(values) or not values.map(math.isfinite).all():
                continue  # an unknown cost is no point, least of all 0
            yield {
                "name": f"{' / '.join(map(str, key))}: {metric}",
                "unit": unit,
                "value": round(float(values.mean()), 8),
                "range": f"± {1.96 * float(values.std(ddof=0)) / math.sqrt(len(values)):.4g}",
                "extra": f"{_sizes(group, scored)}, p95 = {values.quantile(0.95):.6g}, max = {values.max():.6g}",
            }


def _sizes(group: pd.DataFrame, scored: pd.DataFrame) -> str:
    """`n = 5 questions`, with the rows of more trials and the failed rows where there are any."""
    questions = scored["example_id"].nunique()
    trials = f" ({counted(len(scored), 'row')})" if len(scored) != questions else ""
    left_out = len(group) - len(scored)
    return f"n = {counted(questions, 'question')}{trials}" + (f", {left_out} failed left out" if left_out else "")


def write_report(path: Path, content: str, flag: str) -> None:
    """A report. Raises `UsageError` that names the flag."""
    try:
        with replaced(path) as file:
            file.write(content.encode())
    except OSError as error:
        raise UsageError(f"{flag}: can't write {str(path)!r}: {error.strerror or error}") from None


def append_report(path: Path, content: str, name: str) -> None:
    """A report at the end of a file. Raises `UsageError` that names the setting."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"{name}: can't write {str(path)!r}: {error.strerror or error}") from None
