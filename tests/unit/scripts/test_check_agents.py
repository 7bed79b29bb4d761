"""The table of scripts/check_agents.py."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[3]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "check_agents.py"))
Question, Checked = SCRIPT["Question"], SCRIPT["Checked"]

SEINE = "Which river flows through the capital of France?"
VOLGA = "Do the Volga and the Don flow into the same sea?"
COUNT = {"input": 250, "output": 20, "calls": 2}


def asked(text: str, calls: list[tuple[str, str]], answer: str | None = "Seine", **fields: Any) -> Any:
    row = {"stop_reason": "answered", "error": "", "llm_calls": len(calls), "tokens": 300, "own": COUNT, **fields}
    return Question("q1", text, answer, calls=calls, **row)


def test_an_agents_line_has_the_meters_count_beside_its_own() -> None:
    first = asked(SEINE, [(SEINE, "Search"), (SEINE, "Seine"), (f"{SEINE} Seine", "[]")])
    second = asked(VOLGA, [(f"{SEINE} Seine {VOLGA}", "Seine")], own=None, tokens=100)
    failed = asked(
        "Who?", [], None, stop_reason="agent_failed", error="the agent failed: Stop: a|b", own=None, tokens=0
    )
    rows = SCRIPT["rows_of"]([Checked("x", "x 1.0", "9 MB", [first, second, failed], "ends by itself")])
    lines = SCRIPT["table"](rows).splitlines()
    assert lines[0].startswith("| agent | framework | answered | model calls | tokens | its own count | ")
    assert lines[2] == (
        "| x | x 1.0 | 2 of 3 | 1.3 | 133 | 270 of 300, -10% (n=1) | 1 of 4 | in 1 of 4 calls "
        "| ends by itself | 1 × Stop: a/b |"
    )


def test_a_call_that_shows_a_canned_answer_to_the_model_is_hidden_too() -> None:
    canned = "Planner produced no steps"
    assert SCRIPT["hidden_calls"](asked(SEINE, [(SEINE, "no plan"), (f"{SEINE} {canned}", "[]")], canned)) == 1


def test_an_agent_that_does_not_install_has_a_line_with_the_reason() -> None:
    line = SCRIPT["table"](SCRIPT["rows_of"]([Checked("x", "x 1.0", "no: no wheel")])).splitlines()[2]
    assert line.startswith("| x | x 1.0 | - |")
    assert line.endswith("| - | no: no wheel |")


def test_the_readme_has_the_table_that_the_rows_make() -> None:
    made = SCRIPT["table"](pd.read_csv(ROOT / "results" / "agents.csv"))
    assert made in (ROOT / "architectures" / "agents" / "README.md").read_text(encoding="utf-8")
