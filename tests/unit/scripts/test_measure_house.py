"""Words of Markdown are counted where a person wrote them, and code by what stands side by side."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "measure_house.py"


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
        ("results/study/captions.md", "One two.\n", ""),
        ("results/study/README.md", "One two.\n", ""),
        ("results/study/page.md", "One {{table main}} two {{a/react / rewoo/b}}.\n", "One two ."),
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


def test_code_is_counted_by_what_stands_side_by_side(script: dict[str, Any], tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "upper").mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "base.py").write_text("x = 1\n", encoding="utf-8")
    (package / "middle.py").write_text("def f():\n    import json\n    from .base import x\n", encoding="utf-8")
    (package / "upper" / "__init__.py").write_text("from . import part\nfrom ..middle import f\n", encoding="utf-8")
    (package / "upper" / "part.py").write_text("from house import base, middle\n", encoding="utf-8")
    assert script["code"](tmp_path, "house") == {
        "lines": 7,
        "files": 5,
        "functions": 1,
        "entries in house/": 3,
        "import arrows between them": 3,
        "floors": 3,
        "imports inside functions": 2,
        "calls that clean, redact or escape text": 0,
        "handlers of RecursionError": 0,
        "lines of tests": 0,
    }


def test_a_comparison_is_followed_through_its_functions(script: dict[str, Any]) -> None:
    by_file = script["compared"]([str(ROOT / "tests" / "golden" / "models" / "hotpotqa-qwen-1.5b")])
    assert {"compare", "aligned"} <= set(by_file["analysis/compare.py"])
    assert not any("<lambda>" in name.split(".")[-1] for names in by_file.values() for name in names)
