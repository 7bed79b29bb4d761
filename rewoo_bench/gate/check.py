"""The gate: a run compared with budgets, a baseline, or both.

    verdict = check_run("results/local/mine", budgets="budgets.toml", baseline="baseline.json")
    verdict.code            # 0 passed, 1 failed, 3 the run is incomplete
    print(verdict_text(verdict))

baseline.py has the counts to compare, of a run or a file. baseline_checks.py and count_checks.py judge by them,
budgets.py by fixed limits, and verdict.py shows the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from rewoo_bench.analysis.pairs import of_dollars
from rewoo_bench.analysis.prices import with_dollars
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.gate.baseline import Baseline, baseline_of, read_baseline
from rewoo_bench.gate.baseline_checks import ComparisonTerms, check_against
from rewoo_bench.gate.budgets import check_budgets, read_budgets
from rewoo_bench.gate.verdict import Check, Group, Verdict, too_many_failed
from rewoo_bench.runs.columns import CALLS, NO_LLM_ROLES, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, load, read_table
from rewoo_bench.runs.manifest import MANIFEST, Manifest, read_manifest
from rewoo_bench.runs.rows import failed, oracle_rows
from rewoo_bench.text.words import counted

_COUNTED = ("llm_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens")
_KEY = ["architecture", "example_id", "trial"]
_MOST_DENSER = 2.0  # tokens of a character, of a prompt and the one before it; 1.04 times in the published runs
__all__ = ["ComparisonTerms", "check_run", "open_baseline"]


def check_run(
    run: str | Path,
    *,
    budgets: str | Path | None = None,
    baseline: str | Path | None = None,
    terms: ComparisonTerms = ComparisonTerms(),  # noqa: B008 - frozen
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
        checks += check_against(before, now, terms, oracle=bool(oracle_rows(rows).any()))
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
    expected, measured = examples * trials, rows[~failed(rows)]["architecture"].astype(str)
    there = rows["architecture"].astype(str).value_counts()
    for each in manifest.architectures:
        n = int((measured == each.name).sum())
        if there.get(each.name, 0) < expected and too_many_failed(expected - n, expected):
            group = Group(each.name, manifest.dataset.name, str(manifest.models.get("default", {}).get("name")))
            text = f"not enough rows: {n:,} of {expected:,}; an incomplete run needs nine tenths of them to be judged"
            yield Check("failed questions", "fail", group, "rows", text, float(n), 0.9 * expected, n=n)


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
