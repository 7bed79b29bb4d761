"""A real model server on this machine, with scripted replies and a record of all requests (`books`).

It serves the OpenAI API (`/v1/chat/completions`, `/v1/completions`, `/v1/models`) over HTTP/1.1 on
127.0.0.1, in a thread of its own. A test of a runner, a client or a whole benchmark can compare its own
counts with those of the server:

    def reply(request: dict[str, Any]) -> str:
        return "Paris"

    with ModelServer(reply) as server:
        model = HostedModel("openai/anything", api_base=server.api_base, api_key="none")
        ...
        assert server.totals() == Usage(input_tokens=7, output_tokens=1)

A reply is text, a `ServerReply` (with tool calls or a usage) or a `ServerFault` (a provider's fault). To measure
speed, run it as a process, so that it doesn't share the client's interpreter:

    python -m rewoo_bench.testing.server --latency-ms 200 --port 0
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rewoo_bench.testing.responses import Sent, ServerFault, ServerReply, render, respond
from rewoo_bench.types import Usage

__all__ = ["BookEntry", "ModelServer", "ServerFault", "ServerReply"]


@dataclass(frozen=True, slots=True)
class BookEntry:
    """A request and its response (status 0: none).

    `usage` is None where none was sent. `time` is of the monotonic clock, in seconds. `answer` is the result of the
    test's `reply`.
    """

    path: str
    request: Mapping[str, Any]
    headers: Mapping[str, str]
    status: int
    usage: Usage | None
    time: float
    answer: str | ServerReply | ServerFault = ""


Respond = Callable[[dict[str, Any]], str | ServerReply | ServerFault]


@dataclass(slots=True)
class ModelServer:
    """The server: a context manager, or `start()` and `stop()`.

    `latency_s` is the time that every answer takes, and `token_delay_s` the time of each of its tokens: a stream begins
    after `latency_s` and has a token every `token_delay_s`, any other answer comes after both. `cached_share` (0 to 1)
    is the share of each prompt reported as read from a cache. An exception of `reply` is raised again by `stop()`, or
    at the end of the `with` block.
    """

    reply: Respond
    latency_s: float = 0.0
    token_delay_s: float = 0.0
    cached_share: float = 0.0
    port: int = 0
    books: list[BookEntry] = field(default_factory=list, init=False)
    peak_connections: int = field(default=0, init=False)
    failure: BaseException | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False, repr=False)
    _stop: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _transports: set[asyncio.Transport] = field(default_factory=set, init=False, repr=False)

    @property
    def open_connections(self) -> int:
        """The number of connections that are open now."""
        return len(self._transports)

    @property
    def api_base(self) -> str:
        """The address to give to a client, for example `http://127.0.0.1:40123/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def totals(self) -> Usage:
        """The sum of every usage that the server sent."""
        return sum((entry.usage for entry in self.books if entry.usage), Usage())

    def start(self) -> None:
        """Listen, on `port` or on any free one. Raises OSError where the port is taken."""
        listening = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self.port = listening.getsockname()[1]
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(self._loop, listening), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection and end the thread; raise the exception of `reply`, if any."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._loop = self._thread = None
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        with closing(loop):
            loop.set_exception_handler(self._keep_failure)
            loop.run_until_complete(self._serve(loop, listening))

    async def _serve(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        server = await loop.create_server(lambda: _Connection(self), sock=listening)
        await self._stop.wait()
        server.close()
        for transport in list(self._transports):
            transport.abort()
        await asyncio.sleep(0)  # for the connections to close

    def _keep_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failure = self.failure or context.get("exception") or RuntimeError(context["message"])

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> Sent:
        """The response to one request, which is added to `books`."""
        if path == "/v1/models":
            return Sent(200, None, respond(200, {"object": "list", "data": [{"id": "test", "object": "model"}]}))
        request = json.loads(body) if body else {}
        known = path in ("/v1/chat/completions", "/v1/completions")
        answer = self.reply(request) if known else ServerFault(status=404, message=f"no such path: {path!r}")
        chat = path == "/v1/chat/completions"
        sent = render(answer, request, chat=chat, cached_share=self.cached_share)
        self.books.append(BookEntry(path, request, headers, sent.status, sent.usage, time.monotonic(), answer))
        return sent


class _Connection(asyncio.Protocol):
    """One connection: requests one after another, each answered after the server's latency."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.received = b""
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # what create_server makes
        self.transport = transport
        self.server._transports.add(transport)
        self.server.peak_connections = max(self.server.peak_connections, self.server.open_connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server._transports.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._next()

    def _next(self) -> None:
        head, border, rest = self.received.partition(b"\r\n\r\n")
        if self.busy or not border:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0))
        if len(rest) < size:
            return
        self.received, self.busy = rest[size:], True
        sent = self.server._answer(first.split(" ")[1], headers, rest[:size])
        if sent.response is None:
            return
        delay_s, loop = self.server.token_delay_s, asyncio.get_running_loop()
        pieces = deque([sent.response, *sent.tokens])
        pieces[-1] += sent.rest
        if not delay_s:
            pieces = deque([b"".join(pieces)])
        wait_s = self.server.latency_s + sent.delays * delay_s
        moment = loop.time() + wait_s
        if wait_s:
            loop.call_at(moment, self._send, pieces, moment, sent.close)
        else:
            self._send(pieces, moment, sent.close)

    def _send(self, pieces: deque[bytes], moment: float, close: bool) -> None:
        """Sends the next piece of a response, due at `moment`; after its last one it is the next request's turn."""
        if self.transport.is_closing():  # the client is gone
            return
        self.transport.write(pieces.popleft())
        if pieces:
            moment += self.server.token_delay_s
            asyncio.get_running_loop().call_at(moment, self._send, pieces, moment, close)
            return
        if close:
            self.transport.close()
            return
        self.busy = False
        self._next()


def main() -> None:
    """Serve one fixed reply until the process is ended; print the address first."""
    parser = argparse.ArgumentParser(
        prog="python -m rewoo_bench.testing.server", description="A model server for tests."
    )
    parser.add_argument("--port", type=int, default=0, help="port, 0 for any free one (default)")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="time that each answer takes (default 0)")
    parser.add_argument("--token-delay-ms", type=float, default=0.0, help="time of each token (default 0)")
    parser.add_argument("--reply", default="ok", help="what is answered to everything (default 'ok')")
    options = parser.parse_args()
    server = ModelServer(
        lambda request: options.reply,
        latency_s=options.latency_ms / 1000,
        token_delay_s=options.token_delay_ms / 1000,
        port=options.port,
    )
    with suppress(KeyboardInterrupt), server:
        print(server.api_base, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
