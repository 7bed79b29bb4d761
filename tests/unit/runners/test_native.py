"""ReAct with the provider's tool calls: several in a turn at once, each failure its own observation."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from parts import Told, toolbox

from rewoo_bench.errors import SpecError, ToolError
from rewoo_bench.events import current_place
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.react_native import NativeReAct, NativeReActSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel, ScriptLine
from rewoo_bench.types import Completion, Message, ToolCall, Trajectory

pytestmark = pytest.mark.anyio  # plain functions run as they are

PROMPTS = load_architecture("react-native", style="multihop").prompts


def calls(*queries: str, tool: str = "Search") -> Completion:
    """A turn that calls a tool for each query."""
    return Completion("", tool_calls=tuple(ToolCall(f"call_{q}", tool, {"query": q}) for q in queries))


async def ask(lines: Script, *tools: Any, **settings: Any) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = NativeReAct(PROMPTS, NativeReActSettings(**settings))
    return await runner.run("Which river?", model=model, tools=toolbox(*tools)), model


async def test_tools_go_to_the_provider_and_results_come_back_under_their_ids() -> None:
    first = calls("Hermitage")
    trajectory, model = await ask([first, "Answer: Neva"])
    assert [tool.name for tool in model.requests[0].tools] == ["Search"]
    assert model.requests[1].messages[-2:] == (
        Message("assistant", "", tool_calls=first.tool_calls),
        Message("tool", "page of Hermitage", tool_call_id="call_Hermitage"),
    )
    assert (trajectory.answer, trajectory.stop_reason, trajectory.steps[0].id) == ("Neva", "answered", "1")


async def test_calls_of_one_turn_run_at_once_and_results_keep_their_order() -> None:
    running = most = 0

    async def answer(query: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep({"a": 0.06, "b": 0.03, "c": 0.0}[query])
        running -= 1
        return f"{query} from {current_place().name}"

    trajectory, model = await ask([calls("a", "b", "c"), "x"], Told(answer))
    assert most == 3
    results = [message.content for message in model.requests[1].messages if message.role == "tool"]
    assert results == ["a from turn 1/call 1", "b from turn 1/call 2", "c from turn 1/call 3"]
    assert [step.id for step in trajectory.steps] == ["1.1", "1.2", "1.3"]


async def test_each_failure_is_its_own_observation() -> None:
    def answer(query: str) -> str:
        if query == "lost":
            raise ToolError("no page of that name")
        return "found"

    turn = Completion(
        "",
        tool_calls=(
            ToolCall("1", "Search", {"query": "lost"}),
            ToolCall("2", "Search", {"query": "a"}),
            ToolCall("3", "Serch", {"query": "a"}),
            ToolCall("4", "Search", {"title": "a"}),
            ToolCall("5", "Search", {"__raw__": "{broken"}),
        ),
    )
    trajectory, _ = await ask([turn, "x"], Told(answer))
    assert [step.observation for step in trajectory.steps] == [
        "ERROR: no page of that name",
        "found",
        "ERROR: no tool 'Serch'; the tools are: Search",
        "ERROR: 'a' doesn't fit Search: query: Field required",
        "ERROR: '{broken' doesn't fit Search: query: Field required",
    ]
    assert [step.failed for step in trajectory.steps] == [True, False, True, True, True]


async def test_a_reply_without_a_call_is_the_answer() -> None:
    trajectory, _ = await ask(["It flows through the city.\nAnswer: Neva"])
    assert (trajectory.answer, len(trajectory.steps)) == ("Neva", 0)


async def test_an_empty_reply_is_told_so_once() -> None:
    mended, model = await ask(["", "Neva"])
    assert "neither a tool call nor an answer" in model.requests[1].messages[-1].content
    assert mended.answer == "Neva"
    gone, _ = await ask(["", " "])
    assert (gone.answer, gone.stop_reason) == (None, "empty_answer")


@pytest.mark.parametrize(("answer_at_limit", "answer", "asked"), [(True, "Neva", 3), (False, None, 2)])
async def test_the_turns_have_a_limit(answer_at_limit: bool, answer: str | None, asked: int) -> None:
    script: list[ScriptLine] = [calls("a"), calls("b"), "Answer: Neva"]
    trajectory, model = await ask(script, max_steps=2, answer_at_limit=answer_at_limit)
    assert (trajectory.answer, trajectory.stop_reason, len(model.requests)) == (answer, "step_limit", asked)
    assert trajectory.notes["partial_answer"] is answer_at_limit


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "Search", "arguments": {"query": "Oslo"}}',
        'I call:\n```json\n[{"name": "Search", "parameters": {"query": "Oslo"}}]\n```',
        '{{"name": "Search", "arguments": {"query": "Oslo"}}}}',
    ],
)
async def test_a_call_that_was_written_as_text_is_a_call(written: str) -> None:
    trajectory, model = await ask([written, "Answer: Neva"])
    assert [(step.tool, step.argument) for step in trajectory.steps] == [("Search", "Oslo")]
    assert model.requests[1].messages[-2].tool_calls[0].arguments == {"query": "Oslo"}
    assert trajectory.answer == "Neva"


async def test_no_two_calls_that_were_written_as_text_have_the_same_id() -> None:
    call = '{"name": "Search", "arguments": {"query": "a"}}'
    _, model = await ask([f"{call}\n{call}", call, "Answer: Neva"])
    messages = model.requests[2].messages
    ids = [made.id for message in messages for made in message.tool_calls]
    assert len(set(ids)) == 3
    assert [message.tool_call_id for message in messages if message.role == "tool"] == ids


@pytest.mark.parametrize("written", ['{"name": "Serch", "arguments": {"query": "a"}}', '"name": x, "arguments": {'])
async def test_a_call_that_cant_be_read_is_no_answer_and_told_so_once(written: str) -> None:
    mended, model = await ask([written, "Answer: Neva"])
    assert (mended.answer, len(model.requests)) == ("Neva", 2)
    lost, _ = await ask([written, written])
    assert (lost.answer, lost.stop_reason) == (None, "empty_answer")


def calls_of(*arguments: dict[str, Any]) -> Completion:
    return Completion("", tool_calls=tuple(ToolCall(f"call_{n}", "Search", given) for n, given in enumerate(arguments)))


async def test_a_call_may_use_the_result_of_another_one_of_its_turn() -> None:
    first = calls_of({"query": "Oslo"}, {"query": "river of #1"}, {"query": "#2, #1"})
    trajectory, model = await ask([first, "x"], references=True)
    assert [step.argument for step in trajectory.steps] == [
        "Oslo",
        "river of page of Oslo",
        "page of river of page of Oslo, page of Oslo",
    ]
    assert "#1 stands for the result of the first call" in model.requests[0].messages[0].content
    assert model.requests[1].messages[-4].tool_calls == first.tool_calls  # the model sees what it has written


async def test_faults_of_references_are_results_of_their_calls() -> None:
    def answer(query: str) -> str:
        if query == "lost":
            raise ToolError("no page of that name")
        return f"page of {query}"

    turn = calls_of(
        {"query": "#7"}, {"query": "#3"}, {"query": "#2"}, {"query": "lost"}, {"query": "#4"}, {"query": "a"}
    )
    trajectory, _ = await ask([turn, "x"], Told(answer), references=True)
    assert [step.observation for step in trajectory.steps] == [
        "ERROR: #7 is no earlier call of this turn",
        "ERROR: #3 is no earlier call of this turn",
        "ERROR: not run, since #2 failed",
        "ERROR: no page of that name",
        "ERROR: not run, since #4 failed",
        "page of a",
    ]


async def test_one_call_a_turn_is_asked_for_and_made() -> None:
    trajectory, model = await ask([calls("a", "b"), "x"], parallel=False)
    assert [step.argument for step in trajectory.steps] == ["a"]
    assert [request.parallel for request in model.requests] == [False, False]
    assert [len(message.tool_calls) for message in model.requests[1].messages if message.role == "assistant"] == [1]
    assert "make one call a turn" in model.requests[0].messages[0].content
    with pytest.raises(SpecError, match="leave out parallel=no"):
        load_architecture("react-native?parallel=no&references=true", style="multihop")
