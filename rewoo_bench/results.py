"""Results <-> a run folder, and run folders -> a table.

    run.json            the manifest: what was run, with what, and how it ended
    questions.parquet   a row for each example x trial x architecture
    calls.parquet       a row for each model or tool call
    traces.jsonl        plan, evidence and steps of every question

Rows come in any order and are written in the order of the run, so that the same run gives the
same files; what waits for its turn is all that is held in memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewoo_bench.errors import DataError
from rewoo_bench.evaluator import Result
from rewoo_bench.rows import CALLS, QUESTIONS, call_rows, question_row, trace

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "run.json"
QUESTIONS_FILE = "questions.parquet"
CALLS_FILE = "calls.parquet"
TRACES_FILE = "traces.jsonl"
_ROWS_A_GROUP = 500


class RunWriter:
    """Writes a run folder. A context manager: whatever ends the run, what was added is kept.

    `run` has the columns that are the same for all rows. Parquet files appear under their names
    when they are whole. `rows` counts the questions written.
    """

    def __init__(self, folder: Path, run: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._run = run
        self._waiting: dict[int, Result] = {}
        self._next = 0
        self.rows = 0

    def __enter__(self) -> RunWriter:
        self._questions = _Table(self.folder / QUESTIONS_FILE, QUESTIONS)
        self._calls = _Table(self.folder / CALLS_FILE, CALLS)
        # Half a character, which a cut-off model can send, becomes its escape, as JSON writes it.
        self._traces = (self.folder / TRACES_FILE).open("w", encoding="utf-8", errors="backslashreplace")
        return self

    def __exit__(self, *_: object) -> None:
        for index in sorted(self._waiting):
            self._write(self._waiting.pop(index))
        self._traces.close()
        self._questions.close()
        self._calls.close()

    def add(self, result: Result) -> None:
        """Takes a result in any order; writes it as soon as all before it are written."""
        self._waiting[result.task.index] = result
        while self._next in self._waiting:
            self._write(self._waiting.pop(self._next))
            self._next += 1

    def _write(self, result: Result) -> None:
        run_id = self._run["run_id"]
        self._questions.add([question_row(result, self._run)])
        self._calls.add(call_rows(result, run_id))
        self._traces.write(json.dumps(trace(result, run_id), ensure_ascii=False, default=str) + "\n")
        self._traces.flush()
        self.rows += 1


class _Table:
    """A parquet file that grows by groups of rows, and has its name only when it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._part = path.with_suffix(".parquet.part")
        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._writer = pq.ParquetWriter(self._part, schema, compression="zstd")

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS_A_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._part.replace(self._path)

    def _flush(self) -> None:
        if self._rows:
            try:
                table = pa.Table.from_pylist(self._rows, schema=self._schema)
            except UnicodeEncodeError:
                table = pa.Table.from_pylist([_encodable(row) for row in self._rows], schema=self._schema)
            self._writer.write_table(table)
            self._rows.clear()


def _encodable(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with `?` for half a character, which UTF-8 can't hold and a cut-off model can send."""
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """run.json, replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{MANIFEST}.part"
    part.write_text(json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    part.replace(folder / MANIFEST)


def remove_run(folder: Path) -> None:
    """Takes the files of a run, and no others, out of a folder; and the folder where it is empty then."""
    for name in (MANIFEST, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE):
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def read_manifest(folder: Path) -> dict[str, Any]:
    """run.json of a run folder. Raises `DataError`."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{str(folder)!r} is no run folder: it has no {MANIFEST}") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{folder / MANIFEST}: not valid JSON: {error}") from None
    return manifest


def load(*runs: str | Path) -> pd.DataFrame:
    """questions.parquet of each run, one below the other, with pyarrow-backed types.

    `runs` are run folders or parquet files. Raises `DataError`.
    """
    import pandas as pd

    if not runs:
        raise DataError("no run given")
    tables = []
    for run in runs:
        path = Path(run) / QUESTIONS_FILE if Path(run).is_dir() else Path(run)
        try:
            tables.append(pq.read_table(path))
        except FileNotFoundError:
            raise DataError(f"{str(run)!r} is no run: there is no {path.name}") from None
        except pa.ArrowInvalid as error:
            raise DataError(f"{path}: not a parquet file: {error}") from None
    rows: pd.DataFrame = pa.concat_tables(tables, promote_options="default").to_pandas(types_mapper=pd.ArrowDtype)
    return rows
