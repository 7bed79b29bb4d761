"""Requests of external agents that can't be read are refused in the form of their dialect."""

from __future__ import annotations

import gzip
from typing import Any

import httpx
import pytest
from open_questions import open_question
from parts import Told

pytestmark = pytest.mark.anyio
GZIP = {"Content-Encoding": "gzip"}
BODIES: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "bad gzip": (b"no gzip at all", GZIP, 400, "can't be read"),
    "cut gzip": (gzip.compress(b'{"model": "gpt-x"}' * 99)[:-20], GZIP, 400, "isn't JSON"),
    "bad json": (b"{", {}, 400, "isn't JSON"),
    "deep": (b'{"text":[' * 450 + b"]}" * 450, {}, 400, "nested deeper than 200 levels"),
    "a list": (b"[]", {}, 400, "no JSON object but list"),
    "huge": (b'"' + b"x" * (70 << 20) + b'"', {}, 413, "more than 64 MB"),
    "huge, compressed": (gzip.compress(b'"' + b"x" * (70 << 20) + b'"'), GZIP, 413, "more than 64 MB"),
}


async def post(path: str, body: str) -> tuple[int, Any]:
    data, headers, *_ = BODIES[body]
    async with (
        open_question("http://127.0.0.1:9/v1", tools={"Search": Told(str)}) as asked,
        httpx.AsyncClient(timeout=60) as web,
    ):
        answer = await web.post(f"{asked.address}{path}", content=data, headers=headers)
        again = await web.get(f"{asked.address}/tools")
        assert again.status_code == 200
    assert answer.headers["content-type"].startswith("application/json")
    return answer.status_code, answer.json()


@pytest.mark.by_day(8)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/tools/Search"])
async def test_a_body_that_cannot_be_read_is_an_error_of_the_dialect(path: str, body: str) -> None:
    _, _, status, message = BODIES[body]
    found, document = await post(path, body)
    assert found == status
    assert message in document["error"]["message"]
    assert document["error"]["type"] == "invalid_request_error"
    assert (document.get("type") == "error") == (path == "/v1/messages")


@pytest.mark.parametrize("body", [body for body in BODIES if body != "a list"])
async def test_a_body_that_cannot_be_read_is_an_error_of_mcp(body: str) -> None:
    _, _, status, message = BODIES[body]
    found, document = await post("/mcp", body)
    assert (found, document["error"]["code"], document["id"]) == (status, -32700, None)
    assert message in document["error"]["message"]
