"""Answers of an architecture against those of a baseline: exact match, the share answered, the share soundly planned.

Of a deterministic model every fall fails. Of a live model exact match and the share answered fail where they fell by
more than `ACCURACY_MARGIN` and an exact paired test (McNemar's) says that this is no chance, on any number of
questions. Its level is strict: the tests of all architectures together raise a false alarm less than once in
1 / `FALSE_ALARMS` comparisons of a system with itself. A small fall shows only on many questions, so below
`ENOUGH_QUESTIONS` one that may be chance is a warning; above, the interval of the difference decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rewoo_bench.gate.count_checks import ROUNDING, question_ids
from rewoo_bench.gate.growth import scored_pairs
from rewoo_bench.gate.verdict import ENOUGH_QUESTIONS, FALSE_ALARMS, Check, Group, Status
from rewoo_bench.text.counts import counted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ACCURACY_MARGIN = 0.02
_UNSOUND = ("invalid_plan", "unparsable")
_Good = Callable[["pd.DataFrame"], "NDArray[Any] | None"]


def _sound(rows: pd.DataFrame) -> NDArray[Any] | None:
    """Where a plan or a turn could be read and run as written. Older baselines don't count their broken plans."""
    if "stop_reason" not in rows:
        return None
    sound = ~rows["stop_reason"].isin(_UNSOUND)
    if {"broken_plans", "replans"} <= set(rows):
        sound &= ~(rows["broken_plans"].astype(float) > rows["replans"].astype(float))
    return sound.to_numpy(float)


def _answered(rows: pd.DataFrame) -> NDArray[Any] | None:
    """Older baselines have no stop reasons."""
    return (rows["stop_reason"] == "answered").to_numpy(float) if "stop_reason" in rows else None


_GOOD: dict[str, _Good] = {
    "exact_match": lambda rows: rows["exact_match"].to_numpy(float),
    "answered": _answered,
    "sound_plans": _sound,
}


def exact_answers(group: Group, old: pd.DataFrame, new: pd.DataFrame, *, oracle: bool) -> Iterator[Check]:
    """A deterministic model's answers: any fall of exact match, of answers or of sound plans fails.

    An oracle's exact match is no measure of an architecture, since it is given the answers. A fall of it is: the
    architecture or its tools lost them.
    """
    old, new = scored_pairs(old, new)
    for name in _GOOD:
        before, now = _GOOD[name](old), _GOOD[name](new)
        if before is None or now is None or _none_answered(name, now):
            yield _without_comparison(group, name, old, now)
            continue
        fell = now.mean() < before.mean() - ROUNDING
        text = f"{name} {before.mean():.3f} -> {now.mean():.3f}"
        text += "; the same questions gave the same answers before" if fell else ""
        check = _check(group, name, "fail" if fell else "pass", text, old, before, now, limit=float(before.mean()))
        yield replace(check, oracle=oracle)


def live_answers(group: Group, old: pd.DataFrame, new: pd.DataFrame, tests: int, *, oracle: bool) -> Iterator[Check]:
    """A live model's answers: a fall of exact match or of the share answered fails where it is no chance."""
    old, new = scored_pairs(old, new)
    for name in ("exact_match", "answered"):
        before, now = _GOOD[name](old), _GOOD[name](new)
        if before is None or now is None or _none_answered(name, now):
            yield _without_comparison(group, name, old, now)
            continue
        status, reason = live_fall(before, now, question_ids(old), tests)
        if name == "exact_match" and oracle:
            status, reason = "pass", "; an oracle's means nothing"
        text = f"{name} {before.mean():.3f} -> {now.mean():.3f}{reason}"
        check = _check(group, name, status, text, old, before, now, limit=float(before.mean()) - ACCURACY_MARGIN)
        yield replace(check, oracle=oracle)


def live_fall(before: NDArray[Any], now: NDArray[Any], ids: NDArray[Any], tests: int) -> tuple[Status, str]:
    """Whether shares of rows fell, with the reason."""
    from rewoo_bench.stats.paired import difference_of_proportions
    from rewoo_bench.stats.tests import mcnemar_exact

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


def _none_answered(name: str, now: NDArray[Any]) -> bool:
    return name == "answered" and not now.any()


def _without_comparison(group: Group, name: str, old: pd.DataFrame, now: NDArray[Any] | None) -> Check:
    """A run that answers nothing is cheap, whatever its baseline did; an older baseline has no stop reasons."""
    n = len(set(question_ids(old)))
    if now is not None and _none_answered(name, now):
        return Check("accuracy", "fail", group, name, "no question was answered", 0.0, n=n)
    text = f"{name}: the baseline is of an older version and doesn't have it; `baseline update` writes it anew"
    return Check("accuracy", "warn", group, name, text, n=n)


def _check(
    group: Group,
    name: str,
    status: Status,
    text: str,
    old: pd.DataFrame,
    before: NDArray[Any],
    now: NDArray[Any],
    limit: float,
) -> Check:
    n = len(set(question_ids(old)))
    return Check("accuracy", status, group, name, text, float(now.mean()), limit, float(before.mean()), n)
