"""A model request follows no redirect: neither the key nor the prompt reaches the other place."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from command_runs import quiet
from open_questions import open_question

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.models.hosted.dialects import CHAT, COMPLETIONS, COUNT_TOKENS, EMBEDDINGS, MESSAGES, RESPONSES
from rewoo_bench.types import Message, Request

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("own_folder"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),  # of litellm, by pydantic
]
KEY = "the-providers-key-7f3a"
STATUSES = (302, 307)
PATHS = (CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, MESSAGES, COUNT_TOKENS)
# Through the direct client, litellm's own handlers, and the SDK of OpenAI inside litellm.
MODELS = ("openai/x", "anthropic/claude-x", "gemini/gemini-x", "groq/x")


@dataclass
class Place:
    """A server that answers everything with `status` and `location`, and keeps what it was sent."""

    status: int = 404
    location: str = ""
    seen: list[str] = field(default_factory=list)
    origin: str = ""


@contextmanager
def serving(place: Place) -> Iterator[Place]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            place.seen.append(f"{self.requestline} {dict(self.headers)} {body!r}")
            self.send_response(place.status)
            if place.location:
                self.send_header("Location", place.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_POST = answer

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place.origin = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def other() -> Iterator[Place]:
    with serving(Place()) as place:
        yield place


@pytest.fixture
def provider(other: Place) -> Iterator[Place]:
    with serving(Place(307, f"{other.origin.replace('//', '//me:secret99@')}/v1/x?key=secret99")) as place:
        yield place


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("name", MODELS)
async def test_a_model_request_stays_where_it_was_sent(name: str, status: int, provider: Place, other: Place) -> None:
    provider.status = status
    model = HostedModel(name, ModelSettings(api_base=f"{provider.origin}/v1"), api_key=KEY)
    with pytest.raises(ModelError) as caught:
        await model.complete(Request([Message("user", "2 + 2?")], role="solver"))
    await model.aclose()
    assert other.seen == []
    assert len(provider.seen) == 1
    assert f"answered {status}: a redirect to {other.origin}, which isn't followed" in str(caught.value)
    assert "secret99" not in str(caught.value)
    assert (caught.value.status, caught.value.retryable) == (status, False)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["openai/x", "anthropic/claude-x", "gemini/gemini-x"])
@pytest.mark.parametrize("path", PATHS)
async def test_so_does_an_agents_request(path: str, name: str, streamed: bool, provider: Place, other: Place) -> None:
    asked: list[dict[str, Any]] = [{"role": "user", "content": "2 + 2?"}]
    turns = {"input": "2 + 2?"} if path in (RESPONSES, EMBEDDINGS) else {"messages": asked, "max_tokens": 9}
    body = {"model": "x", "stream": streamed, **({"prompt": "2 + 2?"} if path == COMPLETIONS else turns)}
    async with (
        open_question(f"{provider.origin}/v1", name, api_key=KEY, embedding_name="x") as question,
        httpx.AsyncClient(timeout=60) as web,
    ):
        with suppress(httpx.RemoteProtocolError):  # litellm may begin a stream before it asks
            answer = await web.post(f"{question.base_url}{path}", content=json.dumps(body))
            assert answer.status_code in (307, 400, 404)
    assert other.seen == []
    assert len(provider.seen) <= 1  # none where litellm has no such dialect
    if provider.seen:
        assert f"a redirect to {other.origin}, which" in str(question.session.failure)


def test_a_run_whose_provider_has_moved_ends_with_its_new_place(
    provider: Place, other: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--model", "openai/x", "--api-base", f"{provider.origin}/v1")
    assert quiet("--arch", "direct", "--dataset", "sample", *flags) == 2
    assert f"a redirect to {other.origin}, which isn't followed" in capsys.readouterr().err
    assert other.seen == []


@pytest.mark.parametrize("name", ["gemini/gemini-x", "anthropic/claude-x"])
async def test_an_address_of_a_picture_in_an_agents_request_is_not_fetched_here(
    name: str, provider: Place, other: Place
) -> None:
    """litellm fetches it for providers that want the picture itself, from whatever network this machine is in."""
    picture = {"type": "image_url", "image_url": {"url": f"{other.origin}/picture.png"}}
    turn = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}]
    async with (
        open_question(f"{provider.origin}/v1", name, api_key=KEY) as question,
        httpx.AsyncClient(timeout=60) as web,
    ):
        answer = await web.post(f"{question.base_url}{CHAT}", json={"model": "x", "messages": turn})
    assert other.seen == []
    assert answer.status_code == 400
    assert "download is disabled" in answer.text
