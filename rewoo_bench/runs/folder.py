"""Run folders -> a table.

run.json            the manifest (manifest.py): what was run, with what, and how it ended
questions.parquet   a row for each example x trial x architecture (columns: columns.py)
calls.parquet       a row for each model or tool call
traces.jsonl        plan, evidence and steps of every question
run.lock            empty; locked by the process that writes into the folder
journal.sqlite      every call and question as it finished, with a log next to it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import QUESTION_COLUMNS, QUESTIONS
from rewoo_bench.runs.manifest import MANIFEST, Manifest, no_run, read_manifest, resume_command
from rewoo_bench.text.argument_checks import as_path

if TYPE_CHECKING:
    import pandas as pd


LOCK = "run.lock"
QUESTIONS_FILE = "questions.parquet"
CALLS_FILE = "calls.parquet"
TRACES_FILE = "traces.jsonl"
JOURNAL_FILE = "journal.sqlite"
CATEGORIES = [column.name for column in QUESTION_COLUMNS if column.is_category]
_KEY = ("run_id", "architecture", "example_id", "trial")  # of every row, by which a file is known as a run's


def load(*runs: str | Path) -> pd.DataFrame:
    """questions.parquet of each run, one below the other, with pyarrow-backed types and categories.

    One column more, `run_folder`, has the name of the run's folder, or its path where two folders have the same name.
    `runs` are run folders or parquet files, each an argument: `load("a", "b")`. Raises `DataError`.
    """
    tables = []
    for table, shown in zip(_tables(runs), _names(_folders(runs)), strict=True):
        table = table.select([each for each in table.column_names if each != "run_folder"])
        column = pa.repeat(pa.scalar(shown), len(table)).dictionary_encode()
        tables.append(table.append_column("run_folder", column))
    return as_frame(_joined(tables))


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Rows of questions.parquet with pyarrow-backed types, and categories for columns of few different values."""
    import pandas as pd

    for name in CATEGORIES:
        place = table.schema.get_field_index(name)
        kind = table.schema.field(place).type if place >= 0 else None
        if kind is not None and not (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)):
            table = table.set_column(place, name, table[name].cast(pa.string()).dictionary_encode())
    rows: pd.DataFrame = table.to_pandas(
        types_mapper=lambda kind: None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind)
    )
    return rows


def load_table(*runs: str | Path) -> pa.Table:
    """The same as a pyarrow table, which loads faster, without `run_folder`. Raises `DataError`."""
    return _joined(_tables(runs))


def _tables(runs: Sequence[str | Path]) -> list[pa.Table]:
    """questions.parquet of each run. Raises `DataError`."""
    if not runs:
        raise DataError("no run given")
    tables = []
    for run in _paths(runs):
        path = run / QUESTIONS_FILE if run.is_dir() else run
        if run.is_file() and run.suffix != ".parquet":
            raise no_run(run, QUESTIONS_FILE)
        try:
            table = read_table(path, QUESTIONS, categories=CATEGORIES)
        except FileNotFoundError:
            raise no_table(run) from None
        tables.append(table)
    return tables


def _paths(runs: Sequence[object]) -> list[Path]:
    """Raises `UsageError` for anything else than a path."""
    return [as_path("run", run, "the path of a run's folder or of its parquet file") for run in runs]


def _folders(runs: Sequence[object]) -> list[Path]:
    return [path if path.is_dir() else path.parent for path in _paths(runs)]


def _names(folders: Sequence[Path]) -> list[str]:
    """The name of each folder, or its path where two have the same name."""
    names = [folder.resolve().name for folder in folders]
    return [str(folder) if names.count(name) > 1 else name for folder, name in zip(folders, names, strict=True)]


def no_table(folder: Path, lacks: str = QUESTIONS_FILE) -> DataError:
    """Why a run has no table, and what to do."""
    if not (folder / MANIFEST).is_file():
        return no_run(folder, lacks)
    name, command = repr(str(folder)), resume_command(folder)
    if read_manifest(folder).status == "running":
        return DataError(f"{name} has no tables yet: the run isn't finished; if it was killed, go on with: {command}")
    if (folder / JOURNAL_FILE).is_file():
        return DataError(f"{name} has lost its {lacks}; write it again from the journal with: {command}")
    return DataError(f"{name} has lost its {lacks} and {JOURNAL_FILE}; make the run again")


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries()


def read_table(
    path: Path, schema: pa.Schema, *, columns: Sequence[str] | None = None, categories: Sequence[str] = ()
) -> pa.Table:
    """Columns of the file, all of them by default; the texts of `categories` are dictionaries.

    A column that came later than the file is null in all rows. Raises `DataError` for a damaged file and for one of
    something else, and FileNotFoundError. `pq.read_table` would import far more.
    """
    with damage_of(path), pq.ParquetFile(path) as file:
        has = file.schema_arrow.names
    texts = [name for name in categories if name in has]
    with damage_of(path), pq.ParquetFile(path, read_dictionary=texts) as file:
        if missing := next((name for name in _KEY if name not in has), None):
            raise DataError(f"{path}: the column {missing!r} is missing; the file was changed, or isn't a run's")
        wanted = dict.fromkeys([*has, *schema.names] if columns is None else columns)
        table = file.read(columns=[name for name in wanted if name in has])
        for name in wanted.keys() - {*has}:
            table = table.append_column(schema.field(name), pa.nulls(len(table), schema.field(name).type))
        return table.select([*wanted])


_AGAIN = "`rewoo-bench run --resume RUN` writes the tables of a run with a journal again"


@contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """Turns what a damaged parquet file raises into a `DataError` with its name."""
    try:
        yield
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise DataError(f"{path}: a folder, where a parquet file was expected") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{path}: not a parquet file, or a damaged one: {what}; {_AGAIN}") from None


def manifests(*runs: str | Path) -> dict[str, Manifest]:
    """run.json by run id, of those runs that have one: run folders, or parquet files next to it. Raises `DataError`."""
    read = [read_manifest(folder) for folder in _folders(runs) if (folder / MANIFEST).exists()]
    return {manifest.run_id: manifest for manifest in read}


def named_manifests(*runs: str | Path) -> dict[str, Manifest]:
    """The same by the name of the run's folder, as in `run_folder` of `load`. Raises `DataError`."""
    named = zip(_names(folders := _folders(runs)), folders, strict=True)
    return {name: read_manifest(folder) for name, folder in named if (folder / MANIFEST).exists()}
