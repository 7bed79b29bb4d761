"""The gateway: a server on this machine that external agents ask in the place of their provider.

    async with Gateway("gpt-4o-mini") as gateway:
        with gateway.open_session(meter, tools) as session:
            ...     # the agent gets session.key, gateway.base_url(session) and gateway.environment(session)

    /v1/…  /q/KEY/v1/…          the dialects of OpenAI and Anthropic
    /q/KEY/tools  /tools/NAME   the question's tools as JSON, and their OpenAPI document
    /q/KEY/mcp                  the question's tools over MCP

The key of a question stands in the address and is the API key, since some clients keep only one of both. A request
without the key of an open question is refused and counted: `refused`.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rewoo_bench.agents.kept_responses import UnknownResponse
from rewoo_bench.agents.mcp_server import answer_mcp, unreadable
from rewoo_bench.agents.sender import Sender, is_gone
from rewoo_bench.agents.session import AgentSession, SessionClosed
from rewoo_bench.agents.tools_api import openapi
from rewoo_bench.errors import LimitReached, ModelError
from rewoo_bench.models.hosted.dialects import (
    EMBEDDINGS,
    INPUT_TOKENS,
    MESSAGES,
    OF_ANTHROPIC,
    PATHS,
    RESPONSES,
    error_body,
    read_request,
)
from rewoo_bench.models.hosted.wire_headers import passed_on, passed_query
from rewoo_bench.types import Model, Tool
from rewoo_bench.wire_request import BAD_GATEWAY, NO_FIELDS, ErrorResponse, WireRequest

if TYPE_CHECKING:
    from aiohttp import web

KEY_PREFIX = "q-"
LARGEST_REQUEST = 64 << 20  # bytes
_NO_RETRY = {"x-should-retry": "false"}  # read by the SDKs of OpenAI and Anthropic: we have tried again already
_log = logging.getLogger(__name__)


class Gateway:
    """An HTTP server on 127.0.0.1, on a free port.

    `model_name` is the model's name for agents, `embedding_name` that of the model of embeddings, if any.
    """

    def __init__(self, model_name: str, embedding_name: str | None = None) -> None:
        self.model_name = model_name
        self.embedding_name = embedding_name
        self.refused: Counter[str] = Counter()
        """Refused requests without an open question, by path."""
        self._sessions: dict[str, AgentSession] = {}
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Gateway:
        from aiohttp import web

        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.router.add_route("*", "/q/{key}/{path:.*}", self._handle)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @contextmanager
    def open_session(self, model: Model, tools: Mapping[str, Tool]) -> Iterator[AgentSession]:
        """A question's session, which has a key of its own; afterwards the key is worthless."""
        session = AgentSession(KEY_PREFIX + secrets.token_hex(16), model, tools)
        self._sessions[session.key] = session
        try:
            yield session
        finally:
            del self._sessions[session.key]
            session.close()

    def address(self, session: AgentSession) -> str:
        """The address of a question; below it are `/v1`, `/tools` and `/mcp`."""
        return f"http://127.0.0.1:{self._port}/q/{session.key}"

    def environment(self, session: AgentSession) -> dict[str, str]:
        """The variables by which the SDKs of OpenAI and Anthropic find the gateway, and our own."""
        address = self.address(session)
        return {
            "OPENAI_API_KEY": session.key,
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_BASE": f"{address}/v1",
            "ANTHROPIC_API_KEY": session.key,
            "ANTHROPIC_BASE_URL": address,
            "REWOO_BENCH_MODEL": self.model_name,
            "REWOO_BENCH_TOOLS_URL": f"{address}/tools",
            "REWOO_BENCH_MCP_URL": f"{address}/mcp",
        }

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        dialect = path.removeprefix("/v1")
        session = self._session_of(request)
        if session is None:
            self._count_refused(dialect)
            return _error(dialect, 401, "the key of no open question")
        session.has_requested()
        try:
            if dialect in PATHS and request.method == "POST":
                return await self._complete(request, session, dialect)
            if dialect.startswith(f"{RESPONSES}/"):
                return _json(session.responses.answer(request.method, dialect, request.query))
            if dialect == "/models":
                names = [self.model_name, *([self.embedding_name] if self.embedding_name else [])]
                return _json({"object": "list", "data": [_model_object(name) for name in names]})
            if dialect.startswith("/models/"):
                return _json(_model_object(self.model_name))
            return await self._offer_tools(request, session, path)
        except LimitReached as limit:
            return _error(dialect, 429, f"a limit of this question is reached: {limit}", _NO_RETRY)
        except ModelError as error:
            response = error.response or ErrorResponse(error.status or BAD_GATEWAY)
            return _error(dialect, response.status, str(error), {**response.headers, **_NO_RETRY}, response.fields)
        except SessionClosed:
            return _error(dialect, 401, "this question has ended", _NO_RETRY)
        except UnknownResponse as error:
            return _error(dialect, error.status, str(error), _NO_RETRY, error.fields)
        except _BadRequest as error:
            return _error(dialect, error.status, str(error))

    def _session_of(self, request: web.Request) -> AgentSession | None:
        """The open question of a request; None where its address and its key name two, or where there is none."""
        header = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        named = {key for key in (request.match_info.get("key"), header) if key and key.startswith(KEY_PREFIX)}
        return self._sessions.get(named.pop()) if len(named) == 1 else None

    def _count_refused(self, path: str) -> None:
        self.refused[path] += 1
        if self.refused[path] == 1:
            _log.warning("refused a request for %s: it has the key of no open question", path)

    async def _complete(self, request: web.Request, session: AgentSession, path: str) -> web.StreamResponse:
        data, body = await _read(request)
        if not isinstance(body, dict):
            raise _BadRequest(f"the request is no JSON object but {type(body).__name__}")
        passed = self._passed_on(session, path, body)
        if passed is not body:
            data = json.dumps(passed).encode()  # half of a surrogate pair stays escaped
        facts = read_request(path, passed)
        sender = Sender(request, session)

        def keep(answer: str | bytes) -> None:
            if path == RESPONSES:
                session.responses.keep(passed, answer, body.get("previous_response_id"))

        async def send(piece: bytes) -> None:
            keep(piece)  # before the client has it, whose next request may refer to it
            await sender.send(piece)

        headers = passed_on(request.headers.items(), key=session.key)
        query = passed_query(request.query_string, key=session.key)
        wire = WireRequest(path, data, headers, query, sender.set_headers, send if facts.streamed else None)
        try:
            call = await session.complete(
                wire, facts, is_retry=_is_retry(request), is_client_gone=lambda: is_gone(request)
            )
        except (ModelError, LimitReached, SessionClosed) as error:
            if isinstance(error, ModelError) and error.response is not None and error.response.begun:
                sender.set_headers(error.response.headers)
                await sender.resend(error.response.begun)  # of a replay
            if sender.has_begun:
                return sender.break_off()
            raise
        if (answer := call.answer.result().wire) is not None:
            keep(answer.body)
        return await sender.finish(call)

    def _passed_on(self, session: AgentSession, path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        """The request for the run's model: every architecture of a run asks the same. Raises `_BadRequest`."""
        is_embedding = path == EMBEDDINGS
        name = self.embedding_name if is_embedding else self.model_name
        if name is None:
            raise _BadRequest(
                "this run has no --embedding-model; name one, such as --embedding-model openai/text-embedding-3-small"
            )
        passed = session.responses.unfold(body) if path in (RESPONSES, INPUT_TOKENS) else body
        if body.get("model") == name:
            return passed
        session.notes[f"asked for the {'embedding ' if is_embedding else ''}model {str(body.get('model'))[:80]}"] += 1
        return {**passed, "model": name}

    async def _offer_tools(self, request: web.Request, session: AgentSession, path: str) -> web.StreamResponse:
        if path == "/mcp":
            return await _answer_mcp(request, session)
        name = path.removeprefix("/tools").removeprefix("/")
        if path == "/tools" and request.method == "GET":
            return _json(openapi(session.tools.values(), f"{self.address(session)}/tools"))
        if not path.startswith("/tools/") or request.method != "POST" or name not in session.tools:
            return _error(path, 404, f"there is no {request.method} {path}; tools: {', '.join(session.tools)}")
        _, arguments = await _read(request)
        if not isinstance(arguments, dict):
            raise _BadRequest(f"the arguments are no JSON object but {type(arguments).__name__}")
        observation = await session.call_tool(name, arguments)
        return _json({"result": observation.text, "failed": observation.failed})


async def _answer_mcp(request: web.Request, session: AgentSession) -> web.StreamResponse:
    from aiohttp import web

    if request.method == "DELETE":
        return web.Response(status=200)
    if request.method != "POST":
        return web.Response(status=405, headers={"Allow": "POST"})
    try:
        _, message = await _read(request)
    except _BadRequest as error:
        return _json(unreadable(str(error)), error.status)
    answer = await answer_mcp(message, session)
    return web.Response(status=202) if answer is None else _json(answer)


class _BadRequest(Exception):
    """A request that can't be read or passed on, and the status to answer with."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def _read(request: web.Request) -> tuple[bytes, Any]:
    """The body of a request, and its JSON. Raises `_BadRequest`."""
    from aiohttp import web

    try:
        data = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _BadRequest(f"the request has more than {LARGEST_REQUEST >> 20} MB", 413) from None
    except web.RequestPayloadError as error:
        raise _BadRequest(f"the body of the request can't be read: {error}") from None
    try:
        return data, json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _BadRequest(f"the request isn't JSON: {error}") from None


def _is_retry(request: web.Request) -> bool:
    """Whether an SDK makes its request again; the header is that of Stainless's SDKs."""
    return request.headers.get("x-stainless-retry-count", "0") not in ("", "0")


def _model_object(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "rewoo_bench", "type": "model"}


def _json(value: Any, status: int = 200) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, body=json.dumps(value).encode(), content_type="application/json")


def _error(
    path: str,
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    fields: Mapping[str, str | int] = NO_FIELDS,
) -> web.Response:
    """An error in the form of the path's dialect."""
    from aiohttp import web

    dialect = path if path in OF_ANTHROPIC else MESSAGES if path.startswith(MESSAGES) else path
    body = json.dumps(error_body(dialect, status, message, fields)).encode()
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
