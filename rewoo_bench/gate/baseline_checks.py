"""A run compared with a baseline: whether it can be, each architecture's counts (count_checks.py) and its answers
(answer_checks.py).

A deterministic model's counts and answers are compared as they are. Those of a live model vary from run to run, so
they are tested with a strict level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from rewoo_bench.argument_checks import check_switches, shown
from rewoo_bench.errors import UsageError
from rewoo_bench.gate.answer_checks import exact_answers, live_answers
from rewoo_bench.gate.baseline import Baseline
from rewoo_bench.gate.count_checks import (
    EXACT_MARGIN,
    LIVE_MARGIN,
    cache_check,
    described,
    exact_counts,
    live_counts,
    prefix_checks,
    prices_of,
)
from rewoo_bench.gate.growth import Growth, growth_of
from rewoo_bench.gate.mismatches import Mismatch, changes, incomparable_rows, incomparable_runs
from rewoo_bench.gate.verdict import Check, Group, Status, too_many_failed
from rewoo_bench.text.counts import counted


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
            raise UsageError(f"mode: expected 'exact', 'live' or None, got {shown(self.mode)}")
        is_number = isinstance(self.max_increase, Real) and not isinstance(self.max_increase, bool)
        if self.max_increase is not None and not (is_number and 0 <= self.max_increase < math.inf):
            raise UsageError(f"max_increase: expected a share such as 0.02, got {shown(self.max_increase)}")
        check_switches(accept_prompts=self.accept_prompts, strict=self.strict)


def check_against(before: Baseline, now: Baseline, terms: ComparisonTerms, *, oracle: bool) -> Iterator[Check]:
    """Every check of a run against its baseline. `oracle`: an oracle answered the run, or a replay of one."""
    names = sorted({*before.questions, *now.questions})
    mismatches = {name: list(incomparable_rows(before, now, name)) for name in names}
    shared = [each for each in mismatches[names[0]] if all(each in others for others in mismatches.values())]
    shared += incomparable_runs(before, now)
    everything = Group("every architecture", str(now.dataset.get("name")), now.model)
    yield from (_not_comparable(everything, mismatch) for mismatch in shared)
    for name in names:
        own = [mismatch for mismatch in mismatches[name] if mismatch not in shared]
        yield from (_not_comparable(now.group(name), mismatch) for mismatch in own)
        if not shared and not own:
            yield from _architecture(before, now, name, terms, tests=len(names), oracle=oracle)


def _architecture(
    before: Baseline, now: Baseline, name: str, terms: ComparisonTerms, *, tests: int, oracle: bool
) -> Iterator[Check]:
    """The checks of one of `tests` architectures, which can be compared."""
    group, old, new = now.group(name), before.rows(name), now.rows(name)
    growth = growth_of(old, new)
    exact = terms.mode == "exact" or (terms.mode is None and before.deterministic and now.deterministic)
    changed = changes(before, now, name)
    cause = growth.cause() if not changed or terms.accept_prompts else None  # the failed "changed" check has it
    if changed:
        yield _changed(group, changed, growth, accepted=terms.accept_prompts)
    yield from _failed_questions(group, growth, exact)
    sides = (before.architectures[name], now.architectures[name])
    prices = prices_of(*sides)
    prefixes = list(prefix_checks(group, *sides, EXACT_MARGIN, prices, changed=bool(changed)))
    yield from prefixes
    if not growth.n:
        return
    default = EXACT_MARGIN if exact else LIVE_MARGIN
    margin = default if terms.max_increase is None else terms.max_increase
    if exact:
        yield from exact_counts(group, growth, old, new, margin, cause)
        yield from cache_check(group, growth, old, new, margin, tests, prefixes, prices, exact=exact)
        yield from exact_answers(group, old, new, oracle=oracle)
    else:
        yield from live_counts(group, growth, old, new, margin, tests, cause, strict=terms.strict)
        yield from cache_check(group, growth, old, new, margin, tests, prefixes, prices, exact=exact)
        yield from live_answers(group, old, new, tests, oracle=oracle)


def _not_comparable(group: Group, mismatch: Mismatch) -> Check:
    text = f"not comparable ({mismatch.what}): {mismatch.text}"
    return Check("not comparable", "fail", group, mismatch.what, text)


def _changed(group: Group, changed: list[str], growth: Growth, *, accepted: bool) -> Check:
    """The deliberate changes of an architecture, with their effect on total tokens."""
    text = f"{', '.join(changed)}; {_effect(growth)}"
    if accepted:
        return Check("changed", "pass", group, "prompts", text, n=growth.n)
    advice = "--accept-prompts lets the counts alone decide, `baseline update` takes them over"
    return Check("changed", "fail", group, "prompts", f"{text}. {advice}", n=growth.n, grown=growth.grown)


def _effect(growth: Growth) -> str:
    """`total_tokens +23.0 a question, 1,283.0 -> 1,306.0 (+1.8%); the planner's tokens grew most, …`."""
    if not growth.n:
        return "no question was answered on both sides"
    cause = growth.cause()
    return described(growth, "total_tokens") + (f"; {cause}" if cause else "")


def _failed_questions(group: Group, growth: Growth, exact: bool) -> Iterator[Check]:
    """Failed questions are in no mean. A deterministic model has none; of a live one too many fail the gate."""
    if growth.failed or not growth.n:
        total = growth.rows + growth.failed
        text = (
            f"{growth.failed:,} of {counted(total, 'row')} failed in the infrastructure in one of the two runs, "
            f"and the other {growth.rows:,} are compared"
        )
        fails = exact or too_many_failed(growth.failed, total)
        status: Status = "fail" if fails else "warn"
        yield Check("failed questions", status, group, "failed questions", text, n=growth.n)
