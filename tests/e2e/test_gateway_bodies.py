"""Requests of external agents that can't be read are refused in the form of their dialect."""

from __future__ import annotations

import gzip

import httpx
import pytest
from open_questions import open_question
from parts import Told

pytestmark = pytest.mark.anyio
BODIES: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "bad gzip": (b"no gzip at all", {"Content-Encoding": "gzip"}, 400, "can't be read"),
    "bad json": (b"{", {}, 400, "isn't JSON"),
    "deep": (b'{"text":[' * 450 + b"]}" * 450, {}, 400, "nested deeper than 200 levels"),
    "huge, compressed": (
        gzip.compress(b'"' + b"x" * (70 << 20) + b'"'),
        {"Content-Encoding": "gzip"},
        413,
        "more than 64 MB",
    ),
}


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_that_cannot_be_read_is_an_error_of_the_dialect(body: str) -> None:
    data, headers, status, message = BODIES[body]
    async with (
        open_question("http://127.0.0.1:9/v1", tools={"Search": Told(str)}) as asked,
        httpx.AsyncClient(timeout=60) as web,
    ):
        for path in (
            "/v1/chat/completions",
            "/v1/messages",
            "/v1beta/models/g:generateContent",
            "/tools/Search",
            "/mcp",
        ):
            answer = await web.post(f"{asked.address}{path}", content=data, headers=headers)
            document = answer.json()
            assert answer.status_code == status, path
            assert message in document["error"]["message"]
            if path == "/mcp":
                assert (document["error"]["code"], document["id"]) == (-32700, None)
            assert (document.get("type") == "error") == (path == "/v1/messages")
        assert (await web.get(f"{asked.address}/tools")).status_code == 200
