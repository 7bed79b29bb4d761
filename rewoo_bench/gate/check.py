"""The gate: a run compared with budgets, a baseline, or both.

    verdict = check_run("results/local/mine", budgets="budgets.toml", baseline="baseline.json")
    verdict.code            # 0 passed, 1 failed, 3 the run is incomplete
    print(verdict_text(verdict))

baseline.py has the counts to compare, of a run or a file. The second half here judges by them, with count_checks.py,
and budgets.py by fixed limits; verdict.py shows the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.prices import of_dollars, with_dollars
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.gate.baseline import Baseline, BaselineLine, baseline_of, read_baseline
from rewoo_bench.gate.budgets import check_budgets, read_budgets
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
from rewoo_bench.gate.verdict import ENOUGH_QUESTIONS, FALSE_ALARMS, Check, Group, Status, Verdict, too_many_failed
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.manifest import Manifest, changed_values, read_manifest, resume_command
from rewoo_bench.runs.rows import Rows, mean_over_questions
from rewoo_bench.text.words import counted


@dataclass(frozen=True, slots=True)
class ComparisonTerms:
    """How a run is compared; `max_increase` None is 2% for exact counts and 5% for a live model."""

    mode: Literal["exact", "live"] | None = None
    max_increase: float | None = None
    accept_prompts: bool = False
    strict: bool = False
    """Whether a live comparison fails that couldn't have caught a growth of the margin."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for a value out of its range."""
        if self.mode not in ("exact", "live", None):
            raise UsageError(f"mode: expected 'exact', 'live' or None, got {self.mode!r}")
        if self.max_increase is not None and not 0 <= self.max_increase < math.inf:
            raise UsageError(f"max_increase: expected a share such as 0.02, got {self.max_increase!r}")


def check_run(
    run: str | Path,
    *,
    budgets: str | Path | None = None,
    baseline: str | Path | None = None,
    terms: ComparisonTerms = ComparisonTerms(),
    allow_incomplete: bool = False,
) -> Verdict:
    """The verdict on the run in a folder. Raises `UsageError` where there are neither budgets nor a baseline."""
    if budgets is None and baseline is None:
        raise UsageError("nothing to compare the run with: give --budgets, --baseline or both")
    if read_manifest(Path(run)).status == "running":  # its tables, if there are any, are an earlier session's
        advice = f"if it was killed, go on with: {resume_command(Path(run))}"
        return Verdict((), incomplete="the run isn't finished", notes=(advice,))
    manifest, rows, reason = _read_run(Path(run))
    limits = read_budgets(Path(budgets)) if budgets is not None else ()
    before = open_baseline(baseline) if baseline is not None else None
    if reason and not allow_incomplete:
        return Verdict((), incomplete=reason, notes=("--allow-incomplete judges the rows there are",))
    rows, pricing = with_dollars([run], rows, {manifest.run_id: manifest})
    checks = [*_missing_rows(manifest, rows), *check_budgets(limits, rows)]
    notes = [of_dollars(pricing)] if pricing.under and any("usd" in check.metric for check in checks) else []
    if before is not None:
        now = baseline_of(run, manifest, rows)
        checks += check_against(before, now, terms, oracle=bool(rows.oracle.any()))
        if unscored := sorted({*before.unscored, *now.unscored}):
            notes.append(f"accuracy of {' and '.join(unscored)} isn't compared: no answer was scored")
    return Verdict(tuple(checks), notes=tuple(notes))


def open_baseline(path: str | Path, *, deterministic: bool | None = None) -> Baseline:
    """The baseline in a file, or that of a complete run in a folder. Raises `UsageError` and `DataError`."""
    if Path(path).is_dir():
        manifest, rows, reason = _read_run(Path(path))
        if reason:
            raise UsageError(f"run {str(path)!r} is no baseline, it is incomplete: {reason}")
        baseline = baseline_of(path, manifest, rows, deterministic=deterministic)
    else:
        baseline = read_baseline(Path(path))
    for name, lines in baseline.questions.items():
        if not any(line.total_tokens for line in lines):
            raise DataError(f"{str(path)!r} is no baseline: no tokens were counted for {name!r}")
    return baseline


def _read_run(run: Path) -> tuple[Manifest, Rows, str | None]:
    """A run's manifest and rows, and why the means of its rows aren't those of all its questions, where they aren't."""
    manifest, rows = read_manifest(run), Rows(load_table(run))
    if manifest.status != "done":
        return manifest, rows, manifest.reason or "it isn't finished"
    if not len(rows):
        return manifest, rows, "it has no rows"
    reason, asked = None, len(manifest.architectures) * _rows_of_each(manifest)
    if failures := int(rows.failed.sum()):
        reason = f"{failures:,} of {counted(len(rows), 'row')} failed; --resume tries them again"
    elif len(rows) < asked:
        reason = f"it has {len(rows):,} of {counted(asked, 'row')}"
    return manifest, rows, reason


def _rows_of_each(manifest: Manifest) -> int:
    """Rows of an architecture that were to be asked."""
    return int(manifest.dataset.examples or 0) * int(manifest.options.get("trials") or 1)


def _missing_rows(manifest: Manifest, rows: Rows) -> Iterator[Check]:
    """A failed check for each architecture of which more than a tenth of the rows are missing or failed.

    Rows that were never asked for aren't missing at random, no more than failed ones: the run may have stopped at its
    first long question.
    """
    expected = _rows_of_each(manifest)
    for each in manifest.architectures:
        own = rows.where(rows["architecture"] == each.name)
        n, asked = int((~own.failed).sum()), len(np.unique(own.question[~own.failed]))
        if len(own) < expected and too_many_failed(expected - n, expected):
            group = Group(each.name, manifest.dataset.name, str(manifest.models.get("default", {}).get("name")))
            text = f"not enough rows: {n:,} of {expected:,}; an incomplete run needs nine tenths of them to be judged"
            least = float(expected - math.floor(0.1 * expected))
            yield Check("failed questions", "fail", group, "rows", text, float(n), least, n=asked, least=True)


# A run compared with a baseline: whether it can be, each architecture's counts (count_checks.py) and its answers.
#
# A deterministic model's counts and answers are compared as they are. Those of a live model vary from run to run, so
# they are tested with a strict level. Exact match and the share answered fail where they fell by more than
# `ACCURACY_MARGIN` and an exact paired test (McNemar's) says that this is no chance, on any number of questions. The
# tests of all architectures together raise a false alarm less than once in 1 / `FALSE_ALARMS` comparisons of a system
# with itself. A small fall shows only on many questions, so below `ENOUGH_QUESTIONS` one that may be chance is a
# warning.


ACCURACY_MARGIN = 0.02
_MOST_NAMED = 3


def check_against(before: Baseline, now: Baseline, terms: ComparisonTerms, *, oracle: bool) -> Iterator[Check]:
    """Every check of a run against its baseline. `oracle`: an oracle answered the run, or a replay of one."""
    names = sorted({*before.questions, *now.questions})
    if differences := list(_differences(before, now)):
        text = f"not comparable: {'; '.join(differences[:_MOST_NAMED])}"
        yield Check("not comparable", "fail", Group("every architecture", now.dataset.name, now.model), "run", text)
        return
    for name in names:
        group = now.group(name)
        if why := _other_rows(before, now, name):
            yield Check("not comparable", "fail", group, "rows", f"not comparable: {why}")
        else:
            yield from _architecture(before, now, group, terms, tests=len(names), oracle=oracle)


# Why not to compare. Another prompt, setting or tool is what a gate is for: it is named (`_changes`), and the counts
# are still compared.


def _differences(before: Baseline, now: Baseline) -> Iterator[str]:
    """What makes every count incomparable."""
    names = ("dataset", "corpus", "models", "options", "tokenizer", "prices")
    old, new = (side.model_dump(include={*names}, exclude={"dataset": {"ids_hash"}}) for side in (before, now))
    for name in names:
        is_known = old[name] is not None and new[name] is not None
        if is_known or name not in ("tokenizer", "prices"):
            yield from changed_values(old[name], new[name], name)


def _other_rows(before: Baseline, now: Baseline, architecture: str) -> str:
    """What makes the counts of one architecture incomparable; empty where they can be compared."""
    if architecture not in before.questions:
        return "the baseline has no rows of this architecture; update it"
    if architecture not in now.questions:
        return "the baseline has this architecture, and the run has no rows of it"
    # pairs are made by id and trial: each has to belong to the same question on both sides
    old, new = (
        {(line.example_id, line.trial): line.text for line in side.questions[architecture]} for side in (before, now)
    )
    gone, added = [key for key in old if key not in new], [key for key in new if key not in old]
    if gone or added:
        return f"{counted(len(gone), 'question')} gone{_named(gone)}, {len(added):,} new{_named(added)}"
    if others := [key for key in old if old[key] != new[key]]:
        return f"{len(others):,} ids have another text or answer{_named(others)}"
    was, used = (side.architectures[architecture].usage_sources for side in (before, now))
    return next(iter(changed_values(was, used, "usage_source")), "")


def _named(keys: Sequence[tuple[str, int]]) -> str:
    names = [repr(name) for name, _ in keys[:_MOST_NAMED]]
    return f" ({', '.join(names)})" if names else ""


def _architecture(
    before: Baseline, now: Baseline, group: Group, terms: ComparisonTerms, *, tests: int, oracle: bool
) -> Iterator[Check]:
    """The checks of one of `tests` architectures, which can be compared."""
    name = group.architecture
    growth = growth_of(group, before.questions[name], now.questions[name])
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
            advice = "--accept-prompts lets the counts alone decide, --update takes them over"
            yield Check("changed", "fail", group, "prompts", f"{text}. {advice}", n=growth.n, grown=growth.grown)
    if growth.failed or not growth.n:
        # Failed questions are in no mean. A deterministic model has none; of a live one too many fail the gate.
        left = len(growth.old)
        of = f"{growth.failed:,} of {counted(left + growth.failed, 'row')}"
        text = f"{of} failed in the infrastructure in one of the two runs, and the other {left:,} are compared"
        fails = exact or too_many_failed(growth.failed, left + growth.failed)
        yield Check("failed questions", "fail" if fails else "warn", group, "failed questions", text, n=growth.n)

    sides = (before.architectures[name], now.architectures[name])
    yield from prefix_checks(group, *sides, EXACT_MARGIN, changed=bool(changed))
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
    yield from cache_check(growth, margin, tests, exact=exact)
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
    for part in ("runner", "settings", "tools", "parents"):
        found += changed_values(old.get(part), new.get(part), part)
    return found


def _answers(growth: Growth, tests: int, *, exact: bool, oracle: bool) -> Iterator[Check]:
    """Exact match where answers were scored, and the share answered.

    Of a deterministic model every fall fails, of an oracle, too: its exact match is no measure of an architecture, but
    where it falls, the architecture or its tools lost answers. A live model's fails where that is no chance. A run
    that answers nothing is cheap, whatever its baseline did.
    """
    scored = all(line.exact_match is not None for line in (*growth.old, *growth.new))
    for name in (*["exact_match"] * scored, "answered"):
        before, now = (_good_rows(name, lines) for lines in (growth.old, growth.new))
        if name == "answered" and not now.any():
            text = "no question was answered"
            yield Check("accuracy", "fail", growth.group, name, text, 0.0, n=growth.n, least=True)
            continue
        was, measured = (mean_over_questions(side, growth.ids) for side in (before, now))
        status: Status = "pass"
        reason = ""
        if exact and measured < was - ROUNDING:
            status, reason = "fail", "; the same questions gave the same answers before"
        elif not exact and name == "exact_match" and oracle:
            reason = "; an oracle's means nothing"
        elif not exact:
            status, reason = live_fall(before, now, growth.ids, tests)
        text, limit = f"{name} {was:.3f} -> {measured:.3f}{reason}", was - (0 if exact else ACCURACY_MARGIN)
        sizes = (measured, limit, was, growth.n)
        yield Check("accuracy", status, growth.group, name, text, *sizes, oracle=oracle, least=True)


def _good_rows(name: str, lines: Sequence[BaselineLine]) -> Floats:
    """1 where a line is right, or answered."""
    good = [line.exact_match if name == "exact_match" else line.stop_reason == "answered" for line in lines]
    return np.array(good, dtype=np.float64)


def live_fall(before: NDArray[Any], now: NDArray[Any], ids: NDArray[Any], tests: int) -> tuple[Status, str]:
    """Whether shares of rows fell, with the reason."""
    if mean_over_questions(now, ids) >= mean_over_questions(before, ids) - ACCURACY_MARGIN:
        return "pass", ""
    n, test = len(set(ids)), mcnemar_exact(before, now, ids)
    # p is two-sided, so this is FALSE_ALARMS for the two shares of all architectures.
    if test.p <= FALSE_ALARMS / tests:
        rows = f"{test.only_a:,} of {len(before):,} rows only before and {test.only_b:,} only now"
        return "fail", f": {rows}, p {'< 0.0001' if test.p < 1e-4 else f'= {test.p:.4f}'} (exact McNemar)"
    of = f"; may be chance on {counted(n, 'question')}"
    return ("pass", of) if n >= ENOUGH_QUESTIONS else ("warn", f"{of}, {ENOUGH_QUESTIONS} are enough to tell")
