"""Rows of questions.parquet: one table for all that reads them (`Rows`), means over questions, which rows to doubt,
which are in no mean, and which are an oracle's.

    rows = Rows(rewoo_bench.load("results/local/mine"))
    rows["exact_match"]                             # array([1., nan, 0.]): NaN where a value is missing
    rows["architecture"]                            # array(["rewoo", "rewoo", "react"]): empty where a text is missing
    rows.where(rows["architecture"] == "rewoo")     # some of the rows, of which no column is read again
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rewoo_bench.config.names import REPLAY, is_oracle, model_label
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.folder import QUESTIONS_FILE
from rewoo_bench.runs.manifest import read_manifest

if TYPE_CHECKING:
    import pandas as pd


_LONGEST_ERROR = 300  # characters that are shown
_KINDS = {field.name: field.type for schema in (QUESTIONS, CALLS) for field in schema}


class Rows:
    """Rows of a run's table, of which each column is read once, as an array of numpy.

    A DataFrame of `load` or a pyarrow table may be behind it; a pyarrow table needs no import of pandas, which would
    take longer than all else at the end of a small run. Numbers, truth values and seconds since 1970 are floats, NaN
    where one is missing; texts are objects, empty where one is missing.
    """

    def __init__(self, table: pd.DataFrame | pa.Table) -> None:
        self._table = table
        self._whole: dict[str, NDArray[Any]] = {}  # columns of the whole table, which all selections share
        self._columns: dict[str, NDArray[Any]] = {}  # those of these rows
        self._places = np.arange(len(table))

    @classmethod
    def of(cls, rows: Rows | pd.DataFrame | pa.Table) -> Rows:
        return rows if isinstance(rows, Rows) else cls(rows)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: str) -> bool:
        return name in self._columns or name in _names(self._table)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Raises `DataError` for a column that isn't there."""
        if name not in self._columns:
            if name not in self._whole:
                check_columns(_names(self._table), [name])
                self._whole[name] = _values(self._table, name)
            self._columns[name] = self._whole[name][self._places]
        return self._columns[name]

    @property
    def question(self) -> NDArray[np.int64]:
        """A number for each question, the same in all selections, in the order of their ids."""
        if "question number" not in self._whole:
            ids = self._whole.get("example_id")
            ids = _values(self._table, "example_id") if ids is None else ids
            self._whole["question number"] = np.unique(ids, return_inverse=True)[1]
        return self._whole["question number"][self._places]

    def where(self, some: NDArray[np.bool_] | NDArray[np.int64]) -> Rows:
        """The rows of a mask, or those at some places, in their order."""
        made = Rows(self._table)
        made._whole, made._places = self._whole, self._places[some]
        made._columns = {name: self._columns[name][some] for name in self._columns.keys() - self._whole.keys()}
        return made

    def assign(self, **columns: NDArray[Any]) -> Rows:
        """The same rows with these columns, in the place of others or beside them."""
        made = Rows(self._table)
        made._whole = {name: values for name, values in self._whole.items() if name not in columns}
        made._places, made._columns = self._places, {**self._columns, **columns}
        return made

    def groups(self, *names: str) -> dict[tuple[str, ...], Rows]:
        """The rows of each combination of texts, in the order in which they first occur."""
        places: dict[tuple[str, ...], list[int]] = {}
        for place, key in enumerate(zip(*(self[name] for name in names), strict=True)):
            places.setdefault(key, []).append(place)
        return {key: self.where(np.array(of_key)) for key, of_key in places.items()}

    def texts(self, name: str) -> list[str]:
        """The texts of a column that occur, each once, in the order in which they first occur."""
        return [text for text in dict.fromkeys(self[name]) if text]

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """A mask: True where the infrastructure failed the question.

        Of a recording that says nothing about the answer there is no exact match either, and it hasn't failed.
        """
        mask: NDArray[np.bool_] = np.isnan(self["exact_match"]) & (self["stop_reason"] == "error")
        return mask

    @cached_property
    def left_out(self) -> NDArray[np.bool_]:
        """A mask: True for a row that is in no mean: it failed, has calls that nobody saw, or another world."""
        return self.failed | self.flagged(UNMETERED) | self.flagged(DIFFERS)

    @cached_property
    def oracle(self) -> NDArray[np.bool_]:
        """A mask: True where an oracle answered, or a replay of one."""
        models = {name: is_oracle(name) for name in self.texts("model")}
        named = np.fromiter((models.get(name, False) for name in self["model"]), dtype=bool, count=len(self))
        return named | (self[ORACLE_COLUMN] > 0)

    def flagged(self, flag: str) -> NDArray[np.bool_]:
        """A mask: True where the row has the flag."""
        return np.fromiter((flag in flags for flags in self["flags"]), dtype=bool, count=len(self))


def _names(table: pd.DataFrame | pa.Table) -> list[str]:
    return table.column_names if isinstance(table, pa.Table) else list(table.columns)


def _values(table: pd.DataFrame | pa.Table, name: str) -> NDArray[Any]:
    """A column as an array. It goes through a list: pyarrow's own conversion to numpy imports pandas."""
    column = table[name] if isinstance(table, pa.Table) else pa.array(table[name], from_pandas=True)
    kind, values = _KINDS.get(name, column.type), column.to_pylist()
    if pa.types.is_list(kind):
        lists = np.empty(len(values), dtype=object)
        lists[:] = [each or () for each in values]
        return lists
    if any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)):
        return np.array(["" if text is None else text for text in values], dtype=object)
    return np.array(values, dtype=np.float64)


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


def model_labels(rows: Rows) -> list[str]:
    """The models of rows, each once, with another one of the planner or solver: `openai/a (planner openai/b)`."""
    named = dict.fromkeys(zip(*(rows[name] for name in MODELS), strict=True))
    return list(dict.fromkeys(model_label(*names) for names in named))


def check_columns(has: Iterable[str], names: Iterable[str]) -> None:
    """Raises `DataError` where a table of questions lacks a column."""
    present = set(has)
    if missing := [name for name in names if name not in present]:
        raise DataError(f"no rows of questions.parquet: the column {missing[0]!r} is missing")


def arrow_numbers(values: NDArray[np.float64], kind: pa.DataType) -> pa.Array:
    """A column of numbers for a table, null for NaN. `pa.array` would import pandas."""
    known = ~np.isnan(values)
    numbers = np.where(known, values, 0).astype(np.int64 if pa.types.is_integer(kind) else np.float64)
    bits = np.packbits(known, bitorder="little").tobytes()
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(bits), pa.py_buffer(numbers.tobytes())])


# Rows to doubt, by their flags.
#
#     rows.flagged("unmetered")       # a mask
#     list(flag_lines(rows))          # ["mine: 20 of 20 rows were answered without a metered model call …"]


UNMETERED = "unmetered"
DIFFERS = "world_differs"
FLAGS = {
    UNMETERED: "answered without a metered model call: what it used isn't known, and these rows are in no mean",
    DIFFERS: "made recorded calls again in a new world, which answered otherwise: these rows are in no mean",
    "no_call": "answered a later trial without a call",
    "dropped_fields": "sent fields that were not passed on to the model",
}
"""What each flag of a row says of its question, the worst first."""


def flag_lines(rows: Rows) -> Iterator[str]:
    """A line for each flag and architecture."""
    architectures = rows["architecture"].tolist()
    flagged = zip(rows["flags"], architectures, strict=True)
    counts = Counter((flag, name) for flags, name in flagged for flag in flags)
    for flag, name in sorted(counts, key=lambda key: [*FLAGS, key[0]].index(key[0])):
        asked = architectures.count(name)
        yield f"{name} {FLAGS.get(flag, 'is flagged')} ({flag}): {counts[flag, name]:,} of {asked:,} rows"


# Rows that are in no mean: they show nothing about what an architecture costs.
#
# Of a question that the infrastructure failed there is no exact match (null), and its tokens, calls and cost are of
# incomplete work. A question that an external agent answered without one metered model call (the flag `unmetered`)
# looks free, and what answered it isn't known. Means, intervals, tests, claims, gates and figures leave both out and
# give their number. A comparison of two architectures leaves out both rows of the pair. A question that reached a
# limit (steps, tokens, time, cost) hasn't failed: without an answer it counts as wrong, at the cost in its row.


def left_out(rows: Rows | pd.DataFrame) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True for a row that is in no mean."""
    return Rows.of(rows).left_out


def failed(rows: Rows | pd.DataFrame) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the infrastructure failed the question."""
    return Rows.of(rows).failed


def ended_unanswered(stop_reason: str | None) -> bool:
    """Whether a question with this stop reason ended without an answer; one that wasn't asked has none."""
    return bool(stop_reason) and stop_reason != "answered"


def common_error(rows: pd.DataFrame) -> str:
    """The most common error of rows, in a line; empty where none is known, as in a published run."""
    errors = rows["error"].dropna().astype(str)
    return " ".join(errors.value_counts().index[0].split())[:_LONGEST_ERROR] if len(errors) else ""


def estimated(rows: pd.DataFrame) -> bool:
    """Whether the usage of some rows wasn't reported, and was counted with a tokenizer."""
    return bool(rows["usage_source"].astype(str).isin(["estimated", "mixed"]).any())


# Which rows are an oracle's: it is given the answers, so their accuracy and their latency mean nothing.
#
#     rows.oracle                      # a mask
#     answers_of_oracle("replay/r1")   # True where the run in r1 was answered by an oracle, or replays one that was
#
# The model's name says it, or the column `oracle`, which is null where a replayed recording doesn't say.


ORACLE_COLUMN = "oracle"


def answers_of_oracle(model: str) -> bool | None:
    """Whether a model's answers are an oracle's; of a replay, those of its recorded run. None where nothing says it."""
    for name in _models_behind(model):
        if not name.startswith(REPLAY):
            return is_oracle(name)
        # A run that was killed before its tables were written has only the manifest and the journal.
        file_of_run = Path(name.removeprefix(REPLAY)) / QUESTIONS_FILE
        with suppress(pa.ArrowException, OSError), pq.ParquetFile(file_of_run) as file:
            if values := file.read(columns=[ORACLE_COLUMN])[ORACLE_COLUMN].drop_null().to_pylist():
                return any(values)
    return None


def recorded_model(model: str) -> str:
    """The model that answered: of a replay that of its recorded run, where that run's folder says it."""
    *_, last = _models_behind(model)
    return last


def _models_behind(model: str) -> Iterator[str]:
    """A model, and of a replay the model of its recorded run, which may be a replay, too."""
    seen: set[str] = set()
    while model not in seen:
        yield model
        seen.add(model)
        if model.startswith(REPLAY):
            with suppress(DataError):  # a journal is enough to replay
                model = str(read_manifest(Path(model.removeprefix(REPLAY))).options.get("model", model))
