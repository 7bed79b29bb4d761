"""Bodies that no client expects: each is one error of one call, or is read as far as it can be; none is a traceback."""

from __future__ import annotations

import resource
import zlib

import pytest
from answering import Script
from asking import ASK, client
from model_server import ModelServer, ServerFault

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted.http_endpoint import LONGEST_BODY
from rewoo_bench.types import Request, Usage

pytestmark = pytest.mark.anyio

CHOICES = b'"choices": [{"message": {"content": "Paris"}}]'


def body(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> ServerFault:
    return ServerFault("body", status=status, body=content, headers=headers or {})


def bomb(times: int) -> bytes:
    """A small gzip of so many times the longest answer, made without holding it."""
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(b"x" * (LONGEST_BODY // 16)) for _ in range(16 * times)]
    return b"".join([*pieces, packer.flush()])


async def failed(server: ModelServer) -> ModelError:
    async with client(server) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(Request(ASK, role="agent"))
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"choices": [[]]}',
        b'{"choices": [{"message": 7}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"n": ' + b"9" * 5000 + b", " + CHOICES + b"}",
        b'data: {"choices": []}\n\ndata: [DONE]\n\n',
        b"\xff\xfe\x00",
    ],
    ids=lambda content: repr(content[:24]),
)
async def test_a_body_that_is_no_answer_is_one_error(server: ModelServer, script: Script, content: bytes) -> None:
    script.answers = [body(content)]
    error = await failed(server)
    assert (error.retryable, error.status) == (True, None)
    assert error.call_cost is not None


@pytest.mark.parametrize("content", [b"[" * 200_000, b"\xff", b""])
@pytest.mark.parametrize("status", [400, 500])
async def test_an_errors_body_can_be_anything(server: ModelServer, script: Script, status: int, content: bytes) -> None:
    script.answers = [body(content, status)]
    assert (await failed(server)).status == status


@pytest.mark.parametrize("packed", [False, True])
async def test_a_body_without_an_end_is_cut_off_while_it_arrives(
    server: ModelServer, script: Script, packed: bool
) -> None:
    content, headers = b"x" * (LONGEST_BODY + 1), {}
    if packed:
        content, headers = bomb(20), {"Content-Encoding": "gzip"}
    script.answers = [body(content, headers=headers)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await failed(server)
    assert "more than 32 MB" in str(error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 12 * LONGEST_BODY / 1024


_USAGE = b'"usage": {"prompt_tokens": 40, "completion_tokens": 2}'


@pytest.mark.parametrize(
    ("content", "usage", "source"),
    [
        (b'{"choices": [], ' + _USAGE + b"}", Usage(40, 0, 2), "provider"),
        (b'{"choices": ["odd"], ' + _USAGE + b"}", Usage(40, 0, 2), "provider"),
        (b'{"choices": [{"message": {"content": "Par"}}], ' + _USAGE, Usage(20, 0, 0), "estimated"),
    ],
)
async def test_what_an_unreadable_answer_cost_is_booked(
    server: ModelServer, script: Script, content: bytes, usage: Usage, source: str
) -> None:
    script.answers = [body(content)]
    error = await failed(server)
    assert error.call_cost is not None
    assert (error.call_cost.billed, error.call_cost.usage_source) == (usage, source)


async def test_reasoning_without_a_count_of_the_reply_leaves_the_reply_to_be_estimated(
    server: ModelServer, script: Script
) -> None:
    usage = b'"usage": {"prompt_tokens": 40, "completion_tokens": null, "reasoning_tokens": 12}'
    for content, visible in ((b'"Paris"', 1), (b'""', 0)):
        script.answers = [body(b'{"choices": [{"message": {"content": ' + content + b"}}], " + usage + b"}")]
        async with client(server) as model:
            completion = await model.complete(Request(ASK, role="agent"))
        assert completion.usage == Usage(40, 0, 12 + visible, 12)
        assert completion.call_cost.usage_source == ("estimated" if visible else "provider")
