"""A run without the data set's texts: what can be published, whatever the data set's licence says.

    publish(Path("results/local/my-run"), Path("results/my-study/my-run"))

Questions, gold answers, errors, traces and the journal are left out, since they repeat texts of the data set or
of a tool. Absolute paths become the names of their files. Every count, score, id and hash stays, so that `compare`,
`plot` and `claims` read the copy as they read the run.

The predictions stay, and `answers_sha256` has hashes of the gold answers: so anyone can score exact match again, and
whoever has the data set F1, too (`rewoo-bench rescore`). A prediction may quote a passage, or be the gold answer. It
stays whole, because it is the model's output and is what the scores are about: a cut one would have another score.
A quote in an answer is as short as the limit of output tokens. The hashes hide nothing from somebody who guesses
answers; they keep the data set's list of answers out of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewoo_bench.config.names import LOCAL, REPLAY
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.columns import CALLS, QUESTION_COLUMNS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, no_table, read_table
from rewoo_bench.runs.manifest import MANIFEST, Manifest, manifest_of, read_manifest, write_manifest
from rewoo_bench.text.argument_checks import as_path, check_names
from rewoo_bench.text.scoring import BUNDLED, Scorer

TEXTS = [column.name for column in QUESTION_COLUMNS if column.is_private]
FILES = {QUESTIONS_FILE: QUESTIONS, CALLS_FILE: CALLS}
MODELS = {QUESTIONS_FILE: ("model", "planner_model", "solver_model"), CALLS_FILE: ("name",)}


def publish(run: str | Path, out: str | Path, *, without: Sequence[str] = ()) -> int:
    """Writes the copy, less the architectures in `without`; returns its number of rows.

    Raises `UsageError`, and `DataError` where the run can't be read.
    """
    run, out = as_path("run", run, "the folder of a run"), as_path("out", out)
    check_names(without=without)
    if (out / MANIFEST).exists():
        raise UsageError(f"--out: {str(out)!r} holds a run or its copy already; choose a new folder")
    manifest = read_manifest(run)
    try:
        tables = {name: read_table(run / name, schema) for name, schema in FILES.items()}
    except FileNotFoundError:
        missing = next(name for name in FILES if not (run / name).exists())
        raise no_table(run, missing) from None
    _check(without, tables[QUESTIONS_FILE])
    for name in TEXTS:
        tables[QUESTIONS_FILE] = _emptied(tables[QUESTIONS_FILE], name)
    for file, names in MODELS.items():
        for name in names:
            tables[file] = _without_folders(tables[file], name)
    left_out = pa.array(list(without), pa.string())
    tables = {
        name: table.filter(pc.invert(pc.is_in(table["architecture"], value_set=left_out)))
        for name, table in tables.items()
    }
    try:
        write_manifest(out, _published(manifest, without))
        for name, table in tables.items():
            pq.write_table(table, out / name, compression="zstd")
    except OSError as error:
        raise UsageError(f"--out: can't write to {str(out)!r}: {error.strerror or error}") from None
    return len(tables[QUESTIONS_FILE])


def _published(manifest: Manifest, without: Sequence[str]) -> Manifest:
    """The manifest of the copy: without the architectures left out and the folders of files."""
    facts = {**manifest.as_json(), "published": {"without": list(without), "left_out": TEXTS}}
    facts.pop("seal", None)
    if "architectures" in facts:
        facts["architectures"] = [each for each in facts["architectures"] if each["name"] not in without]
    return manifest_of(_file_names(facts))


def _file_names(value: Any) -> Any:
    """The same JSON with the file's name in place of each absolute path."""
    if isinstance(value, dict):
        return {_file_name(key): _file_names(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_file_names(each) for each in value]
    return _file_name(value) if isinstance(value, str) else value


def _file_name(text: str) -> str:
    """`/home/me/dev.json` as `dev.json`, `local//home/me/a.gguf` as `local/a.gguf`, `--corpus=/a/b` as `--corpus=b`."""
    if "," in text:  # of a list of architectures, some may be folders
        return ",".join(map(_file_name, text.split(",")))
    if text.startswith("--") and "=" in text:
        flag, _, value = text.partition("=")
        return f"{flag}={_file_name(value)}"
    before = next((prefix for prefix in (LOCAL, REPLAY) if text.startswith(prefix)), "")
    path = Path(text.removeprefix(before))
    return before + path.name if path.is_absolute() else text


def _check(without: Sequence[str], rows: pa.Table) -> None:
    there = set(rows["architecture"].to_pylist())
    for name in without:
        if name not in there:
            raise UsageError(f"--without: {unknown('architecture', name, there)}")


def _emptied(table: pa.Table, name: str) -> pa.Table:
    return _replaced(table, name, lambda column: pa.nulls(len(column), column.type))


def _without_folders(table: pa.Table, name: str) -> pa.Table:
    """The column with the file's name in place of an absolute path."""
    return _replaced(
        table, name, lambda column: pa.array([text and _file_name(text) for text in column.to_pylist()], column.type)
    )


def _replaced(table: pa.Table, name: str, change: Callable[[pa.ChunkedArray], pa.Array]) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table if position < 0 else table.set_column(position, table.schema.field(position), change(table[name]))


# The predictions of a finished run, scored again.
#
#     rescored = rescore("results/models/my-run")                  # from the run's answers, or from their hashes
#     rescored = rescore("results/models/my-run", gold, scorer)    # from the answers of the data set, by question
#     rescored.different                                           # ["react, question 7, trial 0: recorded EM 1, …"]
#
# Of a published run, which has hashes in the place of its answers, exact match alone can be scored without the data
# set.


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
