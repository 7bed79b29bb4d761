"""A run held against a baseline: each architecture's counts, exactly or with an interval.

A deterministic model's counts are compared as they are: a mean that grew by more than the margin
fails. A live model fails only where the ratio of the means of total tokens is above 1 with
confidence *and* above the margin; `FALSE_ALARMS` is shared by the architectures tested, and
scripts/simulate_gate.py measures what that comes to. Other counts of a live model only warn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rewoo_bench.gate.baseline import Baseline
from rewoo_bench.gate.comparable import Fault, changes, incomparable_rows, incomparable_runs
from rewoo_bench.gate.growth import Growth, growth_of, scored_pairs
from rewoo_bench.gate.power import smallest_growth
from rewoo_bench.gate.verdict import ENOUGH_QUESTIONS, Check, Group, Status, shown
from rewoo_bench.model_names import is_oracle

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from rewoo_bench.stats.paired import Interval

EXACT_MARGIN, LIVE_MARGIN = 0.02, 0.05
ACCURACY_MARGIN = 0.02
FALSE_ALARMS = 0.005
"""One-sided, of a gate on one and the same system, shared by its architectures (Bonferroni)."""
_JUDGED_LIVE = "total_tokens"
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run is compared; `max_increase` None is 2% for exact counts and 5% for a live model."""

    mode: Literal["exact", "live"] | None = None
    max_increase: float | None = None
    accept_prompts: bool = False
    strict: bool = False
    """Whether a live comparison fails that couldn't have caught a growth of the margin."""


def check_against(before: Baseline, now: Baseline, terms: Terms) -> Iterator[Check]:
    """Every check of a run against its baseline."""
    names = sorted({*before.questions, *now.questions})
    faults = {name: list(incomparable_rows(before, now, name)) for name in names}
    shared = [fault for fault in faults[names[0]] if all(fault in found for found in faults.values())]
    shared += incomparable_runs(before, now)
    everything = Group("every architecture", str(now.dataset.get("name")), now.model)
    yield from (_fault(everything, fault) for fault in shared)
    for name in names:
        yield from (_fault(now.group(name), fault) for fault in faults[name] if fault not in shared)
        if not shared and not faults[name]:
            yield from _architecture(before, now, name, terms, tests=len(names))


def _architecture(before: Baseline, now: Baseline, name: str, terms: Terms, tests: int) -> Iterator[Check]:
    """The checks of an architecture whose counts can be compared; it is one of so many tests."""
    group, old, new = now.group(name), before.rows(name), now.rows(name)
    growth = growth_of(old, new)
    exact = terms.mode == "exact" or (terms.mode is None and before.deterministic and now.deterministic)
    changed = changes(before, now, name)
    cause = growth.cause() if not changed or terms.accept_prompts else None  # a failure of the change says it
    if changed:
        yield _changed(group, changed, growth, accepted=terms.accept_prompts)
    yield from _failed_questions(group, growth, exact)
    if not growth.n:
        return
    if exact:
        yield from _exact(group, growth, EXACT_MARGIN if terms.max_increase is None else terms.max_increase, cause)
    else:
        margin = LIVE_MARGIN if terms.max_increase is None else terms.max_increase
        pairs = scored_pairs(old, new)
        found = list(_live(group, growth, pairs, margin, tests, cause))
        yield from found
        if all(check.status != "fail" for check in found):
            yield _power(group, growth.n, pairs, margin, tests, strict=terms.strict)
        yield from _nothing_answered(group, new)
    yield from _answers(group, old, new) if exact else _accuracy(group, old, new, tests)


def _fault(group: Group, fault: Fault) -> Check:
    return Check("not comparable", "fail", group, fault.what, f"not comparable ({fault.what}): {fault.text}")


def _changed(group: Group, changed: list[str], growth: Growth, *, accepted: bool) -> Check:
    """What was changed on purpose, and what it comes to."""
    told = f"{', '.join(changed)}; {_size(growth)}"
    if accepted:
        return Check("changed", "pass", group, "prompts", told, n=growth.n)
    advice = "--accept-prompts lets the counts alone decide, `baseline update` takes them over"
    return Check("changed", "fail", group, "prompts", f"{told}. {advice}", n=growth.n, grown=growth.grown)


def _size(growth: Growth) -> str:
    """`total_tokens +23.0 a question, 1,283.0 -> 1,306.0 (+1.8%); the planner's tokens grew most, …`."""
    if not growth.n:
        return "no question was answered on both sides"
    cause = growth.cause()
    return _moved(growth, "total_tokens") + (f"; {cause}" if cause else "")


def _failed_questions(group: Group, growth: Growth, exact: bool) -> Iterator[Check]:
    """A question that the infrastructure failed costs little, so it is in no mean; a deterministic model has none."""
    if growth.failed or not growth.n:
        text = f"{growth.failed} failed in the infrastructure on a side and are left out, {growth.n} are compared"
        status: Status = "fail" if exact or growth.failed >= growth.n else "warn"
        yield Check("failed questions", status, group, "failed questions", text, n=growth.n)


def _exact(group: Group, growth: Growth, margin: float, cause: str | None) -> Iterator[Check]:
    """Each mean as it is. What grew beyond the margin fails, the first with the cause."""
    for metric, change in growth.metrics():
        text = _moved(growth, metric)
        if change.share <= margin + _ROUNDING:
            hint = "; less than in the baseline, which can be updated" if change.share < 0 else ""
            yield _growth(group, growth, metric, margin, "pass", text + hint)
            continue
        told = f"{text}, {_percent(margin)} is allowed" + (f"; {cause}" if cause else "")
        cause = None
        yield _growth(group, growth, metric, margin, "fail", told)


def _live(
    group: Group,
    growth: Growth,
    pairs: tuple[pd.DataFrame, pd.DataFrame],
    margin: float,
    tests: int,
    cause: str | None,
) -> Iterator[Check]:
    """Each ratio of means; fails where total tokens grew with confidence and beyond the margin."""
    old, new = pairs
    ids = old.index.get_level_values("example_id").to_numpy(dtype=str)
    for metric, _ in growth.metrics():
        text, judged = _moved(growth, metric), metric == _JUDGED_LIVE
        status: Status = "pass"
        ratio = ratio_beyond(old[metric].to_numpy(float), new[metric].to_numpy(float), ids, margin, tests)
        if ratio is not None:
            text += f", ratio {ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] at {ratio.level:.2%}"
        if ratio is not None and ratio.low <= 1:
            text += ", which may be chance"
        elif ratio is not None:
            status = "fail" if judged else "warn"
            text += f": above 1, and beyond the margin of {_percent(margin)}"
            text += f"; {cause}" if cause and judged else ""
        yield _growth(group, growth, metric, margin, status, text)


def _power(
    group: Group, n: int, pairs: tuple[pd.DataFrame, pd.DataFrame], margin: float, tests: int, *, strict: bool
) -> Check:
    """Whether the comparison could have caught a growth of the margin; where it couldn't, it says so."""
    before, now = (side[_JUDGED_LIVE].to_numpy(float) for side in pairs)
    ids = pairs[0].index.get_level_values("example_id").to_numpy(dtype=str)
    caught = smallest_growth(before, now, ids, error=FALSE_ALARMS / tests)
    text = f"growth of {_percent(round(caught, 3))} or more would have been caught, 4 times in 5"
    name = f"{_JUDGED_LIVE} power"
    if caught <= margin:
        return Check("growth", "pass", group, name, f"{_JUDGED_LIVE}: {text}", n=n)
    told = f"can't tell whether {_JUDGED_LIVE} grew by {_percent(margin)}: on {n} questions {text}"
    return Check("can't tell", "fail" if strict else "warn", group, name, told, n=n)


def _nothing_answered(group: Group, new: pd.DataFrame) -> Iterator[Check]:
    """What no question was answered for is cheap, and no pass."""
    if "stop_reason" in new and not (new["stop_reason"] == "answered").any():
        yield Check("accuracy", "fail", group, "answered", "no question was answered", 0.0, n=len(new))


def ratio_beyond(
    before: NDArray[Any], now: NDArray[Any], ids: NDArray[Any], margin: float, tests: int
) -> Interval | None:
    """mean(now) / mean(before) where it is beyond the margin; a live gate fails where `low` is above 1."""
    from rewoo_bench.stats.paired import ratio_of_means

    if now.sum() <= before.sum() * (1 + margin) * (1 + _ROUNDING):
        return None
    return ratio_of_means(before, now, clusters=ids, level=1 - 2 * FALSE_ALARMS / tests, unseen_tail=False)


def _growth(group: Group, growth: Growth, metric: str, margin: float, status: Status, text: str) -> Check:
    change = growth.changes[metric]
    grown = growth.grown if status != "pass" else ()
    limit = change.before * (1 + margin)
    return Check("growth", status, group, metric, text, change.now, limit, change.before, growth.n, grown)


def _moved(growth: Growth, metric: str) -> str:
    """`total_tokens +23.0 a question, 1,283.0 -> 1,306.0 (+1.8%)`."""
    change = growth.changes[metric]
    share = "from none" if change.share == float("inf") else f"{change.share:+.1%}"
    by = f"{'-' if change.delta < 0 else '+'}{shown(metric, abs(change.delta))}"
    return f"{metric} {by} a question, {shown(metric, change.before)} -> {shown(metric, change.now)} ({share})"


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _answers(group: Group, old: pd.DataFrame, new: pd.DataFrame) -> Iterator[Check]:
    """A deterministic model's answers: any fall of what was right, answered or soundly planned fails.

    That an oracle is right means nothing, since it is told the answers; that it no longer is means that an
    architecture or its tools lost them.
    """
    old, new = scored_pairs(old, new)
    n = int(old.index.get_level_values("example_id").nunique())
    for name, is_good in _GOOD.items():
        before, now = is_good(old), is_good(new)
        if before is None or now is None:
            text = f"{name}: the baseline is of an older version and doesn't say; `baseline update` writes it anew"
            yield Check("accuracy", "warn", group, name, text, n=n)
            continue
        fell = now < before - _ROUNDING
        text = f"{name} {before:.3f} -> {now:.3f}" + (
            "; the same questions gave the same answers before" if fell else ""
        )
        yield Check("accuracy", "fail" if fell else "pass", group, name, text, now, before, before, n)


def _share_of(column: str, bad: tuple[str, ...]) -> Callable[[pd.DataFrame], float | None]:
    return lambda rows: float((~rows[column].isin(bad)).mean()) if column in rows else None


_UNSOUND = ("invalid_plan", "unparsable")
_GOOD: dict[str, Callable[[pd.DataFrame], float | None]] = {
    "exact_match": lambda rows: float(rows["exact_match"].astype(float).mean()),
    "answered": lambda rows: float((rows["stop_reason"] == "answered").mean()) if "stop_reason" in rows else None,
    "sound_plans": _share_of("stop_reason", _UNSOUND),
}


def _accuracy(group: Group, old: pd.DataFrame, new: pd.DataFrame, tests: int) -> Iterator[Check]:
    """Exact match: fails where it fell with confidence and by more than the margin, on enough questions."""
    from rewoo_bench.stats.paired import difference_of_proportions

    old, new = scored_pairs(old, new)
    was, now = (side["exact_match"].to_numpy(float) for side in (old, new))
    ids = old.index.get_level_values("example_id").to_numpy(dtype=str)
    n, limit, fell = len(set(ids)), was.mean() - ACCURACY_MARGIN, now.mean() < was.mean() - ACCURACY_MARGIN
    text = f"exact_match {was.mean():.3f} -> {now.mean():.3f}"
    status: Status = "pass"
    if is_oracle(group.model):
        text = f"{text}; an oracle's means nothing"
    elif fell and n < ENOUGH_QUESTIONS:
        status, text = "warn", f"{text}; {n} questions are too few to fail on, {ENOUGH_QUESTIONS} are enough"
    elif fell:
        found = difference_of_proportions(was, now, clusters=ids, level=1 - 2 * FALSE_ALARMS / tests)
        text = f"{text}, difference {found.estimate:+.3f} [{found.low:+.3f}, {found.high:+.3f}] at {found.level:.2%}"
        status = "fail" if found.high < 0 else "pass"
    yield Check("accuracy", status, group, "exact_match", text, float(now.mean()), float(limit), float(was.mean()), n)
