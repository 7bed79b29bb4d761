"""Headers and queries of agents reach the provider, and the provider's reach the agent."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from aiohttp import web
from open_questions import open_question
from web_server import serving_app

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning")]
ASK: Any = [{"role": "user", "content": "Which river?"}]
USAGE = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "Neva"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
LIMITS = {"x-request-id": "req_7", "x-ratelimit-remaining-requests": "59", "retry-after": "2", "Set-Cookie": "a=b"}


class Provider:
    """It answers with its limits, and keeps each request's headers and query."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.headers: list[Any] = []
        self.queries: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(request.headers)
        self.queries.append(request.query_string)
        if (await request.json()).get("stream"):
            return web.Response(body=CHUNK, headers={**LIMITS, "Content-Type": "text/event-stream"})
        message = {"role": "assistant", "content": "Neva"}
        document = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
        error = {"error": {"message": "slow down", "type": "rate_limit_error"}}
        return web.json_response(document if self.status == 200 else error, status=self.status, headers=LIMITS)


async def test_headers_and_query_pass_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_ORG_ID", raising=False)
    provider = Provider()
    async with serving_app(provider.answer) as address, open_question(f"{address}/v1?api-version=7") as question:
        options: dict[str, Any] = {"organization": "org-of-agent", "base_url": question.base_url, "api_key": "any"}
        async with openai.AsyncOpenAI(**options) as client:
            headers_sent = {"Idempotency-Key": "i1", "X-Forwarded-For": "1.2.3.4", "Cookie": "a=b"}
            made = await client.chat.completions.with_raw_response.create(
                model="gpt-x", messages=ASK, extra_query={"api-version": "9", "tag": "a"}, extra_headers=headers_sent
            )
    (headers,) = provider.headers
    assert ("OpenAI-Organization" in headers, headers["Idempotency-Key"]) == (False, "i1")
    assert headers["Authorization"] == "Bearer k"
    assert not {"X-Forwarded-For", "Cookie"} & set(headers)
    assert question.session.key not in str(headers)
    assert provider.queries == ["api-version=7"]
    assert made.headers["x-request-id"] == "req_7"
    assert made.headers["x-ratelimit-remaining-requests"] == "59"
    assert "set-cookie" not in made.headers
