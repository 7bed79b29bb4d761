"""A provider on this machine that speaks OpenAI's and Anthropic's dialects, keeps books, and fails as it is scripted.

    with DialectServer() as provider:
        ...                                 # a client at provider.api_base
        provider.total                      # tokens of all answers, in the provider's own counting

A question's text holds a name of its own (`q07`), by which the books are sorted. The answer to it is
"the river of q07 …", of as many pieces as the provider counts output tokens.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Self, get_args

from aiohttp import web
from dialects_of_answers import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    MESSAGES,
    RESPONSES,
    Answer,
    Tokens,
    document,
    error_document,
    error_event,
    events,
)

PATHS = (CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, MESSAGES, COUNT_TOKENS)
MidStream = Literal["cut stream", "error event", "quiet end"]
Refused = Literal["429", "500", "unread reply", "bad option", "refused", "missing"]
Fault = Literal[Refused, "cut", "slow", "error body", "error first", MidStream]
_STATUSES = {
    **{"429": 429, "500": 500, "unread reply": 500},
    **{"bad option": 400, "refused": 401, "error body": 200, "missing": 404},
}
_MESSAGES = {
    "bad option": "Unknown parameter: 'stream_options.include_usage'",
    "unread reply": "The model produced output that does not match the expected peg-native format",  # llama-server
}
_NAME = re.compile(r"\bq\d\d\b")
_LONGEST_WAIT_S = 20.0
NOTHING = Tokens(0, 0)


@dataclass
class Entry:
    """A request, and what was sent for it. `tokens` are those of the answer, as far as it was sent."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    status: int = 0
    tokens: Tokens = NOTHING
    is_whole: bool = False
    last_sent: float = 0.0
    """Moment of the last event, by the monotonic clock."""

    @property
    def names(self) -> set[str]:
        """The names of the questions in the request: one, where nothing is mixed."""
        return set(_NAME.findall(json.dumps(self.body)))


def no_fault(entry: Entry, nth: int) -> Fault | None:
    return None


@dataclass
class DialectServer:
    """`fault(entry, nth)` is the fault of the nth request (from 0) that is equal to this one; None for an answer.

    A stream waits for `may_go_on` behind its first event, and a slow answer waits for it before its first byte.
    """

    fault: Callable[[Entry, int], Fault | None] = no_fault
    slow_s: float = 1.0
    books: list[Entry] = field(default_factory=list)
    repeats: str = ""
    """A header of the request that stands in the answer."""
    may_go_on: Callable[[Entry], bool] = lambda entry: True

    @property
    def total(self) -> int:
        """Tokens of all answers."""
        return sum(entry.tokens.total for entry in self.books)

    def of(self, name: str) -> list[Entry]:
        """The requests of a question."""
        return [entry for entry in self.books if name in entry.names]

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._seen: dict[str, int] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def root(self) -> str:
        """The address, as Anthropic's SDK wants it."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def api_base(self) -> str:
        return f"{self.root}/v1"

    async def _start(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        entry = Entry(
            request.match_info["path"],
            json.loads(data),
            {name.lower(): value for name, value in request.headers.items()},
        )
        same = entry.path + data.decode()
        nth = self._seen[same] = self._seen.get(same, -1) + 1
        self.books.append(entry)
        fault: Fault | None = "missing" if entry.path not in PATHS else self.fault(entry, nth)
        if fault == "slow":
            await asyncio.sleep(self.slow_s)
        if fault == "cut":
            return _cut(request, web.Response())
        if (refused := _refusal(fault, entry)) is not None:
            return refused
        return await self._respond(request, entry, fault)

    async def _respond(self, request: web.Request, entry: Entry, fault: Fault | None) -> web.StreamResponse:
        entry.status = 200
        answer = answer_to(entry)
        if self.repeats:
            answer = replace(answer, pieces=[*answer.pieces[:-1], f" {entry.headers[self.repeats]}"])
        if entry.body.get("stream"):
            return await self._stream(request, entry, answer, fault)
        if entry.path != COUNT_TOKENS:  # which is free
            entry.tokens = Tokens(answer.tokens.input, 0) if entry.path == EMBEDDINGS else answer.tokens
        entry.is_whole = True
        return web.json_response(document(entry.path, answer))

    async def _stream(
        self, request: web.Request, entry: Entry, answer: Answer, fault: Fault | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        wanted = (entry.body.get("stream_options") or {}).get("include_usage", False)
        if fault == "error first":
            await response.write(error_event(entry.path))
            return response
        entry.tokens = Tokens(answer.tokens.input, 0)
        for number, event in enumerate(events(entry.path, answer, includes_usage=bool(wanted))):
            written = entry.tokens.output
            if fault in get_args(MidStream) and written == 3:
                if fault == "cut stream":
                    return _cut(request, response)
                if fault == "error event":
                    await response.write(error_event(entry.path))
                break
            with suppress(ConnectionError):  # the client has gone, and the answer is paid for
                await response.write(event.data)
            entry.last_sent = time.monotonic()
            if event.has_piece:
                entry.tokens = Tokens(answer.tokens.input, written + 1)
            await self._wait(entry) if number == 0 else await asyncio.sleep(0)
        else:
            entry.tokens, entry.is_whole = answer.tokens, True
        await response.write_eof()
        return response

    async def _wait(self, entry: Entry) -> None:
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while not self.may_go_on(entry) and time.monotonic() < deadline:  # noqa: ASYNC110 - it is set in other threads
            await asyncio.sleep(0.005)


def answer_to(entry: Entry) -> Answer:
    """The answer to a request: its length and its cost follow from the request alone."""
    size = len(json.dumps(entry.body.get("messages") or entry.body.get("input") or entry.body.get("prompt")))
    name = min(entry.names, default="nobody")
    pieces = ["the", " river", " of", f" {name}", *[" flows"] * (size % 7)]
    tokens = Tokens(1000 + size, len(pieces), 100 + size % 50)
    return Answer(str(entry.body.get("model")), pieces, tokens)


def _refusal(fault: Fault | None, entry: Entry) -> web.Response | None:
    """The response of a request that gets no answer."""
    status = _STATUSES.get(fault or "")
    if status is None:
        return None
    entry.status = status
    headers = {"Retry-After": "0"} if status == 429 else None
    message = _MESSAGES.get(fault or "", f"scripted {fault}")
    return web.json_response(error_document(entry.path, message), status=status, headers=headers)


def _cut(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return response
