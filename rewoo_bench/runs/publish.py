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

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewoo_bench.argument_checks import as_path, check_names
from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.model_names import LOCAL, REPLAY
from rewoo_bench.runs.columns import CALLS, QUESTION_COLUMNS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, no_table, read_table
from rewoo_bench.runs.manifest import MANIFEST, Manifest, manifest_of, read_manifest, write_manifest
from rewoo_bench.scoring import BUNDLED

TEXTS = [column.name for column in QUESTION_COLUMNS if column.is_private]
HASHES = "answers_sha256"
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
    tables[QUESTIONS_FILE] = _with_hashes(tables[QUESTIONS_FILE], manifest.dataset.scoring)
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


def _with_hashes(table: pa.Table, scoring: str | None) -> pa.Table:
    """The questions with `answers_sha256`, which rows of earlier versions lack."""
    field, scorer = QUESTIONS.field(HASHES), BUNDLED.get(scoring or "")
    if HASHES not in table.column_names:
        table = table.append_column(field, pa.nulls(len(table), field.type))
    pairs = zip(table[HASHES].to_pylist(), table["answers"].to_pylist(), strict=True)
    hashes = [there or (scorer and answers and scorer.answers_sha256(answers)) for there, answers in pairs]
    return _replaced(table, HASHES, lambda column: pa.array(hashes, column.type))


def _emptied(table: pa.Table, name: str) -> pa.Table:
    return _replaced(table, name, lambda column: pa.nulls(len(column), column.type))


def _without_folders(table: pa.Table, name: str) -> pa.Table:
    """The column with the file's name in place of an absolute path. An older run may lack the column."""
    return _replaced(
        table, name, lambda column: pa.array([text and _file_name(text) for text in column.to_pylist()], column.type)
    )


def _replaced(table: pa.Table, name: str, change: Callable[[pa.ChunkedArray], pa.Array]) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table if position < 0 else table.set_column(position, table.schema.field(position), change(table[name]))
