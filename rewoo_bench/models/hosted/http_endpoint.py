"""A direct client of an OpenAI-compatible endpoint: one pool of connections, JSON or server-sent events.

    endpoint = Endpoint("http://127.0.0.1:8080/v1", key="none", connect_timeout=10)
    answer = await endpoint.ask("/chat/completions", {"model": "tiny", "messages": […]})
    answer["choices"][0]["message"]["content"]
    await endpoint.aclose()

litellm would take some ten milliseconds of CPU time for a call; this takes half a millisecond. aiohttp is imported
with the first call. Server-sent events: the HTML standard, "Server-sent events".
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from pydantic_core import to_json

from rewoo_bench.system.http_session import basic_authorization, open_session
from rewoo_bench.text.json_text import load_json
from rewoo_bench.types import CallCost

if TYPE_CHECKING:
    import aiohttp

OPENAI = "https://api.openai.com/v1"
EVENT_STREAM = "text/event-stream"
LONGEST_BODY = 32 << 20  # bytes of an answer, decompressed
# Variables that the OpenAI SDK sends, and their headers.
HEADERS_OF_USER = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
_LONGEST_HEADER = 1 << 18
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_EVENT_END = re.compile(rb"\r?\n\r?\n")  # the blank line behind an event
_LONGEST_EVENT_END = 4


def read_document(text: str) -> dict[str, Any]:
    """The JSON object of an answer. Raises `BadAnswer`."""
    try:
        document = load_json(text)
    except ValueError as error:
        raise BadAnswer(f"an answer that isn't JSON: {error}", text) from None
    if not isinstance(document, dict):
        raise BadAnswer(f"an answer that is not a JSON object but {type(document).__name__}", text)
    return document


def documents_of(event: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in an event, or in several whole ones."""
    for block in event.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
        try:
            document = load_json(b"\n".join(lines)) if lines else None
        except ValueError:  # "[DONE]"
            continue
        if isinstance(document, dict):
            yield document


def is_done(event: bytes) -> bool:
    """Whether an event is the mark at the end of a chat's stream."""
    return event.removeprefix(b"data:").strip() == b"[DONE]"


async def events_of(pieces: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """The whole events of a stream, each with the blank line behind it, and what is left behind the last one.

    Every byte is looked at once, however long an event is. Raises `BadAnswer` beyond `LONGEST_BODY`.
    """
    rest, searched, size = bytearray(), 0, 0  # no event ends in the bytes that were searched
    async for piece in pieces:
        size += len(piece)
        if size > LONGEST_BODY:
            raise BadAnswer(f"a stream of more than {LONGEST_BODY >> 20} MB")
        rest += piece
        ends = [match.end() for match in _EVENT_END.finditer(rest, searched)]
        for start, end in pairwise([0, *ends]):
            yield bytes(rest[start:end])
        del rest[: ends[-1] if ends else 0]
        searched = max(0, len(rest) - _LONGEST_EVENT_END + 1)
    if rest:
        yield bytes(rest)


class HTTPFailure(Exception):
    """A response with an error status. `body` is its error object, if any."""

    def __init__(self, status_code: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(text)
        self.status_code = status_code
        self.headers = headers
        self.body: dict[str, Any] | None = None
        with suppress(ValueError, TypeError, LookupError):
            error = load_json(text)["error"]
            self.body = error if isinstance(error, dict) else {"message": str(error)}


class Redirected(Exception):
    """An answer that sends a request on. It isn't followed: the key and the prompt are for the address that was given.

    `location` is that header, at an answer from the address `url`.
    """

    def __init__(self, status_code: int, url: str, location: str) -> None:
        try:
            place = urlsplit(urljoin(url, location))
            origin = f"{place.scheme}://{place.netloc.rpartition('@')[2]}"
        except ValueError:
            origin = "an address that can't be read"
        super().__init__(f"a redirect to {origin}, which isn't followed; give the address of the API itself")
        self.status_code = status_code


class Unreachable(Exception):
    """No connection within the connect timeout."""


class BadAnswer(Exception):
    """A response with status 200 that can't be read; `text` is its body, `call_cost` its cost where that is known."""

    call_cost: CallCost | None = None

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class Endpoint:
    """The address of an API and its connections, which belong to one event loop.

    `key` is sent as a bearer token; None sends none. `connect_timeout` (seconds) is for reaching the server. The
    caller limits the number of connections and the time of a whole call. User info in the address is sent instead of
    the key; its query is sent with every request. Proxies and certificates come from the environment; a server on
    this machine is never reached through a proxy.
    """

    def __init__(self, api_base: str | None, *, key: str | None, connect_timeout: float) -> None:
        address = urlsplit((api_base or OPENAI).rstrip("/"))
        plain = address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment="")
        self._base = plain.geturl().rstrip("/")
        self._query = address.query
        self._authorization = f"Bearer {key}" if key else None
        if address.username:
            self._authorization = basic_authorization(unquote(address.username), unquote(address.password or ""))
        self._connect_timeout = connect_timeout
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, path: str, body: Mapping[str, Any], on_event: Callable[[bytes], None] | None = None
    ) -> dict[str, Any] | None:
        """The endpoint's answer, a JSON object; None where it was a stream, whose events `on_event` got.

        Raises `HTTPFailure`, `Redirected`, `Unreachable`, `BadAnswer`, or an error of aiohttp.
        """
        import aiohttp

        # llama.cpp closes the connection behind a stream, and the next request would find it closing. Without TLS a new
        # one costs next to nothing.
        headers = {"Connection": "close"} if on_event is not None and self._base.startswith("http:") else {}
        try:
            async with self.open(path, to_json(body), headers) as response:
                if on_event is None or response.content_type != EVENT_STREAM:
                    return read_document((await read_body(response)).decode("utf-8", "replace"))
                async with aclosing(events_of(response.content.iter_any())) as events:
                    async for event in events:
                        on_event(event)
                return None
        except aiohttp.ClientPayloadError:
            raise BadAnswer("a stream that ended in the middle") from None

    @asynccontextmanager
    async def open(
        self, path: str, body: bytes, headers: Mapping[str, str], query: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a request with further `headers`, its body unread. Raises as `ask` does.

        `query` is for an address without one.
        """
        import aiohttp

        if self._session is None:
            own = {"Content-Type": "application/json", "User-Agent": f"rewoo-bench/{version('rewoo-bench')}"}
            if self._authorization is not None:
                own["Authorization"] = self._authorization
            own |= {header: os.environ[name] for name, header in HEADERS_OF_USER.items() if os.environ.get(name)}
            self._session = open_session(
                self._base,
                connections=0,
                trust_env=urlsplit(self._base).hostname not in _LOOPBACK,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
                headers=own,
                cookie_jar=aiohttp.DummyCookieJar(),  # a cookie would tie one question to the next
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        query = self._query or query
        url = f"{self._base}{path}{'?' if query else ''}{query}"
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                if response.status >= 400:
                    try:
                        text = (await read_body(response)).decode("utf-8", "replace")
                    except BadAnswer as cut:
                        text = cut.text
                    raise HTTPFailure(response.status, text, response.headers)
                if response.status >= 300:
                    raise Redirected(response.status, str(response.url), response.headers.get("Location", ""))
                yield response
        except aiohttp.ConnectionTimeoutError as error:  # a TimeoutError too, as the caller's own limit is
            raise Unreachable(str(error)) from error

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The body, decompressed as it arrives.

    Raises `BadAnswer`, with what has arrived, for one that isn't sent whole, and as soon as it exceeds `LONGEST_BODY`.
    """
    import aiohttp

    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > LONGEST_BODY:
                response.close()
                start = b"".join(pieces)[:1000].decode("utf-8", "replace")
                raise BadAnswer(f"an answer of more than {LONGEST_BODY >> 20} MB", start)
            pieces.append(piece)
    except aiohttp.ClientPayloadError:
        text = b"".join(pieces).decode("utf-8", "replace")
        raise BadAnswer(f"an answer of which only the first {size} bytes arrived", text) from None
    return b"".join(pieces)
