"""The Worker: every step once, after its inputs, as soon as its schedule allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Told, Year, plan_of, toolbox

from rewoo_bench.errors import ToolError
from rewoo_bench.events import current_place
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts
from rewoo_bench.runners.rewoo import PlanAndEvidence, StepCaller
from rewoo_bench.system.concurrency import Schedule
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Tool

SCHEDULES: list[Schedule] = ["ready", "levels", "sequential"]


async def work(plan: Plan, tools: Mapping[str, Tool], schedule: Schedule = "ready", **wanted: Any) -> PlanAndEvidence:
    evidence_budget = EvidenceBudget("truncate", ScriptedModel([]), Prompts())
    worker = PlanAndEvidence(StepCaller(tools, evidence_budget, **{"slot_tokens": 200, **wanted}), plan)
    await worker.work(schedule)
    return worker


def fails(what: str) -> Callable[[str], str]:
    def answer(query: str) -> str:
        if query == what:
            raise ToolError("no page of that name")
        return f"page of {query}"

    return answer


def sleeps(seconds: dict[str, float], ended: list[str]) -> Callable[[str], Awaitable[str]]:
    """A tool's answer that takes its time; `ended` gets the queries as they end."""

    async def answer(query: str) -> str:
        await anyio.sleep(seconds.get(query, 0.0))
        ended.append(query)
        return ""

    return answer


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """Plans without a circle, their steps written in any order."""
    size = draw(st.integers(1, 40))
    steps = []
    for number in range(1, size + 1):
        needs = draw(st.sets(st.integers(1, number - 1), max_size=3)) if number > 1 else set()
        argument = " ".join([f"step {number}", *(f"#E{need}" for need in sorted(needs))])
        steps.append(PlanStep(id=f"E{number}", tool="Search", args=argument))
    return Plan(steps=tuple(draw(st.permutations(steps))))


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(plan=graphs())
def test_every_step_runs_once_after_its_inputs(schedule: Schedule, plan: Plan) -> None:
    began: list[str] = []

    def answer(query: str) -> str:
        began.append(current_place().name)
        return "found"

    worker = anyio.run(work, plan, toolbox(Told(answer)), schedule)
    assert sorted(began) == sorted(step.id for step in plan.steps)
    for step in plan.steps:
        assert all(began.index(need) < began.index(step.id) for need in step.depends_on)
    assert [step.id for step in worker.steps] == [step.id for step in plan.steps]


@pytest.mark.anyio
@pytest.mark.parametrize(("schedule", "third"), [("ready", 1), ("levels", 2)])
async def test_a_ready_step_does_not_wait_for_its_level(schedule: Schedule, third: int) -> None:
    ended: list[str] = []
    search = Told(sleeps({"slow": 0.5}, ended))
    await work(plan_of("Search[slow]", "Search[fast]", "Search[after #E2]"), toolbox(search), schedule)
    assert ended.index("after No results.") == third


@pytest.mark.anyio
@pytest.mark.parametrize(("schedule", "at_once"), [("ready", 3), ("levels", 3), ("sequential", 1)])
async def test_independent_steps_run_at_once_unless_told_otherwise(schedule: Schedule, at_once: int) -> None:
    running: set[str] = set()
    most = 0

    async def answer(query: str) -> str:
        nonlocal most
        running.add(query)
        most = max(most, len(running))
        await anyio.sleep(0.05)
        running.remove(query)
        return ""

    await work(plan_of("Search[a]", "Search[b]", "Search[c]"), toolbox(Told(answer)), schedule)
    assert most == at_once


@pytest.mark.anyio
async def test_a_failed_tool_is_evidence_and_the_others_go_on() -> None:
    worker = await work(
        plan_of("Search[lost]", "Search[a]", "Year[b]"), toolbox(Told(fails("lost")), Told(name="Year", arguments=Year))
    )
    lost, found, unfit = worker.steps
    assert (lost.observation, lost.failed) == ("ERROR: no page of that name", True)
    assert (found.observation, found.failed) == ("page of a", False)
    assert unfit.failed
    assert unfit.observation.startswith("ERROR: 'b' doesn't fit Year: Input should be a valid integer")


@pytest.mark.anyio
async def test_what_needs_a_failed_step_is_skipped() -> None:
    search = Told(fails("lost"))
    worker = await work(plan_of("Search[lost]", "Search[#E1]", "Search[#E2]", "Search[a]"), toolbox(search))
    assert search.asked == ["lost", "a"]
    assert worker.evidence == {
        "E1": "ERROR: no page of that name",
        "E2": "ERROR: not run, since #E1 failed",
        "E3": "ERROR: not run, since #E2 failed",
        "E4": "page of a",
    }


@pytest.mark.anyio
async def test_leaves_without_evidence_are_known() -> None:
    search = Told(lambda query: {"nothing": ""}.get(query, "page"))
    worker = await work(plan_of("Search[nothing]", "Search[a]", "Search[#E1]", "Search[nothing]"), toolbox(search))
    assert worker.empty_leaves == ["E4"]
