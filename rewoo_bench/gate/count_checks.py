"""Counts of an architecture against those of a baseline: tokens, calls and replans per question.

Of a deterministic model a mean fails that grew by more than the margin. Of a live model only total tokens can fail:
where the ratio of the means is above 1 with confidence and above the margin. Its other counts warn.
scripts/simulate_gate.py measures how often that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.bootstrap import ratio_by_bootstrap
from rewoo_bench.analysis.stats.paired import Interval
from rewoo_bench.analysis.stats.tests import smallest_growth
from rewoo_bench.gate.baseline import CACHEABLE, CACHED, COUNTS, EVIDENCE, METRICS, ROLES, ArchitectureBaseline
from rewoo_bench.gate.verdict import FALSE_ALARMS, NOTHING_CACHED, Check, Group, GrowthDetail, Status, shown
from rewoo_bench.text.words import counted


@dataclass(frozen=True, slots=True)
class CountChange:
    """Means of a question, before and now."""

    before: float
    now: float

    @property
    def delta(self) -> float:
        return self.now - self.before

    @property
    def share(self) -> float:
        """Growth as a share: 0.02 is 2% more."""
        if self.before == 0:
            return 0.0 if self.now == 0 else float("inf")
        return self.now / self.before - 1


@dataclass(frozen=True, slots=True)
class Growth:
    """The means of every count, and the questions that grew most."""

    n: int
    """Questions compared."""
    rows: int
    """Questions times trials compared."""
    failed: int
    """Rows left out because the infrastructure failed one of the pair."""
    changes: dict[str, CountChange]
    grown: tuple[GrowthDetail, ...]

    @property
    def metrics(self) -> list[str]:
        """The counts that a gate checks, where both sides have them."""
        return [name for name in METRICS if name in self.changes]

    def delta(self, name: str) -> float:
        return self.changes[name].delta if name in self.changes else 0.0

    def cause(self) -> str | None:
        """Why the tokens grew, in words; None where they didn't."""
        grew = self.delta("total_tokens")
        if grew <= 0:
            return None
        role = max(ROLES, key=lambda role: self.delta(ROLES[role]))
        names = {"replans": "more replans", "llm_calls": "more model calls", "tool_calls": "more tool calls"}
        more = {name: self.delta(name) for name in names if self.delta(name) > 0}
        if "replans" in more and more.get("llm_calls", 0) <= more["replans"]:
            more.pop("llm_calls", None)  # a replan is a model call
        reasons = [f"{names[name]} (+{delta:.2f} a question)" for name, delta in more.items()]
        evidence = self.delta(EVIDENCE)
        if evidence > 0 and 2 * evidence >= grew:
            word = "more" if "tool_calls" in more else "longer"
            reasons.append(f"{word} evidence (+{evidence:,.1f} tokens a question)")
        part = max(("input", "output"), key=lambda part: self.delta(f"{part}_tokens"))
        longer = self.delta(f"{part}_tokens")
        if not reasons and longer > 0:
            what = "longer prompts" if part == "input" else "longer answers"
            reasons = [f"{what} (+{longer:,.1f} {part} tokens)"]
        most = f"the {role}'s tokens grew most, by {self.delta(ROLES[role]):,.1f} a question"
        return f"{most}: {', '.join(reasons)}" if reasons else most


def growth_of(before: pd.DataFrame, now: pd.DataFrame) -> Growth:
    """The pairs of two tables of counts with the same keys; pairs that failed on a side are left out."""
    old, new = scored_pairs(before, now)
    names = [name for name in COUNTS if name in old and name in new]
    changes = (
        {name: CountChange(float(old[name].mean()), float(new[name].mean())) for name in names} if len(old) else {}
    )
    questions = int(old.index.get_level_values("example_id").nunique())
    return Growth(questions, len(old), len(before) - len(old), changes, _grown(old, new))


def scored_pairs(before: pd.DataFrame, now: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables without the pairs that the infrastructure failed on a side."""
    now = now.reindex(before.index)
    scored = before["exact_match"].notna() & now["exact_match"].notna()
    return before[scored], now[scored]


def _grown(old: pd.DataFrame, new: pd.DataFrame) -> tuple[GrowthDetail, ...]:
    """The questions with the largest growth of tokens; equal ones by id."""
    grown = []
    for key, before, now in zip(old.index, old.to_dict("records"), new.to_dict("records"), strict=True):
        by_role = {role: (now.get(name) or 0) - (before.get(name) or 0) for role, name in ROLES.items()}
        most = max(by_role, key=by_role.__getitem__)
        grown.append(
            GrowthDetail(str(key[0]), int(key[1]), int(before["total_tokens"]), int(now["total_tokens"]), most)
        )
    grown.sort(key=lambda question: (question.before - question.now, question.example_id, question.trial))
    return tuple(question for question in grown[:5] if question.now > question.before)


EXACT_MARGIN, LIVE_MARGIN = 0.02, 0.05
ROUNDING = 1e-9
_TESTED = "total_tokens"


def exact_counts(
    group: Group, growth: Growth, old: pd.DataFrame, new: pd.DataFrame, margin: float, cause: str | None
) -> Iterator[Check]:
    """Each mean as it is, and the tokens of each question. What grew beyond the margin fails; the first has the cause.

    A question may grow by the margin of its own tokens or of the mean, whichever is more: so a sentence more in a
    prompt, which is a large part of a short question, is judged by the mean.
    """
    if growth.changes[_TESTED].share <= margin + ROUNDING:  # else the mean fails, with the same questions
        old, new = scored_pairs(old, new)
        before, now = old[_TESTED].astype(float), new[_TESTED].astype(float)
        beyond = now - before > margin * before.clip(lower=before.mean()) * (1 + ROUNDING)
        if beyond.any():
            text = (
                f"{_TESTED} of {beyond.sum():,} of {counted(len(before), 'row')} grew by more than {percent(margin)}, "
            )
            text += f"and the mean hides it: {described(growth, _TESTED)}"
            name = f"{_TESTED} of each question"
            yield Check("growth", "fail", group, name, text, n=growth.n, grown=growth.grown)
    for metric in growth.metrics:
        text, change = described(growth, metric), growth.changes[metric]
        if change.share <= margin + ROUNDING:
            hint = "; less than in the baseline, which can be updated" if change.share < 0 else ""
            yield _growth(group, growth, metric, margin, "pass", text + hint)
            continue
        text += f", {percent(margin)} is allowed" + (f"; {cause}" if cause else "")
        cause = None
        yield _growth(group, growth, metric, margin, "fail", text)


def live_counts(
    group: Group,
    growth: Growth,
    old: pd.DataFrame,
    new: pd.DataFrame,
    margin: float,
    tests: int,
    cause: str | None,
    *,
    strict: bool,
) -> Iterator[Check]:
    """Each ratio of means; fails where total tokens grew with confidence and beyond the margin."""
    old, new = scored_pairs(old, new)
    ids = question_ids(old)
    failed = False
    for metric in growth.metrics:
        text, tested = described(growth, metric), metric == _TESTED
        status: Status = "pass"
        ratio = ratio_beyond(old[metric].to_numpy(float), new[metric].to_numpy(float), ids, margin, tests)
        if ratio is not None:
            text += f", ratio {ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] at {ratio.level:.2%}"
        if ratio is not None and ratio.low <= 1:
            text += ", which may be chance"
        elif ratio is not None:
            status = "fail" if tested else "warn"
            text += f": above 1, and beyond the margin of {percent(margin)}"
            text += f"; {cause}" if cause and tested else ""
        failed = failed or status == "fail"
        yield _growth(group, growth, metric, margin, status, text)
    if not failed:
        smallest = smallest_growth(old[_TESTED], new[_TESTED], ids, error=FALSE_ALARMS / tests)
        name = f"{_TESTED} power"
        caught = f"growth of {percent(round(smallest, 3))} or more would have been caught, 4 times in 5"
        if smallest <= margin:
            yield Check("growth", "pass", group, name, f"{_TESTED}: {caught}", n=growth.n)
            return
        caught = "no growth would have been caught for sure" if math.isinf(smallest) else caught
        text = f"can't tell whether {_TESTED} grew by {percent(margin)}: on {counted(growth.n, 'question')} {caught}"
        yield Check("can't tell", "fail" if strict else "warn", group, name, text, n=growth.n)


def cache_check(
    group: Group,
    growth: Growth,
    old: pd.DataFrame,
    new: pd.DataFrame,
    margin: float,
    tests: int,
    prefixes: Sequence[Check],
    prices: str,
    *,
    exact: bool,
) -> Iterator[Check]:
    """Input tokens read from the prefix cache, and those that one could hold; none for a baseline that lacks them.

    Less of a prompt makes both kinds of input tokens fewer, and more evidence adds some that aren't cached. A cache
    that breaks moves tokens from one kind to the other: that fails where they are more than the margin of all input
    tokens. A provider's cache hits more or less from run to run, so a live model's fails where it reads less than half,
    with confidence, and else warns. The checks of shared prefixes (`prefix_checks`) have the cause, where it isn't
    that a question's prompts share less with its earlier ones.
    """
    shorter = [check.text for check in prefixes if check.status == "fail"]
    same = ["all questions share as long a prefix as before: the cache, or what follows that prefix, is another"]
    of_cache = ("aren't cached", NOTHING_CACHED, same if prefixes else [])
    of_question = "a question's prompts share less with its earlier ones: what changes from call to call belongs behind"
    of_prompts = ("can't be cached", "no prompt begins as an earlier one", [f"{of_question} the trace{prices}"])
    for metric, (arent, nothing, otherwise) in {CACHED: of_cache, CACHEABLE: of_prompts}.items():
        if metric not in growth.changes or not growth.changes[metric].before:
            continue
        cached, inputs = growth.changes[metric], growth.changes["input_tokens"]
        moved = min(-cached.delta, inputs.delta - cached.delta)
        text = described(growth, metric)
        status: Status = "pass"
        if moved > margin * inputs.before * (1 + ROUNDING):
            status = "fail" if exact or not cached.now or _halved(metric, old, new, tests) else "warn"
            before, now = inputs.before - cached.before, inputs.now - cached.now
            text += f", and {shown(metric, now)} input tokens a question {arent} instead of {shown(metric, before)}"
            text += "" if cached.now else f"; {nothing}"
            text += "".join(f"; {cause}" for cause in shorter or otherwise)
        limit = cached.before - margin * inputs.before
        yield Check("prefix cache", status, group, metric, text, cached.now, limit, cached.before, growth.n)


def prices_of(before: ArchitectureBaseline, now: ArchitectureBaseline) -> str:
    """`; up to 1.98 times the price under OpenAI's rule: …`; empty where no price is known on both sides."""
    names = sorted(before.usd_per_1000.keys() & now.usd_per_1000.keys())
    factors = {name: now.usd_per_1000[name] / before.usd_per_1000[name] for name in names}
    return "".join(f"; up to {factor:.2f} times the price under {name}" for name, factor in factors.items())


def prefix_checks(
    group: Group,
    before: ArchitectureBaseline,
    now: ArchitectureBaseline,
    margin: float,
    prices: str,
    *,
    changed: bool,
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
            text += f" ({old.tokens:,} -> {new.tokens:,} tokens){prices}"
        status: Status = "fail" if is_shorter else "pass"
        sizes = (float(new.tokens), (1 - margin) * old.tokens, float(old.tokens))
        yield Check("prefix cache", status, group, f"shared_prefix_tokens {role}", text, *sizes)


def _halved(metric: str, old: pd.DataFrame, new: pd.DataFrame, tests: int) -> bool:
    """Whether cached tokens are fewer than before with confidence, and less than half."""
    old, new = scored_pairs(old, new)
    ratio = ratio_beyond(new[metric].to_numpy(float), old[metric].to_numpy(float), question_ids(old), 1.0, tests)
    return ratio is not None and ratio.low > 1


def ratio_beyond(
    before: NDArray[Any], now: NDArray[Any], ids: NDArray[Any], margin: float, tests: int
) -> Interval | None:
    """mean(now) / mean(before) where it is beyond the margin; a live gate fails where `low` is above 1."""
    if now.sum() <= before.sum() * (1 + margin) * (1 + ROUNDING):
        return None
    return ratio_by_bootstrap(before, now, clusters=ids, level=1 - 2 * FALSE_ALARMS / tests)


def question_ids(rows: pd.DataFrame) -> NDArray[Any]:
    """The question of each row of a table by question and trial."""
    return rows.index.get_level_values("example_id").to_numpy(dtype=str)


def described(growth: Growth, metric: str) -> str:
    """`total_tokens +23.0 a question, 1,283.0 -> 1,306.0 (+1.8%)`."""
    change = growth.changes[metric]
    share = "from none" if change.share == float("inf") else f"{change.share:+,.1%}"
    by = f"{'-' if change.delta < 0 else '+'}{shown(metric, abs(change.delta))}"
    return f"{metric} {by} a question, {shown(metric, change.before)} -> {shown(metric, change.now)} ({share})"


def percent(share: float) -> str:
    """`2%`."""
    return f"{100 * share:.4g}%"


def _growth(group: Group, growth: Growth, metric: str, margin: float, status: Status, text: str) -> Check:
    change = growth.changes[metric]
    grown = growth.grown if status != "pass" else ()
    limit = change.before * (1 + margin)
    return Check("growth", status, group, metric, text, change.now, limit, change.before, growth.n, grown)
