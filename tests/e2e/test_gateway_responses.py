"""Responses that refer to earlier ones: the gateway keeps those of its question, whatever the provider keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

import openai
import pytest
from dialect_server import DialectServer
from open_questions import OpenQuestion, open_question

from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.types import ToolCall

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),  # of litellm, by pydantic
]
TOOLS: Any = [{"type": "function", "name": "search", "parameters": {"type": "object", "properties": {}}}]


def in_turn(*replies: str | ServerReply) -> ModelServer:
    """A provider that has only chats."""
    left = list(replies)
    return ModelServer(lambda request: left.pop(0))


@asynccontextmanager
async def asking(api_base: str) -> AsyncIterator[tuple[Any, OpenQuestion]]:
    """The SDK of an agent, and its question."""
    async with (
        open_question(api_base) as question,
        openai.AsyncOpenAI(base_url=question.base_url, api_key="any", max_retries=0) as client,
    ):
        yield client, question


def texts(request: Any) -> list[str]:
    """The texts that a chat's request has, in order."""
    contents = [message["content"] for message in request["messages"]]
    return [each if isinstance(each, str) else "".join(part["text"] for part in each) for each in contents if each]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_conversation_goes_on_where_the_provider_has_only_chats(streamed: bool) -> None:
    with in_turn("the Neva", "74 km", "Lake Ladoga") as provider:
        async with asking(provider.api_base) as (client, question):
            previous = None
            for text in ("Which river?", "How long?", "From where?"):
                made = await client.responses.create(
                    model="gpt-x", input=text, previous_response_id=previous, stream=streamed
                )
                if streamed:
                    made = [event async for event in made][-1].response
                previous = made.id
    assert texts(provider.books[-1].request) == ["Which river?", "the Neva", "How long?", "74 km", "From where?"]
    assert question.session.notes["translated"] == len(question.meter.calls) == 3


async def test_the_result_of_a_tool_call_refers_to_the_response_that_made_it() -> None:
    call = ServerReply("", tool_calls=[ToolCall("call_7", "search", {"query": "Neva"})])
    with in_turn(call, "74 km") as provider:
        async with asking(provider.api_base) as (client, _):
            first = await client.responses.create(model="gpt-x", input="How long?", tools=TOOLS)
            result = {"type": "function_call_output", "call_id": "call_7", "output": "It has 74 km."}
            last = await client.responses.create(model="gpt-x", input=[result], previous_response_id=first.id)
    user, said, found = provider.books[-1].request["messages"]
    assert (user["role"], said["tool_calls"][0]["id"], found["tool_call_id"]) == ("user", "call_7", "call_7")
    assert last.output_text == "74 km"


async def test_a_translated_stream_has_one_item_after_the_other_as_openais_has() -> None:
    calls = [ToolCall("call_7", "search", {"query": "Neva"}), ToolCall("call_8", "search", {"query": "Ladoga"})]
    with in_turn(ServerReply("I look both up.", tool_calls=calls)) as provider:
        async with asking(provider.api_base) as (client, _):
            stream = await client.responses.create(model="gpt-x", input="How long?", tools=TOOLS, stream=True)
            events = [event async for event in stream]
    of_items = [event for event in events if hasattr(event, "output_index")]
    assert [index for index, _ in groupby(event.output_index for event in of_items)] == [0, 1, 2]
    ended = [event.item.type for event in of_items if event.type == "response.output_item.done"]
    assert sorted(ended) == ["function_call", "function_call", "message"]
    assert events[-1].type == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_an_item_that_is_referred_to_is_sent_whole() -> None:
    with in_turn("the Neva", "74 km") as provider:
        async with asking(provider.api_base) as (client, _):
            first = await client.responses.create(model="gpt-x", input="Which river?")
            reference = {"type": "item_reference", "id": first.output[0].id}
            await client.responses.create(model="gpt-x", input=[reference, {"role": "user", "content": "How long?"}])
    assert texts(provider.books[-1].request) == ["the Neva", "How long?"]


@pytest.mark.parametrize(
    ("status", "request_", "code"),
    [
        (400, {"input": "x", "previous_response_id": "resp_other"}, "previous_response_not_found"),
        (404, {"input": [{"type": "item_reference", "id": "msg_other"}]}, None),
        (400, {"input": "x", "background": True}, None),
    ],
)
async def test_what_is_not_kept_is_refused_at_once(status: int, request_: Any, code: str | None) -> None:
    with DialectServer() as provider:
        async with asking(provider.api_base) as (client, _):
            with pytest.raises(openai.APIStatusError) as raised:
                await client.responses.create(model="gpt-x", **request_)
    assert (raised.value.status_code, raised.value.code, provider.books) == (status, code, [])


async def test_kept_responses_are_listed_and_deleted() -> None:
    with in_turn("the Neva", "74 km") as provider:
        async with asking(provider.api_base) as (client, _):
            first = await client.responses.create(model="gpt-x", input="Which river?")
            second = await client.responses.create(model="gpt-x", input="How long?", previous_response_id=first.id)
            kept = await client.responses.retrieve(second.id)
            items = (await client.responses.input_items.list(second.id, order="asc")).data
            await client.responses.delete(first.id)
            with pytest.raises(openai.NotFoundError, match="not found in this question"):
                await client.responses.retrieve(first.id)
    assert (kept.output_text, kept.previous_response_id) == ("74 km", first.id)
    assert [item.role for item in items] == ["user", "assistant", "user"]


async def test_a_response_that_is_not_to_be_stored_is_not_kept() -> None:
    with in_turn("the Neva") as provider:
        async with asking(provider.api_base) as (client, _):
            made = await client.responses.create(model="gpt-x", input="Which river?", store=False)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(made.id)


async def test_a_native_provider_gets_the_whole_input_and_the_count_of_tokens_is_its_own() -> None:
    with DialectServer() as provider:
        async with asking(provider.api_base) as (client, question):
            first = await client.responses.create(model="gpt-x", input="Which river is q01?")
            counted = await client.responses.input_tokens.count(
                model="gpt-x", input="How long is q01?", previous_response_id=first.id
            )
    entry = provider.books[-1]
    assert entry.path == "/responses/input_tokens"
    assert [item["role"] for item in entry.body["input"]] == ["user", "assistant", "user"]
    assert counted.input_tokens > 1000
    assert question.meter.calls[-1].role == "count"
