"""Columns of a table as numpy arrays: the values that pyarrow itself gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.runs.rows import read_columns

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**50), 2**50)),
    (pa.float64(), st.floats(allow_nan=False)),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda value: str(value)[:8])
def test_numbers_are_those_of_the_table_in_any_chunks_and_slices(kind: pa.DataType, values: Any) -> None:
    @given(st.lists(st.lists(st.none() | values, max_size=20), max_size=3), st.integers(0, 9))
    def check(chunks: list[list[Any]], skipped: int) -> None:
        table = pa.table({"n": pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)}).slice(skipped)
        expected = [np.nan if value is None else float(value) for value in table["n"].to_pylist()]
        np.testing.assert_array_equal(read_columns(table, ["n"])["n"].values, np.array(expected, dtype=float))

    check()


@given(st.lists(st.lists(st.none() | st.sampled_from("abc"), max_size=9), max_size=3), st.booleans())
def test_texts_are_positions_in_their_names(chunks: list[list[str | None]], encoded: bool) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    table = pa.table({"t": column.dictionary_encode() if encoded else column})
    found = read_columns(table, ["t"])["t"]
    assert [found.names[i] if i >= 0 else None for i in found.values] == column.to_pylist()
    texts = [text for text in column.to_pylist() if text is not None]
    assert found.names_in_use == list(dict.fromkeys(texts))
    assert found.texts.tolist() == [text or "" for text in column.to_pylist()]


def test_a_column_without_a_single_value_is_all_missing() -> None:
    assert np.isnan(read_columns(pa.table({"n": pa.nulls(3)}), ["n"])["n"].values).all()
