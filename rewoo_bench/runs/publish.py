"""A run without the data set's texts, which can be published whatever its licence says; and a run scored again.

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

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewoo_bench.config.names import file_name, file_names
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.columns import CALLS, QUESTION_COLUMNS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, TRACES_FILE, no_table, read_table
from rewoo_bench.runs.manifest import MANIFEST, manifest_of, read_manifest, write_manifest
from rewoo_bench.system.files import replaced
from rewoo_bench.text.argument_checks import as_path, check_names
from rewoo_bench.text.scoring import BUNDLED, Scorer

PRIVATE_COLUMNS = [column.name for column in QUESTION_COLUMNS if column.is_private]
_SCHEMAS = {QUESTIONS_FILE: QUESTIONS, CALLS_FILE: CALLS}
_WITH_PATHS = {QUESTIONS_FILE: ("model", "planner_model", "solver_model"), CALLS_FILE: ("name",)}
_SCORED = ["architecture", "example_id", "trial", "answers", "answers_sha256", "prediction", "exact_match", "f1"]
_ROUNDING = 1e-9


def publish(run: str | Path, out: str | Path, *, without: Sequence[str] = (), texts: bool = False) -> int:
    """Writes the copy, less the architectures in `without`; returns its number of rows.

    `texts` keeps what the data set, the tools and the model said, for data whose licence allows it.
    Raises `UsageError`, and `DataError` where the run can't be read.
    """
    run, out = as_path("run", run, "the folder of a run"), as_path("out", out)
    check_names(without=without)
    if (out / MANIFEST).exists():
        raise UsageError(f"--out: {str(out)!r} holds a run or its copy already; choose a new folder")
    manifest = read_manifest(run)
    try:
        tables = {name: read_table(run / name, schema) for name, schema in _SCHEMAS.items()}
    except FileNotFoundError:
        missing = next(name for name in _SCHEMAS if not (run / name).exists())
        raise no_table(run, missing) from None
    architectures = set(tables[QUESTIONS_FILE]["architecture"].to_pylist())
    for name in without:
        if name not in architectures:
            raise UsageError(f"--without: {unknown('architecture', name, architectures)}")
    for file, table in tables.items():
        left_out = pc.is_in(table["architecture"], value_set=pa.array(list(without), pa.string()))
        table = table.filter(pc.invert(left_out))
        for place, field in enumerate(table.schema):
            if file == QUESTIONS_FILE and field.name in PRIVATE_COLUMNS and not texts:
                table = table.set_column(place, field, pa.nulls(len(table), field.type))
            elif field.name in _WITH_PATHS[file]:
                names = [text and file_name(text) for text in table[place].to_pylist()]
                table = table.set_column(place, field, pa.array(names, field.type))
        tables[file] = table
    kept = [each.name not in without for each in manifest.architectures]
    options = dict(manifest.options)
    if len(options.get("architectures", ())) == len(kept):
        options["architectures"] = [*compress(options["architectures"], kept)]
    by_architecture = {
        name: {each: of for each, of in getattr(manifest, name).items() if each not in without}
        for name in ("shared_prefixes", "never_called")
    }
    changed = {
        "rows": len(tables[QUESTIONS_FILE]),
        "architectures": [*compress(manifest.architectures, kept)],
        "options": options,
        **by_architecture,
        "published": {"without": list(without), "left_out": [] if texts else PRIVATE_COLUMNS},
    }
    write_manifest(out, manifest_of(file_names(manifest.model_copy(update=changed).as_json())))
    for name, table in tables.items():
        with replaced(out / name, follows=False) as opened:
            pq.write_table(table, opened, compression="zstd")
    if texts and (run / TRACES_FILE).is_file():
        with (run / TRACES_FILE).open("rb") as lines, replaced(out / TRACES_FILE, follows=False) as opened:
            kept_lines = (line for line in lines if json.loads(line)["architecture"] not in without)
            opened.writelines(kept_lines if without else lines)
    return len(tables[QUESTIONS_FILE])


# The predictions of a finished run, scored again.
#
#     rescored = rescore("results/local/my-run")                  # from the run's answers, or from their hashes
#     rescored = rescore("results/local/my-run", gold, scorer)    # from the answers of the data set, by question
#     rescored.different                                          # ["react, question 7, trial 0: recorded EM 1, …"]
#
# Of a published run, which has hashes in the place of its answers, exact match alone can be scored without the data
# set.


@dataclass(frozen=True, slots=True)
class Rescored:
    """What scoring again found: `equal` rows, and a line for each one that has another score now.

    `with_f1` of the rows had gold answers; of the others exact match alone was compared. `unscored` rows have no
    recorded score and no prediction (the infrastructure failed), or neither answers nor their hashes.
    """

    scorer: str
    equal: int
    different: Sequence[str]
    with_f1: int
    unscored: int


def rescore(run: str | Path, gold: Mapping[str, Sequence[str]] | None = None, scorer: Scorer | None = None) -> Rescored:
    """Scores the predictions of a run again. `gold` are the answers by question, `scorer` is that of their data set.

    Without `gold` the run's own answers are taken, and their hashes where it was published. Raises `UsageError` where
    these are of other questions or are scored otherwise, and `DataError` where nothing can be scored again.
    """
    folder = as_path("run", run, "the folder of a run")
    name = read_manifest(folder).dataset.scoring or ""
    try:
        rows = read_table(folder / QUESTIONS_FILE, QUESTIONS, columns=_SCORED).to_pylist()
    except FileNotFoundError:
        raise no_table(folder) from None
    scorer = scorer or BUNDLED.get(name)
    if scorer is None:
        raise UsageError(f"the run was scored by {name!r}, which is none of {', '.join(BUNDLED)}; give --dataset")
    if scorer.name != name:
        raise UsageError(f"the run was scored by {name!r}, and the data set is scored by {scorer.name!r}")
    if gold is not None and (missing := [row for row in rows if row["example_id"] not in gold]):
        raise UsageError(f"{len(missing)} of {len(rows)} rows are of other questions: {missing[0]['example_id']!r} …")
    different, with_f1, unscored = [], 0, 0
    for row in rows:
        answers = row["answers"] if gold is None else gold[row["example_id"]]
        if (row["exact_match"] is None and row["prediction"] is None) or not (answers or row["answers_sha256"]):
            unscored += 1
            continue
        with_f1 += bool(answers)
        if line := _difference(row, answers, scorer):
            different.append(line)
    if unscored == len(rows):
        raise DataError(f"{str(folder)!r} has neither gold answers nor their hashes; give --dataset")
    equal = len(rows) - unscored - len(different)
    return Rescored(scorer=name, equal=equal, different=different, with_f1=with_f1, unscored=unscored)


def _difference(row: Mapping[str, Any], answers: Sequence[str] | None, scorer: Scorer) -> str:
    """`react, question 7, trial 0: EM 1 and F1 1.000 recorded, 0 and 0.400 now; prediction 'Oslo'`; else empty.

    Without gold answers there is no F1: exact match alone is compared, by their hashes.
    """
    prediction, exact_match, f1 = row["prediction"], row["exact_match"], row["f1"]
    if answers:
        score = scorer(prediction, answers)
        is_equal = exact_match == score.exact_match and f1 is not None and abs(f1 - score.f1) < _ROUNDING
        now = f"{score.exact_match:d} and {score.f1:.3f} now"
    else:
        matches = scorer.is_exact_match(prediction, row["answers_sha256"])
        is_equal, now = exact_match == matches, f"EM {matches:d} now"
    if is_equal:
        return ""
    known = exact_match is not None and f1 is not None
    recorded = f"EM {exact_match:d} and F1 {f1:.3f} recorded" if known else "no score recorded"
    task = f"{row['architecture']}, question {row['example_id']}, trial {row['trial']}"
    return f"{task}: {recorded}, {now}; prediction {prediction!r:.80}"
