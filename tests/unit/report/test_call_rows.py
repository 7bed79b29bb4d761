"""The rows of calls.parquet in pieces: the same as the whole table, in any order, with little in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewoo_bench.report.trajectories import CALL, CallRows, _with_starts
from rewoo_bench.runs.columns import CALLS


def write_calls(path: Path, questions: int, rows_a_group: int) -> list[dict[str, Any]]:
    """Writes questions of one to seven calls; returns all rows."""
    random = Random(0)
    rows = [
        {"architecture": "rewoo", "example_id": f"q{number}", "trial": 0, "call_index": call, "input_tokens": number}
        for number in range(questions)
        for call in range(random.randint(1, 7))
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=CALLS), path, row_group_size=rows_a_group)
    return rows


@pytest.mark.parametrize("rows_a_group", [100, 511, 512, 100_000])
def test_a_question_has_its_own_calls_in_any_order(tmp_path: Path, rows_a_group: int) -> None:
    expected = {
        name: [row["call_index"] for row in own]
        for name, own in groupby(
            write_calls(tmp_path / "calls.parquet", 2000, rows_a_group), lambda row: str(row["example_id"])
        )
    }
    with CallRows(tmp_path / "calls.parquet") as rows:
        places = [(example_id, place) for (_, example_id, _), place in rows.places()]
        for chosen in (places, Random(1).sample(places, 200)):
            for example_id, place in chosen:
                calls = rows.at(place)
                assert [call["call_index"] for call in calls] == expected[example_id]
                assert list(calls[0]) == list(CALL)
    assert [example_id for example_id, _ in places] == list(expected)


def test_a_long_file_is_not_in_memory_as_a_whole(tmp_path: Path) -> None:
    size = pa.Table.from_pylist(write_calls(tmp_path / "calls.parquet", 40_000, 1000), schema=CALLS).nbytes
    before = pa.total_allocated_bytes()
    with CallRows(tmp_path / "calls.parquet") as rows:
        for _, place in rows.places():
            rows.at(place)
        assert pa.total_allocated_bytes() - before < size / 4


def test_no_call_at_all(tmp_path: Path) -> None:
    write_calls(tmp_path / "calls.parquet", 0, 100)
    with CallRows(tmp_path / "calls.parquet") as rows:
        assert list(rows.places()) == []


def test_the_first_call_of_a_question_starts_at_zero() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    calls = [{"started_at": moment, "role": ""}, {"started_at": moment + timedelta(seconds=2), "name": ""}]
    assert _with_starts(calls) == [{"start_s": 0.0}, {"start_s": 2.0}]
