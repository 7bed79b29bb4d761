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
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd

from rewoo_bench.analysis.stats.paired import FEWEST
from rewoo_bench.errors import UsageError
from rewoo_bench.gate.verdict import Check, Group, Verdict, amount
from rewoo_bench.runs.rows import left_out
from rewoo_bench.system.files import replaced
from rewoo_bench.text.escaping import controls_as_json, markdown_table, plain_line, plain_markdown, terminal, text_table
from rewoo_bench.text.words import counted

_UNITS = {
    "total_tokens": "tokens/question",
    "input_tokens": "tokens/question",
    "output_tokens": "tokens/question",
    "llm_calls": "calls/question",
    "tool_calls": "calls/question",
    "cost_usd": "USD/question",
}
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def verdict_text(verdict: Verdict) -> str:
    """The verdict first, then failures and warnings with their reasons, then all figures."""
    parts = ["\n".join(map(plain_line, [_headline(verdict), *_size(verdict)]))]
    for group, checks in _grouped(verdict).items():
        lines, grown = [plain_line(str(group))], next((check for check in checks if check.grown), None)
        for check in checks:
            lines.append(f"  {check.status}  {plain_line(check.text)}")
            if check is grown:
                lines += [f"          {plain_line(str(question))}" for question in check.grown]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, *("\n".join(text_table(cells)) for cells in _tables(verdict))])


def verdict_markdown(verdict: Verdict) -> str:
    """The same, for GitHub: the questions that grew most and the tables can be unfolded."""
    folded = "<details><summary>{}</summary>\n\n{}\n\n</details>"
    parts = [f"### Token budgets: {plain_markdown(_headline(verdict))}", *map(plain_markdown, _size(verdict))]
    for group, checks in _grouped(verdict).items():
        lines = [f"- {'❌' if check.status == 'fail' else '⚠️'} {plain_markdown(check.text)}" for check in checks]
        parts.append("\n".join([f"**{plain_markdown(str(group))}**", "", *lines]))
        if grown := next((check.grown for check in checks if check.grown), ()):
            questions = "\n".join(f"- {plain_markdown(str(question))}" for question in grown)
            parts.append(folded.format("questions that grew most", questions))
    for cells in _tables(verdict):
        parts.append(folded.format(counted(len(cells) - 1, "figure"), "\n".join(markdown_table(cells))))
    return "\n\n".join(parts) + "\n"


def _headline(verdict: Verdict) -> str:
    """`FAILED: 2 of 31 checks, 1 warning`."""
    if verdict.incomplete is not None:
        return f"INCOMPLETE: {verdict.incomplete}; nothing was judged, --allow-incomplete judges the rows there are"
    checks, warnings = counted(len(verdict.checks), "check"), counted(len(verdict.warnings), "warning")
    if verdict.undecided:
        warnings += f", can't tell {counted(len(verdict.undecided), 'time')}"
    failed = len(verdict.failures)
    return f"FAILED: {failed:,} of {checks}, {warnings}" if failed else f"PASSED: {checks}, {warnings}"


def _size(verdict: Verdict) -> Iterator[str]:
    """`n = 5 questions`, a warning where these are few, and the notes; no size where tools are judged."""
    sizes = [check.n for check in verdict.checks if check.n]
    if sizes:
        least, most = min(sizes), max(sizes)
        yield f"n = {counted(most, 'question')}" if least == most else f"n = {least:,} to {most:,} questions"
        if least < FEWEST:
            yield f"WARNING: fewer than {FEWEST} questions: what is rare may be missing"
    yield from verdict.notes


def _grouped(verdict: Verdict) -> dict[Group, list[Check]]:
    """Failures, then warnings, by group."""
    groups: dict[Group, list[Check]] = {}
    for check in (*verdict.failures, *verdict.warnings):
        groups.setdefault(check.group, []).append(check)
    return groups


def _tables(verdict: Verdict) -> Iterator[list[tuple[str, ...]]]:
    """Figures with their budgets; and of a comparison with a baseline total tokens, and the figures that changed."""
    budgets: list[tuple[str, ...]] = [("", "measured", "limit", "head room")]
    against: list[tuple[str, ...]] = [("", "baseline", "now", "change", "limit")]
    for check in verdict.checks:
        label = f"{check.group}: {check.name}" + (" (an oracle's: means nothing)" if check.oracle else "")
        limit, now = amount(check.metric, check.limit), check.measured or 0.0
        if check.before is not None and (check.metric == "total_tokens" or check.measured != check.before):
            if check.kind == "accuracy":
                change = f"{now - check.before:+.3f}"
            else:
                change = f"{now / check.before - 1:+,.1%}" if check.before else "from none" if now else "+0.0%"
            sizes = (amount(check.metric, check.before), amount(check.metric, check.measured))
            against.append((label, *sizes, change, limit))
        if check.before is None and check.limit is not None:
            known = check.measured is not None or check.kind == "cost unknown"
            budgets.append((label, amount(check.metric, check.measured) if known else "-", limit, _room(check)))
    if len(budgets) > 1:
        yield budgets
    if any(check.before is not None for check in verdict.checks):
        yield against


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
        place = ".".join(_sound(part).replace(".", "_") for part in check.group)  # dots part packages in most viewers
        named = {"classname": place, "name": _sound(f"{check.name} ({check.kind})"), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", named)
        if check.status == "fail":
            failure = ElementTree.SubElement(case, "failure", {"type": check.kind, "message": _sound(check.text)})
            failure.text = _sound("\n".join([check.text, *map(str, check.grown)]))
        elif check.status == "warn":
            ElementTree.SubElement(case, "system-out").text = _sound(f"warning: {check.text}")
    if verdict.incomplete is not None:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "run", "name": "is complete", "time": "0"})
        ElementTree.SubElement(case, "failure", {"type": "incomplete", "message": _sound(verdict.incomplete)})
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _sound(value: str) -> str:
    """Without what XML can't hold, raw control characters, and lines that are commands to GitHub's runner."""
    return terminal(_NOT_IN_XML.sub("?", value))


def tracked(rows: pd.DataFrame) -> str:
    """Means per question as github-action-benchmark takes them (`tool: customSmallerIsBetter`).

    Failed questions are in no mean; `extra` has their number. A group without a mean has no point.
    """
    points = []
    for key, group in rows.groupby(list(Group._fields), sort=False, observed=True):
        scored = group[~left_out(group)]
        n, failed = int(scored["example_id"].nunique()), len(group) - len(scored)
        size = f"n = {counted(n, 'question')}" + (f" ({counted(len(scored), 'row')})" if len(scored) != n else "")
        size += f", {failed} failed left out" if failed else ""
        for metric, unit in _UNITS.items():
            values = scored[metric].astype("float64")
            if not len(values) or not values.map(math.isfinite).all():
                continue  # an unknown cost is no point, least of all 0
            points.append(
                {
                    "name": f"{' / '.join(map(str, key))}: {metric}",
                    "unit": unit,
                    "value": round(float(values.mean()), 8),
                    "range": f"± {1.96 * float(values.std(ddof=0)) / math.sqrt(len(values)):.4g}",
                    "extra": f"{size}, p95 = {values.quantile(0.95):.6g}, max = {values.max():.6g}",
                }
            )
    return controls_as_json(json.dumps(points, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def write_output(path: Path, content: str, flag: str, *, append: bool = False) -> None:
    """A file that a flag or a setting names. Raises `UsageError` that names it."""
    try:
        if append:
            with path.open("a", encoding="utf-8") as end:
                end.write(content)
            return
        with replaced(path) as file:
            file.write(content.encode())
    except OSError as error:
        raise UsageError(f"{flag}: can't write {str(path)!r}: {error.strerror or error}") from None
