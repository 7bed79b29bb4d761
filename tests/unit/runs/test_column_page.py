"""The one table of columns: the page about the files of a run, and what a new column needs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from rewoo_bench.runs.columns import CALL_COLUMNS, QUESTION_COLUMNS, SHARED
from rewoo_bench.runs.journal.prefixes import Shared

ROOT = Path(__file__).parents[3]
SCRIPT = str(ROOT / "scripts" / "readme_examples.py")


def test_the_page_has_the_columns_of_the_table() -> None:
    page = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
    assert "| `shared_run_tokens` |" in page
    assert runpy.run_path(SCRIPT)["with_made_parts"](page) == page


@pytest.mark.parametrize("columns", [QUESTION_COLUMNS, CALL_COLUMNS], ids=["questions", "calls"])
def test_each_column_has_one_line_that_says_what_it_is(columns: tuple[object, ...]) -> None:
    texts = [(column.meaning, column.null) for column in columns]  # type: ignore[attr-defined]
    assert all(meaning and not re.search(r"[|\n]", meaning + null) for meaning, null in texts)


def test_what_is_known_at_the_end_of_a_run_has_the_names_of_its_computation() -> None:
    assert tuple(SHARED) == Shared._fields
