"""A gate's verdict: checks, each passed, warned or failed, and the exit code that follows; and how it is shown.

Check("growth", "fail", Group("rewoo", "sample", "oracle"), "total_tokens",
      "total_tokens grew by 23.0 a question, 800.0 -> 823.0 (+2.9%, 2% allowed)", …)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rewoo_bench.analysis.stats.paired import FEWEST
from rewoo_bench.text.escaping import plain_markdown
from rewoo_bench.text.tables import markdown_table, text_table
from rewoo_bench.text.words import counted

ENOUGH_QUESTIONS = 200
"""Below, a fall of accuracy that may be chance warns: a system differs by several points from run to run."""
FALSE_ALARMS = 0.005
"""One-sided, of a live gate's test of total tokens on a system against itself, shared by its architectures
(Bonferroni); and as much of its tests of answers."""
_NOT_MEASURED = "not measured"
NOTHING_CACHED = "no call read a token from a prefix cache"
_MEANINGS = {
    "cached_input_tokens": "input from a cache as it was counted; `cached` in run and compare follows a price's rule",
    "cacheable_tokens": "input that begins as an earlier prompt did, so that a cache could hold it; no price's rule",
    "shared_prefix_tokens": "tokens after which the prompts of different questions begin to differ",
}
"""What the names of figures don't say."""

CheckKind = Literal[
    "budget",
    "cost unknown",
    "latency",
    "accuracy",
    "growth",
    "prefix cache",
    "changed",
    "not comparable",
    "failed questions",
    "can't tell",
]
Status = Literal["pass", "warn", "fail"]


class Group(NamedTuple):
    """The rows that a check is about."""

    architecture: str
    dataset: str
    model: str

    def __str__(self) -> str:
        return ", ".join(self)


@dataclass(frozen=True, slots=True)
class GrowthDetail:
    """A question with more tokens than before, and the role that took most of the growth."""

    example_id: str
    trial: int
    before: int
    now: int
    role: str

    def __str__(self) -> str:
        trial = f" (trial {self.trial})" if self.trial else ""
        return f"{self.example_id}{trial} {self.now - self.before:+,} ({self.role}, {self.before:,} -> {self.now:,})"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the gate. `text` can be read without the other checks of its group."""

    kind: CheckKind
    status: Status
    group: Group
    name: str
    """Such as `total_tokens p95` or `ids`."""
    text: str
    measured: float | None = None
    limit: float | None = None
    before: float | None = None
    """The baseline's mean, where there is a baseline."""
    n: int = 0
    """Questions."""
    grown: tuple[GrowthDetail, ...] = ()
    oracle: bool = False
    """Whether it is about an oracle's accuracy, which means nothing."""
    least: bool = False
    """Whether the limit is the least that is allowed, and not the most."""

    @property
    def metric(self) -> str:
        """`total_tokens` of `total_tokens p95`."""
        return self.name.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of a gate. `incomplete` is the reason why an incomplete run was not judged."""

    checks: tuple[Check, ...]
    incomplete: str | None = None
    notes: tuple[str, ...] = ()
    """What is to be known of the figures, such as the prices of dollars."""

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "fail")

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "warn")

    @property
    def undecided(self) -> tuple[Check, ...]:
        """Checks of a live comparison that has too few questions to decide."""
        return tuple(check for check in self.checks if check.kind == "can't tell")

    @property
    def code(self) -> int:
        """The exit code: 0 passed, 1 failed, 3 incomplete."""
        return 3 if self.incomplete is not None else 1 if self.failures else 0


def too_many_failed(failed: int, rows: int) -> bool:
    """Whether the rows that didn't fail are no fair sample of all of them: where more than a tenth failed.

    Failures aren't drawn at random: a long question runs into a time-out or a context limit sooner than a short one.
    So the means of the others are too low, and the more so the more failed. A tenth leaves room for the odd failure.
    """
    return failed > 0.1 * rows


def amount(metric: str, value: float | None) -> str:
    """A value as tables show it, with enough digits to tell it from 0.

    >>> amount("total_tokens", 1431.92), amount("llm_calls", 2), amount("latency_s", 0.001), amount("cost_usd", None)
    ('1,431.9', '2.00', '0.001 s', 'no price')
    >>> amount("rows", 27)
    '27'
    """
    if value is None:
        return "no price" if "usd" in metric else _NOT_MEASURED
    named = {"rows": 0, "cost_usd": 6, "usd_per_solved": 6, "exact_match": 3, "f1": 3}
    decimals = named.get(metric, 1 if "tokens" in metric else 2)
    text = f"{value:,.{decimals}f}"
    if abs(value - float(text.replace(",", ""))) > 0.01 * abs(value):
        text = f"{value:.3g}"
    return f"${text}" if "usd" in metric else f"{text} s" if metric == "latency_s" else text


# A verdict as text, as docs/ci.md shows one: for the terminal, and as Markdown for a pull request or a job's summary.


def verdict_text(verdict: Verdict) -> str:
    """The verdict first, then failures and warnings with their reasons, then all figures."""
    parts = ["\n".join([_headline(verdict), *_size(verdict)])]
    for group, checks in _grouped(verdict).items():
        lines, grown = [str(group)], next((check for check in checks if check.grown), None)
        for check in checks:
            lines.append(f"  {check.status}  {check.text}")
            if check is grown:
                lines += [f"          {question}" for question in check.grown]
        parts.append("\n".join(lines))
    for table in _tables(verdict).values():
        parts.append("\n".join([*text_table(table, grouped=True), *_terms(table)]))
    return "\n\n".join(parts)


def verdict_markdown(verdict: Verdict) -> str:
    """The same, for GitHub: the questions that grew most and the tables can be unfolded.

    Why a run is incomplete stands in its log: that may hold a provider's message or a prompt.
    """
    if verdict.incomplete is not None:
        return "### Token budgets: the run is incomplete, so nothing was judged; the job's log says why\n"
    folded = "<details><summary>{}</summary>\n\n{}\n\n</details>"
    parts = [f"### Token budgets: {plain_markdown(_headline(verdict))}", *map(plain_markdown, _size(verdict))]
    for group, checks in _grouped(verdict).items():
        lines = [f"- {'❌' if check.status == 'fail' else '⚠️'} {plain_markdown(check.text)}" for check in checks]
        parts.append("\n".join([f"**{plain_markdown(str(group))}**", "", *lines]))
        if grown := next((check.grown for check in checks if check.grown), ()):
            questions = "\n".join(f"- {plain_markdown(str(question))}" for question in grown)
            parts.append(folded.format("questions that grew most", questions))
    for name, table in _tables(verdict).items():
        terms = "".join(f"\n\n{plain_markdown(each)}" for each in _terms(table))
        title = f"{name}: {counted(len(table) - 1, 'figure')}"
        parts.append(folded.format(title, "\n".join(markdown_table(table)) + terms))
    return "\n\n".join(parts) + "\n"


def _headline(verdict: Verdict) -> str:
    """`FAILED: 2 of 31 checks, 1 warning; 24 that passed aren't shown`."""
    if verdict.incomplete is not None:
        return f"INCOMPLETE: {verdict.incomplete}; nothing was judged"
    checks, warnings = counted(len(verdict.checks), "check"), counted(len(verdict.warnings), "warning")
    if verdict.undecided:
        warnings += f", can't tell {counted(len(verdict.undecided), 'time')}"
    hidden = sum(each.status == "pass" and not (_has_budget(each) or _is_compared(each)) for each in verdict.checks)
    warnings += f"; {hidden:,} that passed aren't shown" if hidden else ""
    failed = len(verdict.failures)
    return f"FAILED: {failed:,} of {checks}, {warnings}" if failed else f"PASSED: {checks}, {warnings}"


def _has_budget(check: Check) -> bool:
    return check.before is None and check.limit is not None


def _is_compared(check: Check) -> bool:
    """Whether a table has it beside the baseline: total tokens, and figures that changed."""
    return check.before is not None and (check.metric == "total_tokens" or check.measured != check.before)


def _size(verdict: Verdict) -> Iterator[str]:
    """`n = 5 questions`, a warning where these are few, and the notes."""
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


def _terms(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """A line for each name in a table that needs one."""
    names = dict.fromkeys(row[1].partition(" ")[0] for row in table[1:])
    return (f"{name}: {_MEANINGS[name]}" for name in names if name in _MEANINGS)


def _tables(verdict: Verdict) -> dict[str, list[tuple[str, ...]]]:
    """Figures with their budgets; and of a comparison with a baseline total tokens, and the figures that changed."""
    budgets: list[tuple[str, ...]] = [("", "figure", "measured", "limit", "head room")]
    against: list[tuple[str, ...]] = [("", "figure", "baseline", "now", "change", "limit")]
    for check in verdict.checks:
        label = (str(check.group), check.name + (" (an oracle's)" if check.oracle else ""))
        limit, now = _limit(check), check.measured or 0.0
        if check.before is not None and _is_compared(check):
            if check.kind == "accuracy":
                change = f"{now - check.before:+.3f}"
            else:
                change = f"{now / check.before - 1:+,.1%}" if check.before else "from none" if now else "+0.0%"
            sizes = (amount(check.metric, check.before), amount(check.metric, check.measured))
            against.append((*label, *sizes, change, limit))
        if _has_budget(check):
            budgets.append((*label, amount(check.metric, check.measured), limit, _room(check)))
    is_compared = any(check.before is not None for check in verdict.checks)
    return {**({"budgets": budgets} if len(budgets) > 1 else {}), **({"baseline": against} if is_compared else {})}


def _limit(check: Check) -> str:
    """`at most 1,600.0`, or `at least 0.900` of a floor."""
    if check.limit is None:
        return "no limit"
    return f"at {'least' if check.least else 'most'} {amount(check.metric, check.limit)}"


def _room(check: Check) -> str:
    """How far a figure is within its limit, below the most or above the least; negative where it misses it.

    It is a share of the limit, of accuracy the difference itself.
    """
    if check.measured is None or check.limit is None:
        return _NOT_MEASURED
    inside = check.measured - check.limit if check.least else check.limit - check.measured
    if check.kind == "accuracy":
        return f"{inside:+.3f}"
    return f"{inside / check.limit:.1%}" if check.limit else "-"
