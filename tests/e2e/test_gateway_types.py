"""A request whose fields have other types than its dialect gives them is the agent's own error, before any call."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from answering import KEY
from dialect_server import DialectServer
from open_questions import open_question

pytestmark = pytest.mark.anyio

ASK = [{"role": "user", "content": "q00: which river?"}]
WRONG: list[dict[str, Any]] = [
    {"stream": "true"},
    {"stream": 1},
    {"max_tokens": "many"},
    {"temperature": True},
    {"messages": "which river?"},
    {"messages": [7]},
    {"messages": [{"role": ["user"], "content": "?"}]},
    {"messages": [{"role": "user", "content": 7}]},
    {"tools": {"name": "Search"}},
    {"stream_options": "include_usage"},
]


@pytest.mark.parametrize("name", ["openai/x", "hosted_vllm/x"])
@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
async def test_a_wrong_type_is_a_400_of_one_line_and_no_call(name: str, path: str) -> None:
    """Whether the provider speaks the dialect or litellm translates."""
    with DialectServer() as provider:
        async with open_question(provider.api_base, name, api_key=KEY) as asked, httpx.AsyncClient() as web:
            for wrong in WRONG if path != "/messages" else WRONG[:-1]:  # which has no stream_options
                body = {"model": "x", "messages": ASK, "max_tokens": 8, **wrong}
                answer = await web.post(f"{asked.base_url}{path}", json=body, timeout=60)
                said = answer.json()["error"]["message"]
                assert (answer.status_code, "\n" in said, next(iter(wrong)) in said) == (400, False, True), said
            fine = {"model": "x", "messages": ASK, "max_tokens": 8, "stream": None, "temperature": 0}
            assert (await web.post(f"{asked.base_url}{path}", json=fine, timeout=60)).status_code == 200
    assert len(asked.meter.calls) == 1


@pytest.mark.parametrize("name", ["openai/x", "hosted_vllm/x"])
@pytest.mark.parametrize(
    ("path", "wrong", "says"),
    [
        ("/completions", {"prompt": 7}, "prompt is 7, expected a text or a list"),
        ("/responses", {"input": 7}, "input is 7, expected a text or a list"),
        ("/responses", {"input": [7]}, "input[0] is 7, expected an object"),
        ("/responses", {"input": [{"content": {}}]}, "input[0].content is {}, expected a text or a list"),
    ],
)
async def test_a_prompt_of_a_wrong_type_is_named(name: str, path: str, wrong: dict[str, Any], says: str) -> None:
    with DialectServer() as provider:
        async with open_question(provider.api_base, name, api_key=KEY) as asked, httpx.AsyncClient() as web:
            answer = await web.post(f"{asked.base_url}{path}", json={"model": "x", **wrong}, timeout=60)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, f"the request can't be read: {says}")
    assert not asked.meter.calls


@pytest.mark.parametrize(
    ("verb", "body", "says"),
    [
        ("generateContent", [7], "the request is no JSON object but list"),
        ("generateContent", {"contents": 7}, "contents is 7, expected a text, an object or a list"),
        ("generateContent", {"contents": [7]}, "contents[0] is 7, expected a text or an object"),
        ("generateContent", {"contents": [None]}, "contents[0] is None, expected a text or an object"),
        ("generateContent", {"contents": [{"parts": "?"}]}, "contents[0].parts is '?', expected a list"),
        ("generateContent", {"contents": {"parts": [7]}}, "contents.parts[0] is 7, expected an object"),
        ("generateContent", {"contents": {"parts": [{"text": 7}]}}, "contents.parts[0].text is 7, expected a text"),
        (
            "streamGenerateContent",
            {"contents": {"parts": [{"function_call": {"args": {}}}]}},
            "contents.parts[0].function_call has no name",
        ),
        ("generateContent", {"systemInstruction": 7}, "systemInstruction is 7, expected a text, an object or a list"),
        ("generateContent", {"generation_config": [1]}, "generation_config is [1], expected an object"),
        (
            "generateContent",
            {"generationConfig": {"temperature": "hot"}},
            "generationConfig.temperature is 'hot', expected a number",
        ),
        (
            "generateContent",
            {"tools": [{"functionDeclarations": [{"name": 7}]}]},
            "tools[0].functionDeclarations[0].name is 7, expected a text",
        ),
        (
            "generateContent",
            {"tools": [{"functionDeclarations": [{}]}]},
            "tools[0].functionDeclarations[0] has no name",
        ),
        ("generateContent", {"toolConfig": 7}, "toolConfig is 7, expected an object"),
        ("countTokens", {"generateContentRequest": 7}, "generateContentRequest is 7, expected an object"),
        ("batchEmbedContents", {"requests": 7}, "requests is 7, expected a list"),
        ("batchEmbedContents", {"requests": []}, "requests is []: it asks for nothing"),
        ("batchEmbedContents", {"requests": [7]}, "requests[0] is 7, expected an object"),
        ("embedContent", {"content": 7}, "content is 7, expected a text, an object or a list"),
    ],
)
async def test_a_wrong_type_in_geminis_dialect_is_named(verb: str, body: Any, says: str) -> None:
    with DialectServer() as provider:
        async with open_question(provider.api_base, "openai/x", api_key=KEY) as asked, httpx.AsyncClient() as web:
            answer = await web.post(f"{asked.address}/v1beta/models/x:{verb}", json=body, timeout=60)
    said = says if "no JSON object" in says else f"the request can't be read: {says}"
    assert answer.status_code == 400
    assert answer.json() == {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}
    assert not asked.meter.calls
