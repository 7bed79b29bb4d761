"""A verdict as text: for the terminal, and as Markdown for a pull request or a job's summary.

FAILED: 2 of 31 checks, 0 warnings
n = 120 questions

rewoo, sample, oracle
  fail  total_tokens +42.0 a question, 1,283.0 -> 1,325.0 (+3.3%), 2% is allowed; the planner's …
        sample-017 +42 (planner, 1,290 -> 1,332)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewoo_bench.escaping import markdown as plain
from rewoo_bench.escaping import one_line
from rewoo_bench.gate.verdict import Check, Group, Verdict, shown
from rewoo_bench.stats.mean_bounds import FEWEST
from rewoo_bench.text.counts import counted
from rewoo_bench.text.tables import markdown_table, text_table

_MANY_TIMES = 9
_HEAD = ("", "measured", "limit", "head room")
_HEAD_AGAINST = ("", "baseline", "now", "change", "limit")


def text(verdict: Verdict) -> str:
    """The verdict first, then failures and warnings with their reasons, then all figures."""
    parts = ["\n".join([one_line(headline(verdict)), *_size(verdict)])]
    for group, checks in _grouped([*verdict.failures, *verdict.warnings]):
        parts.append("\n".join([one_line(str(group)), *_reasons(checks)]))
    for head, rows in _tables(verdict):
        parts.append("\n".join(text_table([head, *rows])))
    return "\n\n".join(parts)


def markdown(verdict: Verdict) -> str:
    """The same, for GitHub: the questions that grew most and the tables can be unfolded."""
    parts = [f"### Token budgets: {plain(headline(verdict))}", *_size(verdict)]
    for group, checks in _grouped([*verdict.failures, *verdict.warnings]):
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


def _grouped(checks: Sequence[Check]) -> Iterator[tuple[Group, list[Check]]]:
    groups: dict[Group, list[Check]] = {}
    for check in checks:
        groups.setdefault(check.group, []).append(check)
    yield from groups.items()


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
        yield _HEAD, [_held(check) for check in budgets]
    if against:
        moved = [check for check in against if check.metric == "total_tokens" or check.measured != check.before]
        yield _HEAD_AGAINST, [_compared(check) for check in moved]


def _held(check: Check) -> tuple[str, ...]:
    return (_label(check), _value(check), shown(check.metric, check.limit), _room(check))


def _compared(check: Check) -> tuple[str, ...]:
    values = (shown(check.metric, value) for value in (check.before, check.measured))
    return (_label(check), *values, _change(check), shown(check.metric, check.limit))


def _change(check: Check) -> str:
    before, now = check.before or 0.0, check.measured or 0.0
    if check.kind == "accuracy":
        return f"{now - before:+.3f}"
    return f"{now / before - 1:+,.1%}" if before else "from none" if now else "+0.0%"


def _label(check: Check) -> str:
    return f"{check.group}: {check.name}" + (" (an oracle's: means nothing)" if check.oracle else "")


def _value(check: Check) -> str:
    if check.measured is None:
        return "unknown" if check.kind == "cost unknown" else "-"
    return shown(check.metric, check.measured)


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
    return f"{room:.1%}" if room > -_MANY_TIMES else f"{1 - room:,.3g} times the limit"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
