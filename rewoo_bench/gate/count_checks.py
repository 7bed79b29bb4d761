"""Counts of an architecture against those of a baseline: tokens, calls and replans per question.

Of a deterministic model a mean fails that grew by more than the margin. Of a live model only total tokens can fail:
where the ratio of the means is above 1 with confidence and above the margin. Its other counts warn.
results/gate.md says how often that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.bootstrap import ratio_by_bootstrap
from rewoo_bench.analysis.stats.paired import Floats, Interval
from rewoo_bench.analysis.stats.tests import smallest_growth
from rewoo_bench.gate.baseline import (
    CACHEABLE,
    CACHED,
    COMPARED_COUNTS,
    EVIDENCE,
    ROLES,
    ArchitectureBaseline,
    BaselineLine,
    column_of,
    counted_lines,
)
from rewoo_bench.gate.verdict import FALSE_ALARMS, NOTHING_CACHED, Check, Group, GrowthDetail, Status, amount
from rewoo_bench.runs.rows import averaged, mean_over_questions
from rewoo_bench.text.words import counted

EXACT_MARGIN, LIVE_MARGIN = 0.02, 0.05
ROUNDING = 1e-9
_TESTED = "total_tokens"


class CountChange(NamedTuple):
    """Means over questions, before and now."""

    before: float
    now: float

    @property
    def delta(self) -> float:
        return self.now - self.before

    @property
    def share(self) -> float:
        """Growth as a share: 0.02 is 2% more."""
        if self.before == 0:
            return 0.0 if self.now == 0 else math.inf
        return self.now / self.before - 1


@dataclass(frozen=True)
class Growth:
    """An architecture's lines on both sides, of the same questions and trials in the same order."""

    group: Group
    old: Sequence[BaselineLine]
    new: Sequence[BaselineLine]
    failed: int
    """Rows left out because the infrastructure failed one of the pair."""

    @cached_property
    def ids(self) -> NDArray[np.str_]:
        """The question of each row."""
        return np.array([line.example_id for line in self.old], dtype=str)

    @cached_property
    def n(self) -> int:
        """Questions compared."""
        return len(set(self.ids))

    def known(self, name: str) -> tuple[Floats, Floats, NDArray[np.str_]]:
        """A count before and now and the question of each row, of the rows of which both sides have it."""
        before, now = column_of(self.old, name), column_of(self.new, name)
        there = ~np.isnan(before + now)
        return before[there], now[there], self.ids[there]

    @cached_property
    def changes(self) -> dict[str, CountChange]:
        """Of each count that both sides have; none where no row is left."""
        found = {}
        for name in (*COMPARED_COUNTS, *ROLES.values(), EVIDENCE, CACHED, CACHEABLE):
            before, now, ids = self.known(name)
            if len(ids):
                found[name] = CountChange(mean_over_questions(before, ids), mean_over_questions(now, ids))
        return found

    @cached_property
    def grown(self) -> tuple[GrowthDetail, ...]:
        """The five questions with the largest growth of tokens; equal ones by id."""
        grown = []
        for before, now in zip(self.old, self.new, strict=True):
            by_role = {role: (getattr(now, name) or 0) - (getattr(before, name) or 0) for role, name in ROLES.items()}
            role = max(by_role, key=by_role.__getitem__)
            tokens = (before.total_tokens or 0, now.total_tokens or 0)
            grown.append(GrowthDetail(before.example_id, before.trial, *tokens, role))
        grown.sort(key=lambda question: (question.before - question.now, question.example_id, question.trial))
        return tuple(question for question in grown[:5] if question.now > question.before)

    def delta(self, name: str) -> float:
        return self.changes[name].delta if name in self.changes else 0.0

    def cause(self) -> str | None:
        """Why the tokens grew, in words; None where they didn't."""
        grew = self.delta(_TESTED)
        if grew <= 0:
            return None
        role = max(ROLES, key=lambda role: self.delta(ROLES[role]))
        counts = {"replans": "replans", "llm_calls": "model calls", "tool_calls": "tool calls"}
        reasons = [f"more {what} (+{more:.2f} a question)" for name, what in counts.items()
                   if (more := self.delta(name)) > 0]  # fmt: skip
        if (evidence := self.delta(EVIDENCE)) > 0:
            reasons.append(f"more evidence (+{evidence:,.1f} tokens a question)")
        part = max(("input", "output"), key=lambda part: self.delta(f"{part}_tokens"))
        if not reasons and (longer := self.delta(f"{part}_tokens")) > 0:
            reasons = [f"longer {'prompts' if part == 'input' else 'answers'} (+{longer:,.1f} {part} tokens)"]
        most = f"the {role}'s tokens grew most, by {self.delta(ROLES[role]):,.1f} a question"
        return f"{most}: {', '.join(reasons)}" if reasons else most

    def described(self, metric: str) -> str:
        """`total_tokens +23.0 a question, 1,283.0 -> 1,306.0 (+1.8%)`."""
        change = self.changes[metric]
        share = "from none" if change.share == math.inf else f"{change.share:+,.1%}"
        by = f"{'-' if change.delta < 0 else '+'}{amount(metric, abs(change.delta))}"
        return f"{metric} {by} a question, {amount(metric, change.before)} -> {amount(metric, change.now)} ({share})"

    def check(self, metric: str, margin: float, status: Status, text: str) -> Check:
        change, grown = self.changes[metric], self.grown if status != "pass" else ()
        limit = change.before * (1 + margin)
        return Check("growth", status, self.group, metric, text, change.now, limit, change.before, self.n, grown)


def growth_of(group: Group, before: Sequence[BaselineLine], now: Sequence[BaselineLine]) -> Growth:
    """The pairs of the lines of both sides, which have the same questions and trials."""
    of_key = {(line.example_id, line.trial): line for line in now}
    now = [of_key[line.example_id, line.trial] for line in before]
    both = [all(each) for each in zip(counted_lines(before), counted_lines(now), strict=True)]
    old, new = ([line for line, kept in zip(side, both, strict=True) if kept] for side in (before, now))
    return Growth(group, old, new, len(before) - len(old))


def exact_counts(growth: Growth, margin: float, cause: str | None) -> Iterator[Check]:
    """Each mean as it is, and the tokens of each question. What grew beyond the margin fails; the first has the cause.

    A question may grow by the margin of its own tokens or of the mean, whichever is more: so a sentence more in a
    prompt, which is a large part of a short question, is judged by the mean.
    """
    if growth.changes[_TESTED].share <= margin + ROUNDING:  # else the mean fails, with the same questions
        before, now, _ = growth.known(_TESTED)
        beyond = now - before > margin * np.maximum(before, growth.changes[_TESTED].before) * (1 + ROUNDING)
        if beyond.any():
            of = f"{beyond.sum():,} of {counted(len(before), 'row')}"
            text = f"{_TESTED} of {of} grew by more than {percent(margin)}, and the mean hides it: "
            text += growth.described(_TESTED)
            name = f"{_TESTED} of each question"
            yield Check("growth", "fail", growth.group, name, text, n=growth.n, grown=growth.grown)
    for metric in (name for name in COMPARED_COUNTS if name in growth.changes):
        text, share = growth.described(metric), growth.changes[metric].share
        if share <= margin + ROUNDING:
            text += "; less than in the baseline, which can be updated" if share < 0 else ""
            yield growth.check(metric, margin, "pass", text)
        else:
            text += f", {percent(margin)} is allowed" + (f"; {cause}" if cause else "")
            cause = None
            yield growth.check(metric, margin, "fail", text)


def live_counts(growth: Growth, margin: float, tests: int, cause: str | None, *, strict: bool) -> Iterator[Check]:
    """Each ratio of means; fails where total tokens grew with confidence and beyond the margin."""
    failed = False
    for metric in (name for name in COMPARED_COUNTS if name in growth.changes):
        text, tested = growth.described(metric), metric == _TESTED
        status: Status = "pass"
        ratio = ratio_beyond(*growth.known(metric), margin, tests)
        if ratio is not None:
            text += f", ratio {ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] at {ratio.level:.2%}"
            if ratio.low <= 1:
                text += ", which may be chance"
            else:
                status, failed = "fail" if tested else "warn", failed or tested
                text += f": above 1, and beyond the margin of {percent(margin)}"
                text += f"; {cause}" if cause and tested else ""
        yield growth.check(metric, margin, status, text)
    if failed:
        return
    name, of = f"{_TESTED} power", counted(growth.n, "question")
    smallest = smallest_growth(*growth.known(_TESTED), error=FALSE_ALARMS / tests)
    caught = f"growth of {percent(round(smallest, 3))} or more would have been caught, 4 times in 5"
    if smallest <= margin:
        yield Check("growth", "pass", growth.group, name, f"{_TESTED}: {caught}", n=growth.n)
        return
    caught = "no growth would have been caught for sure" if math.isinf(smallest) else caught
    text = f"can't tell whether {_TESTED} grew by {percent(margin)}: on {of} {caught}"
    yield Check("can't tell", "fail" if strict else "warn", growth.group, name, text, n=growth.n)


def cache_check(growth: Growth, margin: float, tests: int, *, exact: bool) -> Iterator[Check]:
    """Input tokens read from the prefix cache, and those that one could hold; none for a baseline that lacks them.

    Less of a prompt makes both kinds of input tokens fewer, and more evidence adds some that aren't cached. A cache
    that breaks moves tokens from one kind to the other: that fails where they are more than the margin of all input
    tokens. A provider's cache hits more or less from run to run, so a live model's fails where it reads less than half,
    with confidence, and else warns.
    """
    reasons = {
        CACHED: ("aren't cached", NOTHING_CACHED),
        CACHEABLE: ("can't be cached", "no prompt begins as an earlier one"),
    }
    for metric, (arent, nothing) in reasons.items():
        if metric not in growth.changes or not growth.changes[metric].before:
            continue
        cached, inputs = growth.changes[metric], growth.changes["input_tokens"]
        text = growth.described(metric)
        status: Status = "pass"
        if min(-cached.delta, inputs.delta - cached.delta) > margin * inputs.before * (1 + ROUNDING):
            status = "fail"
            if not exact and cached.now:
                old, new, ids = growth.known(metric)
                halved = ratio_beyond(new, old, ids, 1.0, tests)
                status = "fail" if halved and halved.low > 1 else "warn"
            before, now = inputs.before - cached.before, inputs.now - cached.now
            text += f", and {amount(metric, now)} input tokens a question {arent} instead of {amount(metric, before)}"
            text += "" if cached.now else f"; {nothing}"
        sizes = (cached.now, cached.before - margin * inputs.before, cached.before, growth.n)
        yield Check("prefix cache", status, growth.group, metric, text, *sizes, least=True)


def prefix_checks(
    group: Group, before: ArchitectureBaseline, now: ArchitectureBaseline, margin: float, *, changed: bool
) -> Iterator[Check]:
    """Where the prompts of different questions begin to differ, by role: a prefix cache holds nothing behind that.

    A prefix that ends earlier fails, unless a text of the prompts was `changed` and it still ends where the question
    begins: then it is a shorter prompt.
    """
    for role, old in before.shared_prefixes.items():
        if (new := now.shared_prefixes.get(role)) is None:
            continue
        missing = old.tokens - new.tokens
        is_shorter = missing > margin * old.tokens and not (changed and new.ends_in in ("question", "trace"))
        text = f"the shared prefix of the {role}'s prompts ends in the {old.ends_in}, after {old.tokens:,} tokens"
        if is_shorter:
            text = f"the shared prefix of the {role}'s prompts ends {missing:,} tokens earlier, in the {new.ends_in}"
            text += f" ({old.tokens:,} -> {new.tokens:,} tokens)"
        status: Status = "fail" if is_shorter else "pass"
        sizes = (float(new.tokens), (1 - margin) * old.tokens, float(old.tokens))
        yield Check("prefix cache", status, group, f"shared_prefix_tokens {role}", text, *sizes, least=True)


def ratio_beyond(
    before: NDArray[Any], now: NDArray[Any], ids: NDArray[Any], margin: float, tests: int
) -> Interval | None:
    """mean(now) / mean(before) where it is beyond the margin; a live gate fails where `low` is above 1."""
    was, is_now = averaged(ids, before, now)
    if is_now.sum() <= was.sum() * (1 + margin) * (1 + ROUNDING):
        return None
    return ratio_by_bootstrap(before, now, clusters=ids, level=1 - 2 * FALSE_ALARMS / tests)


def percent(share: float) -> str:
    """`2%`."""
    return f"{100 * share:.4g}%"
