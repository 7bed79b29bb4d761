"""results/oracle: its README says what its CSV files say, and these what the oracle makes again."""

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
    return runpy.run_path(str(ROOT / "scripts" / "study_horizon.py"))


@pytest.fixture(scope="module")
def main(script: dict[str, Any]) -> Callable[[list[str]], int]:
    entry: Callable[[list[str]], int] = script["main"]
    return entry


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RESULTS, tmp_path / "oracle"))


def test_the_committed_readme_is_that_of_the_csv_files(main: Callable[[list[str]], int]) -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize(("depth", "breadth"), [(1, 1), (8, 1), (1, 5), (3, 3)])
def test_a_cell_is_computed_again_to_the_byte(script: dict[str, Any], tmp_path: Path, depth: int, breadth: int) -> None:
    cell = script["cell"](depth, breadth, tmp_path / "run")
    computed = cell.to_csv(index=False, lineterminator="\n").encode()
    head, *lines = (RESULTS / "horizon-cells.csv").read_bytes().splitlines(keepends=True)
    own = [line for line in lines if line.startswith(f"{depth},{breadth},".encode())]
    assert len(own) == len([*script["PLANNERS"], *script["LOOPS"]])
    assert computed == head + b"".join(own)


def test_the_regression_is_that_of_the_cells(script: dict[str, Any]) -> None:
    computed = script["regression"](pd.read_csv(RESULTS / "horizon-cells.csv"))
    pd.testing.assert_frame_equal(computed, pd.read_csv(RESULTS / "horizon.csv"), rtol=0, atol=0.0015)


def test_the_figure_has_a_panel_for_each_amount_and_a_number_in_each_cell(script: dict[str, Any]) -> None:
    cells = pd.read_csv(RESULTS / "horizon-cells.csv")
    drawn = script["figure"](cells)
    panels = [axis for axis in drawn.axes if axis.get_title()]
    assert [len(axis.texts) for axis in panels] == [40] * 10
    tokens = cells[(cells["depth"] == "8") & (cells["objectives"] == 5)].set_index("architecture")["total_tokens"]
    least, second = sorted(tokens.drop("react-code"))[:2]  # which answers nothing there
    assert panels[0].texts[-1].get_text() == f"{second / least:.2f}"


def test_a_figure_that_no_table_has_is_told(main: Callable[[list[str]], int], copy: Path) -> None:
    text = (copy / "README.md").read_text(encoding="utf-8")
    changed = re.sub(r"(\| react / rewoo \| )\d", r"\g<1>9", text)
    assert changed != text
    (copy / "README.md").write_text(changed, encoding="utf-8")
    assert main(["--check", "--out", str(copy)]) == 1
    assert main(["--out", str(copy)]) == 0
    assert (copy / "README.md").read_text(encoding="utf-8") == text


def test_the_readme_follows_the_cells_and_their_regression(main: Callable[[list[str]], int], copy: Path) -> None:
    cells, laws = pd.read_csv(copy / "horizon-cells.csv"), pd.read_csv(copy / "horizon.csv")
    lazy, chains = cells["architecture"] == "rewoo-lazy", cells["depth"] != "hotpotqa"
    cells.loc[lazy & chains, "total_tokens"] = 1.0
    laws.loc[(laws["amount"] == "total_tokens") & (laws["architecture"] == "react"), "depth x objectives"] = 4321.0
    cells.to_csv(copy / "horizon-cells.csv", index=False)
    laws.to_csv(copy / "horizon.csv", index=False)
    assert main(["--out", str(copy)]) == 0
    said = (copy / "README.md").read_text(encoding="utf-8")
    assert "`rewoo-lazy` takes least in 40 of 360 cells" in said
    assert "react 4,321." in said
