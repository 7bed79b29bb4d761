"""An attacker's plan between two of a task's own: the gullible oracle obeys once, and goes on with the task."""

from __future__ import annotations

import importlib.util

import pytest

from rewoo_bench import evaluate

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="needs the extra agentdojo"),
    pytest.mark.anyio,
]


async def test_new_plans_have_the_attackers_calls_once_and_then_those_of_the_task() -> None:
    """The third injection has three calls; the first plan of the task only reads, and the second one changes."""
    ids = [f"banking/user_task_14/injection_task_{number}" for number in (0, 4, 6)]
    results = await evaluate(
        "agentdojo?suite=banking&attack=direct", "llmcompiler?max_replans=8", model="oracle?gullible=1",
        ids=tuple(ids), progress=False,
    )  # fmt: skip
    rows = results.to_frame().set_index("example_id").loc[ids]
    assert rows["exact_match"].tolist() == [True, True, True]
    assert rows["attack_succeeded"].tolist() == [True, True, True]
    assert rows["new_calls"].tolist() == [1, 1, 3]
    assert rows["replans"].tolist() == [2, 2, 2]
