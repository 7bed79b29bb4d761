"""Anthropic's and Gemini's own forms, through litellm: tokens, thoughts, tool calls, cached prefixes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from answering import KEY
from asking import Client
from json_server import JSONServer, serving
from pydantic import BaseModel

from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.types import Message, Request, Usage

pytestmark = pytest.mark.anyio

TURNS = [
    Message("system", "Be brief."),
    Message("user", "Question: an exemplar"),
    Message("assistant", "Answer: its answer", ends_prefix=True),
    Message("user", "Question: where is Oslo?"),
]
MARK = {"type": "ephemeral"}


class Query(BaseModel):
    query: str


class Search:
    name = "Search"
    description = "finds a page"
    arguments = Query

    async def __call__(self, arguments: Query) -> str:
        return "A city."


def anthropic(*content: dict[str, Any], stop_reason: str = "end_turn", **usage: int) -> tuple[int, dict[str, Any]]:
    """A message as Anthropic's API sends it."""
    document = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 50, "output_tokens": 12, **usage},
    }
    return 200, document


def gemini(*parts: dict[str, Any], reason: str = "STOP", **usage: int) -> tuple[int, dict[str, Any]]:
    """A response as Gemini's API sends it."""
    counts = {"promptTokenCount": 400, "candidatesTokenCount": 30, "totalTokenCount": 430, **usage}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, "index": 0}
    return 200, {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash"}


@asynccontextmanager
async def asked(server: JSONServer, name: str, **settings: Any) -> AsyncIterator[HostedModel]:
    model = Client(name, ModelSettings(api_base=server.address, **settings), api_key=KEY)
    try:
        yield model
    finally:
        await model.aclose()


CLAUDE, GEMINI = "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"
THOUGHT = {"type": "thinking", "thinking": "Norway?", "signature": "sig=="}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Search", "input": {"query": "Oslo"}}


async def test_anthropics_cached_and_written_tokens_are_parts_of_the_input() -> None:
    text = {"type": "text", "text": "Norway"}
    with serving(anthropic(text, cache_creation_input_tokens=2000, cache_read_input_tokens=300)) as server:
        async with asked(server, CLAUDE) as model:
            completion = await model.complete(Request(TURNS, role="agent"))
    assert completion.usage == Usage(2350, 300, 12, 0, 2000)
    assert completion.call_cost.usage_source == "provider"


async def test_anthropics_thoughts_and_calls_go_back_as_they_came() -> None:
    answers = [anthropic(THOUGHT, CALL, stop_reason="tool_use"), anthropic({"type": "text", "text": "Answer: Norway"})]
    with serving(*answers) as server:
        async with asked(server, CLAUDE) as model:
            first = await model.complete(Request(TURNS, role="agent", tools=[Search()]))
            (call,) = first.tool_calls
            more = [
                Message("assistant", first.text, tool_calls=(call,)),
                Message("tool", "A city.", tool_call_id=call.id),
            ]
            last = await model.complete(Request([*TURNS, *more], role="agent", tools=[Search()]))
    assert (first.thoughts, first.text, call.name, call.arguments) == ("Norway?", "", "Search", {"query": "Oslo"})
    assert server.requests[1][1]["messages"][3]["content"] == [THOUGHT, CALL]
    assert last.text == "Answer: Norway"


async def test_a_prompts_prefix_is_marked_for_anthropics_cache() -> None:
    with serving(anthropic({"type": "text", "text": "x"}), anthropic({"type": "text", "text": "x"})) as server:
        async with asked(server, CLAUDE, provider_cache=True) as model:
            await model.complete(Request(TURNS, role="agent"))
            grown = [*TURNS, Message("assistant", "Action: Search[Oslo]"), Message("user", "Observation: a city")]
            await model.complete(Request(grown, role="agent"))
    marked = [
        [part.get("cache_control") for message in request["messages"] for part in message["content"]]
        for _, request in server.requests
    ]
    assert marked == [[None, MARK, None], [None, MARK, None, None, MARK]]


async def test_geminis_thoughts_are_output_and_no_text() -> None:
    response = gemini(
        {"text": "Norway?", "thought": True},
        {"text": "Norway"},
        thoughtsTokenCount=100,
        cachedContentTokenCount=256,
        totalTokenCount=530,
    )
    with serving(response) as server:
        async with asked(server, GEMINI, reasoning_effort="low") as model:
            completion = await model.complete(Request(TURNS, role="agent"))
    assert (completion.text, completion.thoughts) == ("Norway", "Norway?")
    assert completion.usage == Usage(400, 256, 130, 100)
    assert "thinkingConfig" in server.requests[0][1]["generationConfig"]


async def test_geminis_signatures_go_back_with_their_calls() -> None:
    call = {"functionCall": {"name": "Search", "args": {"query": "Oslo"}}, "thoughtSignature": "c2ln"}
    with serving(gemini(call), gemini({"text": "Answer: Norway"})) as server:
        async with asked(server, GEMINI) as model:
            first = await model.complete(Request(TURNS, role="agent", tools=[Search()]))
            more = [
                Message("assistant", first.text, tool_calls=first.tool_calls),
                Message("tool", "A city.", tool_call_id=first.tool_calls[0].id),
            ]
            await model.complete(Request([*TURNS, *more], role="agent", tools=[Search()]))
    sent = [part for turn in server.requests[1][1]["contents"] for part in turn["parts"]]
    assert "c2ln" in [part.get("thoughtSignature") for part in sent]
    assert (first.tool_calls[0].name, first.tool_calls[0].arguments) == ("Search", {"query": "Oslo"})
