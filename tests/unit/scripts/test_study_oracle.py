"""results/oracle: its README and tables say what its CSV files say."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results" / "oracle"


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    entry: Callable[[list[str]], int] = runpy.run_path(str(ROOT / "scripts" / "study_oracle.py"))["main"]
    return entry


def test_the_committed_readme_and_tables_are_those_of_the_csv_files(main: Callable[[list[str]], int]) -> None:
    assert main(["--check"]) == 0


def test_a_figure_that_no_table_has_is_told(main: Callable[[list[str]], int], tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "oracle")
    readme = tmp_path / "oracle" / "README.md"
    text = readme.read_text(encoding="utf-8")
    changed = re.sub(r"(\*\*In tokens, ReAct takes )\d", r"\g<1>9", text)
    assert changed != text
    readme.write_text(changed, encoding="utf-8")
    assert main(["--check", "--out", str(tmp_path / "oracle")]) == 1
