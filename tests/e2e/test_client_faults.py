"""The litellm client where something fails: which error it is, what it says, whether another attempt may help."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import Any

import anyio
import pytest
from answering import KEY, Script
from asking import ASK, client
from model_server import ModelServer, ServerFault
from parts import Billing

from rewoo_bench.calls.retry import RetryingModel
from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.text import openai_format
from rewoo_bench.types import Request

pytestmark = pytest.mark.anyio


def sent(body: bytes) -> ServerFault:
    return ServerFault("body", status=200, body=body)


@pytest.mark.parametrize(
    ("fault", "status", "retryable", "says"),
    [
        *((ServerFault(status=s, message="no"), s, False, f"answered {s}: no") for s in (401, 422)),
        *((ServerFault(status=s, message="no"), s, True, f"answered {s}: no") for s in (408, 429, 500, 529)),
        (
            ServerFault(status=400, message="request (5000 tokens) exceeds the available context size (4096 tokens)"),
            400,
            False,
            "longer than the model's context",
        ),
        (ServerFault("hang"), None, True, "no answer within 0.5 s"),
        (ServerFault("disconnect"), None, True, "connection failed or broke off: Server disconnected"),
        (ServerFault("truncated"), None, True, r"sent an answer of which only the first \d+ bytes arrived"),
        (sent(b'{"choices": ['), None, True, "sent an answer that isn't JSON"),
        (sent(b'{"choices": []}'), None, True, "sent an answer without choices"),
        (sent(b'{"choices": ["hm"]}'), None, True, "sent a response that doesn't match the OpenAI schema"),
        (sent(b'{"error": {"message": "overloaded"}}'), None, True, "sent an error in place of an answer: overloaded"),
    ],
    ids=lambda value: f"{value.kind}{value.status}" if isinstance(value, ServerFault) else "",
)
async def test_a_fault_is_one_request_and_one_error(
    server: ModelServer, script: Script, fault: ServerFault, status: int | None, retryable: bool, says: str
) -> None:
    script.answers = [fault]
    async with client(server, timeout=0.5 if fault.kind == "hang" else 30.0) as model:
        with pytest.raises(ModelError, match=says) as caught:
            await model.complete(Request(ASK, role="solver"))
    assert (caught.value.status, caught.value.retryable) == (status, retryable)
    assert len(server.books) == 1
    assert "\n" not in str(caught.value)
    assert "'openai/tiny'" in str(caught.value)


def html(size: int) -> ServerFault:
    return ServerFault("raw", body=f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n<html>".encode())


@pytest.mark.parametrize("fault", [html(6), html(4096), ServerFault("hang")], ids=["not JSON", "cut off", "too late"])
async def test_an_answer_that_cannot_be_read_or_comes_too_late_costs_at_least_its_prompt(
    server: ModelServer, script: Script, fault: ServerFault
) -> None:
    script.answers = [fault]
    async with client(server, timeout=0.5 if fault.kind == "hang" else 30.0) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(Request(ASK, role="solver"))
    assert caught.value.call_cost is not None
    assert caught.value.call_cost.billed == openai_format.estimate_chat(ASK, (), "", ())
    assert caught.value.call_cost.usage_source == "estimated"


async def test_another_providers_faults_read_the_same(server: ModelServer, script: Script) -> None:
    script.answers = [
        ServerFault(status=429, message="slow", retry_after=2),
        sent(b'{"choices": ['),
        ServerFault("disconnect"),
    ]
    async with client(server, "hosted_vllm/tiny") as model:
        for says, status in (("answered 429: slow", 429), ("isn't JSON", None), ("connection failed", None)):
            with pytest.raises(ModelError, match=says) as caught:
                await model.complete(Request(ASK, role="solver"))
            assert (caught.value.status, caught.value.retryable) == (status, True)
    assert len(server.books) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses instead of waiting")
async def test_a_server_that_takes_no_connection_is_given_up_early() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]  # fill its queue, so that the next one waits
        for other in waiting:
            other.setblocking(False)
            with suppress(BlockingIOError):
                other.connect(("127.0.0.1", port))
        base = f"http://127.0.0.1:{port}/v1"
        model = HostedModel("openai/tiny", ModelSettings(api_base=base, timeout=60), api_key=KEY, connect_timeout=0.5)
        with anyio.fail_after(30), pytest.raises(ModelError, match="the server can't be reached") as caught:
            await model.complete(Request(ASK, role="solver"))
        await model.aclose()
        for other in waiting:
            other.close()
    assert caught.value.retryable


async def test_nobody_listening_is_worth_another_attempt(server: ModelServer) -> None:
    server.stop()
    async with client(server) as model:
        with pytest.raises(ModelError, match=r"the connection failed: Cannot connect to host 127\.0\.0\.1") as caught:
            await model.complete(Request(ASK, role="solver"))
    assert caught.value.retryable
    assert caught.value.unreachable


@pytest.mark.parametrize(("given", "read"), [(7, 7.0), ("soon", None)])
async def test_retry_after_is_read(server: ModelServer, script: Script, given: Any, read: float | None) -> None:
    script.answers = [ServerFault(status=429, retry_after=given)]
    async with client(server) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(Request(ASK, role="solver"))
    assert caught.value.retry_after == read


async def test_retries_are_the_wrappers_and_on_the_servers_books(server: ModelServer, script: Script) -> None:
    script.answers = [ServerFault(status=500), ServerFault(status=429, retry_after=0), "The Seine does."]
    async with client(server) as model:
        completion = await Billing(RetryingModel(model, base_delay=0.001)).complete(Request(ASK, role="solver"))
    assert [entry.status for entry in server.books] == [500, 429, 200]
    assert completion.call_cost.attempts == 3
    assert completion.call_cost.billed == server.totals()


@pytest.mark.parametrize("name", ["openai/tiny", "hosted_vllm/tiny"])
async def test_a_key_is_in_no_error(server: ModelServer, script: Script, name: str) -> None:
    script.answers = [ServerFault(status=401, message=f"wrong key: {KEY}, header Bearer {KEY}")]
    async with client(server, name) as model:
        with pytest.raises(ModelError, match="wrong key") as caught:
            await model.complete(Request(ASK, role="solver"))
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
