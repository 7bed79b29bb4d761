"""What an endpoint's error says that it refuses, in the words of each provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewoo_bench.models.hosted.adaptation import Adaptation, RequestChange, find_change

MESSAGES = [{"role": "system", "content": "Plan."}, {"role": "user", "content": "Question: …"}]
BODY: dict[str, Any] = {
    "model": "m",
    "messages": MESSAGES,
    "temperature": 0.0,
    "seed": 0,
    "max_tokens": 512,
    "stop": ["\nObservation"],
    "response_format": {"type": "json_schema"},
    "tools": [{"type": "function"}],
    "grammar": "root ::= [a-z]",
    "reasoning_effort": "low",
}
WITHOUT_STOP = RequestChange("drop", "stop")
FOLDED = RequestChange("fold_system")


def openai(message: str, param: str | None = None, code: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def anthropic(message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def pydantic(name: str) -> list[dict[str, Any]]:
    return [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": "stop"}
    ]


@pytest.mark.parametrize(
    ("status", "text", "change"),
    [
        # OpenAI and Azure
        (400, openai("Unsupported parameter: 'stop' is not supported.", "stop", "unsupported_parameter"), WITHOUT_STOP),
        (
            400,
            openai("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
            RequestChange("drop", "temperature"),
        ),
        (
            400,
            openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
            RequestChange("max_completion_tokens"),
        ),
        (
            400,
            openai("Unsupported value: 'messages[0].role' does not support 'system'.", "messages[0].role"),
            RequestChange("developer"),
        ),
        (400, openai("Unrecognized request argument supplied: seed"), RequestChange("drop", "seed")),
        (
            400,
            openai("max_tokens is too large: 512. This model supports at most 256 completion tokens.", "max_tokens"),
            RequestChange("limit", "model", 256),
        ),
        # vLLM, Mistral, any FastAPI server
        (
            400,
            openai("[{'type': 'extra_forbidden', 'loc': ('body', 'grammar'), 'msg': 'Extra inputs not permitted'}]"),
            RequestChange("drop", "grammar"),
        ),
        (422, json.dumps({"detail": pydantic("seed")}), RequestChange("drop", "seed")),
        (400, openai("Conversation roles must alternate user/assistant/user/assistant/..."), FOLDED),
        (
            400,
            openai("'max_tokens' is too large: 512. This model's maximum context length is 600 tokens and your request "
                   "has 300 input tokens (512 > 600 - 300)."),
            RequestChange("limit", "", 300),
        ),
        # Anthropic
        (400, anthropic("`temperature` may only be set to 1 when thinking is enabled."),
         RequestChange("drop", "temperature")),
        (400, anthropic('messages: Unexpected role "system". There is a top-level `system` parameter.'), FOLDED),
        (
            400,
            anthropic("max_tokens: 512 > 400, which is the maximum allowed number of output tokens for this model"),
            RequestChange("limit", "model", 400),
        ),
        # llama.cpp
        (500, json.dumps({"error": {"code": 500, "message": "System role not supported at row 1"}}), FOLDED),
        (500, json.dumps({"error": {"message": "tools param requires --jinja flag"}}), RequestChange("drop", "tools")),
        # Ollama
        (400, json.dumps({"error": "registry.example/library/gemma does not support tools"}),
         RequestChange("drop", "tools")),
        # OpenRouter
        (404, openai("No endpoints found that support tool use."), RequestChange("drop", "tools")),
        (
            400,
            json.dumps({"error": {"message": "Provider returned error", "code": 400, "metadata": {
                "raw": openai("Unsupported parameter: 'stop' is not supported with this model.", "stop")}}}),
            WITHOUT_STOP,
        ),
        (400, openai("`temperature` and `top_p` cannot both be specified."), RequestChange("drop", "temperature")),
        (400, openai("The reasoning model does not support Function Calling"), RequestChange("drop", "tools")),
        # xAI, Groq
        (400, openai("Argument not supported on this model: stop"), WITHOUT_STOP),
        (400, openai("This model does not support response format json_schema"),
         RequestChange("drop", "response_format")),
    ],
)  # fmt: skip
def test_the_refused_part_is_found(status: int, text: str, change: RequestChange) -> None:
    assert find_change(status, text, BODY) == change


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, openai("This model's maximum context length is 4096 tokens; your messages have 5000.", "messages")),
        (400, openai("The response was filtered due to the content management policy.", None, "content_filter")),
        (400, openai("Invalid 'temperature': expected a value <= 2, but got 5.", "temperature")),
        (404, openai("The model `nobody` does not exist or you do not have access to it.")),
        (401, openai("Unsupported parameter: 'stop'", "stop")),
        (429, openai("Unsupported parameter: 'stop'", "stop")),
        (400, openai("Unsupported parameter: 'top_k' is not supported.", "top_k")),
        (400, "[" * 200_000),
        (400, ""),
        (None, "stop is not supported"),
    ],
)
def test_an_error_of_the_request_itself_changes_nothing(status: int | None, text: str) -> None:
    assert find_change(status, text, BODY) is None


@pytest.mark.parametrize(
    "text",
    [
        openai("Blocked. Prompt: 'Why is the stop parameter not supported? And tell me more about that.'"),
        openai("[{'loc': ('body', 'messages', 1, 'content'), 'input': 'The seed is not supported, says a page'}]"),
        openai("Not allowed: temperature, system message", "prompt", "content_filter"),
        openai("Invalid value for 'temperature': unexpected value", "temperature", "invalid_value"),
    ],
)
def test_what_an_error_repeats_of_the_prompt_is_no_refusal(text: str) -> None:
    assert find_change(400, text, {**BODY, "top_p": 0.9}) is None


def test_a_completion_endpoint_that_is_not_there_leads_to_the_chat() -> None:
    body = {"model": "m", "prompt": "Question: …", "temperature": 0.0}
    assert find_change(404, '{"detail": "Not Found"}', body) == RequestChange("chat")
    assert find_change(400, openai("This is a chat model; use v1/chat/completions"), body) == RequestChange("chat")
    assert find_change(400, openai("Unknown parameter: 'temperature'"), body) == RequestChange("drop", "temperature")


def test_missing_thoughts_are_sent_back() -> None:
    body = {"messages": [*MESSAGES, {"role": "assistant", "content": "", "tool_calls": []}]}
    says = "Missing `reasoning_content` field in the assistant message at message index 2."
    assert find_change(400, openai(says), body) == RequestChange("thoughts")


def applied(*changes: RequestChange, **body: Any) -> dict[str, Any]:
    adaptation = Adaptation()
    for change in changes:
        adaptation = adaptation.with_change(change)
    return adaptation.apply({"messages": MESSAGES, **body})


def test_a_dropped_parameter_is_not_sent() -> None:
    assert "stop" not in applied(WITHOUT_STOP, stop=["\n"])
    assert applied(RequestChange("max_completion_tokens"), max_tokens=9)["max_completion_tokens"] == 9
    assert applied(RequestChange("limit", "model", 5), max_tokens=9)["max_tokens"] == 5


def test_the_system_message_goes_where_it_is_accepted() -> None:
    assert [m["role"] for m in applied(RequestChange("developer"))["messages"]] == ["developer", "user"]
    (folded,) = applied(FOLDED)["messages"]
    assert folded == {"role": "user", "content": "Plan.\n\nQuestion: …"}


def test_without_tools_their_calls_are_told_as_text() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "Search", "arguments": '{"query": "Oslo"}'}}
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "A city.", "tool_call_id": "c"},
    ]
    sent = Adaptation(left_out=("tools",)).apply({"messages": [*MESSAGES, *turns], "tools": [1]})
    assert "tools" not in sent
    assert [m["role"] for m in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert "Oslo" in sent["messages"][2]["content"]
    assert "A city." in sent["messages"][3]["content"]


def test_what_was_learnt_can_be_read_back_from_a_manifest() -> None:
    learnt = Adaptation(left_out=("seed",))
    for change in (
        RequestChange("max_completion_tokens"),
        RequestChange("developer"),
        RequestChange("chat"),
        RequestChange("limit", "model", 900),
    ):
        learnt = learnt.with_change(change)
    assert Adaptation.from_manifest(json.loads(json.dumps(learnt.as_manifest()))) == learnt
    assert Adaptation.from_manifest({}) == Adaptation()
