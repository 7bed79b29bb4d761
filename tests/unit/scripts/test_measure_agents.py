"""results/agents/ is what the oracle makes of AgentDojo, to the byte."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts"))
import measure_agents

HAS_PACKAGE = importlib.util.find_spec("agentdojo") is not None


def call(index: int, role: str, depth: int = 0) -> dict[str, object]:
    return {"call_index": index, "kind": "model", "role": role, "plan_depth": depth}


def test_steps_of_a_plan_at_the_same_depth_wait_for_each_other_in_no_way() -> None:
    roles = [("planner", 0), ("tool", 1), ("tool", 1), ("tool", 2), ("solver", 0)]
    calls = pd.DataFrame([call(number, *role) for number, role in enumerate(roles)])
    assert measure_agents.in_sequence(calls) == 4
    assert measure_agents.in_sequence(pd.DataFrame([call(0, "agent"), call(1, "agent"), call(2, "judge")])) == 2


def test_the_page_says_what_the_table_has() -> None:
    table = pd.read_csv(measure_agents.FOLDER / "agents.csv")
    page = (measure_agents.FOLDER / "README.md").read_text("utf-8")
    assert measure_agents.shown(table) in page
    assert measure_agents.picture(table) == (measure_agents.FOLDER / "done.svg").read_text("utf-8")
    done = table[table["tasks"] == "all"].set_index("architecture")["done"]
    assert f"It did {done['rewoo-code']} tasks." in page
    assert f"did {done['llmcompiler?max_replans=8']}." in page
    assert f"pass {done['direct']} checks, and doing nothing passes {done['(nothing)']}." in page
    assert round(done["rewoo-json"] / 97, 2) == 0.75  # three in four
    assert done["react-native"] == 97


@pytest.mark.timeout(900)
@pytest.mark.skipif(not HAS_PACKAGE, reason="needs the extra agentdojo")
def test_the_oracle_makes_the_same_table_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["measure_agents.py", "--check"])
    measure_agents.main()
