"""Anthropic's own streams through the gateway, read by Anthropic's SDK: tools, thoughts, cached prompts, and faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
from aiohttp import web
from open_questions import OpenQuestion, open_question

from rewoo_bench.types import CallCost, Usage

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning")]

ASK: Any = {
    "model": "claude-x",
    "max_tokens": 2048,
    "system": [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "Which river is q00?"}],
    "tools": [{"name": "search", "description": "Searches", "input_schema": {"type": "object", "properties": {}}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}
START = {"input_tokens": 10, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 1}
WHOLE = Usage(input_tokens=1110, cached_input_tokens=1000, output_tokens=50, cache_write_tokens=100)
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
PING = {"type": "ping"}


def begun(**usage: int) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "usage": {**START, **usage}}}


def block(index: int, kind: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": kind},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


BLOCKS = [
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "It may be "},
        {"type": "thinking_delta", "thinking": "the Neva."},
        {"type": "signature_delta", "signature": "c2ln"},
    ),
    PING,
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look it up: Ĳ"}),
    *block(
        2,
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"query": '},
        {"type": "input_json_delta", "partial_json": '"Neva"}'},
    ),
]
STOP = {"type": "message_stop"}


def ended(**usage: int) -> dict[str, Any]:
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 50, **usage}}


def as_bytes(events: list[dict[str, Any]], newline: str = "\n") -> bytes:
    lines = [f"event: {event['type']}{newline}data: {json.dumps(event)}{newline * 2}" for event in events]
    return "".join(lines).encode()


@asynccontextmanager
async def asked(
    data: bytes, *, at_once: int = 7, pause: asyncio.Event | None = None, headers: dict[str, str] | None = None
) -> AsyncIterator[OpenQuestion]:
    """A question whose provider sends these bytes, some at once; after half of them it waits for `pause`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert await request.json() == {**ASK, "stream": True}
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **(headers or {})})
        await response.prepare(request)
        for start in range(0, len(data), at_once):
            if pause is not None and start > len(data) / 2:
                await pause.wait()
            await response.write(data[start : start + at_once])
        return response

    app = web.Application()
    app.router.add_post("/v1/messages", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with open_question(f"http://127.0.0.1:{runner.addresses[0][1]}", "anthropic/claude-x") as question:
            yield question
    finally:
        await runner.cleanup()


async def final_message(question: OpenQuestion) -> Any:
    """What the SDK makes of the whole stream."""
    client = anthropic.AsyncAnthropic(base_url=question.address, api_key="any", max_retries=0)
    async with client, client.messages.stream(**ASK) as stream:
        return await stream.get_final_message()


def check_answer(message: Any) -> None:
    thought, text, call = message.content
    assert (thought.thinking, thought.signature) == ("It may be the Neva.", "c2ln")
    assert text.text == "I look it up: Ĳ"
    assert (call.name, call.input) == ("search", {"query": "Neva"})
    assert message.stop_reason == "tool_use"


def cost_of(question: OpenQuestion) -> CallCost:
    (call,) = question.meter.calls
    return call.call_cost


STREAMS = {
    "as the API sends it": as_bytes([begun(), PING, *BLOCKS, ended(), STOP]),
    "counts only at the end": as_bytes(
        [
            begun(input_tokens=0, cache_creation_input_tokens=0, cache_read_input_tokens=0),
            *BLOCKS,
            ended(input_tokens=10, cache_creation_input_tokens=100, cache_read_input_tokens=1000),
            STOP,
        ]
    ),
    "Windows line ends": as_bytes([begun(), *BLOCKS, ended(), STOP], "\r\n"),
    "comments": b": hello\n\n" + as_bytes([begun(), *BLOCKS, ended(), STOP]).replace(b"\n\n", b"\n\n: keep-alive\n\n"),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_with_thoughts_and_tools_is_whole_and_counted(name: str) -> None:
    async with asked(STREAMS[name]) as question:
        check_answer(await final_message(question))
    (call,) = question.meter.calls
    assert call.usage == call.call_cost.billed == WHOLE
    assert (call.finish_reason, call.call_cost.usage_source) == ("tool_use", "provider")


async def test_an_error_in_the_middle_is_the_sdks_error_and_billed_as_far_as_it_came() -> None:
    async with asked(as_bytes([begun(), *BLOCKS[:4], OVERLOADED])) as question:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            await final_message(question)
    cost = cost_of(question)
    assert (cost.billed.input_tokens, cost.billed.cached_input_tokens) == (1110, 1000)
    assert 1 < cost.billed.output_tokens < 20
    assert cost.usage_source == "estimated"
