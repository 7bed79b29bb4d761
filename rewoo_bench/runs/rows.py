"""Rows of questions.parquet: their columns as numbers, means over questions, which to doubt, which are in no mean,
which are an oracle's, and subsets by question.

    columns = read_columns(table, ["architecture", "exact_match"])
    columns["exact_match"].values       # array([1., nan, 0.]): NaN where a value is missing
    columns["architecture"].values      # array([0, 0, 1]), positions in
    columns["architecture"].names       # ["rewoo", "react"]

Columns go through lists: pyarrow's own conversion to numpy imports pandas, which takes a third of a second, and its
`dictionary_encode` imports pyarrow.compute.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rewoo_bench.config.names import REPLAY, is_oracle, model_label
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.folder import QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.runs.option_types import SUBSET_COLUMNS

if TYPE_CHECKING:
    import pandas as pd


_LONGEST_ERROR = 300  # characters that are shown
_A_SECOND = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """A column: numbers, NaN for a missing one; or positions of texts in `names`, -1 for a missing one.

    Times are seconds since 1970.
    """

    values: NDArray[Any]
    names: Sequence[str] = ()

    def of(self, rows: NDArray[Any]) -> ColumnValues:
        """The column for the rows of a mask."""
        return ColumnValues(self.values[rows], self.names)

    @property
    def texts(self) -> NDArray[np.object_]:
        """The text of each row; empty for a missing one."""
        texts: NDArray[np.object_] = np.array([*self.names, ""], dtype=object)[self.values]
        return texts

    @property
    def names_in_use(self) -> list[str]:
        """The texts that occur, in the order of their first occurrence."""
        positions, first = np.unique(self.values, return_index=True)
        return [self.names[position] for position in positions[np.argsort(first)] if position >= 0]


def read_columns(
    rows: pd.DataFrame | pa.Table, names: Sequence[str], optional: Collection[str] = ()
) -> dict[str, ColumnValues]:
    """Columns of numbers, booleans or texts, from a pyarrow or pandas table, and those of the `optional` that it has.

    Raises `DataError` for a missing one.
    """
    has = rows.column_names if isinstance(rows, pa.Table) else list(rows.columns)
    check_columns(has, names)
    wanted = [*names, *(name for name in optional if name in has and name not in names)]
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows[wanted], preserve_index=False)
    columns = {}
    for name, column in zip(wanted, table.select(wanted).unify_dictionaries().columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            places: dict[str, int] = {}
            codes = [-1 if text is None else places.setdefault(text, len(places)) for text in column.to_pylist()]
            columns[name] = ColumnValues(np.array(codes, dtype=np.int64), list(places))
            continue
        is_coded = pa.types.is_dictionary(column.type)
        chunks = [_numbers(chunk.indices if is_coded else chunk) for chunk in column.chunks]
        values = np.concatenate(chunks) if chunks else np.empty(0)
        if is_coded:
            texts = column.chunk(0).dictionary.to_pylist() if chunks else []
            columns[name] = ColumnValues(np.nan_to_num(values, nan=-1).astype(np.int64), texts)
        else:
            columns[name] = ColumnValues(values)
    return columns


def averaged(labels: NDArray[Any] | None, *columns: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Columns of rows as columns of questions: the mean over each question's trials."""
    if labels is None or not len(labels):
        return list(columns)
    _, position = np.unique(labels, return_inverse=True)
    sizes = np.bincount(position)
    orders = (np.lexsort((column, position)) for column in columns)  # so that the order of rows rounds no sum
    pairs = zip(columns, orders, strict=True)
    return [np.bincount(position[order], weights=column[order]) / sizes for column, order in pairs]


def exact_mean(values: NDArray[np.float64]) -> float:
    """The mean, rounded once, so that no order of the values gives another; NaN where there are none."""
    return math.fsum(values) / len(values) if len(values) else math.nan


def mean_over_questions(values: NDArray[Any], questions: NDArray[Any]) -> float:
    """The mean of `averaged` values, without NaN: a question counts once, however many of its trials were asked.

    Every mean that is shown or checked is this one; analysis/stats has its interval. NaN where no value is known.
    """
    known = ~np.isnan(values)
    (means,) = averaged(questions[known], values[known])
    return exact_mean(means)


MODELS = ("model", "planner_model", "solver_model")


def model_labels(columns: Mapping[str, ColumnValues]) -> list[str]:
    """The models of rows, each once, with another one of the planner or solver: `openai/a (planner openai/b)`.

    `columns` are those of `MODELS` that there are.
    """
    named = [columns[name] for name in MODELS if name in columns]
    keys, first = np.unique(np.stack([column.values for column in named]), axis=1, return_index=True)
    texts = [
        [column.names[int(place)] if place >= 0 else "" for column, place in zip(named, key, strict=True)]
        for key in keys.T[np.argsort(first)]
    ]
    return list(dict.fromkeys(model_label(*names) for names in texts))


def check_columns(has: Iterable[str], names: Iterable[str]) -> None:
    """Raises `DataError` where a table of questions lacks a column."""
    present = set(has)
    if missing := [name for name in names if name not in present]:
        raise DataError(f"no rows of questions.parquet: the column {missing[0]!r} is missing")


def _numbers(chunk: pa.Array) -> NDArray[np.float64]:
    """The values of a chunk, NaN for a missing one."""
    if pa.types.is_timestamp(chunk.type):
        return np.array(chunk.view(pa.int64()).to_pylist(), dtype=np.float64) / _A_SECOND[chunk.type.unit]
    return np.array(chunk.to_pylist(), dtype=np.float64)


def arrow_numbers(values: NDArray[np.float64], kind: pa.DataType) -> pa.Array:
    """A column of numbers for a table, null for NaN. `pa.array` would import pandas."""
    known = ~np.isnan(values)
    numbers = np.where(known, values, 0).astype(np.int64 if pa.types.is_integer(kind) else np.float64)
    bits = np.packbits(known, bitorder="little").tobytes()
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(bits), pa.py_buffer(numbers.tobytes())])


# Rows to doubt, by their flags.
#
#     flagged(rows, "unmetered")      # a mask
#     list(flag_lines(rows))          # ["mine: 20 of 20 rows were answered without a metered model call …"]


UNMETERED = "unmetered"
FLAGS = {
    UNMETERED: "answered without a metered model call: what it used isn't known, and these rows are in no mean",
    "other_question": "sent a prompt that holds the text of another question of the run",
    "no_call": "answered a later trial without a call",
    "dropped_fields": "sent fields that were not passed on to the model",
}
"""What each flag of a row says of its question, the worst first."""
_MOST_ADDRESSES = 3


def flagged(rows: pd.DataFrame | pa.Table, flag: str) -> NDArray[np.bool_]:
    """A mask over rows: True where the row has the flag."""
    return np.fromiter((flag in flags for flags in _flags(rows)), dtype=bool, count=len(rows))


def flag_lines(rows: pd.DataFrame | pa.Table, folders: Sequence[Path] = ()) -> Iterator[str]:
    """A line for each flag and architecture, and where agents connected to beside the gateway, as traces have it."""
    connected: dict[str, Counter[str]] = {}
    for folder in folders:
        with suppress(OSError, ValueError), (folder / TRACES_FILE).open(encoding="utf-8") as lines:
            for trace in (json.loads(line) for line in lines if '"connections"' in line):
                if seen := (trace.get("notes") or {}).get("connections"):
                    connected.setdefault(str(trace["architecture"]), Counter()).update(map(str, seen))
    addresses = {}
    for name, found in connected.items():
        more = f" and {len(found) - _MOST_ADDRESSES} more" if len(found) > _MOST_ADDRESSES else ""
        addresses[name] = ", ".join(address for address, _ in found.most_common(_MOST_ADDRESSES)) + more
    column = rows["architecture"]
    architectures = [str(name) for name in (column.to_pylist() if isinstance(rows, pa.Table) else column)]
    counts = Counter((flag, name) for flags, name in zip(_flags(rows), architectures, strict=True) for flag in flags)
    for flag, name in sorted(counts, key=lambda key: [*FLAGS, key[0]].index(key[0])):
        asked = architectures.count(name)
        line = f"{name} {FLAGS.get(flag, 'is flagged')} ({flag}): {counts[flag, name]:,} of {asked:,} rows"
        where = addresses.pop(name, None) if flag == UNMETERED else None
        yield f"{line}; its processes connected to {where}" if where else line
    for name, where in addresses.items():
        if name in architectures:
            yield f"{name}: its processes connected to {where} beside the gateway, as tools of its own may do"


def _flags(rows: pd.DataFrame | pa.Table) -> Iterator[Iterable[str]]:
    """The flags of each row; none where the column or the row's value is missing."""
    is_table = isinstance(rows, pa.Table)
    if "flags" not in (rows.column_names if is_table else rows.columns):
        return iter([()] * len(rows))
    values = rows["flags"].to_pylist() if is_table else rows["flags"]
    return (flags if isinstance(flags, Iterable) else () for flags in values)


# Rows that are in no mean: they show nothing about what an architecture costs.
#
# Of a question that the infrastructure failed there is no exact match (null), and its tokens, calls and cost are of
# incomplete work. A question that an external agent answered without one metered model call (the flag `unmetered`)
# looks free, and what answered it isn't known. Means, intervals, tests, claims, gates and figures leave both out and
# give their number. A comparison of two architectures leaves out both rows of the pair. A question that reached a
# limit (steps, tokens, time, cost) hasn't failed: without an answer it counts as wrong, at the cost in its row.
#
#     left_out(rows)                    # a mask: True for a row that is in no mean


def failed(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the infrastructure failed the question.

    Of a recording that says nothing about the answer there is no exact match either, and it hasn't failed.
    """
    columns = read_columns(rows, ["exact_match"], ["stop_reason"])
    unscored: NDArray[np.bool_] = np.isnan(columns["exact_match"].values)
    if (stops := columns.get("stop_reason")) is None:
        return unscored
    is_error: NDArray[np.bool_] = np.array([name == "error" for name in [*stops.names, "error"]])[stops.values]
    return unscored & is_error


def left_out(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the question failed, or was answered without a metered call."""
    return failed(rows) | flagged(rows, UNMETERED)


def common_error(rows: pd.DataFrame) -> str:
    """The most common error of rows, in a line; empty where none is known, as in a published run."""
    errors = rows["error"].dropna().astype(str)
    return " ".join(errors.value_counts().index[0].split())[:_LONGEST_ERROR] if len(errors) else ""


def estimated(rows: pd.DataFrame) -> bool:
    """Whether the usage of some rows wasn't reported, and was counted with a tokenizer."""
    return bool(rows["usage_source"].astype(str).isin(["estimated", "mixed"]).any())


# Which rows are an oracle's: it is given the answers, so their accuracy and their latency mean nothing.
#
#     oracle_rows(rows)                # a mask over rows of questions.parquet
#     answers_of_oracle("replay/r1")   # True where the run in r1 was answered by an oracle, or replays one that was
#
# The model's name says it, or the column `oracle`, which is null where a replayed recording doesn't say.


ORACLE_COLUMN = "oracle"


def oracle_rows(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where an oracle answered, or a replay of one."""
    columns = read_columns(rows, ["model"], [ORACLE_COLUMN])
    models = columns["model"]
    mask: NDArray[np.bool_] = np.array([*map(is_oracle, models.names), False])[models.values]  # -1: no name
    if ORACLE_COLUMN in columns:
        mask = mask | (columns[ORACLE_COLUMN].values > 0)
    return mask


def answers_of_oracle(model: str) -> bool | None:
    """Whether a model's answers are an oracle's; of a replay, those of its recorded run. None where nothing says it."""
    seen: set[str] = set()
    while model.startswith(REPLAY) and model not in seen:
        seen.add(model)
        folder = Path(model.removeprefix(REPLAY))
        # A run that was killed before its tables were written has only the manifest and the journal.
        with suppress(pa.ArrowException, OSError), pq.ParquetFile(folder / QUESTIONS_FILE) as file:
            if values := file.read(columns=[ORACLE_COLUMN])[ORACLE_COLUMN].drop_null().to_pylist():
                return any(values)
        try:
            model = str(read_manifest(folder).options.get("model", ""))
        except DataError:  # a journal is enough to replay
            return None
    return is_oracle(model)


# Rows of questions.parquet, split by the kind of question.
#
# for part in subsets(rows, "question_type"):    # part["dataset"] is "hotpotqa, bridge"
#     ...


def subsets(rows: pd.DataFrame, by: str) -> list[pd.DataFrame]:
    """The rows of each value of such a column, with the value in the data set's name; in order of the values.

    Raises `UsageError` for another column, and where no row has a value.
    """
    if by not in SUBSET_COLUMNS:
        raise UsageError(unknown("column to compare by", by, SUBSET_COLUMNS))
    present = [name for name in SUBSET_COLUMNS if name in rows.columns and rows[name].notna().any()]
    if by not in present:
        others = ", ".join(present) or "none of these columns"
        raise UsageError(f"these runs can't be compared by {by}: no row has one; they have {others}")
    values = rows[by].astype(object).where(rows[by].notna(), None)
    parts = [(f"{by} {value}", rows[values == value]) for value in sorted(values.dropna().unique())]
    parts.append((f"no {by}", rows[values.isna()]))
    return [part.assign(dataset=part["dataset"].astype(str) + f", {name}") for name, part in parts if len(part)]
