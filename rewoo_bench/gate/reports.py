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
from rewoo_bench.gate.budgets import KEYS
from rewoo_bench.gate.verdict import Check, Verdict

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
    """Without the characters that no XML can hold."""
    return _NOT_IN_XML.sub("?", value)


def tracked(rows: pd.DataFrame) -> str:
    """Means per question as github-action-benchmark takes them (`tool: customSmallerIsBetter`)."""
    return json.dumps(list(_points(rows)), indent=2, ensure_ascii=False) + "\n"


def _points(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for key, group in rows.groupby(KEYS, sort=False, observed=True):
        questions = group["example_id"].nunique()
        for metric, unit in UNITS.items():
            if group[metric].isna().any():
                continue  # an unknown cost is no point, least of all 0
            values = group[metric].astype("float64")
            spread = 1.96 * float(values.std(ddof=0)) / math.sqrt(len(values))
            yield {
                "name": f"{' / '.join(map(str, key))}: {metric}",
                "unit": unit,
                "value": round(float(values.mean()), 8),
                "range": f"± {spread:.4g}",
                "extra": f"n = {questions} questions, p95 = {values.quantile(0.95):.6g}, max = {values.max():.6g}",
            }


def write_report(path: Path, content: str, flag: str) -> None:
    """A report, replaced as a whole. Raises `UsageError` that names the flag."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(content, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UsageError(f"{flag}: can't write {str(path)!r}: {error.strerror or error}") from None


def append_report(path: Path, content: str, name: str) -> None:
    """A report behind what the file has. Raises `UsageError` that names the setting."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"{name}: can't write {str(path)!r}: {error.strerror or error}") from None
