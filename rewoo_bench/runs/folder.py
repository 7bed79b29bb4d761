"""Run folders -> a table.

run.json            the manifest (manifest.py): what was run, with what, and how it ended
questions.parquet   a row for each example x trial x architecture (columns: columns.py)
calls.parquet       a row for each model or tool call
traces.jsonl        plan, evidence and steps of every question
run.lock            empty; locked by the process that writes into the folder
journal.sqlite      every call and question as it finished, with a log next to it
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, LATER, NO_STEP_ROLES, OLD_NAMES, QUESTION_COLUMNS, QUESTIONS
from rewoo_bench.runs.manifest import MANIFEST, Manifest, check_no_pipe, no_run, read_manifest
from rewoo_bench.text.argument_checks import as_path
from rewoo_bench.text.loops import AT_LIMIT, loop_start

if TYPE_CHECKING:
    import pandas as pd


# Loops of runs that are older than their columns, inferred from the sizes of their calls.
#
#     with_loops(questions, calls)    # with loop_step, loop_tokens, and the flag `inferred_loop` where there is a loop
#
# Published calls have no texts. Two turns are taken for the same where their replies have the same number of output
# tokens, call the same tools, and add the same number of tokens to the next prompt: the reply and what the tools
# returned. Two different turns may agree in all of that, so each loop that is found is flagged, and none is looked for
# where the question was answered. A turn that repeats an action in other words is missed, so a loop may begin earlier.


INFERRED = "inferred_loop"
KEY = ("run_id", "architecture", "example_id", "trial")
OF_CALLS = (*KEY, "call_index", "kind", "name", "role", "place", "status", "input_tokens", "output_tokens")


def with_loops(questions: pa.Table, calls: pa.Table) -> pa.Table:
    """The questions with the columns that they lack; null where a question has no call."""
    of: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for call in calls.select(OF_CALLS).to_pylist():
        of.setdefault(tuple(call[name] for name in KEY), []).append(call)
    keys = zip(*(questions[name].to_pylist() for name in KEY), strict=True)
    answered = [reason == "answered" for reason in questions["stop_reason"].to_pylist()]
    found = [
        _loop(sorted(of.get(key, ()), key=lambda call: call["call_index"]), is_answered)
        for key, is_answered in zip(keys, answered, strict=True)
    ]
    flags = questions["flags"].to_pylist() if "flags" in questions.column_names else [None] * len(questions)
    columns = {
        "loop_step": [step for step, _ in found],
        "loop_tokens": [tokens for _, tokens in found],
        "flags": [
            there if step is None else [*(there or ()), INFERRED] for there, (step, _) in zip(flags, found, strict=True)
        ],
    }
    there = [name for name in questions.column_names if name not in columns]
    made = questions.select(there)
    for name, values in columns.items():
        made = made.append_column(QUESTIONS.field(name), pa.array(values, QUESTIONS.field(name).type))
    return made


def _loop(calls: Sequence[dict[str, Any]], is_answered: bool) -> tuple[int | None, int | None]:
    """`loop_step` and `loop_tokens` of a question with these calls."""
    own = [call for call in calls if not call["place"].endswith(AT_LIMIT)]
    done = [call for call in own if call["kind"] == "tool" or _is_turn(call)]
    turns = [call for call in done if call["kind"] != "tool"]
    if not turns:
        return None, None
    added = [after["input_tokens"] - before["input_tokens"] for before, after in pairwise(turns)]
    # No prompt follows the last turn: it may have added what any turn with a reply of its size did.
    last = dict.fromkeys(more for turn, more in zip(turns, added, strict=False) if _reply(turn) == _reply(turns[-1]))
    found = next(filter(None, (loop_start(_sizes(done, [*added, more])) for more in last)), None)
    if found is None or is_answered:
        return None, 0
    step, place = found
    looped = [
        call
        for call in own
        if call["kind"] == "model" and call["role"] != "judge" and call["call_index"] >= done[place]["call_index"]
    ]
    return step + 1, sum(call["input_tokens"] + call["output_tokens"] for call in looped)


def _sizes(done: Sequence[dict[str, Any]], added: Sequence[int]) -> list[tuple[bool, tuple[Any, ...]]]:
    """What each call did, as far as its size tells. `added` are the tokens that each turn adds to the next prompt."""
    sizes: list[tuple[bool, tuple[Any, ...]]] = []
    reply: tuple[Any, ...] = ()
    more = iter(added)
    for call in done:
        if call["kind"] == "tool":
            sizes.append((True, (call["name"], call["status"], *reply)))
        else:
            sizes.append((False, _reply(call)))
            reply = (*_reply(call), next(more))
    return sizes


def _reply(call: dict[str, Any]) -> tuple[str, int]:
    return call["role"], call["output_tokens"]


def _is_turn(call: dict[str, Any]) -> bool:
    return call["kind"] == "model" and call["status"] == "ok" and call["role"] not in NO_STEP_ROLES


LOCK = "run.lock"
ENGINE_FILE = "engine.txt"
"""Workers and speed of a run that asks its questions on a cluster now."""
QUESTIONS_FILE = "questions.parquet"
CALLS_FILE = "calls.parquet"
TRACES_FILE = "traces.jsonl"
JOURNAL_FILE = "journal.sqlite"
CATEGORIES = [column.name for column in QUESTION_COLUMNS if column.is_category]


def load(*runs: str | Path) -> pd.DataFrame:
    """questions.parquet of each run, one below the other, with pyarrow-backed types and categories.

    One column more, `run_folder`, has the name of the run's folder. `runs` are run folders or parquet files. Loops of
    a run that is older than their columns are inferred from its calls (inferred_loops.py).
    Raises `DataError`.
    """
    tables = [
        table.select([each for each in table.column_names if each != "run_folder"]).append_column(
            "run_folder", pa.repeat(pa.scalar(name), len(table)).dictionary_encode()
        )
        for table, name in zip(_tables(runs), _folder_names(runs), strict=True)
    ]
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
        if "loop_step" not in table.column_names and (run / CALLS_FILE).is_file():
            table = with_loops(table, read_table(run / CALLS_FILE, CALLS, columns=OF_CALLS))
        for field in QUESTIONS:
            if field.name in LATER and field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(len(table), field.type))
        tables.append(table)
    return tables


def _paths(runs: Sequence[object]) -> list[Path]:
    """Raises `UsageError` for anything else than a path."""
    return [as_path("run", run, "the path of a run's folder or of its parquet file") for run in runs]


def no_table(folder: Path, lacks: str = QUESTIONS_FILE) -> DataError:
    """Why a run has no table, and what to do."""
    if not (folder / MANIFEST).is_file():
        return no_run(folder, lacks)
    name, command = repr(str(folder)), f"rewoo-bench run --resume {shlex.quote(str(folder))}"
    if read_manifest(folder).status == "running":
        return DataError(f"{name} has no tables yet: the run was killed; finish it with: {command}")
    if (folder / JOURNAL_FILE).is_file():
        return DataError(f"{name} has lost its {lacks}; write it again from the journal with: {command}")
    return DataError(f"{name} has lost its {lacks} and {JOURNAL_FILE}; make the run again")


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries()


def read_table(
    path: Path, schema: pa.Schema, *, columns: Sequence[str] | None = None, categories: Sequence[str] = ()
) -> pa.Table:
    """Those of the columns that the file has, all of them by default; the texts of `categories` are dictionaries.

    A column of an earlier version gets its name of today.

    Raises `DataError` for a damaged file and for one that doesn't fit the schema, and FileNotFoundError.
    `pq.read_table` would import far more.
    """
    with open_table(path, schema) as file:
        there = file.schema_arrow.names
    old = {name: OLD_NAMES[name] for name in schema.names if name not in there and OLD_NAMES.get(name) in there}
    new = {before: name for name, before in old.items()}
    in_file = [old.get(name, name) for name in categories if old.get(name, name) in there]
    with damage_of(path), pq.ParquetFile(path, read_dictionary=in_file) as file:
        table = file.read(columns=columns and [old.get(n, n) for n in columns if old.get(n, n) in there])
        table.validate(full=True)
        return table.rename_columns([new.get(name, name) for name in table.column_names])


_AGAIN = "`rewoo-bench run --resume RUN` writes the tables of a run with a journal again"


def open_table(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """The file, whose columns fit the schema; what is read of it is read under `damage_of`. Raises as `read_table`."""
    check_no_pipe(path)
    with damage_of(path):
        file = pq.ParquetFile(path)
        try:
            _check_schema(file.schema_arrow, schema)
        except DataError as error:
            file.close()
            raise DataError(f"{path}: {error}; the file was changed, or isn't a run's") from None
        return file


def _check_schema(found: pa.Schema, expected: pa.Schema) -> None:
    """Raises `DataError` for a missing column, and for one that holds something else than a run writes.

    Other columns, and other types of the same kind, are let pass: pandas writes whole numbers with gaps as `double`.
    """
    for field in expected:
        name = field.name if field.name in found.names else OLD_NAMES.get(field.name, field.name)
        if name not in found.names:
            if field.name in LATER:
                continue
            raise DataError(f"the column {field.name!r} is missing")
        kind = found.field(name).type
        if _kind(kind) not in (_kind(field.type), "nothing"):
            raise DataError(f"the column {name!r} has {_kind(kind)}, expected {_kind(field.type)}")


def _kind(type_: pa.DataType) -> str:
    """What a column holds, in words."""
    kinds = pa.types
    if kinds.is_dictionary(type_):
        return _kind(type_.value_type)
    if kinds.is_list(type_) or kinds.is_large_list(type_):
        return "lists of texts" if _kind(type_.value_type) in ("texts", "nothing") else f"{type_}"
    of = {
        "nothing": kinds.is_null(type_),
        "texts": kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_),
        "numbers": kinds.is_integer(type_) or kinds.is_floating(type_),
        "truth values": kinds.is_boolean(type_),
        "times": kinds.is_timestamp(type_),
    }
    return next((name for name, holds in of.items() if holds), f"{type_}")


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


def _folder_names(runs: Sequence[str | Path]) -> list[str]:
    """The name of each run's folder; the given path where two folders have the same name."""
    folders = [path if path.is_dir() else path.parent for path in map(Path, runs)]
    names = [folder.resolve().name for folder in folders]
    return [str(folder) if names.count(name) > 1 else name for folder, name in zip(folders, names, strict=True)]


def manifests(*runs: str | Path) -> dict[str, Manifest]:
    """run.json by run id, of those runs that have one: run folders, or parquet files next to it. Raises `DataError`."""
    folders = [path if path.is_dir() else path.parent for path in _paths(runs)]
    read = [read_manifest(folder) for folder in folders if (folder / MANIFEST).exists()]
    return {manifest.run_id: manifest for manifest in read}
