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
