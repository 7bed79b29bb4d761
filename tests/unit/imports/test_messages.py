"""Conversations in the forms of OpenAI and Anthropic as model calls, tool calls and turns of the user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewoo_bench.imports.record import (
    RecordedTrajectory,
    ToolUse,
    as_verdict,
    counted_usage,
)
from rewoo_bench.imports.requests import request_of, trajectory_of
from rewoo_bench.types import Usage


def call(id_: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


OPENAI = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How warm is it in Oslo and Bergen?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("a", "weather", city="Oslo"), call("b", "weather", city="Bergen")],
    },
    {"role": "tool", "tool_call_id": "b", "content": "12"},
    {"role": "tool", "tool_call_id": "a", "content": "Error: no station"},
    {"role": "assistant", "content": "12 degrees in Bergen."},
    {"role": "user", "content": "Thanks. And Tromsø?"},
    {"role": "assistant", "content": "I don't know."},
]  # fmt: skip
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "How warm is it in Oslo and Bergen?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "two calls"},
            {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "b", "name": "weather", "input": {"city": "Bergen"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "12"}]},
            {"type": "tool_result", "tool_use_id": "a", "content": "no station", "is_error": True},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "12 degrees in Bergen."}]},
    {"role": "user", "content": "Thanks. And Tromsø?"},
    {"role": "assistant", "content": "I don't know."},
]


def read(record: Any) -> RecordedTrajectory:
    return trajectory_of(request_of(record), "file.json, record 1")


def kinds(found: RecordedTrajectory) -> list[str]:
    return [type(event).__name__ for event in found.events]


def uses(found: RecordedTrajectory) -> list[tuple[str, Any, str | None, bool]]:
    return [(e.name, e.arguments, e.result, e.failed) for e in found.events if isinstance(e, ToolUse)]


@pytest.mark.parametrize("messages", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_each_reply_is_a_model_call_and_results_find_their_calls_by_id(messages: list[dict[str, Any]]) -> None:
    found = read({"messages": messages})
    assert kinds(found) == ["ModelCall", "ToolUse", "ToolUse", "ModelCall", "Turn", "ModelCall"]
    assert found.question == "How warm is it in Oslo and Bergen?"
    assert found.answer == "I don't know."
    assert [use[:2] + use[3:] for use in uses(found)] == [
        ("weather", {"city": "Bergen"}, False),
        ("weather", {"city": "Oslo"}, True),
    ]
    prompts = [len(event.messages or ()) for event in found.calls]
    before = len(messages) - 5 if messages is OPENAI else 1
    assert prompts[0] == (2 if messages is OPENAI else 1) == before - (1 if messages is OPENAI else 0)
    assert prompts[1] == prompts[0] + 3  # the reply and two results
    assert prompts[2] == prompts[1] + 2  # the reply and what the user said
    assert all(call.usage is None for call in found.calls)


def test_a_tool_call_without_a_result_is_there_without_one() -> None:
    found = read({"messages": [OPENAI[1], OPENAI[2]]})
    assert uses(found) == [("weather", {"city": "Oslo"}, None, False), ("weather", {"city": "Bergen"}, None, False)]


def test_ids_that_are_used_twice_are_told_apart_by_their_order() -> None:
    messages = [
        OPENAI[1],
        {"role": "assistant", "tool_calls": [call("x", "first", n=1)]},
        {"role": "tool", "tool_call_id": "x", "content": "one"},
        {"role": "assistant", "tool_calls": [call("x", "second", n=2)]},
        {"role": "tool", "tool_call_id": "x", "content": "two"},
    ]
    assert [(name, result) for name, _, result, _ in uses(read({"messages": messages}))] == [
        ("first", "one"),
        ("second", "two"),
    ]


def test_the_old_form_with_one_function() -> None:
    messages = [
        OPENAI[1],
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
        {"role": "function", "name": "weather", "content": "7"},
        {"role": "assistant", "content": "7"},
    ]
    assert uses(read(messages)) == [("weather", {"city": "Oslo"}, "7", False)]


def test_what_the_user_calls_is_no_call_of_the_agent() -> None:  # tau2-bench: users have tools, too
    messages = [
        OPENAI[1],
        {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "reboot", "requestor": "user"}]},
        {"role": "tool", "id": "u", "content": "done", "requestor": "user"},
        {"role": "assistant", "content": "Well?"},
    ]  # fmt: skip
    found = read({"messages": messages})
    assert uses(found) == []
    assert kinds(found) == ["ModelCall"]


@pytest.mark.parametrize(
    ("record", "task", "trial", "solved"),
    [
        ({"task_id": 3, "trial": 1, "reward": 1.0, "traj": OPENAI}, "3", 1, True),
        ({"id": "t", "epoch": 2, "reward_info": {"reward": 0.5}, "messages": OPENAI}, "t", 2, False),
        ({"task_id": "t", "success": False, "conversation": OPENAI}, "t", None, False),
        ({"messages": OPENAI}, "file.json, record 1", None, None),
    ],
)
def test_task_trial_and_verdict_stand_where_formats_have_them(
    record: Any, task: str, trial: int | None, solved: bool | None
) -> None:
    found = read(record)
    assert (found.task, found.trial, found.solved) == (task, trial, solved)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (  # Anthropic counts what the cache holds apart
            {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5},
            Usage(105, 90, 2, 0, 5),
        ),
        ({"prompt_tokens": 12, "completion_tokens": -3}, None),
        ({}, None),
        ("many", None),
    ],
)  # fmt: skip
def test_tokens_in_the_words_of_each_interface(given: Any, expected: Usage | None) -> None:
    counted = counted_usage(given)
    assert (counted and counted.usage) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (0, False), (0.5, False), ("C", True), ("1.0", True), ("incorrect", False), ("maybe", None),
     (None, None), (float("nan"), None), (10**400, None)],
)  # fmt: skip
def test_a_verdict_is_read_from_a_score_or_a_word(value: Any, expected: bool | None) -> None:
    assert as_verdict(value) == expected


@pytest.mark.parametrize(
    "result",
    [
        [{"text": "Ada Lovelace", "doc_id": "doc_991x"}, {"text": "Ada Wong", "doc_id": "doc_992y"}],
        {"content": "page", "next": "doc_77"},
        {"type": "file", "name": "notes.txt", "path": "/home/ada/notes.txt"},
        {"content": [{"type": "text", "text": "no such page"}], "isError": True},
    ],
)
def test_a_result_that_is_no_message_keeps_all_its_fields(result: Any) -> None:
    messages = [OPENAI[1], {"role": "assistant", "tool_calls": [call("a", "open")]}]
    (use,) = uses(read([*messages, {"role": "tool", "tool_call_id": "a", "content": result}]))
    assert json.loads(use[2] or "") == result
    assert use[3] == (isinstance(result, dict) and "isError" in result)


def test_tools_that_the_provider_runs_are_tool_calls_with_their_results() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "https://x", "title": "Oslo"}]}
    used = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "oslo"}}
    content = [used, found, {"type": "text", "text": "It rains."}]
    anthropic = read({"messages": [OPENAI[1], {"role": "assistant", "content": content}]})
    assert kinds(anthropic) == ["ModelCall", "ToolUse"]
    assert [use[:2] for use in uses(anthropic)] == [("web_search", {"query": "oslo"})]
    assert json.loads(uses(anthropic)[0][2] or "") == found["content"]
    assert anthropic.answer == "It rains."
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]}
    search = {
        "type": "web_search_call",
        "id": "w",
        "status": "completed",
        "action": {"type": "search", "query": "oslo"},
    }
    looked = {"type": "mcp_call", "id": "m", "name": "lookup", "arguments": '{"a": 1}', "output": "7"}
    openai = read({"model": "m", "input": "Rain?", "output": [search, looked, said]})
    assert kinds(openai) == ["ModelCall", "ToolUse", "ToolUse"]
    assert sorted(uses(openai)) == [
        ("lookup", {"a": 1}, "7", False),
        ("web_search", {"type": "search", "query": "oslo"}, None, False),
    ]
    assert openai.answer == "It rains."


def test_tool_calls_whose_input_is_a_text() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "a.txt"}
    responses = {"model": "m", "input": [{"role": "user", "content": "Look."}, item, output], "output": [item]}
    assert [use[0] for use in uses(read(responses))] == ["shell", "shell"]
    chat = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}],
    }
    (use,) = uses(read([OPENAI[1], chat, {"role": "tool", "tool_call_id": "c", "content": "a.txt"}]))
    assert (use[0], "ls" in str(use[1]), use[2]) == ("shell", True, "a.txt")


@pytest.mark.parametrize(
    "reply", [{"content": None, "refusal": "I can't."}, {"content": [{"type": "refusal", "refusal": "I can't."}]}]
)
def test_a_refusal_is_what_a_reply_says(reply: dict[str, Any]) -> None:
    assert read([OPENAI[1], {"role": "assistant", **reply}]).answer == "I can't."


@pytest.mark.parametrize(("total", "expected"), [(1129, Usage(1120, 800, 59, 50)), (1229, Usage(1120, 800, 59, 50))])
def test_geminis_thoughts_and_tools_count_and_a_total_that_nothing_explains_is_marked(
    total: int, expected: Usage
) -> None:
    usage = {"promptTokenCount": 1000, "toolUsePromptTokenCount": 120, "cachedContentTokenCount": 800,
             "candidatesTokenCount": 9, "thoughtsTokenCount": 50, "totalTokenCount": total + 50}  # fmt: skip
    (call,) = read([OPENAI[1], {"role": "model", "content": "12", "usageMetadata": usage}]).calls
    assert (call.usage, call.is_inconsistent) == (expected, total == 1229)
