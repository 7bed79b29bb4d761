"""Rows of a table as arrays: the values that the table has, whatever it is a table of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.errors import DataError
from rewoo_bench.runs.rows import Rows

CELLS = st.tuples(
    st.none() | st.booleans(), st.none() | st.integers(-(2**50), 2**50), st.none() | st.sampled_from("abc")
)
KINDS = {"exact_match": pa.bool_(), "total_tokens": pa.int64(), "architecture": pa.string()}


@given(st.lists(st.lists(CELLS, max_size=9), max_size=3), st.booleans(), st.data())
def test_a_column_has_the_values_of_the_table(chunks: list[list[Any]], encoded: bool, data: st.DataObject) -> None:
    table = pa.table(
        {
            name: pa.chunked_array([pa.array([row[place] for row in chunk], kind) for chunk in chunks], kind)
            for place, (name, kind) in enumerate(KINDS.items())
        }
    )
    expected = table.to_pydict()
    if encoded:
        table = table.set_column(2, "architecture", table["architecture"].dictionary_encode())
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))), dtype=bool)
    as_frame = table.to_pandas(types_mapper=lambda kind: None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind))
    for rows in (Rows(table), Rows(as_frame)):
        for name in ("exact_match", "total_tokens"):
            numbers = np.array([np.nan if value is None else float(value) for value in expected[name]])
            np.testing.assert_array_equal(rows[name], numbers)
            np.testing.assert_array_equal(rows.where(mask)[name], numbers[mask])
        assert rows["architecture"].tolist() == [text or "" for text in expected["architecture"]]
        assert rows.texts("architecture") == list(dict.fromkeys(filter(None, expected["architecture"])))
        assert {key: len(own) for (key,), own in rows.groups("architecture").items()} == {
            text or "": expected["architecture"].count(text) for text in dict.fromkeys(expected["architecture"])
        }


def test_a_column_takes_the_place_of_another_and_stays_in_selections() -> None:
    rows = Rows(pa.table({"steps": [1, 2, 3], "model": ["a", "b", "a"]}))
    assert rows["steps"].tolist() == [1, 2, 3]
    changed = rows.assign(steps=np.array([10.0, 20.0, 30.0]), more=np.arange(3.0))
    some = changed.where(changed["model"] == "a")
    assert (some["steps"].tolist(), some["more"].tolist(), some["model"].tolist()) == ([10, 30], [0, 2], ["a", "a"])
    assert rows["steps"].tolist() == [1, 2, 3]


def test_a_question_has_one_number_in_all_selections() -> None:
    rows = Rows(pa.table({"example_id": ["q2", "q1", "q2", "q3"]}))
    assert rows.question.tolist() == [1, 0, 1, 2]
    assert rows.where(np.array([3, 2])).question.tolist() == [2, 1]


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(DataError, match="'total_tokens' is missing"):
        Rows(pd.DataFrame({"model": ["a"]}))["total_tokens"]
