"""Plans that end with their answer, and are written anew where a step fails; and their twin, one action a turn."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from parts import Told, toolbox

from rewoo_bench.errors import ToolError
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Message, Trajectory

QUESTION = "Which river flows through the Hermitage's city?"


def plan(*calls: tuple[str, str], first: int = 1) -> str:
    names = {"Search": "query", "Finish": "answer"}
    steps = [{"id": f"E{n}", "tool": tool, "args": {names[tool]: text}} for n, (tool, text) in enumerate(calls, first)]
    return json.dumps({"steps": steps})


def turn(tool: str, text: str) -> str:
    return json.dumps({"action": {"tool": tool, "args": {{"Search": "query", "Finish": "answer"}[tool]: text}}})


def found(query: str) -> str:
    """Knows no lost page, and has nothing on empty ones."""
    if "lost" in query:
        raise ToolError(f"no page {query!r}")
    if "none" in query:  # as the bundled search says it
        return f"No results for {query!r}.\nSimilar: Neva; Volga"
    return "" if "empty" in query else f"page of {query}"


async def ask(name: str, lines: Script, **settings: Any) -> tuple[Trajectory, ScriptedModel, Told]:
    model, search = ScriptedModel(lines), Told(found)
    runner = load_architecture(name, style="multihop", **settings).runner
    return await runner.run(QUESTION, model=model, tools=toolbox(search)), model, search


@pytest.mark.anyio
async def test_a_plan_without_a_failure_takes_one_model_call() -> None:
    trajectory, model, search = await ask("rewoo-lazy", [plan(("Search", "Hermitage"), ("Finish", "{{E1}}"))])
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == ("page of Hermitage", "answered", 0)
    assert (len(model.requests), search.asked) == (1, ["Hermitage"])
    assert [step.tool for step in trajectory.steps] == ["Search", "Finish"]


@pytest.mark.parametrize(
    ("query", "shown"),
    [("lost city", "ERROR: no page 'lost city'"), ("empty", "No results."), ("none", "No results for 'none'.")],
)
@pytest.mark.anyio
async def test_the_rest_is_planned_anew_where_a_step_fails_or_finds_nothing(query: str, shown: str) -> None:
    first = plan(("Search", "Hermitage"), ("Search", query), ("Search", "never asked"), ("Finish", "{{E3}}"))
    rest = plan(("Search", "{{E1}}"), ("Finish", "{{E3}}"), first=3)
    trajectory, model, search = await ask("rewoo-lazy", [first, rest])
    assert search.asked == ["Hermitage", query, "page of Hermitage"]
    assert (trajectory.answer, trajectory.replans) == ("page of page of Hermitage", 1)
    assert [step.id for step in trajectory.steps] == ["E1", "E2", "E3", "E4"]
    assert [step["args"] for step in trajectory.plan or ()] == [
        {"query": "Hermitage"}, {"query": query}, {"query": "{{E1}}"}, {"answer": "{{E3}}"}
    ]  # fmt: skip
    assert model.requests[1].messages[:-2] == model.requests[0].messages
    assert model.requests[1].messages[-2] == Message("assistant", first)
    told = model.requests[1].messages[-1].content
    assert f"#E1 = Search[Hermitage]\nResult: page of Hermitage\n\n#E2 = Search[{query}]\nResult: {shown}" in told
    assert "beginning with step E3." in told
    assert "never asked" not in told


@pytest.mark.anyio
async def test_a_solver_answers_from_the_steps_of_all_plans() -> None:
    text = [
        "Plan: a\n#E1 = Search[Hermitage]\nPlan: b\n#E2 = Search[lost]",
        "Plan: c\n#E3 = Search[#E1]",
        "Answer: Neva",
    ]
    trajectory, model, _ = await ask("rewoo?replan=on_failure", text)
    assert (trajectory.answer, trajectory.replans) == ("Neva", 1)
    assert [request.role for request in model.requests] == ["planner", "planner", "solver"]
    assert "ERROR: no page 'lost'" in model.requests[1].messages[-1].content  # the solver sees errors only if told to
    asked = model.requests[2].messages[-1].content
    assert "#E2 = Search[lost]\nEvidence: No evidence found." in asked
    assert "#E3 = Search[#E1]\nEvidence: page of page of Hermitage" in asked


@pytest.mark.anyio
async def test_steps_that_run_at_the_same_time_come_to_their_end() -> None:
    async def slowly(query: str) -> str:
        await anyio.sleep(0.01 if query == "lost" else 0.05)
        return found(query)

    first = plan(("Search", "lost"), ("Search", "Neva"), ("Finish", "{{E2}}"))
    model, search = ScriptedModel([first, plan(("Finish", "{{E2}}"), first=3)]), Told(slowly)
    runner = load_architecture("rewoo-lazy?schedule=ready", style="multihop").runner
    trajectory = await runner.run(QUESTION, model=model, tools=toolbox(search))
    assert sorted(search.asked) == ["Neva", "lost"]
    assert (trajectory.answer, len(model.requests)) == ("page of Neva", 2)


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (plan(("Search", "b"), ("Finish", "{{E2}}"), first=2), None),
        (plan(("Search", "{{E1}}"), ("Finish", "{{E2}}"), first=2), "#E2 uses #E1, which failed"),
        (plan(("Search", "b"), ("Finish", "{{E1}}")), "#E1 was done by an earlier plan; number on from there"),
        (plan(("Search", "b"), first=2), "the plan has to end with Finish"),
        (plan(("Finish", "b"), ("Search", "b"), first=2), "#E2: Finish has to be the last step"),
    ],
)
@pytest.mark.anyio
async def test_a_broken_rest_is_told_its_faults_before_anything_runs(second: str, fault: str | None) -> None:
    last = plan(("Search", "c"), ("Finish", "{{E2}}"), first=2)
    trajectory, model, search = await ask("rewoo-lazy", [plan(("Search", "lost"), ("Finish", "{{E1}}")), second, last])
    assert search.asked == ["lost", "c" if fault else "b"]
    assert trajectory.replans == (2 if fault else 1)
    if fault:
        assert fault in model.requests[2].messages[-1].content
        assert fault in trajectory.notes["drafts"][1]["faults"]


@pytest.mark.anyio
async def test_replans_and_steps_are_bounded() -> None:
    def again(messages: Any, role: str) -> str:
        number = sum(message.role == "assistant" and "lost" in message.content for message in messages) + 1
        return plan(("Search", f"lost {number}"), ("Finish", f"{{{{E{number}}}}}"), first=number)

    trajectory, model, search = await ask("rewoo-lazy", again)
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == (None, "step_limit", 8)
    assert (len(model.requests), len(search.asked)) == (9, 9)
    trajectory, model, search = await ask("rewoo-lazy?max_steps=3&max_replans=2", again)
    assert (trajectory.stop_reason, len(search.asked)) == ("step_limit", 2)  # a plan of two doesn't fit into one step
    assert "at most 1 are allowed" in trajectory.notes["drafts"][-1]["faults"][0]


@pytest.mark.anyio
async def test_every_turn_of_the_twin_sends_the_whole_trace() -> None:
    lines = [turn("Search", "Hermitage"), turn("Search", "{{E1}}"), turn("Finish", "Neva")]
    trajectory, model, search = await ask("react-json", lines)
    assert search.asked == ["Hermitage", "page of Hermitage"]
    assert (trajectory.answer, trajectory.stop_reason) == ("Neva", "answered")
    assert [step.id for step in trajectory.steps] == ["E1", "E2", "E3"]
    assert model.requests[2].messages == (
        *model.requests[0].messages,
        Message("assistant", lines[0]), Message("user", "Result of E1: page of Hermitage"),
        Message("assistant", lines[1]), Message("user", "Result of E2: page of page of Hermitage"),
    )  # fmt: skip
    assert all((request.schema or {})["title"] == "Action" for request in model.requests)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("I would search.", "No action can be read"),
        (
            '{"action": {"tool": "Serch", "args": {"query": "a"}}}',
            "There is no tool 'Serch'. The tools are: Search, Finish.",
        ),
        (turn("Search", "{{E7}}"), "There is no result of E7; there are: none."),
        (turn("Finish", " "), "Finish has no answer."),
    ],
)
@pytest.mark.anyio
async def test_an_unusable_turn_of_the_twin_is_told_so(bad: str, told: str) -> None:
    trajectory, model, _ = await ask("react-json", [bad, turn("Finish", "Neva")])
    assert trajectory.answer == "Neva"
    assert model.requests[1].messages[-1].content.startswith(f"Result of E1: {told}")
    ended, model, _ = await ask("react-json?max_repairs=1", lambda messages, role: bad)
    assert (ended.stop_reason, len(model.requests)) == ("unparsable", 2)
