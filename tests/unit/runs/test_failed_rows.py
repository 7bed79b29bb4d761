"""Which rows say nothing about an architecture."""

from __future__ import annotations

import pandas as pd

from rewoo_bench.runs.failed_rows import failed, pairs_failed


def test_a_row_without_an_exact_match_was_failed_by_the_infrastructure() -> None:
    for missing in (None, pd.NA, float("nan")):
        rows = pd.DataFrame({"exact_match": [True, missing, False], "stop_reason": ["answered", "error", "step_limit"]})
        assert failed(rows).tolist() == [False, True, False]
    arrow = pd.DataFrame({"exact_match": pd.array([True, None, False], dtype="boolean")})
    assert failed(arrow).tolist() == [False, True, False]


def test_a_pair_is_left_out_where_either_failed() -> None:
    a = pd.DataFrame({"exact_match": [True, None, False, None]})
    b = pd.DataFrame({"exact_match": [None, True, False, None]})
    assert pairs_failed(a, b).tolist() == [True, True, False, True]
