"""Plan and execute as a conversation: a step, an observation, a new plan, until the answer."""

from __future__ import annotations

from typing import Any

import pytest
from gbnf import fits
from parts import toolbox

from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.plan_execute import PlanExecute
from rewoo_bench.runners.react import ReActSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Completion, Trajectory

pytestmark = pytest.mark.anyio

PROMPTS = load_architecture("plan-execute", style="multihop").prompts
PLAN = "Plan:\n1. Find the city.\n2. Find its river."
ACTION = "Action: Search[Hermitage]"
REPLAN = "Plan:\n1. Find the river of Saint Petersburg."
SECOND = "Action: Search[Saint Petersburg]"


async def ask(lines: Script, *tools: Any, **settings: Any) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = PlanExecute(PROMPTS, ReActSettings(**settings))
    return await runner.run("Which river?", model=model, tools=toolbox(*tools)), model


async def test_it_plans_anew_after_every_observation() -> None:
    trajectory, model = await ask([PLAN, ACTION, REPLAN, SECOND, "Answer: Neva"])
    assert [request.role for request in model.requests] == ["planner", "agent", "planner", "agent", "planner"]
    assert [request.messages[-1].content for request in model.requests] == [
        "Question: Which river?",
        "Step: Find the city.",
        "Observation: page of Hermitage\nMake a new plan from what is known now, or answer.",
        "Step: Find the river of Saint Petersburg.",
        "Observation: page of Saint Petersburg\nMake a new plan from what is known now, or answer.",
    ]
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == ("Neva", "answered", 1)
    assert [(step.thought, step.argument) for step in trajectory.steps] == [
        ("Find the city.", "Hermitage"),
        ("Find the river of Saint Petersburg.", "Saint Petersburg"),
    ]


async def test_it_may_answer_at_once() -> None:
    trajectory, model = await ask(["Answer: Neva"])
    assert (trajectory.answer, len(model.requests), trajectory.steps) == ("Neva", 1, ())


@pytest.mark.parametrize("at_limit", ["Answer: Neva", Completion("Answer: Neva")])
async def test_where_the_limit_asks_for_an_answer_that_is_marked(at_limit: Any) -> None:
    trajectory, model = await ask([PLAN, ACTION, at_limit], max_steps=1, answer_at_limit=True)
    assert (trajectory.answer, trajectory.stop_reason) == ("Neva", "step_limit")
    assert trajectory.notes["partial_answer"] is True
    assert model.requests[2].messages[-1].content.endswith("\nNo step is left: answer now.")


@pytest.mark.parametrize(
    ("script", "replans"),
    [
        (["x", "y"], 0),
        ([PLAN, "x", "y"], 0),
        (["x", PLAN, "y"], 0),
        ([PLAN, ACTION, "x", "y"], 0),
        ([PLAN, ACTION, REPLAN, "x", "y"], 1),
        ([PLAN, ACTION, REPLAN, SECOND, "x", "y"], 1),
    ],
)
async def test_and_ends_the_question_the_next_time(script: list[str], replans: int) -> None:
    trajectory, model = await ask(script)
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == (None, "unparsable", replans)
    assert len(model.requests) == len(script)


async def test_a_model_is_held_to_a_plan_then_to_a_plan_or_an_answer_and_at_the_limit_to_an_answer() -> None:
    _, model = await ask([PLAN, ACTION, REPLAN, SECOND, "Answer: Neva"], max_steps=2, answer_at_limit=True)
    grammars = [request.grammar or "" for request in model.requests if request.role == "planner"]
    allowed = [(fits(grammar, PLAN), fits(grammar, "Answer: Neva")) for grammar in grammars]
    assert allowed == [(True, False), (True, True), (False, True)]


@pytest.mark.parametrize(
    "written",
    [
        "1. Find the city.\n2. x",
        "Plan:\n1) Find the city.",
        "**Plan:**\n- 1. Find  the city.",
        "Plan:\n 1: Find the city.",
    ],
)
async def test_plans_are_read_in_many_forms(written: str) -> None:
    _, model = await ask([written, ACTION, "Answer: Neva"])
    assert model.requests[1].messages[-1].content.replace("*", "").strip() == "Step: Find the city."
