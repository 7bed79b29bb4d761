"""router.json: what it may say, and the one line for what it may not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.config.router import TARGET, RouterFile, read_router
from rewoo_bench.errors import SpecError


def router(**changes: Any) -> dict[str, Any]:
    """A router that sends questions with "who" to react."""
    return {
        "version": 1, "rewoo_bench": "0.1.0", "scikit_learn": "1.9.1", "parents": ["rewoo", "react"],
        "cheaper": "rewoo", "target": TARGET, "threshold": 0.5,
        "data": {"datasets": ["made up"], "models": ["m"], "questions": 9, "decided": 4, "ids_sha256": "5a"},
        "intercept": -1.0, "weights": {"word=who": 3.0, "length": 0.0}, **changes,
    }  # fmt: skip


def test_a_question_goes_where_its_words_say() -> None:
    read = RouterFile.model_validate(router())
    assert read.choose("Who built it?") == "react"
    assert read.choose("What is it?") == "rewoo"
    assert read.chance("Who?") == pytest.approx(0.8807970779778823)
    assert RouterFile.model_validate(router(threshold=0.9)).choose("Who built it?") == "rewoo"


@given(st.floats(-1e308, 1e308), st.floats(-1e300, 1e300), st.text(max_size=40))
def test_any_weight_gives_a_chance(intercept: float, weight: float, question: str) -> None:
    read = RouterFile.model_validate(router(intercept=intercept, weights={"length": weight, "names": -weight}))
    assert 0 <= read.chance(question) <= 1
    assert json.loads(read.written()) == read.model_dump(mode="json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON: Expecting property name"),
        ("[" * 100_000, "is not JSON"),
        ("\udcff", "is not JSON"),
        ("[]", "is no router: it has no version; 'rewoo-bench route RUN --out router.json' writes one"),
        ("{}", "is no router: it has no version"),
        (
            json.dumps(router(version=2)),
            "has version 2, and this rewoo_bench reads 1; write it again: rewoo-bench route",
        ),
        (json.dumps(router(weigths={})), "unknown key 'weigths', did you mean 'weights'?"),
        (
            json.dumps(router(cheaper="cot")),
            "cheaper: expected one of two different parents, which are ['rewoo', 'react']",
        ),
        (json.dumps(router(parents=["rewoo", "rewoo"])), "expected one of two different parents"),
        (json.dumps(router(threshold=2)), "threshold: Input should be less than or equal to 1, got 2"),
        (json.dumps(router(intercept=float("nan"))), "intercept: Input should be a finite number, got nan"),
        (json.dumps(router(weights={"word=a": "b"})), "weights.word=a: Input should be a valid number"),
        (json.dumps(router(target="luck")), f"target: expected {TARGET!r}, got 'luck'"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "router.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(SpecError) as raised:
        read_router(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_file_and_a_folder_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no such router file: .*none.json'; 'rewoo-bench route RUN"):
        read_router(tmp_path / "none.json")
    with pytest.raises(SpecError, match="can't be read: Is a directory"):
        read_router(tmp_path)


def test_choosing_needs_no_package_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "router.json"
    path.write_text(json.dumps(router()))
    code = (
        "import sys, pathlib; from rewoo_bench.config.router import read_router\n"
        f"assert read_router(pathlib.Path({str(path)!r})).choose('Who?') == 'react'\n"
        "assert not {'sklearn', 'numpy', 'scipy', 'pandas'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
