"""The one table of columns: the page about the files of a run, and what a new column needs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rewoo_bench.runs.columns import CALL_COLUMNS, QUESTION_COLUMNS, SHARED
from rewoo_bench.runs.journal.prefixes import Shared

ROOT = Path(__file__).parents[3]
SCRIPT = str(ROOT / "scripts" / "column_page.py")

WITH_ONE_MORE = r"""
import asyncio, runpy, sys
from importlib.util import find_spec, module_from_spec

spec = find_spec("rewoo_bench.runs.columns")
value = 'lambda q: len((q.trajectory.answer or "").split())'
more = f'Column("answer_words", INT, "words of the answer", {value}),'
source, count = spec.loader.get_source(spec.name), "QUESTION_COLUMNS: tuple[Column[QuestionSource], ...] = ("
columns = module_from_spec(spec)
sys.modules[spec.name] = columns
exec(compile(source.replace(count, count + more), spec.origin, "exec"), vars(columns))

import rewoo_bench

async def main():
    results = await rewoo_bench.evaluate("sample", "direct", model="oracle", questions=2, out="run")
    print(*results.to_frame()["answer_words"])

asyncio.run(main())
print(*rewoo_bench.load("run")["answer_words"])
print("| `answer_words` | int | words of the answer |" in runpy.run_path(sys.argv[1])["page"](open(sys.argv[2]).read()))
"""


def test_the_page_has_the_columns_of_the_table() -> None:
    assert runpy.run_path(SCRIPT)["main"](["--check"]) == 0


@pytest.mark.parametrize("columns", [QUESTION_COLUMNS, CALL_COLUMNS], ids=["questions", "calls"])
def test_each_column_has_one_line_that_says_what_it_is(columns: tuple[object, ...]) -> None:
    texts = [(column.meaning, column.null) for column in columns]  # type: ignore[attr-defined]
    assert all(meaning and not re.search(r"[|\n]", meaning + null) for meaning, null in texts)


def test_what_is_known_at_the_end_of_a_run_has_the_names_of_its_computation() -> None:
    assert tuple(SHARED) == Shared._fields


def test_a_column_that_is_added_to_the_table_is_in_rows_parquet_load_and_page(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        WITH_ONE_MORE,
        SCRIPT,
        str(ROOT / "rewoo_bench" / "runs" / "columns.md"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "run" / "questions.parquet")
    words = [len((text or "").split()) for text in rows["prediction"].to_pylist()]
    assert rows["answer_words"].to_pylist() == words
    shown = " ".join(map(str, words))
    assert done.stdout.splitlines() == [shown, shown, "True"]
