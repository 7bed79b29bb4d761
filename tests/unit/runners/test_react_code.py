"""ReAct whose actions are programs, as a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from parts import toolbox

from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.programs import fenced
from rewoo_bench.runners.react_code import ReActCode, ReActCodeSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Message, Trajectory

pytestmark = pytest.mark.anyio

PROMPTS = load_architecture("react-code", style="multihop").prompts
QUESTION = "Which river flows through the Hermitage's city?"
SEARCH = "Thought: find it\n" + fenced('page = await Search("Hermitage")\nprint(page)')
ANSWER = "Thought: I know it\nAnswer: Neva"


def turn(program: str) -> str:
    return f"Thought: go on\n{fenced(program)}"


async def ask(lines: Script, *tools: Any, **settings: Any) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = ReActCode(PROMPTS, ReActCodeSettings(**settings))
    return await runner.run(QUESTION, model=model, tools=toolbox(*tools)), model


async def test_every_turn_sends_the_whole_trace_and_variables_live_on() -> None:
    trajectory, model = await ask([SEARCH, turn("print(page.upper())"), ANSWER])
    start, second, third = (request.messages for request in model.requests)
    seen = (Message("assistant", SEARCH), Message("user", "Output:\npage of Hermitage"))
    assert start[-1] == Message("user", f"Question: {QUESTION}")
    assert second == (*start, *seen)
    assert third[-1] == Message("user", "Output:\nPAGE OF HERMITAGE")
    assert (trajectory.answer, trajectory.stop_reason) == ("Neva", "answered")
    assert [(step.id, step.thought, step.argument) for step in trajectory.steps] == [("E1", "find it", "Hermitage")]


async def test_an_invented_output_is_not_told_back() -> None:
    _, model = await ask([f"{SEARCH}\nOutput:\nIt lies on the Tiber.\nAnswer: Tiber", ANSWER])
    assert model.requests[1].messages[-2].content == SEARCH
    assert model.requests[0].stop == ("\nOutput:",)


async def test_a_fault_is_an_output_and_variables_of_before_are_there() -> None:
    trajectory, model = await ask([SEARCH, turn("1 / 0"), turn("x ="), turn("print(len(page))"), ANSWER])
    outputs = [request.messages[-1].content for request in model.requests[2:]]
    assert outputs == [
        "Output:\nERROR: ZeroDivisionError: division by zero (line 1)",
        "Output:\nERROR: SyntaxError: Expected an expression (line 1)",
        "Output:\n17",
    ]
    assert trajectory.answer == "Neva"


async def test_a_program_that_ran_out_of_time_takes_its_variables_along() -> None:
    _, model = await ask([SEARCH, turn("while True: pass"), turn("print(page)"), ANSWER], timeout_s=0.2)
    assert model.requests[2].messages[-1].content == "Output:\nERROR: it computed for more than 0.2 s"
    assert "name 'page' is not defined" in model.requests[3].messages[-1].content


async def test_a_turn_with_neither_program_nor_answer_is_repaired_once() -> None:
    trajectory, model = await ask(["I would search.", SEARCH, ANSWER])
    assert model.requests[1].messages[-1].content.startswith("Output:\nNo program found.")
    assert trajectory.answer == "Neva"
    ended, _ = await ask(["I would search.", "I would."])
    assert (ended.answer, ended.stop_reason) == (None, "unparsable")


async def test_after_the_last_turn_it_ends_or_asks_for_the_best_answer() -> None:
    ended, _ = await ask([SEARCH, SEARCH], max_steps=2)
    assert (ended.answer, ended.stop_reason) == (None, "step_limit")
    partial, model = await ask([SEARCH, SEARCH, "Answer: Neva"], max_steps=2, answer_at_limit=True)
    assert (partial.answer, partial.stop_reason, partial.notes["partial_answer"]) == ("Neva", "step_limit", True)
    assert "No turn is left." in model.requests[-1].messages[-1].content


async def test_the_guard_sees_a_program_that_is_run_again_and_again() -> None:
    stopped, _ = await ask([SEARCH] * 8, repeat_guard="stop")
    assert (stopped.stop_reason, len(stopped.steps)) == ("repeated", 3)
    _, model = await ask([SEARCH] * 3 + [ANSWER], repeat_guard="nudge")
    assert "These turns repeat themselves" in model.requests[-1].messages[-1].content
