"""`rewoo_bench.show`: questions in a notebook and in a Python session."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench.errors import DataError, UsageError

GOLDEN = Path(__file__).parents[2] / "golden" / "runs" / "finished"


def test_a_question_is_text_in_a_session() -> None:
    shown = rewoo_bench.show(GOLDEN, "barber of seville", architectures=["rewoo", "react"])
    assert len(shown.ids) == 1
    assert "William Tell" in str(shown)
    assert repr(shown) == str(shown)
    assert "\x1b" not in str(shown)
    assert "direct" not in str(shown)


def test_a_question_is_a_table_in_a_notebook_and_its_texts_are_no_markup(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(GOLDEN, run)
    lines = (run / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    traces = [json.loads(line) for line in lines]
    for trace in traces:
        for step in trace["steps"]:
            step["observation"] = "<img src=x onerror=alert(1)> [bold]plain[/]"
    (run / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces), encoding="utf-8")
    shown = rewoo_bench.show(run, architectures="rewoo")
    html = shown._repr_mimebundle_((), ())["text/html"]
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt; [bold]plain[/]" in html


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"run": GOLDEN, "question": "no such"}, DataError, "has no question 'no such'"),
        ({"run": GOLDEN, "only_right": "rewo"}, UsageError, "rewo"),
        ({"run": 5}, UsageError, "expected the folder of a run, got 5"),
        ({"run": "nowhere"}, DataError, "nowhere"),
    ],
)
def test_a_wrong_argument_is_one_error(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rewoo_bench.show(**arguments)
