"""The scripted model: its answers, its memory of what it was asked, and how it runs dry."""

from __future__ import annotations

import pytest

from rewoo_bench.errors import ModelError
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.text.tokens import count_messages
from rewoo_bench.types import Completion, Message, Model, Request, Usage

pytestmark = pytest.mark.anyio

ASK = [Message("user", "Which river?")]


def test_it_is_a_model() -> None:
    assert isinstance(ScriptedModel([]), Model)


async def test_a_list_answers_in_order() -> None:
    model = ScriptedModel(["Seine", "Rhine"])
    assert [(await model.complete(Request(ASK, role=role))).text for role in ("planner", "solver")] == [
        "Seine",
        "Rhine",
    ]


async def test_each_role_has_its_own_lines() -> None:
    model = ScriptedModel({"planner": ["a plan"], "solver": ["an answer"]})
    assert (await model.complete(Request(ASK, role="solver"))).text == "an answer"
    assert (await model.complete(Request(ASK, role="planner"))).text == "a plan"


async def test_a_function_sees_messages_and_role() -> None:
    model = ScriptedModel(lambda messages, role: f"{role}: {messages[-1].content}")
    assert (await model.complete(Request(ASK, role="solver"))).text == "solver: Which river?"


async def test_usage_is_counted_and_says_so() -> None:
    completion = await ScriptedModel(["Seine"]).complete(Request(ASK, role="solver"))
    assert completion.usage == Usage(input_tokens=count_messages(ASK), output_tokens=2)
    assert completion.call_cost.usage_source == "estimated"
    assert completion.call_cost.billed == completion.usage


async def test_a_completion_is_given_back_as_it_is() -> None:
    given = Completion("Seine", Usage(7, 3, 1), finish_reason="length")
    assert await ScriptedModel([given]).complete(Request(ASK, role="solver")) is given


async def test_an_exception_is_raised() -> None:
    model = ScriptedModel([ModelError("busy", retryable=True), "Seine"])
    with pytest.raises(ModelError, match="busy"):
        await model.complete(Request(ASK, role="solver"))
    assert (await model.complete(Request(ASK, role="solver"))).text == "Seine"


async def test_requests_are_kept() -> None:
    model = ScriptedModel(["Seine"])
    await model.complete(
        Request(ASK, role="solver", stop=["\n"], max_tokens=5, schema={"type": "string"}, grammar="root ::= []")
    )
    request = model.requests[0]
    assert (request.messages, request.role, request.stop) == (tuple(ASK), "solver", ("\n",))
    assert (request.max_tokens, request.schema, request.grammar) == (5, {"type": "string"}, "root ::= []")


@pytest.mark.parametrize("lines", [["Seine"], {"solver": ["Seine"]}])
async def test_running_dry_names_the_count_and_the_message(lines: list[str] | dict[str, list[str]]) -> None:
    model = ScriptedModel(lines)
    await model.complete(Request(ASK, role="solver"))
    with pytest.raises(ModelError, match=r"1 replies.*'Which river\?'") as caught:
        await model.complete(Request(ASK, role="solver"))
    assert not caught.value.retryable
