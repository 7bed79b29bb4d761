"""Tool calls of external agents, as their models ask for them and as their next requests answer them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewoo_bench.agents.wire_calls import ToolUse, is_same_call, read_reply, read_results
from rewoo_bench.runners.notation.tools import Observation

CHAT, MESSAGES, RESPONSES = "/chat/completions", "/messages", "/responses"
TWO = "I look.", [ToolUse("c1", "find", '{"q": "Kyiv"}'), ToolUse("c2", "now", "{}")]


def stream(*documents: Any) -> str:
    return "".join(f"data: {json.dumps(each)}\n\n" for each in documents) + "data: [DONE]\n\n"


def function(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields}]}


CALLS = [
    {"id": "c1", "function": function("find", '{"q": "Kyiv"}')},
    {"id": "c2", "function": function("now", "{}")},
]
OUTPUT = [
    {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "c1", **function("find", '{"q": "Kyiv"}')},
    {"type": "function_call", "call_id": "c2", **function("now", "{}")},
]
REPLIES = {
    "chat": (CHAT, json.dumps({"choices": [{"message": {"content": "I look.", "tool_calls": CALLS}}]})),
    "chat, streamed": (
        CHAT,
        stream(
            delta(content="I "),
            delta(content="look."),
            delta(tool_calls=[{"index": 0, "id": "c1", "function": function("find", '{"q":')}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": ' "Kyiv"}'}}]),
            delta(tool_calls=[{"index": 1, "id": "c2", "function": function("now", "{}")}]),
        ),
    ),
    "chat, streamed without places": (
        CHAT,
        stream(
            delta(content="I look.", tool_calls=["odd"]),
            delta(tool_calls=[{"id": "c1", "function": function("find", '{"q":')}]),
            delta(tool_calls=[{"id": "c1", "function": {"arguments": ' "Kyiv"}'}}]),
            delta(tool_calls=[CALLS[1]]),
        ),
    ),
    "responses": (RESPONSES, json.dumps({"output": OUTPUT})),
    "responses, streamed": (
        RESPONSES,
        stream(
            *({"type": "response.output_item.done", "item": item} for item in OUTPUT),
            {"type": "response.completed", "response": {"output": OUTPUT}},
        ),
    ),
    "messages": (
        MESSAGES,
        json.dumps(
            {
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "Kyiv"}},
                    {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
                ]
            }
        ),
    ),
    "messages, streamed": (
        MESSAGES,
        stream(
            {"index": 0, "content_block": {"type": "text", "text": ""}},
            {"index": 0, "delta": {"type": "text_delta", "text": "I look."}},
            {"index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "find", "input": {}}},
            {"index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"q": '}},
            {"index": 1, "delta": {"type": "input_json_delta", "partial_json": '"Kyiv"}'}},
            {"index": 2, "content_block": {"type": "tool_use", "id": "c2", "name": "now", "input": {}}},
        ),
    ),
}
RESULTS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a river"}]}]},
    RESPONSES: {"input": [{"type": "function_call_output", "call_id": "c1", "output": "a river"}]},
    MESSAGES: {
        "messages": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a river"}]},
        ]
    },
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_has_words_and_calls_in_every_dialect(name: str) -> None:
    text, uses = read_reply(*REPLIES[name])
    assert (text, [ToolUse(use.id, use.name, use.arguments or "{}") for use in uses]) == TWO


@pytest.mark.parametrize("path", RESULTS)
def test_the_next_request_has_the_results_in_every_dialect(path: str) -> None:
    assert read_results(path, RESULTS[path]) == {"c1": Observation("a river")}


@pytest.mark.parametrize("body", ["", "[]", '{"choices": [{"message": null}], "output": 3, "content": {}}'])
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_what_cannot_be_read_is_left_out(path: str, body: str) -> None:
    assert read_reply(path, body) == ("", [])


@pytest.mark.parametrize(
    ("name", "arguments", "same"),
    [
        ("Search", {"query": "Kyiv"}, True),
        ("mcp__rewoo_Search", {"query": "Kyiv"}, True),
        ("Research", {"query": "Kyiv"}, False),
        ("Search", {"query": "Oslo"}, False),
        ("Search", {}, True),
    ],
)
def test_a_metered_tool_is_known_by_its_name_and_arguments(name: str, arguments: Any, same: bool) -> None:
    use = ToolUse("c1", name, json.dumps(arguments))
    assert is_same_call(use, "Search", {"query": "Kyiv", "limit": 3}) is same
