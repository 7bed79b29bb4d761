"""The table of scripts/check_agents.py."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "check_agents.py"))
Question, Checked = SCRIPT["Question"], SCRIPT["Checked"]

SEINE = "Which river flows through the capital of France?"
VOLGA = "Do the Volga and the Don flow into the same sea?"
COUNT = {"input": 250, "output": 20, "calls": 2}


def asked(text: str, calls: list[tuple[str, str]], answer: str | None = "Seine", **fields: Any) -> Any:
    row = {"stop_reason": "answered", "error": "", "llm_calls": len(calls), "tokens": 300, "own": COUNT, **fields}
    return Question(text, answer, calls=calls, **row)


def test_an_agents_line_has_the_meters_count_beside_its_own() -> None:
    first = asked(SEINE, [(SEINE, "Search"), (SEINE, "Seine"), (f"{SEINE} Seine", "[]")])
    second = asked(VOLGA, [(f"{SEINE} Seine {VOLGA}", "Seine")], own=None, tokens=100)
    failed = asked(
        "Who?", [], None, stop_reason="agent_failed", error="the agent failed: Stop: a|b", own=None, tokens=0
    )
    lines = SCRIPT["table"]([Checked("x", "x 1.0", "9 MB", [first, second, failed], "ends by itself")]).splitlines()
    assert lines[0].startswith("| agent | framework | installs | answered | calls | tokens | its own count | ")
    assert lines[2] == (
        "| x | x 1.0 | 9 MB | 2 of 3 | 1.3 | 133 | 270 of 300, -10% (n=1) | 1 of 4 | in 1 of 4 calls "
        "| ends by itself | 1 × Stop: a/b |"
    )


def test_a_call_that_shows_a_canned_answer_to_the_model_is_hidden_too() -> None:
    canned = "Planner produced no steps"
    assert SCRIPT["hidden_calls"](asked(SEINE, [(SEINE, "no plan"), (f"{SEINE} {canned}", "[]")], canned)) == 1


def test_an_agent_that_does_not_install_has_a_line_with_the_reason() -> None:
    line = SCRIPT["table"]([Checked("x", "x 1.0", "no: no wheel")]).splitlines()[2]
    assert line.startswith("| x | x 1.0 | no: no wheel | - |")
