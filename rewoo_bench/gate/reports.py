"""A verdict for other programs: JUnit XML for CI systems, JSON for benchmark-tracking actions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from rewoo_bench.errors import UsageError
from rewoo_bench.escaping import controls_as_json, terminal
from rewoo_bench.gate.budgets import GROUP_KEYS
from rewoo_bench.gate.verdict import Check, Verdict
from rewoo_bench.output_file import replaced
from rewoo_bench.runs.failed_rows import left_out
from rewoo_bench.text.counts import counted

if TYPE_CHECKING:
    import pandas as pd

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

    Failed questions (failed_rows.py) are in no mean; `extra` has their number. A group without a mean has no point.
    """
    return _as_json(list(_points(rows))) + "\n"


def _as_json(value: object) -> str:
    """JSON without raw control characters. Raises `ValueError` for a number that isn't finite."""
    return controls_as_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


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
    """A report. Raises `UsageError` that names the flag.

    Where it goes, and how: output_file.py.
    """
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
