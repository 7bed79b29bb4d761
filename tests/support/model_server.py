"""A real model server on this machine, with scripted replies and a record of all requests (`books`).

It serves the OpenAI API (`/v1/chat/completions`, `/v1/completions`) over HTTP/1.1 on
127.0.0.1, in a thread of its own. A test of a runner, a client or a whole benchmark can compare its own
counts with those of the server:

    def reply(request: dict[str, Any]) -> str:
        return "Paris"

    with ModelServer(reply) as server:
        model = HostedModel("openai/anything", api_base=server.api_base, api_key="none")
        ...
        assert server.totals() == Usage(input_tokens=7, output_tokens=1)

A reply is text, a `ServerReply` (with tool calls or a usage) or a `ServerFault` (a provider's fault).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from rewoo_bench.types import ToolCall, Usage

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["BookEntry", "ModelServer", "ServerFault", "ServerReply"]

_TOKEN = re.compile(r"\S+\s*|^\s+")
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
    body: `status`, and exactly the bytes of `body`, with further `headers`
    raw: the bytes of `body` as the whole response, head included; then the connection is closed
    truncated: 200, and a body shorter than its Content-Length: cut after its usage, which is in `books`
    no_usage: an answer (`message`) without usage
    cut_stream: a stream of `message`, closed after `after` tokens; as truncated where no stream is asked for
    error_event: the same stream, with an error event in the place of its rest

    `usage` is the recorded usage of a `body` or `raw` response; `code` and `param` are fields of the error object of
    a `status`.
    """

    kind: Literal[
        "status", "hang", "disconnect", "body", "raw", "truncated", "no_usage", "cut_stream", "error_event"
    ] = "status"  # fmt: skip
    status: int = 500
    message: str = "the server was told to fail"
    retry_after: float | str | None = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: Usage | None = None
    code: str | None = None
    param: str | None = None
    after: int = 0


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


@dataclass(slots=True)
class ModelServer:
    """The server: a context manager, or `start()` and `stop()`.

    `latency_s` is the time that every answer takes, and `token_delay_s` the time of each of its tokens: a stream begins
    after `latency_s` and has a token every `token_delay_s`, any other answer comes after both. `cached_share` (0 to 1)
    is the share of each prompt reported as read from a cache. An exception of `reply` is raised again by `stop()`, or
    at the end of the `with` block.
    """

    reply: Callable[[dict[str, Any]], str | ServerReply | ServerFault]
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
    _runner: web.AppRunner | None = field(default=None, init=False, repr=False)

    @property
    def open_connections(self) -> int:
        """The number of connections that are open now."""
        http = self._runner.server if self._runner else None
        return len(http.connections) if http else 0

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
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._serve(listening))

    async def _serve(self, listening: socket.socket) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.SockSite(self._runner, listening, backlog=1024).start()
        await self._stop.wait()
        await self._runner.cleanup()

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        """The response to one request, which is added to `books`."""
        from aiohttp import web

        self.peak_connections = max(self.peak_connections, self.open_connections)
        request = json.loads(await http.read() or b"{}")
        chat = http.path == "/v1/chat/completions"
        answer: str | ServerReply | ServerFault = ServerFault(status=404, message=f"no such path: {http.path!r}")
        if chat or http.path == "/v1/completions":
            try:
                answer = self.reply(request)
            except Exception as error:  # of the test's own function: `stop` raises it
                self.failure = self.failure or error
                answer = ServerFault("disconnect")
        fault = answer if isinstance(answer, ServerFault) else None
        streamed = bool(request.get("stream")) and (fault is None or fault.kind in ("cut_stream", "error_event"))
        reply = answer if isinstance(answer, ServerReply) else ServerReply(fault.message if fault else str(answer))
        usage = reply.usage or self._count(request, reply)
        document = _document(request, reply, usage, chat=chat)
        status, booked = (200, usage) if fault is None else self._booked(request, fault, usage, streamed=streamed)
        headers = {name.lower(): value for name, value in http.headers.items()}
        self.books.append(BookEntry(http.path_qs, request, headers, status, booked, time.monotonic(), answer))
        delays = 0 if fault or streamed else len(reply.text.split())
        await asyncio.sleep(self.latency_s + delays * self.token_delay_s)
        if streamed:
            return await self._stream(http, document, fault, request.get("stream_options") or {})
        if fault:
            return await self._fail(http, document, fault)
        return web.json_response(document)

    def _count(self, request: Mapping[str, Any], reply: ServerReply) -> Usage:
        """The server's own count: a token is a word between spaces."""
        texts = [str(message.get("content") or "") for message in request.get("messages", [])]
        words = sum(len(text.split()) for text in [*texts, str(request.get("prompt", ""))])
        return Usage(words, int(words * self.cached_share), len(reply.text.split()) + len(reply.tool_calls))

    def _booked(
        self, request: Mapping[str, Any], fault: ServerFault, usage: Usage, *, streamed: bool
    ) -> tuple[int, Usage | None]:
        """The status and the usage of a fault in `books`."""
        match fault.kind:
            case "hang" | "disconnect":
                return 0, None
            case "status":
                return fault.status, None
            case "body" | "raw":
                return fault.status, fault.usage
            case "no_usage":
                return 200, None
        begun = " ".join(fault.message.split()[: fault.after])  # the client is never told, but the provider bills it
        return 200, self._count(request, ServerReply(begun)) if streamed else usage

    async def _stream(
        self, http: web.Request, document: Mapping[str, Any], fault: ServerFault | None, options: Mapping[str, Any]
    ) -> web.StreamResponse:
        """An answer as server-sent events, a token every `token_delay_s`."""
        from aiohttp import web

        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        first, tokens, end = _to_events(document, usage=bool(options.get("include_usage")))
        if fault is not None:
            error = {"error": {"message": "overloaded", "type": "fault"}}
            tokens, end = tokens[: fault.after], _event(error) if fault.kind == "error_event" else b""
        await response.prepare(http)
        await response.write(first)
        start = asyncio.get_running_loop().time()
        for number, token in enumerate(tokens, start=1):
            if self.token_delay_s:
                await asyncio.sleep(start + number * self.token_delay_s - asyncio.get_running_loop().time())
            await response.write(token)
        await response.write(end)
        if fault is not None:
            _close(http)
        return response

    async def _fail(self, http: web.Request, document: Mapping[str, Any], fault: ServerFault) -> web.StreamResponse:
        from aiohttp import web

        match fault.kind:
            case "status":
                wait = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
                fields = {"message": fault.message, "type": "fault", "code": fault.code, "param": fault.param}
                return web.json_response({"error": fields}, status=fault.status, headers=wait)
            case "no_usage":
                return web.json_response({name: value for name, value in document.items() if name != "usage"})
            case "body":
                head = {"Content-Type": "application/json", **fault.headers}
                return web.Response(status=fault.status, body=fault.body, headers=head)
            case "hang":
                await self._stop.wait()
            case "raw" if http.transport is not None:
                http.transport.write(fault.body)
            case "truncated" | "cut_stream" | "error_event":
                whole = json.dumps(document).encode()
                response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
                await response.prepare(http)
                await response.write(whole[:-1])
        _close(http)
        return web.Response()


def _close(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.close()


def _document(request: Mapping[str, Any], reply: ServerReply, usage: Usage, *, chat: bool) -> dict[str, Any]:
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
    counts = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
    return {
        "id": f"test-{next(_numbers)}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": request.get("model", "test"),
        "choices": [choice],
        "usage": counts if reply.usage_object is None else reply.usage_object,
    }


def _to_events(document: Mapping[str, Any], *, usage: bool) -> tuple[bytes, list[bytes], bytes]:
    """An answer as server-sent events; a token is a word with the white space behind it.

    The first event (role, thoughts and tool calls), the tokens, and the end, with the usage if asked for.
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
    if usage:
        end += _event({**plain, "choices": [], "usage": document["usage"]})
    return event(first), tokens, end + b"data: [DONE]\n\n"


def _event(document: Mapping[str, Any]) -> bytes:
    """One event; text outside of ASCII is sent as it is, as many servers do."""
    return f"data: {json.dumps(document, ensure_ascii=False)}\n\n".encode("utf-8", "surrogatepass")
