"""The answer of a request of an external agent, sent to its client: as it arrives, or whole."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rewoo_bench.agents.chat_forms import Form, Translated
from rewoo_bench.agents.session import AgentCall, AgentSession
from rewoo_bench.models.hosted.dialects import ends_stream

if TYPE_CHECKING:
    from aiohttp import web


class Sender:
    """Sends a streamed answer as it arrives, or a whole one, in the dialect of `form` if the request has one."""

    def __init__(self, request: web.Request, session: AgentSession, form: Form | None = None) -> None:
        self._form = form
        self._translated = None if form is None else Translated(form)
        self._request = request
        self._session = session
        self._response: web.StreamResponse | None = None
        self._headers: Mapping[str, str] = {}
        self._is_gone = False
        self._has_ended = False  # the last event was sent: a client may close its connection there

    @property
    def is_client_gone(self) -> bool:
        """Whether the client has closed its connection without the whole answer."""
        transport = self._request.transport
        return not self._has_ended and (transport is None or transport.is_closing())

    @property
    def has_begun(self) -> bool:
        return self._response is not None

    def set_headers(self, headers: Mapping[str, str]) -> None:
        """Sets the provider's headers, before a stream begins."""
        self._headers = headers

    def break_off(self) -> web.StreamResponse:
        """Ends a stream that failed in the middle so that the client sees it: the connection is closed."""
        assert self._response is not None
        if self._request.transport is not None:
            self._request.transport.close()
        return self._response

    async def resend(self, begun: str) -> None:
        """Sends the recorded part of a stream that broke off, where it isn't sent already."""
        if self._response is None:
            await self.send(begun.encode())

    async def send(self, piece: bytes) -> None:
        """Sends a piece. A client that has hung up changes nothing: the provider's answer is paid for."""
        from aiohttp import web

        kind = "text/event-stream"
        if self._translated is not None:
            kind, piece = self._translated.form.stream_type, self._translated.add(piece)
        if self._is_gone or not piece:
            return
        try:
            if self._response is None:
                self._response = web.StreamResponse(headers={**self._headers, "Content-Type": kind})
                await self._response.prepare(self._request)
            is_last = self._translated is None and ends_stream(piece)
            for _ in range(2 if is_last else 0):
                await asyncio.sleep(0)  # a client that has hung up by now is seen before the event is written
            await self._response.write(piece)
            self._has_ended |= is_last
        except (ConnectionError, RuntimeError):
            self._note_hang_up()

    async def finish(self, call: AgentCall) -> web.StreamResponse:
        """The response; a recorded answer, or that of an earlier attempt, is sent whole."""
        from aiohttp import web

        response = self._response
        if response is None:
            wire = call.answer.result().wire
            assert wire is not None  # models without an endpoint are refused before the run
            kind, text = wire.content_type, wire.body
            if self._form is not None:
                kind, text = Translated(self._form).whole(wire)
            response = web.Response(text=text, headers={**wire.headers, "Content-Type": kind})
        if self._is_gone:
            return response
        try:
            await response.prepare(self._request)
            if self._response is not None and self._translated is not None:
                await response.write(self._translated.end())
                self._has_ended = True
            await response.write_eof()
        except (ConnectionError, RuntimeError):
            self._is_gone = not self._has_ended
        transport = self._request.transport
        if self._is_gone or self.is_client_gone:
            self._note_hang_up()
        elif transport is not None and not transport.is_closing():  # else its SDK may still ask for it once more
            self._session.forget(call)
        return response

    def _note_hang_up(self) -> None:
        self._is_gone = True
        self._session.notes["clients_that_hung_up"] += 1
