"""Columns of a pyarrow table as numpy arrays, read from its memory.

    columns = read_columns(table, ["architecture", "exact_match"])
    columns["exact_match"].values       # array([1., nan, 0.]): NaN where a value is missing
    columns["architecture"].values      # array([0, 0, 1]), positions in
    columns["architecture"].names       # ["rewoo", "react"]

pyarrow's own conversion to numpy imports pandas where a value is missing, which takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rewoo_bench.config.names import model_label
from rewoo_bench.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


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
    def known(self) -> NDArray[Any]:
        """The numbers without missing ones."""
        known: NDArray[Any] = self.values[~np.isnan(self.values)]
        return known

    @property
    def names_in_use(self) -> list[str]:
        """The texts that occur, in the order of their first occurrence."""
        positions, first = np.unique(self.values, return_index=True)
        return [self.names[position] for position in positions[np.argsort(first)] if position >= 0]

    def count(self, name: str) -> int:
        """Number of rows with this text."""
        return int((self.values == self.names.index(name)).sum()) if name in self.names else 0


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


def _numbers(chunk: pa.Array) -> NDArray[Any]:
    """The values of a chunk; all NaN for a column without a type (all missing)."""
    if pa.types.is_null(chunk.type):
        return np.full(len(chunk), np.nan)
    validity, data = chunk.buffers()
    end = chunk.offset + len(chunk)
    is_time = pa.types.is_timestamp(chunk.type)  # the numpy type of one with a time zone would import pandas
    if pa.types.is_boolean(chunk.type):
        values = _bits(data, end).astype(np.float64)
    else:
        kind = np.int64 if is_time else chunk.type.to_pandas_dtype()
        values = np.frombuffer(data, dtype=kind, count=end).astype(np.float64)
    if is_time:
        values /= _A_SECOND[chunk.type.unit]
    if validity is not None and chunk.null_count:
        values[_bits(validity, end) == 0] = np.nan
    return values[chunk.offset :]


def _bits(buffer: pa.Buffer, count: int) -> NDArray[Any]:
    return np.unpackbits(np.frombuffer(buffer, dtype=np.uint8), count=count, bitorder="little")
