"""The reason for which a run ended, and the cap that lets it continue."""

from __future__ import annotations

import pytest

from rewoo_bench.calls.caps import RunLimits, Totals, higher_cap
from rewoo_bench.runs.journal.store import Spent


@pytest.mark.parametrize(
    ("limits", "spent", "done", "flag"),
    [
        (RunLimits(run_tokens=250), Spent(tokens=260), 0.5, "--run-tokens 580"),
        (RunLimits(run_tokens=14_000), Spent(tokens=15_405), 0.9, "--run-tokens 19000"),
        (RunLimits(run_tokens=1), Spent(tokens=3), 1.0, "--run-tokens 4"),
        (RunLimits(run_cost=0.5), Spent(cost_usd=0.52), 0.1, "--run-cost 5.8"),
        (RunLimits(run_cost=1e-05), Spent(cost_usd=2e-05), 0.5, "--run-cost 4.4e-05"),
        (RunLimits(run_cost=1.0), Spent(tokens=3, unpriced=True), 0.5, "--run-cost none"),
        (RunLimits(max_errors=0), Spent(tokens=3), 0.5, None),
    ],
)
def test_a_run_that_a_cap_ended_continues_with_another(
    limits: RunLimits, spent: Spent, done: float, flag: str | None
) -> None:
    reason = limits.exceeded(Totals(tasks=2, done=1, errors=1, spent=spent))
    assert reason
    assert higher_cap(reason, done=done) == flag
