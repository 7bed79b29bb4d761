"""Claims and run groups -> findings, one verdict for each claim; and the findings as text, Markdown and JSON.

check(read_claims(), gather("results/local/my-run"))
    -> [Finding(claim=…, verdict="reproduced", reason="the whole interval is above 1", decided=Figure(…), also=(…))]

Which run decides a claim, among those that measure it:

    1. runs of models with 1B parameters and more, or whose size isn't known; with `model`, of models so named
    2. where there are none, an oracle's: it makes no mistakes, and only its costs mean something
    3. of these the run with the most questions in the interval; of as many, the larger model's, then the first
       of the data sets that the claim names

The other runs stand beside it, without one whose questions are a part of another's with the same model and data set.
A smaller model's figures never have a verdict of their own.

A figure whose interval has the mark `?` decides nothing: a rare event may be missing.

A ratio of tokens is undecided, whatever its interval says, in two cases: where the questions that both answered give
another verdict, since then loops and limits decide; and where a claimed number is held against architectures that
aren't in their papers' form.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from rewoo_bench.analysis.claims.claim_file import VERDICTS, Claim, ClaimVerdict
from rewoo_bench.analysis.claims.measures import rows_left_out, where_answered
from rewoo_bench.analysis.claims.run_groups import Data, RunGroup
from rewoo_bench.analysis.pairs import of_rare
from rewoo_bench.analysis.stats.paired import OF_RARE, RARE, Interval, brackets
from rewoo_bench.config.names import REPLAY
from rewoo_bench.errors import UsageError
from rewoo_bench.text.escaping import plain_markdown
from rewoo_bench.text.json_text import with_finite_numbers
from rewoo_bench.text.tables import markdown_table, text_table
from rewoo_bench.text.words import counted

TOO_SMALL: ClaimVerdict = "not tested at this scale"
LEAST_PARAMETERS = 1e9
"""Parameters of a model that decides a claim; smaller ones don't keep to the formats of agents."""
_REAL = "with a real model, an oracle won't do"


def needed(claim: Claim) -> str:
    """What to run for a claim: a command to copy, then further requirements behind semicolons.

    `run --arch react,rewoo --dataset hotpotqa; with a real model, an oracle won't do`
    """
    measure = claim.measure
    parts = [f"run --arch {shlex.quote(','.join(measure.architectures()))} --dataset {_dataset(claim)}"]
    parts += [f"{name} with {counted(count, 'exemplar')}" for name, count in claim.on.exemplars.items()]
    parts += ["and the same without failing tools"] if measure.name == "change" else []
    parts += [] if measure.serves_oracle() else [_REAL]
    return "; ".join(parts)


def _dataset(claim: Claim) -> str:
    """The data set, as `--dataset` takes it, with the flags that it needs; PASSAGES stands for the pages to search."""
    on = claim.on
    if "chain" in on.data:
        questions = 240 if claim.measure.name == "curvature" else 96
        return f"'chain?hops={on.least_steps or 1}..8' --max-steps 15 -n {questions}"
    name = next(iter(on.data), "sample")
    found = f"'{name}?objectives=3'" if on.joined else name
    found += " --corpus PASSAGES" if name == "triviaqa" else ""
    return f"{found} --tool-failure-rate 1 --tool-failure-mode empty" if on.failing else found


@dataclass(frozen=True, slots=True)
class Figure:
    """What one run, or several that belong together, measured for a claim, and where that lies."""

    interval: Interval
    measured: str
    """The interval in the measure's unit: `2.66 [2.20, 4.34]`."""
    verdict: ClaimVerdict
    reason: str
    group: RunGroup
    runs: tuple[str, ...]
    questions: frozenset[str]
    complete: bool
    caveat: str
    """Why the verdict isn't where the interval lies."""
    left_out: int
    """Rows that ran and aren't in the interval: failed, or of a chain and cut off by a limit."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on a claim, the figure that decided it, and those of the other runs."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str
    decided: Figure | None = None
    also: tuple[Figure, ...] = ()

    @property
    def interval(self) -> Interval | None:
        """What decided it."""
        return self.decided.interval if self.decided else None


def check(claims: Sequence[Claim], groups: Sequence[RunGroup], model: str | None = None) -> list[Finding]:
    """A finding for each claim, in their order. `model` is a part of the name of the models that decide.

    Raises `UsageError` where no run group has such a model.
    """
    if model and not any(model in group.model for group in groups):
        there = ", ".join(dict.fromkeys(group.model for group in groups))
        raise UsageError(f"no run has a model whose name contains {model!r}; there are: {there}")
    return [_finding(claim, groups, model) for claim in claims]


def _finding(claim: Claim, groups: Sequence[RunGroup], model: str | None) -> Finding:
    found = [figure for group in groups if (figure := _figure(claim, group, groups))]
    figures: list[Figure] = []
    for one in sorted(found, key=lambda one: -len(one.questions)):
        # not those whose questions another one has, of the same model, data set and condition of the tools
        if not any(one.group.label == other.group.label and one.questions <= other.questions for other in figures):
            figures.append(one)
    order: tuple[str, ...] = (*(claim.on.data or get_args(Data)), "other")
    figures.sort(key=lambda one: (-one.interval.n, -(one.group.parameters or 0), order.index(one.group.data), one.runs))

    large = [one for one in figures if (one.group.parameters or LEAST_PARAMETERS) >= LEAST_PARAMETERS]
    able = [one for one in figures if model in one.group.model] if model else large
    deciding = next(iter([one for one in able if not one.group.oracle] or able), None)
    others = [one for one in figures if one is not deciding]
    also = tuple(one if one in able or one in large else replace(one, verdict=TOO_SMALL) for one in others)
    if deciding:
        return Finding(claim, deciding.verdict, deciding.reason, deciding, also)
    if not figures:
        return Finding(claim, "no data", f"needs {needed(claim)}")
    wanted = f"whose name contains {model!r}" if model else f"with {LEAST_PARAMETERS / 1e9:g}B parameters or more"
    ran = ", ".join(dict.fromkeys(one.group.model for one in figures))
    return Finding(claim, TOO_SMALL, f"needs a model {wanted}; {ran} ran it", also=also)


def _figure(claim: Claim, group: RunGroup, groups: Sequence[RunGroup]) -> Figure | None:
    """What the group measures; None where it lacks an architecture, a column, or the questions that count."""
    measure, part = claim.measure, claim.on.part(group)
    if part is None or not _is_meaningful(part, claim):
        return None
    interval = measure.measure(part, groups)
    if interval is None:
        return None
    verdict, reason = claim.rule.judge(interval, claim.number, measure.show)
    caveat = "" if claim.by_construction else _caveat(claim, part, interval, verdict)
    used = [part.architectures[name] for name in measure.architectures()]
    bounds = brackets(interval.low, interval.high, measure.show)
    return Figure(
        interval,
        f"{measure.show(interval.estimate)} {bounds}{measure.suffix}{RARE if interval.rare else ''}",
        "by construction" if claim.by_construction else "undecided" if caveat else verdict,
        "; ".join(filter(None, [reason if verdict == "undecided" else "", caveat])) or reason,
        group,
        runs=part.runs(measure.architectures()),
        questions=frozenset().union(*(own.rows.index.get_level_values("example_id") for own in used)),
        complete=all(own.complete for own in used),
        caveat=caveat,
        left_out=sum(rows_left_out(part, own, measure.column) for own in used),
    )


def _is_meaningful(group: RunGroup, claim: Claim) -> bool:
    """Whether the measure says something about the model that no other run group says.

    An oracle is given the answers: only its costs mean something, also in a replay. A model's replay repeats its run.
    """
    return claim.measure.serves_oracle() if group.oracle else not group.model.startswith(REPLAY)


def _caveat(claim: Claim, part: RunGroup, interval: Interval, verdict: ClaimVerdict) -> str:
    """Why the measure doesn't decide the claim, whatever its interval says; empty where it does."""
    measure = claim.measure
    if interval.rare and verdict != "undecided":
        return f"{of_rare(interval)} (n = {interval.n:,})"
    if measure.name == "difference" and measure.column in ("exact_match", "f1"):
        rows = [part.architectures[name].rows[measure.column] for name in measure.architectures()]
        if not any((each.astype(float) > 0).any() for each in rows):
            return "no answer of either is right, which shows nothing about their difference"
    if measure.name not in ("ratio", "saving") or measure.column not in ("total_tokens", "input_tokens"):
        return ""
    answered = where_answered(measure, part)
    if answered and claim.rule.judge(answered, claim.number, measure.show)[0] != verdict:
        over_all, some = measure.show(interval.estimate), measure.show(answered.estimate)
        return f"{over_all} over all, {some} where both answered (n = {answered.n:,}): loops and limits decide"
    unlike = [each for name in measure.architectures() for each in part.architectures[name].unlike_paper]
    if unlike and claim.rule.needs_number and verdict != "undecided":
        return f"not in the papers' form, which moves this ratio: {', '.join(unlike)}"
    return ""


# Findings as text for a terminal, where a table of the verdicts comes first, as Markdown and as JSON.
#
# Claims are grouped by the data that they are about. Those that none of the runs can test are one line of their group.
# What a figure is of, and the figures of the other runs, are in the JSON, and unfold in the report.


ClaimsFormat = Literal["terminal", "markdown", "json"]
_MARK = "*"
_ORACLE = f"{_MARK} with the oracle, which makes no mistakes: the architecture's cost without the errors of a model."
_BY_CONSTRUCTION = "By construction: the architecture's design decides it, so the figure tests our code, not the claim."
_FIGURES = (
    "Intervals are 95%, and none is adjusted for the number of claims. Figures are over the questions that didn't "
    "fail; those about chains leave out what a limit cut off, which compare counts."
)


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
    groups: dict[str, list[Finding]] = {}  # by the data that they are about
    for finding in findings:
        groups.setdefault(finding.claim.about, []).append(finding)
    of_each = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    notes = [f"{counted(len(findings), 'claim')}: {of_each}. {_FIGURES}"]
    if any(finding.decided and finding.decided.group.oracle for finding in findings):
        notes.append(_ORACLE)
    if any(RARE in ours(finding) for finding in findings):
        notes.append(f"{OF_RARE}.")
    if counts["by construction"]:
        notes.append(_BY_CONSTRUCTION)
    if form == "markdown":
        parts = []
        for about, own in groups.items():
            here, missing = _parted(own, everything)
            parts += [f"## {about}", _markdown_table(here), plain_markdown(missing)]
        return "\n\n".join([*filter(None, parts), *map(plain_markdown, notes)])
    parts = [*notes]
    overview = [
        [finding.claim.id, verdict_shown(finding), finding.claim.claimed, ours(finding)]
        for own in groups.values()
        for finding in own
        if finding.verdict != "no data"
    ]
    if overview:
        parts.append("\n".join(text_table([["claim", "verdict", "claimed", "ours [95%], n"], *overview], left=True)))
    if not details:
        parts.append("What each claim says, which run decided and why, and what to run for the others: --details")
        return "\n\n".join(parts)
    for about, own in groups.items():
        here, missing = _parted(own, everything)
        lines = [line for finding in here for line in _lines(finding)]
        parts.append("\n".join(filter(None, [about.upper(), *lines, missing])))
    return "\n\n".join(parts)


def _parted(findings: Sequence[Finding], everything: bool) -> tuple[list[Finding], str]:
    """The findings to show, and how many claims no run can test."""
    here = [finding for finding in findings if everything or finding.verdict != "no data"]
    untested = [finding.claim for finding in findings if finding not in here]
    if not untested:
        return here, ""
    return here, f"{counted(len(untested), 'claim')} without data here: --all says what to run for each"


def _as_dict(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    texts = {name: getattr(claim, name) for name in ("id", "about", "says", "number", "claimed", "tested", "note")}
    verdict = {"source": list(claim.cited), "verdict": finding.verdict, "reason": finding.reason}
    others = [{"verdict": one.verdict, "reason": one.reason, **_figure_as_dict(one)} for one in finding.also]
    return {**texts, **verdict, **_figure_as_dict(finding.decided), "also": others}


def _figure_as_dict(figure: Figure | None) -> dict[str, Any]:
    bounds = ("estimate", "low", "high", "n", "level")
    of_group, own = ("data", "label", "model", "oracle"), ("measured", "complete", "left_out")
    return {
        **{name: getattr(figure.interval, name) if figure else None for name in bounds},
        **{name: getattr(figure.group, name) if figure else None for name in of_group},
        **{name: getattr(figure, name) if figure else None for name in own},
        "runs": list(figure.runs) if figure else [],
    }


def _lines(finding: Finding) -> Iterator[str]:
    """A finding at a terminal."""
    claim = finding.claim
    yield f"{claim.id}: {claim.says}; {sources(finding)}"
    facts = [
        f"claimed {claim.claimed}" if claim.claimed else "",
        ours(finding, unit=claim.measure.counted),
        run_of(finding),
        _why(finding),
        f"also {also(finding)}" if finding.also and finding.decided else "",
        claim.note,
    ]
    yield f"  {verdict_shown(finding)}: {'; '.join(filter(None, facts))}"


def _markdown_table(findings: Sequence[Finding]) -> str:
    """A line for each claim."""
    rows = [["claim", "source", "claimed", "ours [95%], n", "verdict", "run", "also", "note"]]
    for each in findings:
        why = "; ".join(filter(None, [_why(each), each.claim.note]))
        cells = [each.claim.says, sources(each), each.claim.claimed, ours(each), verdict_shown(each), run_of(each)]
        rows.append([*cells, also(each), why])
    return "\n".join(markdown_table(rows)) if findings else ""


def ours(finding: Finding, unit: str = "") -> str:
    """`2.66 [2.20, 4.34], n = 100`; empty where nothing decided. What holds by construction has no interval."""
    figure = finding.decided
    if figure is None:
        return ""
    measured = figure.measured.partition(" [")[0] if finding.claim.by_construction else figure.measured
    return f"{f'{measured} {unit}'.rstrip()}, n = {figure.interval.n:,}"


def verdict_shown(finding: Finding) -> str:
    """`contradicted: higher than claimed`, with a mark where an oracle decided."""
    figure, number = finding.decided, finding.claim.number
    side = ""
    if figure is not None and number is not None and finding.verdict == "contradicted":
        side = f": {'higher' if figure.interval.estimate > number else 'lower'} than claimed"
    return f"{finding.verdict}{side}{_MARK if figure and figure.group.oracle else ''}"


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
