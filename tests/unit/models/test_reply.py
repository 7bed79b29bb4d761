"""Answers in the OpenAI form, as different servers write them."""

from __future__ import annotations

from typing import Any

import pytest

from rewoo_bench.models.hosted.responses import cut_at_stop, read_response
from rewoo_bench.text.model_output import RAW_ARGUMENTS
from rewoo_bench.types import ToolCall


def message(content: Any = None, **fields: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **fields}, "finish_reason": "stop"}


def call(arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "Search", "arguments": arguments}, **fields}


@pytest.mark.parametrize(
    ("choice", "text", "thoughts"),
    [
        (message("Oslo"), "Oslo", ""),
        ({"text": " Oslo"}, " Oslo", ""),
        (message(None), "", ""),
        (message([{"type": "thinking", "thinking": "Norway?"}, {"type": "text", "text": "Oslo"}]), "Oslo", "Norway?"),
        (message("Oslo", reasoning_content="Norway?"), "Oslo", "Norway?"),
        (message("Oslo", reasoning_details=[{"type": "reasoning.text", "text": "Norway?"}]), "Oslo", "Norway?"),
        (message([{"text": "Norway?", "thought": True}, {"text": "Oslo"}]), "Oslo", "Norway?"),
        (message([{"type": "reasoning", "summary": [{"text": "Norway?"}]}, {"text": "Oslo"}]), "Oslo", "Norway?"),
        (message("Oslo", reasoning="Norway?", reasoning_content="Norway?"), "Oslo", "Norway?"),
        (message("<think>Norway?</think>Oslo"), "Oslo", "Norway?"),
        ({"text": "Norway?</think> Oslo"}, "Oslo", "Norway?"),
    ],
)
def test_the_visible_text_and_the_thoughts(choice: dict[str, Any], text: str, thoughts: str) -> None:
    reply = read_response(choice)
    assert (reply.text, reply.thoughts) == (text, thoughts)


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"query": "Oslo"}', {"query": "Oslo"}),
        ({"query": "Oslo"}, {"query": "Oslo"}),
        (None, {}),
        ('{"query', {RAW_ARGUMENTS: '{"query'}),
        ('{"query": NaN}', {RAW_ARGUMENTS: '{"query": NaN}'}),
        (r'{"query": "\ud800"}', {"query": "\ufffd"}),
        ("[" * 100_000, {RAW_ARGUMENTS: "[" * 100_000}),
        (7, {RAW_ARGUMENTS: "7"}),
    ],
)
def test_arguments_of_tool_calls(arguments: Any, read: dict[str, Any]) -> None:
    assert read_response(message(tool_calls=[call(arguments)])).tool_calls == (ToolCall("c1", "Search", read),)


def test_what_a_provider_wants_back_stays_with_the_call() -> None:
    signature = {"google": {"thought_signature": "abc"}}
    blocks = [{"type": "thinking", "thinking": "Norway?", "signature": "xyz"}]
    choice = message(None, thinking_blocks=blocks, tool_calls=[call(extra_content=signature), call()])
    first, second = read_response(choice).tool_calls
    assert first.echo == {"message": {"thinking_blocks": blocks}, "call": {"extra_content": signature}}
    assert second.echo == {}


@pytest.mark.parametrize(
    ("sent", "read"), [("length", "length"), ("max_tokens", "length"), ("end_turn", "stop"), (3, "3")]
)
def test_finish_reasons_have_one_name(sent: Any, read: str) -> None:
    assert read_response({**message("x"), "finish_reason": sent}).finish_reason == read


@pytest.mark.parametrize(
    "choice", [{"message": {"content": 7}}, {"message": "text"}, {"message": {"content": {"a": 1}}}]
)
def test_what_is_no_message_is_refused(choice: Any) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError)):
        read_response(choice)


def test_a_text_is_cut_at_the_first_stop_string() -> None:
    text = "Action: Search[x]\nObservation: invented\nQuestion: more"
    assert cut_at_stop(text, ("\nQuestion:", "\nObservation")) == (text[:17], text[17:])
    assert cut_at_stop(text, ()) == (text, "")
    assert cut_at_stop(text, ("\nnowhere", "")) == (text, "")
