"""results/oracle: its README and tables say what its CSV files say, and these what the oracle makes again."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results" / "oracle"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "study_oracle.py"))


@pytest.fixture(scope="module")
def main(script: dict[str, Any]) -> Callable[[list[str]], int]:
    entry: Callable[[list[str]], int] = script["main"]
    return entry


def test_the_committed_readme_and_tables_are_those_of_the_csv_files(main: Callable[[list[str]], int]) -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize(("depth", "breadth"), [(1, 1), (8, 1), (1, 5), (3, 3)])
def test_a_cell_of_the_horizon_map_is_computed_again_to_the_byte(
    script: dict[str, Any], tmp_path: Path, depth: int, breadth: int
) -> None:
    study = script["Study"](Path(), None, tmp_path, tmp_path)
    computed = script["horizon_cell"](study, depth, breadth).to_csv(index=False, lineterminator="\n").encode()
    head, *lines = (RESULTS / "horizon-cells.csv").read_bytes().splitlines(keepends=True)
    own = [line for line in lines if line.startswith(f"{depth},{breadth},".encode())]
    assert len(own) == len(script["HORIZON"])
    assert computed == head + b"".join(own)


def test_a_figure_that_no_table_has_is_told(main: Callable[[list[str]], int], tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "oracle")
    readme = tmp_path / "oracle" / "README.md"
    text = readme.read_text(encoding="utf-8")
    changed = re.sub(r"(\*\*In tokens, ReAct takes )\d", r"\g<1>9", text)
    assert changed != text
    readme.write_text(changed, encoding="utf-8")
    assert main(["--check", "--out", str(tmp_path / "oracle")]) == 1


def test_shares_on_either_side_of_a_shortest_prefix_are_those_of_the_cells(
    main: Callable[[list[str]], int], tmp_path: Path
) -> None:
    shutil.copytree(RESULTS, tmp_path / "oracle")
    path = tmp_path / "oracle" / "map-cells.csv"
    cells = pd.read_csv(path)
    cells.loc[(cells["price"] == "openai") & (cells["context"] < 1024), "react / rewoo"] = 2.0
    cells.to_csv(path, index=False)
    assert main(["--out", str(tmp_path / "oracle")]) == 0
    said = (tmp_path / "oracle" / "README.md").read_text(encoding="utf-8")
    assert "under OpenAI's rule 100% / 0% / 0% below 1,024 tokens of context, 25% / 75% / 0% from there on" in said
