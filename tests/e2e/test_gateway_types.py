"""A request of a form that can't be read is the agent's own error: it never breaks the gateway, nor another call."""

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
    {"max_tokens": "many"},
    {"messages": "which river?"},
    {"messages": [7]},
    {"messages": [{"role": ["user"], "content": 7, "tool_calls": 7}]},
    {"tools": {"name": "Search"}},
]


@pytest.mark.parametrize("name", ["openai/x", "hosted_vllm/x"])
@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/responses"])
async def test_fields_of_wrong_types_are_an_error_or_the_providers_matter(name: str, path: str) -> None:
    """Whether the provider speaks the dialect or litellm translates."""
    with DialectServer() as provider:
        async with open_question(provider.api_base, name, api_key=KEY) as asked, httpx.AsyncClient() as web:
            for wrong in WRONG:
                body = {"model": "x", "messages": ASK, "input": ASK, "max_tokens": 8, **wrong}
                answer = await web.post(f"{asked.base_url}{path}", json=body, timeout=60)
                assert answer.status_code in (200, 400, 429, 502), answer.text
            fine = {"model": "x", "messages": ASK, "input": ASK, "max_tokens": 8, "stream": None, "temperature": 0}
            assert (await web.post(f"{asked.base_url}{path}", json=fine, timeout=60)).status_code == 200


@pytest.mark.parametrize(
    ("verb", "body", "code"),
    [
        ("generateContent", [7], 400),
        ("generateContent", {"contents": [{"parts": "?"}]}, 400),
        ("streamGenerateContent", {"contents": {"role": "model", "parts": [{"function_call": {"args": {}}}]}}, 400),
        ("nonsense", {}, 404),
    ],
)
async def test_what_cannot_be_read_in_geminis_dialect_is_an_error_in_its_form(verb: str, body: Any, code: int) -> None:
    with DialectServer() as provider:
        async with open_question(provider.api_base, "openai/x", api_key=KEY) as asked, httpx.AsyncClient() as web:
            answer = await web.post(f"{asked.address}/v1beta/models/x:{verb}", json=body, timeout=60)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (code, code)
    assert error["status"] == ("NOT_FOUND" if code == 404 else "INVALID_ARGUMENT")
    assert not asked.meter.calls
