"""Columns of a pyarrow table as numpy arrays, read from its memory.

    columns = read_columns(table, ["architecture", "exact_match"])
    columns["exact_match"].values       # array([1., nan, 0.]): NaN where a value is missing
    columns["architecture"].values      # array([0, 0, 1]), positions in
    columns["architecture"].names       # ["rewoo", "react"]

pyarrow's own conversion to numpy imports pandas where a value is missing, which takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.config.names import model_label
from rewoo_bench.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


_A_SECOND = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: numbers, NaN for a missing one; or positions of texts in `names`, -1 for a missing one.

    Times are seconds since 1970.
    """

    values: NDArray[Any]
    names: Sequence[str] = ()

    def of(self, rows: NDArray[Any]) -> Column:
        """The column for the rows of a mask."""
        return Column(self.values[rows], self.names)

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


def read_columns(rows: pd.DataFrame | pa.Table, names: Sequence[str]) -> dict[str, Column]:
    """Columns of numbers, booleans or texts, from a pyarrow or pandas table. Raises `DataError` for a missing one."""
    import pyarrow as pa

    check_columns(rows.column_names if isinstance(rows, pa.Table) else rows.columns, names)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows[list(names)], preserve_index=False)
    return {name: _read(table[name]) for name in names}


def there(rows: pd.DataFrame | pa.Table, names: Sequence[str]) -> list[str]:
    """Those of the names that are columns of the table."""
    import pyarrow as pa

    has = rows.column_names if isinstance(rows, pa.Table) else list(rows.columns)
    return [name for name in names if name in has]


MODELS = ("model", "planner_model", "solver_model")


def model_labels(columns: Mapping[str, Column]) -> list[str]:
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


def check_columns(there: Iterable[str], names: Iterable[str]) -> None:
    """Raises `DataError` where a table of questions lacks a column."""
    has = set(there)
    if missing := [name for name in names if name not in has]:
        raise DataError(f"no rows of questions.parquet: the column {missing[0]!r} is missing")


def _read(column: pa.ChunkedArray) -> Column:
    import pyarrow as pa

    positions: dict[str, int] = {}
    if pa.types.is_dictionary(column.type):
        return Column(_joined([_coded(chunk, positions) for chunk in column.chunks], np.int64), list(positions))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        codes = [-1 if text is None else positions.setdefault(text, len(positions)) for text in column.to_pylist()]
        return Column(np.array(codes, dtype=np.int64), list(positions))
    return Column(_joined([_numbers(chunk) for chunk in column.chunks], np.float64))


def _coded(chunk: pa.DictionaryArray, positions: dict[str, int]) -> NDArray[Any]:
    """The texts of a chunk as positions; new texts are added to `positions`."""
    known = [positions.setdefault(text, len(positions)) for text in chunk.dictionary.to_pylist()]
    indices = np.nan_to_num(_numbers(chunk.indices), nan=len(known)).astype(np.int64)
    coded: NDArray[Any] = np.array([*known, -1], dtype=np.int64)[indices]
    return coded


def _numbers(chunk: pa.Array) -> NDArray[Any]:
    """The values of a chunk; all NaN for a column without a type (all missing)."""
    import pyarrow as pa

    if pa.types.is_null(chunk.type):
        return np.full(len(chunk), np.nan)
    validity, data = chunk.buffers()
    start, end = chunk.offset, chunk.offset + len(chunk)
    if pa.types.is_boolean(chunk.type):
        values = _bits(data, end)[start:].astype(np.float64)
    else:
        is_time = pa.types.is_timestamp(chunk.type)  # the type of one with a time zone would import pandas
        kind = np.int64 if is_time else chunk.type.to_pandas_dtype()
        values = np.frombuffer(data, dtype=kind, count=end)[start:].astype(np.float64)
        if is_time:
            values /= _A_SECOND[chunk.type.unit]
    if validity is not None and chunk.null_count:
        values[_bits(validity, end)[start:] == 0] = np.nan
    return values


def _bits(buffer: pa.Buffer, count: int) -> NDArray[Any]:
    return np.unpackbits(np.frombuffer(buffer, dtype=np.uint8), count=count, bitorder="little")


def _joined(parts: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)
