"""Requests of external agents: answers that can't be read are paid for, and text in odd encodings is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.models.hosted.dialects import CHAT
from rewoo_bench.types import Completion, Message, Request, Usage, WireRequest

pytestmark = pytest.mark.anyio
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
GOOD = {"choices": [{"message": {"role": "assistant", "content": "Neva"}, "finish_reason": "stop"}], "usage": USAGE}


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The address of a server that gives this answer to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def ask(body: bytes) -> Completion:
    with answering(body) as api_base:
        model = HostedModel("openai/x", ModelSettings(api_base=api_base), api_key="none")
        request = WireRequest(CHAT, b'{"model": "x", "messages": [{"role": "user", "content": "Which river?"}]}')
        try:
            return await model.complete(Request([Message("user", "Which river?")], role="agent", wire=request))
        finally:
            await model.aclose()


async def test_an_answer_with_a_byte_order_mark_is_read() -> None:
    completion = await ask(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert (completion.text, completion.usage) == ("Neva", Usage(1000, 0, 100))


async def test_an_answer_that_cannot_be_read_costs_what_its_usage_says() -> None:
    with pytest.raises(ModelError, match="isn't JSON") as raised:
        await ask(json.dumps(GOOD).replace("Neva", "Ne\x01va").encode())
    assert raised.value.call_cost is not None
    assert raised.value.call_cost.billed == Usage(1000, 0, 100)
