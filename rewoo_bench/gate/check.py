"""The gate: a run compared with budgets, a baseline, or both.

    verdict = check_run("results/local/mine", budgets="budgets.toml", baseline="baseline.json")
    verdict.code            # 0 passed, 1 failed, 3 the run is incomplete
    print(verdict_text(verdict))

baseline.py has the counts to compare, of a run or a file. The second half here judges by them, with count_checks.py,
and budgets.py by fixed limits; verdict.py shows the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.prices import of_dollars, with_dollars
from rewoo_bench.analysis.stats.paired import difference_of_proportions
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.gate.baseline import Baseline, baseline_of, read_baseline
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
from rewoo_bench.runs.columns import CALLS, NO_LLM_ROLES, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, load, read_table
from rewoo_bench.runs.manifest import MANIFEST, Manifest, changed_values, read_manifest
from rewoo_bench.runs.rows import Rows, failed, mean_over_questions
from rewoo_bench.text.argument_checks import abridged, check_switches
from rewoo_bench.text.words import counted

_COUNTED = ("llm_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens")
_KEY = ["architecture", "example_id", "trial"]
_MOST_DENSER = 2.0  # tokens of a character, of a prompt and the one before it; 1.04 times in the published runs


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
    manifest, rows, reason = _read_run(Path(run))
    limits = read_budgets(Path(budgets)) if budgets is not None else ()
    before = open_baseline(baseline) if baseline is not None else None
    if reason and not allow_incomplete:
        return Verdict((), incomplete=reason)
    rows, pricing = with_dollars([run], rows, {manifest.run_id: manifest})
    checks = [*_missing_rows(manifest, rows), *check_budgets(limits, rows)]
    notes = [of_dollars(pricing)] if pricing.under and any("usd" in check.metric for check in checks) else []
    if before is not None:
        now = baseline_of(run, manifest, rows)
        checks += check_against(before, now, terms, oracle=bool(Rows(rows).oracle.any()))
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


def _read_run(run: Path) -> tuple[Manifest, pd.DataFrame, str | None]:
    """A run's manifest and rows, and why the means of its rows aren't those of all its questions, where they aren't.

    Raises `DataError` where the rows aren't those of the manifest, or have counts that no run writes.
    """
    manifest, rows = read_manifest(run), load(run)
    sums = _wrong_sums(run, rows, is_imported=manifest.imported is not None)
    for fault in chain(_faults(manifest, rows), sums, _wrong_calls(run, manifest)) if len(rows) else ():
        raise DataError(f"run {str(run)!r} can't be judged: {fault}; its tables or its {MANIFEST} were changed")
    if manifest.status != "done":
        return manifest, rows, manifest.reason or f"its status is {manifest.status!r}"
    if not len(rows):
        return manifest, rows, "it has no rows"
    reason, asked = None, math.prod(_shape(manifest))
    if failures := int(failed(rows).sum()):
        advice = "--resume tries them again, --allow-incomplete leaves them out"
        reason = f"{failures:,} of {counted(len(rows), 'row')} failed; {advice}"
    elif len(rows) < asked:
        reason = f"it has {len(rows)} of {counted(asked, 'row')}"
    return manifest, rows, reason


def _faults(manifest: Manifest, rows: pd.DataFrame) -> Iterator[str]:
    architectures, examples, trials = _shape(manifest)
    again = rows[rows.duplicated(_KEY)]
    if len(again):
        yield f"it has {counted(len(again), 'row')} twice, such as {_place(*again[_KEY].iloc[0])}"
    if (most := architectures * examples * trials) < len(rows):
        yield f"it has {len(rows):,} rows, and {architectures} x {examples} x {trials} = {most:,} were to be asked"
    default = manifest.models.get("default", {}).get("name")
    recorded = (manifest.imported or {}).get("models") or []  # each trajectory of an imported run may have its own
    named: dict[str, Collection[object]] = {
        "architecture": [each.name for each in manifest.architectures],
        "dataset": [manifest.dataset.name],
        "model": [default, *recorded],
        "planner_model": [manifest.models.get("planner", {}).get("name", default), *recorded],
        "solver_model": [manifest.models.get("solver", {}).get("name", default), *recorded],
        "trial": range(trials),
    }
    for column, allowed in named.items():
        for value in rows[column].unique() if any(allowed) or column == "trial" else ():
            if value not in allowed:
                expected = f"0 to {trials - 1}" if column == "trial" else " or ".join(map(repr, allowed))
                yield f"the column {column!r} has {value!r}, and {MANIFEST} says {expected}"
    measured = rows[~failed(rows)]
    for column in _COUNTED:
        if missing := int(measured[column].isna().sum()):
            yield f"{column!r} is missing in {counted(missing, 'row')}"
    for column in rows.columns:
        if column not in ("seed", "temperature") and rows[column].dtype.kind in "if" and (rows[column] < 0).any():
            yield f"{column!r} is negative: {rows[column].min():,}"
    for row in measured[(measured["loop_tokens"] > measured["total_tokens"]).fillna(False)].to_dict("records"):
        said = f"'loop_tokens' is {row['loop_tokens']:,} in the row of {_place(*(row[name] for name in _KEY))}"
        yield f"{said}, and its input and output tokens have {row['total_tokens']:,}"


def _place(architecture: str, example_id: str, trial: int) -> str:
    return f"{architecture}, question {example_id!r}, trial {trial}"


def _wrong_sums(folder: Path, rows: pd.DataFrame, is_imported: bool) -> Iterator[str]:
    """Measured rows whose total isn't that of its parts, or whose counts aren't the sums over their calls."""
    tokens = ["input_tokens", "output_tokens"]
    measured = rows[~failed(rows)].astype({"architecture": str, "example_id": str, "trial": int}).set_index(_KEY)
    expected = {"total_tokens": ("its input and output tokens", measured[tokens].sum(axis=1))}
    path = folder / CALLS_FILE
    if path.is_file():
        tokens += ["cached_input_tokens", "billed_tokens"]
        calls = read_table(path, CALLS, columns=[*_KEY, "kind", "role", *tokens]).to_pandas()
        asked = (calls["kind"] == "model") & ~calls["role"].isin(NO_LLM_ROLES)
        calls = calls.assign(llm_calls=asked, tool_calls=calls["kind"] == "tool")[calls["role"] != "judge"]
        by_row = calls.groupby(_KEY)
        sums = by_row[[*tokens, "llm_calls", "tool_calls"]].sum().reindex(measured.index, fill_value=0)
        if is_imported:
            # Of some formats the tokens of whole trajectories alone are known; of others what was cached isn't.
            unknown = (sums["llm_calls"] > 0) & (by_row["input_tokens"].count().reindex(measured.index) == 0)
            sums[tokens] = sums[tokens].mask(unknown, measured[tokens].fillna(0))
            uncached = calls[calls["cached_input_tokens"].isna() & (calls["kind"] == "model")].set_index(_KEY).index
            sums.loc[sums.index.isin(uncached) & ~unknown, "cached_input_tokens"] = 0  # of a part is no sum
        expected |= {name: (f"its calls in {CALLS_FILE}", sums[name]) for name in sums}
    for column, (parts, sums) in expected.items():
        written, sums = measured[column].fillna(0).astype("int64"), sums.astype("int64")
        wrong = written.to_numpy() != sums.to_numpy()
        for key, said, found in zip(written.index[wrong], written[wrong], sums[wrong], strict=True):
            yield f"{column!r} is {said:,} in the row of {_place(*key)}, and {parts} have {found:,}"


def _wrong_calls(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Calls whose columns say what no call was billed for and no prompt can share.

    A prefix is in the call's own tokens by its own ratio to characters, so it may be somewhat longer than the earlier
    call it comes from, as counted there. Where a text of the journal is damaged, nothing is known of the prompts from
    then on; of an imported run some prompts may not have been recorded. A model of the user's own may bill nothing.
    """
    if not (folder / CALLS_FILE).is_file():
        return
    counts = ["input_tokens", "output_tokens", "cached_input_tokens", "billed_tokens", *SHARED]
    others = ["call_index", "kind", "role", "status", "replayed", "started_at"]
    calls = read_table(folder / CALLS_FILE, CALLS, columns=[*_KEY, *others, *counts])
    asked = calls.to_pandas().query("kind == 'model'").sort_values("call_index", kind="stable")
    numbers = asked[counts].astype(float)
    tokens = numbers["input_tokens"].where(numbers["input_tokens"] > 0)
    sent = tokens.fillna(math.inf)  # of a call that failed it isn't known
    of_question = [asked[name] for name in _KEY]
    earlier = sent.groupby(of_question).cummax().groupby(of_question).shift(fill_value=0.0)
    found = numbers[["shared_question_tokens", "shared_run_tokens"]].max(axis=1)
    the_input, one_more = "the call's input", found + 1  # marks are rounded, prefixes rounded down
    of_prompt = [name for name in SHARED if name.endswith("_tokens")]
    for column, most, of in (
        *((name, tokens, the_input) for name in ("cached_input_tokens", *of_prompt)),
        ("shared_question_tokens", _MOST_DENSER * earlier, "the question's earlier calls"),
        ("marked_tokens", numbers["last_marked_tokens"], "the prompt's last mark"),
        ("shared_marked_tokens", one_more, "what the call shares"),
    ):
        if (wrong := numbers[column] > most).any():
            said = _of_call(asked[wrong].iloc[0], column, numbers)
            yield f"{said}, and {of} allow{'s' * (not of.endswith('calls'))} {most[wrong].iloc[0]:,.0f}"
    for column in counts:
        if (wrong := numbers[column] < 0).any():
            yield f"{_of_call(asked[wrong].iloc[0], column, numbers)}, which is negative"
    used, billed = numbers["input_tokens"] + numbers["output_tokens"], numbers["billed_tokens"]
    if (wrong := (billed > 0) & (billed < used) & (asked["replayed"] == False)).any():  # noqa: E712 - not null either
        said = _of_call(asked[wrong].iloc[0], "billed_tokens", numbers)
        yield f"{said}, and its input and output tokens are {used[wrong].iloc[0]:,.0f}"
    if (manifest.imported or {}).get("lacks", {}).get("prompts"):
        return
    some = (asked["status"] == "ok") & ~asked["role"].isin(UNPRICED_ROLES)
    in_turn = numbers[of_prompt].notna()[some].loc[asked[some].sort_values("started_at", kind="stable").index[::-1]]
    later = in_turn.groupby([asked.loc[in_turn.index, name] for name in ("architecture", "trial", "role")]).cummax()
    known = later.max(axis=1)  # of this call or a later one
    for column in of_prompt:
        if (wrong := known & ~in_turn[column]).any():
            yield f"{_of_call(asked.loc[wrong[wrong].index[-1]], column, numbers)}, and that of other calls is known"


def _of_call(call: Any, column: str, numbers: pd.DataFrame) -> str:
    """`'marked_tokens' is 200 in call 1 of rewoo, question 'q1', trial 0`."""
    value = numbers.loc[call.name, column]
    said = "missing" if value != value else f"{value:,.10g}"
    return f"{column!r} is {said} in call {call['call_index']} of {_place(*call[_KEY])}"


def _missing_rows(manifest: Manifest, rows: pd.DataFrame) -> Iterator[Check]:
    """A failed check for each architecture of which more than a tenth of the rows are missing or failed.

    Rows that were never asked for aren't missing at random, no more than failed ones: the run may have stopped at its
    first long question.
    """
    _, examples, trials = _shape(manifest)
    expected, measured = examples * trials, rows[~failed(rows)]
    least = expected - math.floor(0.1 * expected)
    there = rows["architecture"].astype(str).value_counts()
    for each in manifest.architectures:
        own = measured[measured["architecture"].astype(str) == each.name]
        n = len(own)
        if there.get(each.name, 0) < expected and too_many_failed(expected - n, expected):
            group = Group(each.name, manifest.dataset.name, str(manifest.models.get("default", {}).get("name")))
            text = f"not enough rows: {n:,} of {expected:,}; an incomplete run needs nine tenths of them to be judged"
            asked = int(own["example_id"].nunique())
            yield Check("failed questions", "fail", group, "rows", text, float(n), float(least), n=asked, least=True)


def _shape(manifest: Manifest) -> tuple[int, int, int]:
    """Architectures, questions and trials. Raises `DataError` where run.json lacks one of them."""
    factors = {
        "architectures": len(manifest.architectures),
        "dataset.examples": manifest.dataset.examples,
        "options.trials": manifest.options.get("trials"),
    }
    for key, number in factors.items():
        if type(number) is not int or number < 1:
            wrong = f"{key} of its {MANIFEST} is {number!r}; a whole number from 1 on was expected"
            fault = wrong if number else f"its {MANIFEST} lacks {key!r}"
            raise DataError(f"run {manifest.run_id!r} can't be judged: {fault}; it was changed")
    architectures, examples, trials = map(int, filter(None, factors.values()))
    return architectures, examples, trials


# A run compared with a baseline: whether it can be, each architecture's counts (count_checks.py) and its answers.
#
# A deterministic model's counts and answers are compared as they are. Those of a live model vary from run to run, so
# they are tested with a strict level. Exact match and the share answered fail where they fell by more than
# `ACCURACY_MARGIN` and an exact paired test (McNemar's) says that this is no chance, on any number of questions. The
# tests of all architectures together raise a false alarm less than once in 1 / `FALSE_ALARMS` comparisons of a system
# with itself. A small fall shows only on many questions, so below `ENOUGH_QUESTIONS` one that may be chance is a
# warning; above, the interval of the difference decides.


ACCURACY_MARGIN = 0.02
_MOST_NAMED = 3


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
    for part in ("runner", "settings", "tools", "parents"):
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
    if mean_over_questions(now, ids) >= mean_over_questions(before, ids) - ACCURACY_MARGIN:
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
