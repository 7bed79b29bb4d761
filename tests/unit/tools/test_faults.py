"""Faults on purpose: the same for every architecture, in the share that was asked for."""

from __future__ import annotations

import pytest
from parts import Query, Told

from rewoo_bench.errors import ToolError
from rewoo_bench.events import call_site
from rewoo_bench.tools.faults import Faults, FaultyTool


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5, 1.0])
def test_so_many_calls_fail_as_were_asked_for(rate: float) -> None:
    struck = [Faults(rate).strikes(f"q{n}", step, "Search") for n in range(500) for step in range(1, 5)]
    assert sum(struck) / len(struck) == pytest.approx(rate, abs=0.04)


def test_a_higher_rate_strikes_all_that_a_lower_one_does() -> None:
    calls = [(f"q{n}", step) for n in range(200) for step in range(1, 5)]
    low, high = ([Faults(rate).strikes(*call, "Search") for call in calls] for rate in (0.2, 0.6))
    assert all(h for lo, h in zip(low, high, strict=True) if lo)


def test_the_seed_the_question_the_step_and_the_tool_decide() -> None:
    def drawn(seed: int, tool: str) -> list[bool]:
        return [Faults(0.5, seed=seed).strikes(f"q{n}", 1, tool) for n in range(50)]

    assert drawn(0, "Search") == drawn(0, "Search")
    assert drawn(0, "Search") != drawn(1, "Search")
    assert drawn(0, "Search") != drawn(0, "Lookup")


@pytest.mark.anyio
async def test_a_step_of_a_plan_and_the_turn_of_that_number_meet_the_same_fault() -> None:
    faults = Faults(0.5, "error")
    for number in range(1, 12):
        failed = []
        for place in (f"E{number}", f"turn {number}", f"react/turn {number}"):
            with call_site(place):
                try:
                    await FaultyTool(Told(), faults, "q7")(Query(query="a"))
                except ToolError:
                    failed.append(place)
        assert len(failed) in (0, 3)


@pytest.mark.anyio
async def test_each_mode_fails_in_its_own_way() -> None:
    assert await FaultyTool(Told(), Faults(1.0, "empty"), "q")(Query(query="a")) == ""
    with pytest.raises(ToolError, match="the tool failed"):
        await FaultyTool(Told(), Faults(1.0, "error"), "q")(Query(query="a"))
    with pytest.raises(ToolError, match="timeout"):
        await FaultyTool(Told(), Faults(1.0, "timeout"), "q")(Query(query="a"))
