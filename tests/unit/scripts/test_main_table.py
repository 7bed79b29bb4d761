"""The README's main table is what the committed numbers say."""

from __future__ import annotations

import csv
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    entry: Callable[[list[str]], int] = runpy.run_path(str(ROOT / "scripts" / "main_table.py"))["main"]
    return entry


def test_the_readme_has_the_table_that_the_numbers_make_and_another_one_is_told(
    main: Callable[[list[str]], int], tmp_path: Path
) -> None:
    readme = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    readme.write_text(text.replace("cache | 1 | 0.", "cache | 1 | 9.", 1), encoding="utf-8")
    assert main(["--check", "--readme", str(readme)]) == 1
    assert main(["--readme", str(readme)]) == 0
    assert readme.read_text(encoding="utf-8") == text


def test_a_readme_without_a_place_for_it_is_refused(
    main: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("# Nothing here", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["--readme", str(tmp_path / "README.md")])
    assert "has 0 places for the table, not one" in capsys.readouterr().err


def test_the_dollars_below_the_table_are_those_of_the_agents() -> None:
    with (ROOT / "results" / "agents" / "agents.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["architecture"]: row for row in csv.DictReader(file) if row["tasks"] == "all"}
    loop, program = (float(rows[name]["usd_1000:openai"]) for name in ("react-native", "rewoo-code"))
    said = f"a thousand tasks cost ${loop:.2f} as loops, ${program:.2f} as programs."
    assert said in (ROOT / "README.md").read_text(encoding="utf-8")
