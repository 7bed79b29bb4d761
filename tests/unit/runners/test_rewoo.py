"""ReWOO as a conversation: what the planner and the solver are asked, and how a question ends."""

from __future__ import annotations

from typing import Any

import pytest
from parts import Told, toolbox

from rewoo_bench.errors import ToolError
from rewoo_bench.events import Event, listening
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.rewoo import ReWOO, ReWOOSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import Message, Trajectory

pytestmark = pytest.mark.anyio

PROMPTS = load_architecture("rewoo", style="multihop").prompts
PLAN = "Plan: find the city\n#E1 = Search[Hermitage]\nPlan: find its river\n#E2 = Search[#E1]"
QUESTION = "Which river flows through the Hermitage's city?"


async def ask(
    lines: Script, *tools: Any, question: str = QUESTION, **settings: Any
) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = ReWOO(PROMPTS, ReWOOSettings(**settings))
    return await runner.run(question, model=model, tools=toolbox(*tools)), model


async def test_the_trajectory_holds_plan_evidence_and_steps() -> None:
    trajectory, _ = await ask([PLAN, "Answer: Neva"], Told(lambda query: f"about {query}"))
    assert trajectory.evidence == {"E1": "about Hermitage", "E2": "about about Hermitage"}
    assert trajectory.plan == [
        {"id": "E1", "tool": "Search", "args": "Hermitage", "depends_on": [], "thought": "find the city"},
        {"id": "E2", "tool": "Search", "args": "{{E1}}", "depends_on": ["E1"], "thought": "find its river"},
    ]
    assert [step.argument for step in trajectory.steps] == ["Hermitage", "about Hermitage"]


async def test_a_broken_plan_may_get_one_more_attempt_that_is_told_all_faults() -> None:
    broken = "#E1 = Serch[a]\n#E2 = Search[#E7]"
    trajectory, model = await ask([broken, PLAN, "Neva"], max_replans=1)
    complaint = model.requests[1].messages[-1].content
    assert "#E1 uses the unknown tool 'Serch'; the tools are: Search; #E2 uses #E7" in complaint
    assert model.requests[1].messages[-2] == Message("assistant", broken)
    assert (trajectory.answer, trajectory.replans) == ("Neva", 1)


@pytest.mark.parametrize("max_replans", [0, 1, 2])
async def test_a_plan_that_stays_broken_may_end_the_question(max_replans: int) -> None:
    search = Told()
    wanted: dict[str, Any] = {"max_replans": max_replans, "invalid_plan": "stop"}
    trajectory, model = await ask(lambda messages, role: "I would search.", search, **wanted)
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == (None, "invalid_plan", max_replans)
    assert [request.role for request in model.requests] == ["planner"] * (1 + max_replans)
    assert search.asked == []
    assert trajectory.notes["drafts"][0]["text"] == "I would search."


async def test_evidence_found_twice_is_sent_once() -> None:
    _, model = await ask([PLAN, "Answer: Neva"], Told(lambda query: "The Hermitage is in Saint Petersburg."))
    sent = model.requests[-1].messages[-1].content
    assert sent.count("The Hermitage is in Saint Petersburg.") == 1
    assert "Evidence: the same as #E1" in sent


async def test_the_solver_gets_no_more_evidence_than_the_map_holds() -> None:
    trajectory, model = await ask([PLAN, "Neva"], Told(lambda _: "word " * 100), slot_tokens=60, map_tokens=40)
    assert trajectory.evidence is not None
    assert [count_tokens(text) <= 20 for text in trajectory.evidence.values()] == [True, True]
    assert f"Evidence: {trajectory.evidence['E2']}\n" in model.requests[1].messages[-1].content


@pytest.mark.parametrize(
    ("plan", "asked", "found"),
    [
        ("#E1 = Serch[a]\n#E2 = Search[b]", ["b"], ["", "page of b"]),  # no such tool
        ("#E1 = Search[#E7]\n#E2 = Search[#E1]", ["No evidence found."], ["", "page of No evidence found."]),
        ("#E1 = Search[#E2]\n#E2 = Search[#E1]\n#E3 = Search[c]", ["c"], ["", "", "page of c"]),  # a circle
        ("#E1 = Search[a]\n#E1 = Search[b]", ["b"], ["page of b"]),
        ("#E1 = Search[a]\n#E2 = Search[b", ["a"], ["page of a"]),  # cut off
    ],
)
async def test_a_broken_plan_goes_on_with_its_sound_steps(plan: str, asked: list[str], found: list[str]) -> None:
    search = Told()
    trajectory, model = await ask([plan, "Answer: Neva"], search, max_steps=3)
    assert [request.role for request in model.requests] == ["planner", "solver"]
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == ("Neva", "answered", 0)
    assert sorted(search.asked) == asked
    assert [step.observation for step in trajectory.steps] == [text or "No evidence found." for text in found]
    assert [step.failed for step in trajectory.steps] == [not text for text in found]
    assert model.requests[1].messages[-1].content.count("Evidence: No evidence found.") == found.count("")
    assert trajectory.notes["drafts"][0]["faults"]


async def test_a_tool_that_fails_is_no_evidence_and_the_steps_that_need_it_run() -> None:
    def answer(query: str) -> str:
        if query == "Hermitage":
            raise ToolError("no page of that name")
        return f"page of {query}"

    trajectory, _ = await ask([PLAN, "Neva"], Told(answer))
    assert trajectory.evidence == {"E1": "No evidence found.", "E2": "page of No evidence found."}
    assert [step.failed for step in trajectory.steps] == [True, False]
    assert trajectory.notes["errors"] == {"E1": "ERROR: no page of that name"}
    trajectory, _ = await ask([PLAN, "Neva"], Told(answer), failed_input="skip", show_errors=True)
    assert trajectory.evidence == {"E1": "ERROR: no page of that name", "E2": "ERROR: not run, since #E1 failed"}


async def test_where_failed_inputs_skip_steps_the_answer_needs_its_own_too() -> None:
    def fail(query: str) -> str:
        raise ToolError("down")

    plan = "#E1 = Search[Hermitage]\n#E2 = Finish[#E1]"
    trajectory, _ = await ask([plan], Told(fail), solver=False, failed_input="skip")
    assert (trajectory.answer, trajectory.stop_reason) == (None, "step_limit")
    assert trajectory.notes["errors"] == {"E1": "ERROR: down", "E2": "ERROR: not run, since #E1 failed"}
    trajectory, _ = await ask([plan], Told(fail), solver=False)
    assert (trajectory.answer, trajectory.stop_reason) == ("No evidence found.", "answered")


async def test_what_happens_is_told_as_it_happens() -> None:
    heard: list[Event] = []
    with listening(heard.append):
        await ask(["no plan", PLAN, "Answer: Neva"], max_replans=1)
    assert [(event.kind, event.step) for event in heard] == [
        ("planner_started", None),
        ("plan_rejected", None),
        ("planner_started", None),
        ("plan_created", None),
        ("step_started", "E1"),
        ("step_finished", "E1"),
        ("step_started", "E2"),
        ("step_finished", "E2"),
        ("solver_started", None),
        ("answered", None),
    ]
    times = [event.at_s for event in heard]
    assert times == sorted(times)
    assert heard[1].data["faults"] == ["no step found; a step is a line such as '#E1 = Search[title]'"]
    assert heard[4].data == {"tool": "Search", "argument": "Hermitage"}
    assert heard[-1].data == {"answer": "Neva"}


async def test_the_solver_may_see_only_what_no_step_has_read() -> None:
    plan = "\n".join(
        [
            "Plan: a\n#E1 = Search[Kyiv]",
            "Plan: b\n#E2 = LLM[Which river? Context: #E1]",
            "Plan: c\n#E3 = Search[#E2]",
            "Plan: d\n#E4 = Search[Oslo]",
            "Plan: e\n#E5 = LLM[Which fjord? Context: #E4]",
        ]
    )
    replies = {"Kyiv": "page of Kyiv", "Dnieper": "page of Dnieper", "Oslo": "page of Oslo"}

    class Reader(Told):
        asks_model = True

    llm = Reader(lambda prompt: "Dnieper" if "Kyiv" in prompt else "unknown", name="LLM")
    model = ScriptedModel([plan, "Answer: Neva"])
    runner = ReWOO(PROMPTS, ReWOOSettings(solver_evidence="unread"))
    trajectory = await runner.run("Which?", model=model, tools=toolbox(Told(replies.__getitem__), llm))
    assert trajectory.evidence == {
        "E1": "read in #E2",
        "E2": "Dnieper",
        "E3": "page of Dnieper",
        "E4": "page of Oslo",  # what no answer was found in is shown
        "E5": "unknown",
    }
    assert "page of Kyiv" not in model.requests[-1].messages[-1].content
