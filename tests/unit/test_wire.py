"""The OpenAI form as different servers write it."""

from __future__ import annotations

from typing import Any

import pytest

from rewoo_bench.models.wire import RAW_ARGUMENTS, read_text, read_tool_calls, read_usage
from rewoo_bench.types import ToolCall, Usage


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"message": {"content": "Oslo"}}, "Oslo"),
        ({"text": " Oslo"}, " Oslo"),
        ({"message": {"content": None}}, ""),
        ({"message": {}}, ""),
        ({"message": {"content": [{"type": "text", "text": "Os"}, {"type": "text", "text": "lo"}]}}, "Oslo"),
        ({"message": {"content": " <thinking>Norway?</thinking> Oslo"}}, "Oslo"),
        ({"message": {"content": "<think>without an end"}}, "<think>without an end"),
        ({"message": {"content": "half \ud83d"}}, "half ?"),
    ],
)
def test_texts(choice: dict[str, Any], text: str) -> None:
    assert read_text(choice) == text


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"query": "Oslo"}', {"query": "Oslo"}),
        ({"query": "Oslo"}, {"query": "Oslo"}),
        ("", {}),
        (None, {}),
        ("[1]", {RAW_ARGUMENTS: "[1]"}),
        ('{"query', {RAW_ARGUMENTS: '{"query'}),
    ],
)
def test_arguments_of_tool_calls(arguments: Any, read: dict[str, Any]) -> None:
    call = {"type": "function", "function": {"name": "Search", "arguments": arguments}}
    assert read_tool_calls({"message": {"tool_calls": [call]}}) == (ToolCall("call_0", "Search", read),)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, 0, 2)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(9, 4, 2, 1),
        ),
    ],
)
def test_usage(usage: Any, read: Usage) -> None:
    assert read_usage(usage) == read
