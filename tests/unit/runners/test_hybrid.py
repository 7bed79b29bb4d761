"""ReWOO first, ReAct where it left a gap: when it falls back, from what, and what is counted as what."""

from __future__ import annotations

from typing import Any

import pytest
from parts import Told, said, toolbox

from rewoo_bench.calls.meter import Meter
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.notation.replies import gives_up
from rewoo_bench.runners.rewoo_react import ReWOOReAct, ReWOOReActSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Trajectory

pytestmark = pytest.mark.anyio

ARCHITECTURE = load_architecture("rewoo-react", style="multihop")
PLAN = "Plan: find the city\n#E1 = Search[Hermitage]\nPlan: find its river\n#E2 = Search[river of #E1]"
FINISH = "Thought: I know it\nAction: Finish[Neva]"
LOOK = "Thought: look further\nAction: Search[Saint Petersburg]"


async def ask(lines: Script, *tools: Any, **settings: Any) -> tuple[Trajectory, ScriptedModel, Meter]:
    model = ScriptedModel(lines)
    meter = Meter({"": model})
    wanted = ReWOOReActSettings(**{**ARCHITECTURE.spec.settings, "plan_tools": (), **settings})
    runner = ReWOOReAct(ARCHITECTURE.prompts, wanted)
    trajectory = await runner.run("Which river?", model=meter, tools=meter.wrap(toolbox(*tools)))
    return trajectory, model, meter


def empty_for(what: str) -> Told:
    return Told(lambda query: "" if what in query else f"page of {query}")


async def test_a_plan_that_holds_is_all_there_is() -> None:
    trajectory, model, _ = await ask([PLAN, "Answer: Neva"])
    assert (trajectory.answer, [request.role for request in model.requests]) == ("Neva", ["planner", "solver"])


async def test_an_empty_slot_that_the_solver_needs_calls_for_react_from_the_evidence() -> None:
    trajectory, model, _ = await ask([PLAN, LOOK, FINISH], empty_for("river"))
    assert [request.role for request in model.requests] == ["planner", "agent", "agent"]
    seen = said(model.requests[1].messages[-4:])
    assert "Thought: find the city\nAction: Search[Hermitage]\nObservation: page of Hermitage" in seen
    assert seen.endswith("Action: Search[river of page of Hermitage]\nObservation: No results.")
    assert (trajectory.answer, trajectory.notes["fallback"]) == ("Neva", "empty_slot")
    assert [step.id for step in trajectory.steps] == ["E1", "E2", "R1", "R2"]
    assert trajectory.evidence == {"E1": "page of Hermitage", "E2": "No results."}


async def test_an_empty_slot_that_only_feeds_others_is_not_a_gap() -> None:
    trajectory, _, _ = await ask([PLAN, "Answer: Neva"], empty_for("Hermitage"))
    assert (trajectory.answer, trajectory.notes.get("fallback")) == ("Neva", None)


async def test_a_broken_plan_calls_for_react_at_once() -> None:
    trajectory, model, _ = await ask(["no plan", LOOK, FINISH])
    assert [request.role for request in model.requests] == ["planner", "agent", "agent"]
    assert (trajectory.answer, trajectory.plan, trajectory.notes["fallback"]) == ("Neva", None, "invalid_plan")


async def test_a_solver_that_does_not_know_calls_for_react() -> None:
    trajectory, model, _ = await ask([PLAN, "Answer: unknown", FINISH])
    assert [request.role for request in model.requests] == ["planner", "solver", "agent"]
    assert (trajectory.answer, trajectory.notes["fallback"]) == ("Neva", "unknown")


async def test_a_broken_plan_can_be_the_end_too() -> None:
    trajectory, model, _ = await ask(["no plan"], gaps=("empty_slot",))
    assert (trajectory.answer, trajectory.stop_reason, len(model.requests)) == (None, "invalid_plan", 1)


async def test_the_planner_sees_only_its_own_tools() -> None:
    lookup = Told(name="Lookup")
    _, model, _ = await ask([PLAN, "Answer: Neva"], Told(), lookup, plan_tools=("Search",))
    assert "Lookup[" not in model.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("answer", "given_up"),
    [("unknown", True), ("Unknown.", True), ("unknown. The evidence is silent.", True), ("**unknown**", True),
     ("Unknown Pleasures", False), ("the unknown", False), ("", False)],
)  # fmt: skip
def test_giving_up_is_told_from_an_answer(answer: str, given_up: bool) -> None:
    assert gives_up(answer) is given_up
