"""The gate: a run compared with budgets, a baseline, or both.

    verdict = check_run("results/local/mine", budgets="budgets.toml", baseline="baseline.json")
    verdict.code            # 0 passed, 1 failed, 3 the run is incomplete
    print(text(verdict))

`baseline` is the format of the counts to compare, and `baseline_of_run` makes it from a run. `mismatches` says whether
two runs can be compared, `growth` why counts grew. `baseline_checks`, `count_checks` and `answer_checks` judge; so does
`budgets` by fixed limits. `render` and `reports` show the verdict.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.gate.baseline import Baseline, read_baseline
from rewoo_bench.gate.baseline_checks import ComparisonTerms, check_against
from rewoo_bench.gate.baseline_of_run import baseline_of
from rewoo_bench.gate.budgets import check_budgets, read_budgets
from rewoo_bench.gate.verdict import Check, Verdict
from rewoo_bench.runs.failed_rows import failed
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import MANIFEST, Manifest, read_manifest
from rewoo_bench.runs.oracle_rows import oracle_rows
from rewoo_bench.text.counts import counted

if TYPE_CHECKING:
    import pandas as pd

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
    manifest, rows = read_manifest(Path(run)), load(run)
    limits = read_budgets(Path(budgets)) if budgets is not None else ()
    before = open_baseline(baseline) if baseline is not None else None
    check_unique(run, rows)
    reason = why_incomplete(manifest, rows) or why_not_whole(manifest, rows)
    if reason and not allow_incomplete:
        return Verdict((), incomplete=reason)
    checks: list[Check] = list(check_budgets(limits, rows))
    if before is not None:
        checks += check_against(before, baseline_of(manifest, rows), terms, oracle=bool(oracle_rows(rows).any()))
    return Verdict(tuple(checks))


def open_baseline(path: str | Path, *, deterministic: bool | None = None) -> Baseline:
    """The baseline in a file, or that of a complete run in a folder. Raises `UsageError` and `DataError`."""
    baseline = _opened(path, deterministic)
    for name in baseline.questions:
        if not baseline.rows(name)["total_tokens"].any():
            raise DataError(f"{str(path)!r} is no baseline: no tokens were counted for {name!r}")
    return baseline


def _opened(path: str | Path, deterministic: bool | None) -> Baseline:
    if not Path(path).is_dir():
        return read_baseline(Path(path))
    manifest, rows = read_manifest(Path(path)), load(path)
    check_unique(path, rows)
    reason = why_incomplete(manifest, rows) or why_not_whole(manifest, rows)
    if reason:
        raise UsageError(f"run {str(path)!r} is no baseline, it is incomplete: {reason}")
    return baseline_of(manifest, rows, deterministic=deterministic)


def check_unique(run: str | Path, rows: pd.DataFrame) -> None:
    """Raises `DataError` where two rows are of one question, trial and architecture."""
    keys = ["architecture", "example_id", "trial"]
    again = rows[rows.duplicated(keys)]
    if len(again):
        first = again.iloc[0]
        where = f"{first['architecture']}, question {first['example_id']!r}, trial {first['trial']}"
        raise DataError(
            f"run {str(run)!r} has {counted(len(again), 'row')} twice, such as {where}; its tables were changed"
        )


def why_not_whole(manifest: Manifest, rows: pd.DataFrame) -> str | None:
    """Why the means of a run that is done aren't those of all its questions; None where they are."""
    if failures := int(failed(rows).sum()):
        advice = "--resume tries them again, --allow-incomplete leaves them out"
        unit = "row" if rows["trial"].max() > 0 else "question"
        return f"{failures} of {counted(len(rows), unit)} failed; {advice}"
    expected = _expected_rows(manifest)
    return f"it has {len(rows)} of {counted(expected, 'row')}" if len(rows) < expected else None


def _expected_rows(manifest: Manifest) -> int:
    """Questions x trials x architectures. Raises `DataError` where run.json lacks one of them."""
    factors = {
        "architectures": len(manifest.architectures),
        "dataset.examples": manifest.dataset.examples,
        "options.trials": manifest.options.get("trials"),
    }
    for key, number in factors.items():
        if not number:
            raise DataError(f"run {manifest.run_id!r} can't be judged: its {MANIFEST} lacks {key!r}; it was changed")
    return math.prod(int(number) for number in factors.values() if number)


def why_incomplete(manifest: Manifest, rows: pd.DataFrame) -> str | None:
    """Why a run isn't whole; None where it is."""
    if manifest.status != "done":
        return manifest.reason or f"its status is {manifest.status!r}"
    return None if len(rows) else "it has no rows"
