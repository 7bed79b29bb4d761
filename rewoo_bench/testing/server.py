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

A reply is text, a `ServerReply` (with tool calls or a usage) or a `ServerFault` (a provider's fault); `render` makes
bytes of it. To measure speed, run it as a process, so that it doesn't share the client's interpreter:

    python -m rewoo_bench.testing.server --latency-ms 200 --port 0
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, Self

from rewoo_bench.types import ToolCall, Usage

__all__ = ["BookEntry", "ModelServer", "ServerFault", "ServerReply"]

# The answers, as bytes in the OpenAI form.
#
#     render(ServerReply("Paris"), {"messages": …}, chat=True)        # Sent(200, Usage(…), b"HTTP/1.1 200 OK…")
#     render(ServerFault(status=429, retry_after=2), {}, chat=True)   # Sent(429, None, b"HTTP/1.1 429 …")


_TOKEN = re.compile(r"\S+\s*|^\s+")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ServerReply:
    """An answer. With `usage` None the server counts words itself.

    `message` has more fields of the message (of the choice in a text completion), such as
    `{"reasoning_content": "…"}`; `usage_object` is sent instead of the server's own, and `books` has `usage`.
    """

    text: str
    finish_reason: str = "stop"
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    usage_object: Any = None


@dataclass(frozen=True, slots=True)
class ServerFault:
    """A fault of a provider.

    status: an error of that HTTP status with `message`, and Retry-After where `retry_after` is given
    hang: no answer, the connection stays open
    disconnect: the connection is closed without an answer
    broken_json: 200, and a body that isn't JSON: cut after its usage, which is in `books`
    body: `status`, and exactly the bytes of `body`, with `headers` (whole lines) before them
    raw: the bytes of `body` as the whole response, head included; then the connection is closed
    truncated: 200, and a body shorter than its Content-Length: cut after its usage, which is in `books`
    no_choices: 200, and an empty list of choices
    error_object: 200, and `{"error": …}` with `message`
    other_form: 200, and JSON with choices that aren't objects
    no_usage: an answer (`message`) without usage
    cut_stream: a stream of `message`, closed after `after` tokens; as truncated where no stream is asked for
    error_event: the same stream, with an error event in the place of its rest
    whole: an answer (`message`) without a stream, although one is asked for

    `usage` is the recorded usage of a `body` or `raw` response; `code` and `param` are fields of the error object of
    a `status`.
    """

    kind: Literal[
        "status",
        "hang",
        "disconnect",
        "broken_json",
        "body",
        "raw",
        "truncated",
        "no_choices",
        "error_object",
        "other_form",
        "no_usage",
        "cut_stream",
        "error_event",
        "whole",
    ] = "status"
    status: int = 500
    message: str = "the server was told to fail"
    retry_after: float | str | None = None
    body: bytes = b""
    headers: str = ""
    usage: Usage | None = None
    code: str | None = None
    param: str | None = None
    after: int = 0


class Sent(NamedTuple):
    """A response: HTTP status (0: none), usage, and bytes (None: nothing). `close` ends the connection.

    `tokens` of a stream follow `response` one by one, and then `rest`. `delays` is the number of tokens that a response
    without a stream takes the time of.
    """

    status: int
    usage: Usage | None
    response: bytes | None
    close: bool = False
    tokens: Sequence[bytes] = ()
    rest: bytes = b""
    delays: int = 0


def render(
    answer: str | ServerReply | ServerFault, request: Mapping[str, Any], *, chat: bool, cached_share: float = 0.0
) -> Sent:
    """The response to `request`; a token of the server is a word between spaces."""
    if isinstance(answer, ServerFault):
        if answer.kind in ("cut_stream", "error_event") and request.get("stream"):
            # Its usage, which the client is never told, is that of a provider's bill.
            whole, begun = ServerReply(answer.message), " ".join(answer.message.split()[: answer.after])
            head, tokens, _ = _to_events(_document(request, whole, None, chat=chat), usage=False)
            error = {"error": {"message": "overloaded", "type": "fault"}}
            rest = _event(error) if answer.kind == "error_event" else b""
            usage = _count(request, ServerReply(begun), 0.0)
            return Sent(200, usage, head, close=True, tokens=tokens[: answer.after], rest=rest)
        return _render_fault(answer, request, chat)
    reply = answer if isinstance(answer, ServerReply) else ServerReply(answer)
    usage = reply.usage or _count(request, reply, cached_share)
    document = _document(request, reply, usage, chat=chat)
    if reply.usage_object is not None:
        document["usage"] = reply.usage_object
    if request.get("stream"):
        asks_for_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        head, tokens, rest = _to_events(document, usage=asks_for_usage)
        return Sent(200, usage, head, tokens=tokens, rest=rest)
    return Sent(200, usage, respond(200, document), delays=len(reply.text.split()))


def respond(status: int, document: Mapping[str, Any], headers: str = "") -> bytes:
    """An HTTP response with a JSON body; `headers` are whole lines."""
    body = json.dumps(document).encode()
    return _head(status, len(body), headers) + body


def _to_events(document: Mapping[str, Any], *, usage: bool) -> tuple[bytes, list[bytes], bytes]:
    """An answer as server-sent events in HTTP's chunked encoding; a token is a word with the white space behind it.

    The head with the first event (role, thoughts and tool calls), the tokens, and the end, with the usage if asked for.
    """
    (choice,) = document["choices"]
    plain = {name: value for name, value in document.items() if name not in ("choices", "usage")}
    is_chat = "message" in choice

    def event(fields: Mapping[str, Any], **more: Any) -> bytes:
        made = {"index": 0, **more, **({"delta": fields} if is_chat else {"text": "", **fields})}
        return _event({**plain, "choices": [made]})

    skipped = ("index", "finish_reason", "tool_calls")
    first = {name: value for name, value in (choice["message"] if is_chat else choice).items() if name not in skipped}
    text = first.pop("content" if is_chat else "text", "")
    if calls := (choice["message"] if is_chat else choice).get("tool_calls"):
        if isinstance(calls, list):  # anything else is sent as the test has it
            calls = [{"index": i, **call} if isinstance(call, dict) else call for i, call in enumerate(calls)]
        first["tool_calls"] = calls
    parts = _TOKEN.findall(text) if isinstance(text, str) else [text]
    tokens = [event({"content" if is_chat else "text": part}, finish_reason=None) for part in parts]
    end = event({}, finish_reason=choice["finish_reason"])
    if usage and "usage" in document:
        end += _event({**plain, "choices": [], "usage": document["usage"]})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + event(first), tokens, end + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _event(document: Mapping[str, Any]) -> bytes:
    """One event as a chunk; text outside of ASCII is sent as it is, as many servers do."""
    return _chunk(f"data: {json.dumps(document, ensure_ascii=False)}\n\n".encode("utf-8", "surrogatepass"))


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _render_fault(fault: ServerFault, request: Mapping[str, Any], chat: bool) -> Sent:
    fields = {"message": fault.message, "type": "fault", "code": fault.code or fault.kind, "param": fault.param}
    error = {"error": fields}
    document = _document(request, ServerReply(fault.message), None, chat=chat)
    usage = _count(request, ServerReply(fault.message), 0.0)
    whole = {**document, "usage": _usage(usage)}
    match fault.kind:
        case "hang":
            return Sent(0, None, None)
        case "disconnect":
            return Sent(0, None, b"", close=True)
        case "broken_json":
            cut = json.dumps(whole).encode()[:-1]
            return Sent(200, usage, _head(200, len(cut)) + cut)
        case "body":
            head = _head(fault.status, len(fault.body), fault.headers)
            return Sent(fault.status, fault.usage, head + fault.body)
        case "raw":
            return Sent(fault.status, fault.usage, fault.body, close=True)
        case "truncated" | "cut_stream":
            cut = json.dumps(whole).encode()[:-1]
            return Sent(200, usage, _head(200, len(cut) + 1) + cut, close=True)
        case "error_object" | "error_event":
            return Sent(200, None, respond(200, error))
        case "no_choices":
            return Sent(200, None, respond(200, {**document, "choices": []}))
        case "other_form":
            return Sent(200, None, respond(200, {**document, "choices": [fault.message]}))
        case "no_usage":
            return Sent(200, None, respond(200, document))
        case "whole":
            return Sent(200, usage, respond(200, whole))
        case "status":
            wait = "" if fault.retry_after is None else f"Retry-After: {fault.retry_after}\r\n"
            return Sent(fault.status, None, respond(fault.status, error, wait))


def _document(request: Mapping[str, Any], reply: ServerReply, usage: Usage | None, *, chat: bool) -> dict[str, Any]:
    """The JSON of an answer, in the form of the endpoint."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": reply.finish_reason}
    if not chat:
        choice |= {"text": reply.text, **reply.message}
    else:
        choice["message"] = {"role": "assistant", "content": reply.text, **reply.message}
        if reply.tool_calls:
            choice["finish_reason"] = "tool_calls"
            choice["message"]["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
                }
                for call in reply.tool_calls
            ]
    document = {
        "id": f"test-{next(_numbers)}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": request.get("model", "test"),
        "choices": [choice],
    }
    return document if usage is None else {**document, "usage": _usage(usage)}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _count(request: Mapping[str, Any], reply: ServerReply, cached_share: float) -> Usage:
    """The server's own count: a token is a word between spaces."""
    texts = [str(message.get("content") or "") for message in request.get("messages", [])]
    words = sum(len(text.split()) for text in [*texts, str(request.get("prompt", ""))])
    return Usage(words, int(words * cached_share), len(reply.text.split()) + len(reply.tool_calls))


def _head(status: int, size: int, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status} {_PHRASES.get(status, 'Error')}\r\nContent-Type: application/json\r\n"
    return f"{head}{headers}Content-Length: {size}\r\n\r\n".encode()


# The server.


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

    def __exit__(self, *_: object) -> None:
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
