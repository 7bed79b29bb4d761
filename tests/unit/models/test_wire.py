"""Requests of external agents: answers that can't be read are paid for, and text in odd encodings is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.models.hosted.dialects import CHAT, MESSAGES, RESPONSES
from rewoo_bench.types import Completion, Message, Request, Usage, WireRequest

pytestmark = pytest.mark.anyio
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
GOOD = {"choices": [{"message": {"role": "assistant", "content": "Neva"}, "finish_reason": "stop"}], "usage": USAGE}


@contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that gives these answers in turn, and the paths that it is asked at."""
    left, paths = list(answers), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            paths.append(self.path)
            status, body = left.pop(0) if left else (500, b"")
            self.send_response(status)
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
        yield f"http://127.0.0.1:{server.server_port}/v1", paths
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hosted(api_base: str, name: str = "openai/x") -> HostedModel:
    return HostedModel(name, ModelSettings(api_base=api_base), api_key="none")


async def complete(model: HostedModel, path: str, **fields: Any) -> Completion:
    """The answer to a request of an agent."""
    asked = {"model": "x", "messages" if path != RESPONSES else "input": [{"role": "user", "content": "Which river?"}]}
    wire = WireRequest(path, json.dumps({**asked, **fields}).encode())
    return await model.complete(Request([Message("user", "Which river?")], role="agent", wire=wire))


async def ask(body: bytes) -> Completion:
    with answering((200, body)) as (api_base, _):
        model = hosted(api_base)
        try:
            return await complete(model, CHAT)
        finally:
            await model.aclose()


async def test_an_answer_with_a_byte_order_mark_is_read() -> None:
    completion = await ask(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert (completion.text, completion.usage) == ("Neva", Usage(1000, 0, 100))


RESPONSE = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "Neva"}]}],
    "usage": {"input_tokens": 1000, "output_tokens": 100},
}


def error(message: str, **fields: Any) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


@pytest.mark.parametrize(
    "refused",
    [
        error("Item with id 'rs_1' not found.", type="invalid_request_error", param="input", code=None),
        error("The model 'x' does not exist", type="invalid_request_error", param=None, code="model_not_found"),
    ],
)
async def test_what_a_request_names_and_nobody_knows_is_no_missing_dialect(refused: bytes) -> None:
    with answering((404, refused), (200, json.dumps(RESPONSE).encode())) as (api_base, paths):
        async with aclosing(hosted(api_base)) as model:
            with pytest.raises(ModelError, match="answered 404"):
                await complete(model, RESPONSES)
            assert (await complete(model, RESPONSES)).text == "Neva"
    assert paths == ["/v1/responses", "/v1/responses"]


async def test_a_dialect_that_has_answered_is_not_missing_later() -> None:
    good = (200, json.dumps(RESPONSE).encode())
    with answering(good, (404, error("Response with id 'r' not found.", code=404)), good) as (api_base, paths):
        async with aclosing(hosted(api_base)) as model:
            await complete(model, RESPONSES)
            with pytest.raises(ModelError, match="answered 404"):
                await complete(model, RESPONSES)
            await complete(model, RESPONSES)
    assert paths == ["/v1/responses"] * 3


async def test_anthropics_own_api_is_asked_once_for_a_model_that_it_does_not_know() -> None:
    with answering((404, error("model: x", type="not_found_error"))) as (api_base, paths):
        async with aclosing(hosted(api_base, "anthropic/x")) as model:
            with pytest.raises(ModelError, match="answered 404: model: x"):
                await complete(model, MESSAGES, max_tokens=9)
    assert paths == ["/v1/messages"]
