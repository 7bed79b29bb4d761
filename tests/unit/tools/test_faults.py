"""Faults on purpose: the same for every architecture, in the share that was asked for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import pytest
from parts import Query, Told

from rewoo_bench import evaluate
from rewoo_bench.errors import ToolError
from rewoo_bench.events import at_place
from rewoo_bench.tools.guards import Faults, FaultyTool


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5, 1.0])
def test_so_many_calls_fail_as_were_asked_for(rate: float) -> None:
    struck = [Faults(rate).strikes(f"q{n}", step, "Search") for n in range(500) for step in range(1, 5)]
    assert sum(struck) / len(struck) == pytest.approx(rate, abs=0.04)


def test_nothing_fails_unasked_and_the_calls_that_fail_are_the_same_on_every_machine() -> None:
    assert not any(Faults().strikes(f"q{n}", 1, "Search") for n in range(50))
    assert [n for n in range(12) if Faults(0.5).strikes(f"q{n}", 1, "Search")] == [0, 2, 4, 5, 7, 8, 10]


NUMBERS = range(1, 12)


async def struck(numbers: Iterable[int], place: str) -> set[int]:
    """The numbers of the calls that fail, made in this order with the tool of one question."""
    tool, failed = FaultyTool(Told(), Faults(0.5, "error"), "q7"), set()
    for number in numbers:
        with at_place(place.format(number)):
            try:
                await tool(Query(query="a"))
            except ToolError:
                failed.add(number)
    return failed


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["E{}", "turn {}", "react/turn {}"])
async def test_the_number_of_a_step_or_turn_decides_and_not_the_order_of_arrival(place: str) -> None:
    expected = await struck(NUMBERS, "E{}")
    assert 0 < len(expected) < len(NUMBERS)
    assert await struck(NUMBERS, place) == await struck(reversed(NUMBERS), place) == expected
    assert await struck([number for number in NUMBERS for _ in range(2)], place) == expected  # a step calls it twice
    assert await struck(NUMBERS[1::2], place) == expected & {*NUMBERS[1::2]}  # between steps of other tools


@pytest.mark.anyio
@pytest.mark.parametrize("rate", [0.3, 0.7])
async def test_every_architecture_trial_and_run_meets_the_same_faults(rate: float) -> None:
    """Of the calls with one question, step number and tool, all fail or none does."""
    outcomes: dict[tuple[str, str, str], set[bool]] = defaultdict(set)
    callers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for architectures in (["rewoo", "react", "rewoo-react"], ["react-native", "plan-execute", "rewoo"]):  # two runs
        results = await evaluate(
            "sample", architectures, model="oracle", trials=2, questions=20, concurrency=5,
            tool_failure_rate=rate, tool_failure_mode="error",
        )  # fmt: skip
        for result in results:
            for call in result.calls:
                if call.kind == "tool":
                    key = (result.task.example.id, re.findall(r"\d+", call.place.name)[-1], call.name)
                    outcomes[key].add(call.status == "error")
                    callers[key].add(result.task.architecture.name)
    assert [key for key, seen in outcomes.items() if len(seen) > 1] == []
    shared = [outcomes[key] for key, names in callers.items() if len(names) > 2]
    assert min(shared.count({True}), shared.count({False})) > 5
    assert {number for _, number, _ in outcomes} > {"1", "2", "3"}


@pytest.mark.anyio
async def test_each_mode_fails_in_its_own_way() -> None:
    assert await FaultyTool(Told(), Faults(1.0, "empty"), "q")(Query(query="a")) == ""
    with pytest.raises(ToolError, match="the tool failed"):
        await FaultyTool(Told(), Faults(1.0, "error"), "q")(Query(query="a"))
    with pytest.raises(ToolError, match="timeout"):
        await FaultyTool(Told(), Faults(1.0, "timeout"), "q")(Query(query="a"))
