"""The page about the files of a run has every column, with its type."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from rewoo_bench.runs.schema import CALLS, QUESTIONS

PAGE = (Path(__file__).parents[3] / "results" / "columns.md").read_text(encoding="utf-8")
KINDS = {pa.int32(): "int", pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.string(): "text"}
KINDS |= {pa.list_(pa.string()): "list", pa.timestamp("us", tz="UTC"): "time"}


@pytest.mark.parametrize(("file", "schema"), [("questions", QUESTIONS), ("calls", CALLS)])
def test_every_column_stands_in_the_page_with_its_type(file: str, schema: pa.Schema) -> None:
    section = PAGE.partition(f"## {file}.parquet\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in section.splitlines() if line.startswith("| `")]
    found = {name: kinds for names, kinds, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert found.keys() == set(schema.names)
    assert [name for name, kinds in found.items() if KINDS[schema.field(name).type] not in kinds] == []
