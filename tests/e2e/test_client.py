"""The litellm client against a real server on this machine, whose books say what arrived."""

from __future__ import annotations

import asyncio
import gc
import warnings
from base64 import b64encode
from typing import Any

import anyio
import pytest
from answering import KEY, Script
from asking import ASK, client
from model_server import ModelServer, ServerFault, ServerReply
from pydantic import BaseModel

from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.types import Message, Model, Request, ToolCall, Usage

pytestmark = pytest.mark.anyio

SCHEMA = {"title": "Plan", "type": "object", "properties": {"a": {"type": "string"}}}


@pytest.fixture
def script() -> Script:
    return Script("The Seine does.")


class SearchArguments(BaseModel):
    query: str


class Search:
    name = "search"
    description = "Finds pages."
    arguments = SearchArguments

    async def __call__(self, arguments: Any) -> str:
        return ""


async def test_a_chat_arrives_as_it_was_written(server: ModelServer) -> None:
    async with client(server, seed=7) as model:
        assert isinstance(model, Model)
        completion = await model.complete(Request(ASK, role="solver", stop=["\nObservation:"], max_tokens=33))
    entry = server.books[0]
    assert completion.text == "The Seine does."
    assert entry.path == "/v1/chat/completions"
    assert entry.headers["authorization"] == f"Bearer {KEY}"
    assert entry.request == {
        "model": "tiny",
        "messages": [{"role": m.role, "content": m.content} for m in ASK],
        "stop": ["\nObservation:"],
        "max_tokens": 33,
        "temperature": 0.0,
        "seed": 7,
    }


@pytest.mark.parametrize("name", ["openai/tiny", "text-completion-openai/tiny", "hosted_vllm/tiny"])
async def test_a_completion_arrives_as_one_transcript(server: ModelServer, name: str) -> None:
    async with client(server, name, prompt_form="completion", extra_body={"cache_prompt": True}) as model:
        completion = await model.complete(Request(ASK, role="planner", stop=["\n\n"], grammar="root ::= [a-z]"))
    entry = server.books[0]
    assert completion.text == "The Seine does."
    assert entry.path == "/v1/completions"
    assert entry.request == {
        "model": "tiny",
        "prompt": "Be brief.\n\nWhich river flows\nthrough Paris?  \n",
        "stop": ["\n\n"],
        "max_tokens": 512,
        "temperature": 0.0,
        "cache_prompt": True,
    }


async def test_who_asks_is_in_the_headers(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody is there, and nobody is asked
    async with client(server) as model:
        await model.complete(Request(ASK, role="solver"))
    headers = server.books[0].headers
    assert headers["user-agent"].startswith("rewoo-bench/")
    assert headers["openai-organization"] == "org-1"
    assert "openai-project" not in headers


async def test_a_name_and_a_password_in_the_address_go_before_the_key(server: ModelServer) -> None:
    address = server.api_base.replace("://", "://me:s3cret%21@")
    model = HostedModel("openai/tiny", ModelSettings(api_base=address), api_key=KEY)
    await model.complete(Request(ASK, role="solver"))
    await model.aclose()
    assert server.books[0].headers["authorization"] == f"Basic {b64encode(b'me:s3cret!').decode()}"


@pytest.mark.parametrize(
    ("style", "constrain", "given", "sent"),
    [
        ("chat", "grammar", {"grammar": "root ::= [a]", "schema": SCHEMA}, {"grammar": "root ::= [a]"}),
        ("completion", "grammar", {"schema": SCHEMA}, {"json_schema": SCHEMA}),
        ("chat", "none", {"grammar": "root ::= [a]", "schema": SCHEMA}, {}),
        *(
            (
                "chat",
                constrain,
                {"schema": SCHEMA},
                {"response_format": {"type": "json_schema", "json_schema": {"name": "Plan", "schema": SCHEMA}}},
            )
            for constrain in ("grammar", "schema")
        ),
    ],
)
async def test_constraints_go_out_in_the_form_that_was_chosen(
    server: ModelServer, style: Any, constrain: Any, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    async with client(server, "openai/gpt-4o-mini", prompt_form=style, constrain=constrain) as model:
        await model.complete(Request(ASK, role="planner", **given))
    fields = ("grammar", "json_schema", "response_format")
    assert {name: value for name, value in server.books[0].request.items() if name in fields} == sent


async def test_tools_and_their_calls_go_both_ways(server: ModelServer, script: Script) -> None:
    script.answers = [ServerReply("Looking.", tool_calls=[ToolCall("c1", "search", {"query": "Seine"})])]
    called = ToolCall("c0", "search", {"query": "Paris"})
    turns = [*ASK, Message("assistant", "", (called,)), Message("tool", "A city.", tool_call_id="c0")]
    async with client(server) as model:
        completion = await model.complete(Request(turns, role="agent", tools=[Search()]))
    request = server.books[0].request
    assert (completion.text, completion.finish_reason) == ("Looking.", "tool_calls")
    assert completion.tool_calls == (ToolCall("c1", "search", {"query": "Seine"}),)
    assert request["tools"][0]["function"]["parameters"]["required"] == ["query"]
    assert request["messages"][2]["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"query": "Paris"}'}
    assert request["messages"][3] == {"role": "tool", "content": "A city.", "tool_call_id": "c0"}


@pytest.mark.parametrize("style", ["chat", "completion"])
async def test_usage_is_the_providers(server: ModelServer, script: Script, style: Any) -> None:
    sent = Usage(input_tokens=100, cached_input_tokens=64, output_tokens=20, reasoning_tokens=12)
    script.answers = [ServerReply("The Seine does.", usage=sent)]
    async with client(server, prompt_form=style) as model:
        completion = await model.complete(Request(ASK, role="solver"))
    assert completion.usage == completion.call_cost.billed == sent == server.totals()
    assert completion.call_cost.usage_source == "provider"
    assert completion.call_cost.cost_usd is None


@pytest.mark.parametrize(
    "answer", [ServerFault("no_usage", message="The Seine does."), ServerReply("The Seine.", usage=Usage(9))]
)
@pytest.mark.parametrize("style", ["chat", "completion"])
async def test_usage_that_is_missing_is_estimated(server: ModelServer, script: Script, style: Any, answer: Any) -> None:
    script.answers = [answer]
    async with client(server, prompt_form=style) as model:
        completion = await model.complete(Request(ASK, role="solver"))
    assert completion.call_cost.usage_source == "estimated"
    assert completion.usage.input_tokens >= 10
    assert completion.usage.output_tokens in (4, 5)


async def test_many_at_once_succeed_over_as_many_connections(server: ModelServer) -> None:
    server.latency_s = 0.02
    limiter = AdaptiveLimiter(16)
    async with client(server) as inner, anyio.create_task_group() as group:
        model = RetryingModel(inner, limiter=limiter)

        async def ask(number: int) -> None:
            await model.complete(Request([Message("user", f"question {number}")], role="solver"))

        for i in range(64):
            group.start_soon(ask, i)
    asked = {entry.request["messages"][0]["content"] for entry in server.books}
    assert asked == {f"question {i}" for i in range(64)}
    assert server.peak_connections <= 16


@pytest.mark.parametrize("name", ["openai/tiny", "hosted_vllm/tiny"])
def test_nothing_is_left_open(server: ModelServer, name: str) -> None:
    async def use() -> None:
        async with client(server, name) as model:
            await model.complete(Request(ASK, role="solver"))
            assert server.open_connections == 1
        await asyncio.sleep(0.05)
        assert server.open_connections == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(use())  # what litellm imports late warns of other things
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(use())
        asyncio.run(use())  # and another loop finds nothing of the first
        gc.collect()
