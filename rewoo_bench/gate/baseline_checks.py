"""A run compared with a baseline: whether it can be, each architecture's counts (count_checks.py) and its answers
(answer_checks.py).

A deterministic model's counts and answers are compared as they are. Those of a live model vary from run to run, so
they are tested with a strict level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rewoo_bench.errors import UsageError
from rewoo_bench.gate.baseline import Baseline
from rewoo_bench.gate.count_checks import (
    EXACT_MARGIN,
    LIVE_MARGIN,
    ROUNDING,
    Growth,
    cache_check,
    described,
    exact_counts,
    growth_of,
    live_counts,
    prefix_checks,
    prices_of,
    question_ids,
    scored_pairs,
)
from rewoo_bench.gate.verdict import ENOUGH_QUESTIONS, FALSE_ALARMS, Check, Group, Status, too_many_failed
from rewoo_bench.runs.manifest import differences
from rewoo_bench.text.argument_checks import check_switches, shown
from rewoo_bench.text.words import counted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


# Answers of an architecture against those of a baseline: exact match, the share answered, the share soundly planned.
#
# Of a deterministic model every fall fails. Of a live model exact match and the share answered fail where they fell by
# more than `ACCURACY_MARGIN` and an exact paired test (McNemar's) says that this is no chance, on any number of
# questions. Its level is strict: the tests of all architectures together raise a false alarm less than once in
# 1 / `FALSE_ALARMS` comparisons of a system with itself. A small fall shows only on many questions, so below
# `ENOUGH_QUESTIONS` one that may be chance is a warning; above, the interval of the difference decides.


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
    from rewoo_bench.analysis.stats.paired import difference_of_proportions
    from rewoo_bench.analysis.stats.tests import mcnemar_exact

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


# Whether two runs can be compared at all, and the deliberate changes of an architecture.
#
# Another data set, model, limit or price makes counts incomparable. Another prompt, setting or tool is what a gate is
# for: it is named, and the counts are still compared.


_SHOWN = 3


class Mismatch(NamedTuple):
    """Why not to compare: the kind of difference, and a sentence."""

    what: str
    text: str


def incomparable_runs(before: Baseline, now: Baseline) -> Iterator[Mismatch]:
    """Differences that make every count incomparable, a line of each kind."""
    dataset = differences(before.dataset, now.dataset, "dataset", without=("ids_hash",))
    corpus = differences(before.corpus, now.corpus, "corpus")
    yield from _folded("data set", [*dataset, *corpus])
    models = differences(before.models, now.models, "models")
    known = before.options.keys() & now.options.keys()  # an older baseline lacks some
    old, new = ({name: side.options[name] for name in side.options if name in known} for side in (before, now))
    yield from _folded("model", [*models, *differences(old, new, "options")])
    if before.tokenizer and now.tokenizer:
        yield from _folded("tokenizer", differences(before.tokenizer, now.tokenizer, "tokenizer"))
    if before.prices is not None and now.prices is not None:
        yield from _folded("prices", differences(before.prices, now.prices, "prices"))


def _folded(what: str, texts: Iterable[str]) -> Iterator[Mismatch]:
    """One line: the names that differ, which imply the rest, or else the first differences; and how many more."""
    every = list(texts)
    shown = [text for text in every if ".name was " in text][:_SHOWN] or every[:_SHOWN]
    if every:
        rest = len(every) - len(shown)
        yield Mismatch(what, "; ".join(shown) + (f"; and {counted(rest, 'more difference')}" if rest else ""))


def incomparable_rows(before: Baseline, now: Baseline, architecture: str) -> Iterator[Mismatch]:
    """Differences that make the counts of one architecture incomparable."""
    if architecture not in before.questions:
        yield Mismatch("architecture", "the baseline has no rows of this architecture; update it")
    elif architecture not in now.questions:
        yield Mismatch("architecture", "the baseline has this architecture, and the run has no rows of it")
    else:
        yield from _ids(before, now, architecture)
        old, new = (side.architectures[architecture].usage_sources for side in (before, now))
        yield from (Mismatch("tokenizer", text) for text in differences(old, new, "usage_source"))


def _ids(before: Baseline, now: Baseline, architecture: str) -> Iterator[Mismatch]:
    """Pairs are made by id and trial: each has to belong to the same question on both sides."""
    old, new = ({(row[0], row[1]): row[2] for row in side.questions[architecture]} for side in (before, now))
    gone, added = [key for key in old if key not in new], [key for key in new if key not in old]
    if gone or added:
        yield Mismatch("ids", f"{_count(gone)} gone{_named(gone)}, {_count(added)} new{_named(added)}")
        return
    others = [key for key in old if old[key] != new[key]]
    if others:
        yield Mismatch("ids", f"{_count(others)} under the same id, with another text or answer{_named(others)}")
    elif before.dataset.get("ids_hash") != now.dataset.get("ids_hash"):
        yield Mismatch("ids", "the same ids in another order")


def _count(keys: Collection[Any]) -> str:
    return counted(len(keys), "question")


def _named(keys: Sequence[tuple[str, int]]) -> str:
    names = [f"{name!r}" + (f" (trial {trial})" if trial else "") for name, trial in keys[:_SHOWN]]
    more = [f"{len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else []
    return f" ({', '.join(names + more)})" if names else ""


def changes(before: Baseline, now: Baseline, architecture: str) -> list[str]:
    """Deliberate changes of an architecture: texts by name, then settings, tools and runner."""
    old, new = (side.architectures[architecture].manifest for side in (before, now))
    return [*_texts(old, new), *_settings(old, new)]


def _texts(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    named = list(_changed_names(old.get("texts_sha256"), new.get("texts_sha256")))
    yield from (f"{name} changed" for name in named)
    if not named and old.get("prompts_sha256") != new.get("prompts_sha256"):
        yield "its prompts changed"
    tools = _changed_names(old.get("tool_prompts_sha256"), new.get("tool_prompts_sha256"))
    yield from (f"prompt of the tool {name!r} changed" for name in tools)


def _changed_names(old: dict[str, str] | None, new: dict[str, str] | None) -> Iterator[str]:
    """Names with another digest than before; none where a side has no digests."""
    if old is not None and new is not None:
        yield from (name for name in sorted({**old, **new}) if old.get(name) != new.get(name))


def _settings(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for part in ("runner", "settings", "tools", "parents", "router_file"):
        yield from differences(old.get(part), new.get(part), part)


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
