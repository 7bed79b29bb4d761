"""A run compared with a baseline: whether it can be, each architecture's counts (count_checks.py) and its answers.

A deterministic model's counts and answers are compared as they are. Those of a live model vary from run to run, so
they are tested with a strict level. Exact match and the share answered fail where they fell by more than
`ACCURACY_MARGIN` and an exact paired test (McNemar's) says that this is no chance, on any number of questions. The
tests of all architectures together raise a false alarm less than once in 1 / `FALSE_ALARMS` comparisons of a system
with itself. A small fall shows only on many questions, so below `ENOUGH_QUESTIONS` one that may be chance is a warning;
above, the interval of the difference decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import difference_of_proportions
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.errors import UsageError
from rewoo_bench.gate.baseline import Baseline
from rewoo_bench.gate.count_checks import (
    EXACT_MARGIN,
    LIVE_MARGIN,
    ROUNDING,
    Growth,
    cache_check,
    exact_counts,
    growth_of,
    live_counts,
    prefix_checks,
)
from rewoo_bench.gate.verdict import ENOUGH_QUESTIONS, FALSE_ALARMS, Check, Group, Status, too_many_failed
from rewoo_bench.runs.manifest import changed_values
from rewoo_bench.text.argument_checks import abridged, check_switches
from rewoo_bench.text.words import counted

ACCURACY_MARGIN = 0.02
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class ComparisonTerms:
    """How a run is compared; `max_increase` None is 2% for exact counts and 5% for a live model."""

    mode: Literal["exact", "live"] | None = None
    max_increase: float | None = None
    accept_prompts: bool = False
    strict: bool = False
    """Whether a live comparison fails that couldn't have caught a growth of the margin."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for a value of another type, or out of its range."""
        if self.mode not in ("exact", "live", None):
            raise UsageError(f"mode: expected 'exact', 'live' or None, got {abridged(self.mode)}")
        is_number = isinstance(self.max_increase, Real) and not isinstance(self.max_increase, bool)
        if self.max_increase is not None and not (is_number and 0 <= self.max_increase < math.inf):
            raise UsageError(f"max_increase: expected a share such as 0.02, got {abridged(self.max_increase)}")
        check_switches(accept_prompts=self.accept_prompts, strict=self.strict)


def check_against(before: Baseline, now: Baseline, terms: ComparisonTerms, *, oracle: bool) -> Iterator[Check]:
    """Every check of a run against its baseline. `oracle`: an oracle answered the run, or a replay of one."""
    names = sorted({*before.questions, *now.questions})
    mismatches = {name: list(_incomparable_rows(before, now, name)) for name in names}
    shared = [each for each in mismatches[names[0]] if all(each in others for others in mismatches.values())]
    shared += _incomparable_runs(before, now)
    everything = Group("every architecture", now.dataset.name, now.model)
    groups = [(everything, shared)]
    groups += [(now.group(name), [each for each in mismatches[name] if each not in shared]) for name in names]
    for group, found in groups:
        for what, text in found:
            yield Check("not comparable", "fail", group, what, f"not comparable ({what}): {text}")
        if not shared and not found and group is not everything:
            yield from _architecture(before, now, group, terms, tests=len(names), oracle=oracle)


# Why not to compare: the kind of difference, and a sentence. Another prompt, setting or tool is what a gate is for: it
# is named (`_changes`), and the counts are still compared.
_Mismatch = tuple[str, str]


def _incomparable_runs(before: Baseline, now: Baseline) -> Iterator[_Mismatch]:
    """Differences that make every count incomparable, a line of each kind."""
    old, new = (side.dataset.model_dump(exclude={"ids_hash"}) for side in (before, now))
    dataset = [*changed_values(old, new, "dataset"), *changed_values(before.corpus, now.corpus, "corpus")]
    model = [*changed_values(before.models, now.models, "models")]
    model += changed_values(before.options, now.options, "options")
    kinds: dict[str, Iterable[str]] = {"data set": dataset, "model": model}
    if before.tokenizer and now.tokenizer:
        kinds["tokenizer"] = changed_values(before.tokenizer, now.tokenizer, "tokenizer")
    if before.prices is not None and now.prices is not None:
        kinds["prices"] = changed_values(before.prices, now.prices, "prices")
    for what, texts in kinds.items():
        every = list(texts)
        # the names that differ imply the rest
        named = [text for text in every if ".name was " in text][:_MOST_NAMED] or every[:_MOST_NAMED]
        more = f"; and {counted(len(every) - len(named), 'more difference')}" if len(every) > len(named) else ""
        if every:
            yield what, "; ".join(named) + more


def _incomparable_rows(before: Baseline, now: Baseline, architecture: str) -> Iterator[_Mismatch]:
    """Differences that make the counts of one architecture incomparable."""
    if architecture not in before.questions:
        yield "architecture", "the baseline has no rows of this architecture; update it"
        return
    if architecture not in now.questions:
        yield "architecture", "the baseline has this architecture, and the run has no rows of it"
        return
    # pairs are made by id and trial: each has to belong to the same question on both sides
    old, new = (
        {(line.example_id, line.trial): line.text for line in side.questions[architecture]} for side in (before, now)
    )
    gone, added = [key for key in old if key not in new], [key for key in new if key not in old]
    others = [key for key in old if key in new and old[key] != new[key]]
    if gone or added:
        missing = f"{counted(len(gone), 'question')} gone{_named(gone)}"
        yield "ids", f"{missing}, {counted(len(added), 'question')} new{_named(added)}"
    elif others:
        how = f"under the same id, with another text or answer{_named(others)}"
        yield "ids", f"{counted(len(others), 'question')} {how}"
    elif before.dataset.ids_hash != now.dataset.ids_hash:
        yield "ids", "the same ids in another order"
    was, used = (side.architectures[architecture].usage_sources for side in (before, now))
    yield from (("tokenizer", text) for text in changed_values(was, used, "usage_source"))


def _named(keys: Sequence[tuple[str, int]]) -> str:
    names = [f"{name!r}" + (f" (trial {trial})" if trial else "") for name, trial in keys[:_MOST_NAMED]]
    more = [f"{len(keys) - _MOST_NAMED} more"] if len(keys) > _MOST_NAMED else []
    return f" ({', '.join(names + more)})" if names else ""


def _architecture(
    before: Baseline, now: Baseline, group: Group, terms: ComparisonTerms, *, tests: int, oracle: bool
) -> Iterator[Check]:
    """The checks of one of `tests` architectures, which can be compared."""
    name = group.architecture
    growth = growth_of(group, before.rows(name), now.rows(name))
    exact = terms.mode == "exact" or (terms.mode is None and before.deterministic and now.deterministic)
    changed = _changes(before, now, name)
    cause = growth.cause()
    if changed:
        effect = growth.described("total_tokens") if growth.n else "no question was answered on both sides"
        text = f"{', '.join(changed)}; {effect}" + (f"; {cause}" if cause else "")
        if terms.accept_prompts:
            yield Check("changed", "pass", group, "prompts", text, n=growth.n)
        else:
            cause = None  # this failure has it
            advice = "--accept-prompts lets the counts alone decide, `baseline update` takes them over"
            yield Check("changed", "fail", group, "prompts", f"{text}. {advice}", n=growth.n, grown=growth.grown)
    if growth.failed or not growth.n:
        # Failed questions are in no mean. A deterministic model has none; of a live one too many fail the gate.
        left = len(growth.old)
        of = f"{growth.failed:,} of {counted(left + growth.failed, 'row')}"
        text = f"{of} failed in the infrastructure in one of the two runs, and the other {left:,} are compared"
        fails = exact or too_many_failed(growth.failed, left + growth.failed)
        yield Check("failed questions", "fail" if fails else "warn", group, "failed questions", text, n=growth.n)

    sides = (before.architectures[name], now.architectures[name])
    was, usd = (side.usd_per_1000 for side in sides)
    factors = {price: usd[price] / was[price] for price in sorted(was.keys() & usd.keys())}
    prices = "".join(f"; up to {factor:.2f} times the price under {price}" for price, factor in factors.items())
    prefixes = list(prefix_checks(group, *sides, EXACT_MARGIN, prices, changed=bool(changed)))
    yield from prefixes
    if not growth.n:
        return
    default = EXACT_MARGIN if exact else LIVE_MARGIN
    margin = default if terms.max_increase is None else terms.max_increase
    if not growth.changes["total_tokens"].now:  # that isn't cheap: its provider reported none
        text = "no tokens were counted, so there is nothing to compare"
        yield Check("growth", "fail", group, "total_tokens counted", text, 0.0, n=growth.n)
    if exact:
        yield from exact_counts(growth, margin, cause)
    else:
        yield from live_counts(growth, margin, tests, cause, strict=terms.strict)
    yield from cache_check(growth, margin, tests, prefixes, prices, exact=exact)
    yield from _answers(growth, tests, exact=exact, oracle=oracle)


def _changes(before: Baseline, now: Baseline, architecture: str) -> list[str]:
    """Deliberate changes of an architecture: texts by name, then settings, tools and runner."""
    old, new = (side.architectures[architecture].manifest.model_dump() for side in (before, now))

    def others(key: str) -> list[str]:
        """Names with another digest than before; none where a side has no digests."""
        was, is_now = old[key], new[key]
        names = [] if was is None or is_now is None else sorted({**was, **is_now})
        return [name for name in names if was.get(name) != is_now.get(name)]

    found = [f"{name} changed" for name in others("texts_sha256")]
    if not found and old["prompts_sha256"] != new["prompts_sha256"]:
        found = ["its prompts changed"]
    found += [f"prompt of the tool {name!r} changed" for name in others("tool_prompts_sha256")]
    for part in ("runner", "settings", "tools", "parents", "router_file"):
        found += changed_values(old.get(part), new.get(part), part)
    return found


def _answers(growth: Growth, tests: int, *, exact: bool, oracle: bool) -> Iterator[Check]:
    """Exact match where answers were scored, the share answered and, of a deterministic model, that of sound plans.

    Of a deterministic model every fall fails, of an oracle, too: its exact match is no measure of an architecture, but
    where it falls, the architecture or its tools lost answers. A live model's fails where that is no chance. A run
    that answers nothing is cheap, whatever its baseline did.
    """
    scored = not (growth.old["exact_match"].isna().any() or growth.new["exact_match"].isna().any())
    for name in (*["exact_match"] * scored, "answered", *["sound_plans"] * exact):
        before, now = _good_rows(name, growth.old), _good_rows(name, growth.new)
        if name == "answered" and not now.any():
            yield Check("accuracy", "fail", growth.group, name, "no question was answered", 0.0, n=growth.n)
            continue
        was, measured = float(before.mean()), float(now.mean())
        status: Status = "pass"
        reason = ""
        if exact and measured < was - ROUNDING:
            status, reason = "fail", "; the same questions gave the same answers before"
        elif not exact and name == "exact_match" and oracle:
            reason = "; an oracle's means nothing"
        elif not exact:
            status, reason = live_fall(before, now, growth.ids, tests)
        text, limit = f"{name} {was:.3f} -> {measured:.3f}{reason}", was - (0 if exact else ACCURACY_MARGIN)
        yield Check("accuracy", status, growth.group, name, text, measured, limit, was, growth.n, oracle=oracle)


def _good_rows(name: str, rows: pd.DataFrame) -> NDArray[Any]:
    """1 where a row is right, answered, or its plan or turn could be read and run as written."""
    if name == "exact_match":
        return rows["exact_match"].to_numpy(float)
    if name == "answered":
        return (rows["stop_reason"] == "answered").to_numpy(float)
    sound = ~rows["stop_reason"].isin(["invalid_plan", "unparsable"])
    if "replans" in rows:
        sound &= ~(rows["broken_plans"].astype(float) > rows["replans"].astype(float))
    return sound.to_numpy(float)


def live_fall(before: NDArray[Any], now: NDArray[Any], ids: NDArray[Any], tests: int) -> tuple[Status, str]:
    """Whether shares of rows fell, with the reason."""
    if now.mean() >= before.mean() - ACCURACY_MARGIN:
        return "pass", ""
    n, test = len(set(ids)), mcnemar_exact(before, now, ids)
    # p is two-sided, so this is FALSE_ALARMS for the two shares of all architectures.
    if test.p <= FALSE_ALARMS / tests:
        rows = f"{test.only_a:,} of {len(before):,} rows only before and {test.only_b:,} only now"
        return "fail", f": {rows}, p {'< 0.0001' if test.p < 1e-4 else f'= {test.p:.4f}'} (exact McNemar)"
    if n < ENOUGH_QUESTIONS:
        return "warn", f"; may be chance on {counted(n, 'question')}, {ENOUGH_QUESTIONS} are enough to tell"
    difference = difference_of_proportions(before, now, clusters=ids, level=1 - 2 * FALSE_ALARMS / tests)
    bounds = f"[{difference.low:+.3f}, {difference.high:+.3f}] at {difference.level:.2%}"
    return "fail" if difference.high < 0 else "pass", f", difference {difference.estimate:+.3f} {bounds}"
