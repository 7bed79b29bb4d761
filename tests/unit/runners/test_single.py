"""direct and cot: one model call, with or without a thought before the answer."""

from __future__ import annotations

import pytest

from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.testing.scripted_model import ScriptedModel, ScriptLine
from rewoo_bench.types import Completion, Message, Trajectory

pytestmark = pytest.mark.anyio


async def ask(name: str, line: ScriptLine) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel([line])
    return await load_architecture(name, style="multihop").runner.run("Which river?", model=model, tools={}), model


@pytest.mark.parametrize("name", ["direct", "cot"])
async def test_a_question_takes_one_call_without_tools(name: str) -> None:
    trajectory, model = await ask(name, "Thought: It is in Russia.\nAnswer: Neva")
    (request,) = model.requests
    assert (trajectory.answer, trajectory.stop_reason, trajectory.steps) == ("Neva", "answered", ())
    assert (request.role, request.tools, request.messages[-1]) == (
        "agent",
        (),
        Message("user", "Question: Which river?"),
    )


@pytest.mark.parametrize("name", ["direct", "cot"])
@pytest.mark.parametrize(("finish", "stop_reason"), [("stop", "empty_answer"), ("length", "length_limit")])
async def test_an_empty_reply_is_no_answer(name: str, finish: str, stop_reason: str) -> None:
    trajectory, _ = await ask(name, Completion("Answer:", finish_reason=finish))
    assert (trajectory.answer, trajectory.stop_reason) == (None, stop_reason)


async def test_a_thought_cut_before_its_answer_is_no_answer() -> None:
    trajectory, _ = await ask("cot", Completion("Thought: To answer it, the Hermitage", finish_reason="length"))
    assert (trajectory.answer, trajectory.stop_reason) == (None, "length_limit")


async def test_a_reply_without_its_form_is_the_answer() -> None:
    assert (await ask("direct", "Neva"))[0].answer == "Neva"
