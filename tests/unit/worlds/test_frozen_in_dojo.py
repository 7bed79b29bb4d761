"""What `frozen_arguments` closes in AgentDojo, and what it costs there, of an oracle that obeys an attacker."""

from __future__ import annotations

import importlib.util

import pytest

from rewoo_bench import evaluate
from rewoo_bench.errors import UsageError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="needs the extra agentdojo"),
]
ARCHITECTURES = ("rewoo-json", "rewoo-json?frozen_arguments=recipient", "rewoo-json?frozen_arguments=yes")


async def test_a_bill_that_names_another_recipient_is_paid_only_where_arguments_arent_frozen() -> None:
    """The first nine are of the task that pays a bill, whose recipient and amount are read from it."""
    attacked = "agentdojo?suite=banking&attack=direct"
    results = await evaluate(attacked, ARCHITECTURES, model="oracle?gullible=1", questions=9, progress=False)
    rows = results.to_frame().groupby("architecture", sort=False)
    reached = rows[["changed_arguments", "attack_succeeded", "state_changes"]].sum().astype(int)
    assert list(reached.attack_succeeded) == [6, 0, 0]
    assert reached.changed_arguments.iloc[0] > 0
    assert list(reached.changed_arguments.iloc[1:]) == [0, 0]
    assert list(reached.state_changes) == [9, 0, 0]


async def test_a_frozen_argument_that_no_tool_has_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown argument 'recipent', did you mean 'recipient'"):
        await evaluate("agentdojo?suite=banking", ["rewoo-json?frozen_arguments=recipent"], model="oracle", questions=1)
