"""The reason for which a run ended, and the cap that lets it continue."""

from __future__ import annotations

import pytest

from rewoo_bench.calls.caps import RunLimits, Totals
from rewoo_bench.errors import CapReached
from rewoo_bench.runs.journal.store import Spent


@pytest.mark.parametrize(
    ("limits", "spent", "flag"),
    [
        (RunLimits(run_tokens=2_500_000), Spent(tokens=2_600_001), "--run-tokens 5200002"),
        (RunLimits(run_cost=0.5), Spent(cost_usd=0.52), "--run-cost 1.04"),
        (RunLimits(run_cost=1e-05), Spent(cost_usd=2e-05), "--run-cost 4e-05"),
        (RunLimits(run_cost=1.0), Spent(tokens=3, unpriced=True), "--run-cost none"),
    ],
)
def test_a_run_that_a_cap_ended_continues_with_another(limits: RunLimits, spent: Spent, flag: str) -> None:
    reached = limits.exceeded(Totals(tasks=2, done=1, spent=spent))
    assert isinstance(reached, CapReached)
    assert reached.higher == flag


def test_failed_answers_are_no_cap() -> None:
    reached = RunLimits(max_errors=0).exceeded(Totals(tasks=2, done=1, errors=1))
    assert reached is not None
    assert not isinstance(reached, CapReached)


def test_a_cap_that_is_reached_exactly_ends_the_run() -> None:
    tokens = Totals(tasks=2, done=1, spent=Spent(tokens=250))
    assert str(RunLimits(run_tokens=250).exceeded(tokens)) == "used 250 of 250 tokens (--run-tokens)"
    assert RunLimits(run_tokens=251).exceeded(tokens) is None
    dollars = Totals(tasks=2, done=1, spent=Spent(cost_usd=0.5))
    assert str(RunLimits(run_cost=0.5).exceeded(dollars)) == "cost 0.5000 of 0.5 USD (--run-cost)"
    assert RunLimits(run_cost=0.6).exceeded(dollars) is None


@pytest.mark.parametrize(
    ("max_errors", "errors", "unfinished", "stops_early"),
    [
        (None, 1, "1 of 10 answers failed", False),
        (None, 10, "every question failed; last: e10", False),
        (1, 1, None, False),  # one question, not all of them
        (1, 2, "2 of 10 answers failed", True),
        (3, 3, None, False),
        (0.2, 2, None, False),
        (0.2, 3, "3 of 10 answers failed", True),
    ],
)
def test_failed_questions_end_a_run_where_more_failed_than_are_tolerated(
    max_errors: float | None, errors: int, unfinished: str | None, stops_early: bool
) -> None:
    totals = Totals(tasks=10)
    for number in range(1, 11):
        totals.add(f"e{number}" if number > 10 - errors else None)
    assert (totals.done, totals.errors) == (10, errors)
    limits = RunLimits(max_errors=max_errors)
    assert limits.unfinished(totals) == unfinished
    assert bool(limits.exceeded(totals)) == stops_early
