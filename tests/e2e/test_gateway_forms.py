"""Agents that speak Gemini's dialect, in the form in which the SDKs send requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from model_server import ModelServer, ServerReply
from open_questions import OpenQuestion, open_question

from rewoo_bench.types import ToolCall, Usage

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning")]
CALL = ServerReply("", tool_calls=[ToolCall("call_7", "search", {"query": "Neva"})])
NEVA = ServerReply("the river Neva", usage=Usage(100, 40, 10, 4))
TURN = {"role": "user", "parts": [{"text": "How long?"}]}
SCHEMA = {"type": "OBJECT", "properties": {"km": {"type": "INTEGER", "nullable": True}}, "required": ["km"]}
DECLARED = {"name": "search", "description": "Searches", "parameters": SCHEMA}
AS_JSON = {"type": "object", "properties": {"km": {"type": ["integer", "null"]}}, "required": ["km"]}


@asynccontextmanager
async def asked(
    path: str, body: Any, *replies: str | ServerReply, **options: Any
) -> AsyncIterator[tuple[httpx.Response, ModelServer, OpenQuestion]]:
    """The response to a request, and the provider that was asked, which has only chats."""
    left = list(replies)
    with ModelServer(lambda request: left.pop(0)) as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient(timeout=30) as client:
            yield await client.post(question.address + path, json=body, **options), provider, question


async def test_a_request_to_gemini_is_a_chat_with_its_settings_and_tools() -> None:
    body = {
        "contents": [
            TURN,
            {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {"query": "Neva"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"result": "74 km"}}}]},
        ],
        "systemInstruction": {"parts": [{"text": "Be short."}]},
        "tools": [{"functionDeclarations": [DECLARED]}, {"google_search": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 9,
            "stopSequences": ["."],
            "topK": 3,
            "responseMimeType": "application/json",
            "responseSchema": SCHEMA,
        },
    }
    async with asked("/v1beta/models/gemini-x:generateContent", body, NEVA) as (response, provider, question):
        answer = response.json()
    sent = provider.books[0].request
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert (sent["messages"][3]["content"], sent["messages"][3]["tool_call_id"]) == ("74 km", "call_1")
    assert sent["tools"][0]["function"]["parameters"] == AS_JSON == sent["response_format"]["json_schema"]["schema"]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "search"}}
    assert (sent["temperature"], sent["max_completion_tokens"], sent["stop"]) == (0.5, 9, ["."])
    assert answer["candidates"][0]["content"]["parts"] == [{"text": "the river Neva"}]
    assert answer["candidates"][0]["finishReason"] == "STOP"
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 6, "totalTokenCount": 110}
    assert answer["usageMetadata"] == {**counts, "cachedContentTokenCount": 40, "thoughtsTokenCount": 4}
    assert question.meter.calls[0].usage == NEVA.usage
    notes = question.session.notes
    assert notes["translated"] == notes["asked for the model gemini-x"] == 1
    assert notes["dropped the field generationConfig.topK"] == notes["dropped the field tools.googleSearch"] == 1


@pytest.mark.parametrize("way", ["", "?alt=sse"])
async def test_geminis_stream_has_each_piece_and_ends_with_calls_reason_and_usage(way: str) -> None:
    path = f"/v1/models/gemini-x:streamGenerateContent{way}"
    reply = ServerReply("I look it up", tool_calls=CALL.tool_calls, usage=NEVA.usage)
    async with asked(path, {"contents": [TURN], "tools": [{"functionDeclarations": [DECLARED]}]}, reply) as (got, _, _):
        lines = [line.removeprefix("data: ") for line in got.text.split("\r\n") if line]
        chunks = [json.loads(line) for line in lines] if way else json.loads(got.text)
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert [part["text"] for part in parts[:-1]] == ["I ", "look ", "it ", "up"]
    assert parts[-1]["functionCall"] == {"id": "call_7", "name": "search", "args": {"query": "Neva"}}
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] == 110


async def test_the_key_of_gemini_may_stand_alone() -> None:
    with ModelServer(lambda request: "Neva") as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient() as client:
            root, key = question.address.split("/q/")
            chat = "/v1beta/models/g:generateContent"
            statuses = [
                (await client.post(root + path, json={"contents": [TURN]}, headers=headers)).status_code
                for path, headers in (
                    (chat, {"x-goog-api-key": key}),
                    (f"{chat}?key={key}", {}),
                    (chat, {"x-goog-api-key": "q-other"}),
                    (f"/q/{key}{chat}", {"Authorization": "Bearer q-other"}),
                )
            ]
    assert statuses == [200, 200, 401, 401]


GEMINIS_CALL = {"functionCall": {"name": "search", "args": {"query": "Neva"}}}
GEMINIS_RESULT = {"functionResponse": {"name": "search", "response": {"result": "74 km"}}}


async def test_own_tools_are_read_where_a_dialects_calls_have_no_ids() -> None:
    more = [{"role": "model", "parts": [GEMINIS_CALL]}, {"role": "user", "parts": [GEMINIS_RESULT]}]
    replies: list[str | ServerReply] = [
        ServerReply("I look.", tool_calls=CALL.tool_calls),
        ServerReply("Once more.", tool_calls=[ToolCall("call_8", "search", {"query": "Neva"})]),
        NEVA,
    ]
    with ModelServer(lambda request: replies.pop(0)) as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient(timeout=30) as client:
            for turns in (0, 1, 2):
                address = f"{question.address}/v1beta/models/g:generateContent"
                body = {"contents": [TURN, *(more * turns)]}
                assert (await client.post(address, json=body)).status_code == 200
    steps = [(step.thought, step.tool, step.argument, step.observation) for step in question.session.steps]
    assert steps == [("I look.", "search", "Neva", "74 km"), ("Once more.", "search", "Neva", "74 km")]
