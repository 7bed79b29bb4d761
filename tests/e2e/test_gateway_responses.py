"""OpenAI's Responses at the gateway: a conversation goes on with all of it, and nothing is kept for a reference."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from dialect_server import DialectServer
from model_server import ModelServer, ServerReply
from open_questions import OpenQuestion, open_question

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
            items: list[Any] = []
            for text in ("Which river?", "How long?", "From where?"):
                items.append({"role": "user", "content": text})
                made = await client.responses.create(model="gpt-x", input=items, store=False, stream=streamed)
                if streamed:
                    made = [event async for event in made][-1].response
                items += made.output
    assert texts(provider.books[-1].request) == ["Which river?", "the Neva", "How long?", "74 km", "From where?"]
    assert question.session.notes["translated"] == len(question.meter.calls) == 3


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"input": "x", "previous_response_id": "resp_1"}, "`store: false`, instead of `previous_response_id`"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "`store: false`, instead of a reference to an item"),
        ({"input": "x", "background": True}, "leave `background` out"),
    ],
)
async def test_what_isnt_in_the_request_is_refused_at_once(request_: Any, said: str) -> None:
    with DialectServer() as provider:
        async with asking(provider.api_base) as (client, _):
            with pytest.raises(openai.BadRequestError, match=said):
                await client.responses.create(model="gpt-x", **request_)
    assert provider.books == []
