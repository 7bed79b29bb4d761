"""The predictions of a finished run, scored again.

    rescored = rescore("results/models/my-run")                  # from the run's answers, or from their hashes
    rescored = rescore("results/models/my-run", gold, scorer)    # from the answers of the data set, by question
    rescored.different                                           # ["react, question 7, trial 0: recorded EM 1, …"]

Of a published run, which has hashes in the place of its answers, exact match alone can be scored without the data set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewoo_bench.argument_checks import as_path
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.columns import QUESTIONS
from rewoo_bench.runs.folder import QUESTIONS_FILE, no_table, read_table
from rewoo_bench.runs.manifest import Manifest, read_manifest
from rewoo_bench.scoring import BUNDLED, Scorer

_COLUMNS = ["architecture", "example_id", "trial", "answers", "answers_sha256", "prediction", "exact_match", "f1"]
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Rescored:
    """What scoring again found: `equal` rows, and a line for each one that differs in its score or gold answers.

    `with_f1` of the rows had gold answers; of the others exact match alone was compared. `unscored` rows have no
    recorded score and no prediction: the infrastructure failed. `unknown` rows have neither answers nor their hashes.
    """

    scorer: str
    equal: int
    different: Sequence[str]
    with_f1: int
    unscored: int
    unknown: int
    missing: int
    """Rows of a finished run that aren't there."""


def rescore(run: str | Path, gold: Mapping[str, Sequence[str]] | None = None, scorer: Scorer | None = None) -> Rescored:
    """Scores the predictions of a run again. `gold` are the answers by question, `scorer` is that of their data set.

    Without `gold` the run's own answers are taken, and their hashes where it was published. Raises `UsageError` where
    these are of other questions or are scored otherwise, and `DataError` where nothing can be scored again.
    """
    folder = as_path("run", run, "the folder of a run")
    manifest = read_manifest(folder)
    name = manifest.dataset.scoring or ""
    try:
        rows = read_table(folder / QUESTIONS_FILE, QUESTIONS, columns=_COLUMNS).to_pylist()
    except FileNotFoundError:
        raise no_table(folder) from None
    scorer = scorer or BUNDLED.get(name)
    if scorer is None:
        raise UsageError(f"the run was scored by {name!r}, which is none of {', '.join(BUNDLED)}; give --dataset")
    if scorer.name != name:
        raise UsageError(f"the run was scored by {name!r}, and the data set is scored by {scorer.name!r}")
    if gold is not None and (missing := [row for row in rows if row["example_id"] not in gold]):
        raise UsageError(f"{len(missing)} of {len(rows)} rows are of other questions: {missing[0]['example_id']!r} …")
    if all(row["prediction"] is None for row in rows) and any(row["f1"] for row in rows):
        raise DataError(f"{str(folder)!r} has no predictions: an earlier version of `publish` left them out")
    keys = [(row["architecture"], row["example_id"], row["trial"]) for row in rows]
    if len(set(keys)) < len(keys):
        raise DataError(f"{str(folder)!r} has rows twice: it was changed")
    scored = [row for row in rows if row["exact_match"] is not None or row["prediction"] is not None]
    golds = [row["answers"] if gold is None else gold[row["example_id"]] for row in scored]
    lines = [
        (row, _score(row, answers, scorer), _has_others(row, answers, scorer))
        for row, answers in zip(scored, golds, strict=True)
    ]
    again = [(row, score, others) for row, score, others in lines if score is not None]
    if not again:
        raise DataError(f"{str(folder)!r} has neither gold answers nor their hashes; give --dataset")
    different = [_line(*each) for each in again if each[2] or not _is_equal(*each[:2])]
    return Rescored(
        scorer=name,
        equal=len(again) - len(different),
        different=different,
        with_f1=sum(f1 is not None for _, (_, f1), _ in again),
        unscored=len(rows) - len(scored),
        unknown=len(scored) - len(again),
        missing=max(0, _rows_of(manifest) - len(rows)),
    )


def _score(row: Mapping[str, Any], answers: Sequence[str] | None, scorer: Scorer) -> tuple[bool, float | None] | None:
    """Exact match and F1 of a row: without F1 from hashes, None without these too."""
    if answers:
        score = scorer(row["prediction"], answers)
        return score.exact_match, score.f1
    hashes = row.get("answers_sha256")
    return (scorer.is_exact_match(row["prediction"], hashes), None) if hashes else None


def _rows_of(manifest: Manifest) -> int:
    """Rows that a finished run has, 0 for another."""
    examples, trials = manifest.dataset.examples, manifest.options.get("trials")
    if manifest.status != "done" or not isinstance(trials, int):
        return 0
    return len(manifest.architectures) * (examples or 0) * trials


def _has_others(row: Mapping[str, Any], answers: Sequence[str] | None, scorer: Scorer) -> bool:
    """Whether a row's hashes are those of other gold answers."""
    recorded, now = row.get("answers_sha256"), scorer.answers_sha256(answers) if answers else None
    return recorded is not None and now is not None and set(recorded) != set(now)


def _is_equal(row: Mapping[str, Any], score: tuple[bool, float | None]) -> bool:
    exact_match, f1 = score
    has_same_f1 = f1 is None or (row["f1"] is not None and abs(row["f1"] - f1) < _ROUNDING)
    return row["exact_match"] == exact_match and has_same_f1


def _line(row: Mapping[str, Any], score: tuple[bool, float | None], others: bool) -> str:
    """`react, question 7, trial 0: EM 1 and F1 1.000 recorded, 0 and 0.400 now; prediction 'Oslo'`."""
    exact_match, f1 = score
    known = row["exact_match"] is not None and row["f1"] is not None
    recorded = f"EM {row['exact_match']:d} and F1 {row['f1']:.3f} recorded" if known else "no score recorded"
    now = f"{exact_match:d} and {f1:.3f} now" if f1 is not None else f"EM {exact_match:d} now"
    line = f"{row['architecture']}, question {row['example_id']}, trial {row['trial']}: {recorded}, {now}"
    return f"{line}; prediction {row['prediction']!r:.80}" + ("; the run had other gold answers" if others else "")
