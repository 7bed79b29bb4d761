"""Requests and answers of each dialect, read for the meter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.models.hosted.dialects import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    MESSAGES,
    PATHS,
    RESPONSES,
    AnswerFacts,
    dialect_error,
    read_request,
)
from rewoo_bench.types import Message, Usage

TURNS = [{"role": "system", "content": "Be short."}, {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]}]


@pytest.mark.parametrize(
    ("path", "body", "messages", "limit"),
    [
        (CHAT, {"messages": TURNS, "max_completion_tokens": 8}, [("system", "Be short."), ("user", "2 + 2?")], 8),
        (
            CHAT,
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                          {"role": "tool", "content": "4"}]},
            [("assistant", '{"id": "1"}'), ("tool", "4")],
            None,
        ),
        (COMPLETIONS, {"prompt": "2 + 2 =", "max_tokens": 3}, [("user", "2 + 2 =")], 3),
        (COMPLETIONS, {"prompt": ["a", "b"]}, [("user", "a\nb")], None),
        (EMBEDDINGS, {"input": "a"}, [("user", "a")], None),
        (
            RESPONSES,
            {"instructions": "Be short.", "input": [{"role": "developer", "content": "x"},
                                                    {"type": "function_call_output", "output": "4"}],
             "max_output_tokens": 9},
            [("system", "Be short."), ("system", "x"), ("tool", "4")],
            9,
        ),
        (
            MESSAGES,
            {"system": [{"type": "text", "text": "Be short."}], "messages": TURNS[1:], "max_tokens": 5},
            [("system", "Be short."), ("user", "2 + 2?")],
            5,
        ),
    ],
)  # fmt: skip
def test_a_request_is_read(path: str, body: dict[str, Any], messages: list[tuple[Any, str]], limit: int | None) -> None:
    facts = read_request(path, body)
    assert facts.messages == [Message(role, text) for role, text in messages]
    assert facts.max_tokens == limit
    assert not facts.streamed


MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ({"system": "Be short.", "messages": TURNS[1:]}, [False, False]),
        ({"system": [{"type": "text", "text": "Be short.", **MARK}], "messages": TURNS[1:]}, [True, False]),
        ({"tools": [{"name": "Search"}, {"name": "Lookup", **MARK}], "messages": TURNS[1:]}, [True, False]),
        ({"messages": [TURNS[1], {"role": "user", "content": [{"type": "text", "text": "?", **MARK}]}]}, [False, True]),
        ({"messages": [TURNS[1], TURNS[1]], **MARK}, [False, True]),
    ],
)
def test_the_marks_of_an_agents_request_are_read(body: dict[str, Any], marked: list[bool]) -> None:
    assert [message.ends_prefix for message in read_request(MESSAGES, body).messages] == marked


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["messages", "content", "choices", "delta", "message", "usage", "tool_calls", "function", "input", "output", "type",
     "response", "error", "system", "tools", "text", "stop_reason", "finish_reason", "prompt", "role", "max_tokens",
     "cache_control"]
)  # fmt: skip
OBJECTS = st.recursive(JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))


@given(st.sampled_from(sorted(PATHS)), st.dictionaries(NAMES, OBJECTS, max_size=5))
def test_a_request_of_any_form_is_read(path: str, body: dict[str, Any]) -> None:
    assert all(isinstance(message.content, str) for message in read_request(path, body).messages)


@given(st.lists(st.dictionaries(NAMES, OBJECTS, max_size=5), max_size=3))
def test_an_answer_of_any_form_is_read(documents: list[dict[str, Any]]) -> None:
    facts = AnswerFacts()
    for document in documents:
        facts.read(document)
    assert isinstance(facts.text, str)


def read(*documents: Mapping[str, Any]) -> AnswerFacts:
    facts = AnswerFacts()
    for document in documents:
        facts.read(document)
    return facts


def test_an_anthropic_stream_counts_cumulatively_and_cached_input_is_added() -> None:
    counts = {"input_tokens": 10, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5, "output_tokens": 1}
    begin = {"type": "message_start", "message": {"usage": counts}}
    text = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": part}} for part in ("4", "2")]
    middle = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 4}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
    facts = read(begin, *text, middle, end, {"type": "message_stop"})
    assert facts.usage == Usage(45, 30, 7, 0, 5)
    assert (facts.text, facts.finish_reason, facts.is_complete) == ("42", "end_turn", True)


def test_a_responses_stream_is_read() -> None:
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 6,
             "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 16}  # fmt: skip
    facts = read(
        {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
        {"type": "response.output_text.delta", "delta": "4"},
        {"type": "response.completed", "response": {"status": "completed", "usage": usage}},
    )
    assert facts.usage == Usage(10, 4, 6, 2)
    assert (facts.text, facts.finish_reason) == ("4", "completed")


def test_an_error_has_the_form_of_its_dialect() -> None:
    assert dialect_error(MESSAGES, 429, "slow")["error"] == {"type": "rate_limit_error", "message": "slow"}
    assert dialect_error(MESSAGES, 429, "slow")["type"] == "error"
    assert dialect_error(CHAT, 401, "who?")["error"]["type"] == "authentication_error"
