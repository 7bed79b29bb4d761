"""Words of Markdown are counted where a person wrote them."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "measure_house.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("page", "text", "kept"),
    [
        ("README.md", "One two.\n<!-- main table: python x.py -->\n| three |\n<!-- end -->\nfour\n", "One two. four"),
        ("a.md", "<!-- example: gate -->\n```text\none\n```\nTwo.\n", "Two."),
        ("results/coverage.md", "One.\n\n| two |\n|---|\n\nThree.\n", "One. Three."),
        ("datasets/README.md", "One.\n\n| two |\n", "One. | two |"),
        ("results/models/tables.md", "One two.\n", ""),
        ("tests/golden/compare/small.md", "One two.\n", ""),
    ],
)
def test_what_a_script_writes_is_not_counted(script: dict[str, Any], page: str, text: str, kept: str) -> None:
    assert " ".join(script["hand_written"](page, text).split()) == kept


def test_each_page_of_the_repository_has_its_count(script: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("One two.\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("", encoding="utf-8")
    for command in (["init", "-q"], ["add", "a.md", "b.md"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert script["words"](tmp_path) == {"a.md": 2}
