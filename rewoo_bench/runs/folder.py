"""Results <-> a run folder, and run folders -> a table.

    run.json            the manifest: what was run, with what, and how it ended
    questions.parquet   a row for each example x trial x architecture
    calls.parquet       a row for each model or tool call
    traces.jsonl        plan, evidence and steps of every question
    run.lock            empty; held by the process that writes into the folder (run_folder.py)
    journal.sqlite      every call and question as it finished (journal.py), and its log beside it

The journal is the truth while a run goes on; the parquet files are made from it when the run ends,
whatever ends it, in the order of the run, so that the same run gives the same files.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from anyio import CancelScope, to_thread

from rewoo_bench.errors import DataError
from rewoo_bench.evaluation.rows import lines_of, tables_of
from rewoo_bench.journal.records import TaskKey
from rewoo_bench.journal.store import JOURNAL, Journal, open_journal
from rewoo_bench.redaction import redact_settings, sent_in
from rewoo_bench.runs.schema import CALLS, QUESTIONS
from rewoo_bench.text.model_output import replace_surrogates

if TYPE_CHECKING:
    import pandas as pd

    from rewoo_bench.evaluation.evaluator import Result

MANIFEST = "run.json"
LOCK = "run.lock"
QUESTIONS_FILE = "questions.parquet"
CALLS_FILE = "calls.parquet"
TRACES_FILE = "traces.jsonl"
_QUESTIONS_A_GROUP = 1000
# Columns of few different values: categories in pandas.
CATEGORIES = ["run_id", "architecture", "dataset", "model", "planner_model", "solver_model", "question_type"]
CATEGORIES += ["level", "stop_reason", "usage_source"]


@dataclass(frozen=True)
class RunFolder:
    """An open run: its folder, its journal, and the columns that are the same in all its rows."""

    folder: Path
    journal: Journal
    columns: Mapping[str, Any]

    async def keep(self, result: Result) -> None:
        """Writes a result into the journal. Raises `JournalError`."""
        result, rows, traced = lines_of(result, self.columns)
        await self.journal.add_question(result.task.key, rows, traced, failed=result.score is None)

    async def export(self, tasks: Iterable[TaskKey]) -> int:
        """Makes the files of what is finished; returns how many questions that is."""
        rows = 0
        await self.journal.settle()
        with CancelScope(shield=True):
            rows = await to_thread.run_sync(export, self.folder, self.journal, tasks)
        return rows  # noqa: RET504 - a scope may swallow a cancellation, says mypy


@asynccontextmanager
async def open_run(folder: Path, columns: Mapping[str, Any]) -> AsyncIterator[RunFolder]:
    """The run in a folder that is there."""
    async with open_journal(folder / JOURNAL) as journal:
        yield RunFolder(folder, journal, columns)


def export(folder: Path, journal: Journal, tasks: Iterable[TaskKey]) -> int:
    """The finished questions of a journal as files, in the order of `tasks`; returns how many there are.

    Each file appears under its name when all three are whole: a disk that is full leaves those of before.
    """
    written = 0
    rest = iter(tasks)
    traces = folder / f"{TRACES_FILE}.part"
    with (
        _removed_unless_written(traces),
        Table(folder / QUESTIONS_FILE, QUESTIONS) as questions,
        Table(folder / CALLS_FILE, CALLS) as calls,
        traces.open("w", encoding="utf-8") as lines,
    ):
        while group := list(islice(rest, _QUESTIONS_A_GROUP)):
            if found := journal.questions(group):
                of_questions, of_calls = tables_of([rows for rows, _ in found])
                questions.add(of_questions)
                calls.add(of_calls)
                lines.writelines(f"{line}\n" for _, line in found)
                written += len(found)
        questions.close()
        calls.close()
    traces.replace(folder / TRACES_FILE)
    return written


@contextmanager
def _removed_unless_written(part: Path) -> Iterator[None]:
    """Takes a file away again where writing it failed."""
    try:
        yield
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class Table:
    """A parquet file that has its name only when it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._part = path.with_suffix(".parquet.part")
        self._schema = schema

    def __enter__(self) -> Table:
        self._writer = pq.ParquetWriter(self._part, self._schema, compression="zstd")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            self._part.replace(self._path)
            return
        with suppress(OSError):  # what was raised first is what went wrong
            self.close()
        self._part.unlink(missing_ok=True)

    def close(self) -> None:
        """Writes what is left, once. Raises `OSError`."""
        self._writer.close()

    def add(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """run.json, replaced as a whole. Keys, and what is before the @ of an address, are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{MANIFEST}.part"
    shown = redact_settings(manifest, sent_in((manifest.get("options") or {}).get("api_base")))
    text = replace_surrogates(json.dumps(shown, indent=2, ensure_ascii=False, default=str))
    with _removed_unless_written(part):
        part.write_text(text + "\n", encoding="utf-8")
    part.replace(folder / MANIFEST)


def remove_run(folder: Path) -> None:
    """Takes the files of a run, and no others, out of a folder; and the folder where it is empty then."""
    journal = folder.glob(f"{JOURNAL}-*")  # as a killed run leaves it
    files = (MANIFEST, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE, JOURNAL, LOCK)
    for path in (*(folder / name for name in files), *journal):
        path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def read_manifest(folder: Path) -> dict[str, Any]:
    """run.json of a run folder. Raises `DataError`."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{str(folder)!r} is no run folder: it has no {MANIFEST}") from None
    except OSError as error:
        raise DataError(f"{folder / MANIFEST}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{folder / MANIFEST}: not UTF-8") from None
    except ValueError as error:
        raise DataError(f"{folder / MANIFEST}: not valid JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{folder / MANIFEST}: not valid JSON: nested too deeply") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("run_id", ""), str):
        raise DataError(f"{folder / MANIFEST}: no manifest of a run: expected an object with a run_id")
    return manifest


def load(*runs: str | Path) -> pd.DataFrame:
    """questions.parquet of each run, one below the other, with pyarrow-backed types and categories.

    One column more, `run_folder`, has the name of the run's folder. `runs` are run folders or parquet files.
    Raises `DataError`.
    """
    import pandas as pd

    tables = [
        table.append_column("run_folder", pa.repeat(pa.scalar(name), len(table)).dictionary_encode())
        for table, name in zip(_tables(runs), _folder_names(runs), strict=True)
    ]
    rows: pd.DataFrame = _joined(tables).to_pandas(
        types_mapper=lambda kind: None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind)
    )
    return rows


def load_table(*runs: str | Path) -> pa.Table:
    """The same as a table of pyarrow, which is there sooner, without `run_folder`. Raises `DataError`."""
    return _joined(_tables(runs))


def _tables(runs: Sequence[str | Path]) -> list[pa.Table]:
    """questions.parquet of each run. Raises `DataError`."""
    if not runs:
        raise DataError("no run given")
    tables = []
    for run in runs:
        path = Path(run) / QUESTIONS_FILE if Path(run).is_dir() else Path(run)
        try:
            tables.append(_read(path))
        except FileNotFoundError:
            unfinished = (path.parent / MANIFEST).is_file()
            said = "is a run without tables, since it was killed; go on with --resume" if unfinished else "is no run"
            missing = (
                f"it has no {path.name}" if path.parent.is_dir() and Path(run).is_dir() else "no such file or folder"
            )
            raise DataError(f"{str(run)!r} {said}: {missing}") from None
        except IsADirectoryError:
            raise DataError(f"{path}: a folder, where a parquet file was expected") from None
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path}: not a parquet file, or a damaged one: {str(error).splitlines()[0]}") from None
    return tables


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries()


def _read(path: Path) -> pa.Table:
    """A table, its texts of few values as dictionaries; an older run lacks some. `read_table` would import far more."""
    with pq.ParquetFile(path) as file:
        categories = [name for name in CATEGORIES if name in file.schema_arrow.names]
    with pq.ParquetFile(path, read_dictionary=categories) as file:
        return file.read()


def _folder_names(runs: Sequence[str | Path]) -> list[str]:
    """What each run's folder is called; the path as it was given where two are called the same."""
    folders = [path if path.is_dir() else path.parent for path in map(Path, runs)]
    names = [folder.resolve().name for folder in folders]
    return [str(folder) if names.count(name) > 1 else name for folder, name in zip(folders, names, strict=True)]


def manifests(*runs: str | Path) -> dict[str, dict[str, Any]]:
    """run.json by run id, of those runs that have one: run folders, or parquet files beside it. Raises `DataError`."""
    folders = [Path(run) if Path(run).is_dir() else Path(run).parent for run in runs]
    found = [read_manifest(folder) for folder in folders if (folder / MANIFEST).exists()]
    return {str(manifest["run_id"]): manifest for manifest in found}
