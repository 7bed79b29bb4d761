"""The gateway: a server on this machine that external agents ask in the place of their provider.

    async with Gateway("gpt-4o-mini") as gateway:
        with gateway.open_session(meter, tools) as session:
            ...     # the agent gets session.key, gateway.base_url(session) and gateway.environment(session)

    /v1/…  /q/KEY/v1/…          the dialects of OpenAI and Anthropic
    /v1beta/models/…            Gemini's dialect, asked as a chat of OpenAI's
    /q/KEY/tools  /tools/NAME   the question's tools as JSON, and their OpenAPI document
    /q/KEY/mcp                  the question's tools over MCP

The key of a question stands in the address and is the API key, since some clients keep only one of both. A request
without the key of an open question is refused and counted: `refused`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from aiohttp import web

from rewoo_bench.agents import gemini
from rewoo_bench.agents.session import AgentCall, AgentSession, SessionClosed
from rewoo_bench.calls.meter import Meter
from rewoo_bench.errors import LimitReached, ModelError
from rewoo_bench.models.hosted.dialects import (
    EMBEDDINGS,
    MESSAGES,
    OF_ANTHROPIC,
    PATHS,
    RESPONSES,
    dialect_error,
    ends_stream,
    read_request,
)
from rewoo_bench.models.hosted.wire import passed_on, passed_query
from rewoo_bench.system.http_session import server_log
from rewoo_bench.text.json_text import load_json
from rewoo_bench.types import BAD_GATEWAY, NO_FIELDS, ErrorResponse, Tool, WireRequest, input_schema

_MODELS = re.compile(r"(?:/v1|(?:alpha|beta)\d*)?/models(?:/(?P<name>.+))?")
KEY_PREFIX = "q-"
_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "Authorization")  # and in the address, and Gemini's query
_KEY = re.compile(rf"{KEY_PREFIX}[0-9a-f]{{32}}")
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

    async def __aenter__(self) -> Gateway:
        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.router.add_route("*", "/q/{key}/{path:.*}", self._handle)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, logger=server_log(__name__), shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @contextmanager
    def open_session(
        self, meter: Meter, tools: Mapping[str, Tool], hidden: frozenset[str] = frozenset()
    ) -> Iterator[AgentSession]:
        """A question's session, which has a key of its own; afterwards the key is worthless.

        `hidden` are the secrets that the agent may know.
        """
        session = AgentSession(KEY_PREFIX + secrets.token_hex(16), meter, tools, secrets=hidden)
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
        """The variables by which SDKs find the gateway, and our own."""
        address = self.address(session)
        return {
            "OPENAI_API_KEY": session.key,
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_BASE": f"{address}/v1",
            "ANTHROPIC_API_KEY": session.key,
            "ANTHROPIC_BASE_URL": address,
            "GEMINI_API_KEY": session.key,
            "GOOGLE_GEMINI_BASE_URL": address,
            "REWOO_BENCH_MODEL": self.model_name,
            "REWOO_BENCH_TOOLS_URL": f"{address}/tools",
            "REWOO_BENCH_MCP_URL": f"{address}/mcp",
        }

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        given = (request.headers.get(name, "").removeprefix("Bearer ") for name in _KEY_HEADERS)
        keys = (request.match_info.get("key"), *given, request.query.get("key"))
        named = {key for key in keys if key and key.startswith(KEY_PREFIX)}
        session = self._sessions.get(named.pop()) if len(named) == 1 else None  # two may be of two questions
        if session is None:
            asked = _KEY.sub("[key]", dialect_of(path))  # at a strange place it may be that of an open question
            self.refused[asked] += 1
            if self.refused[asked] == 1:
                _log.warning("refused a request for %s: it has the key of no open question", asked)
            return error_response(path, 401, "the key of no open question")
        session.has_requested()
        try:
            return await self._answer(request, session, path)
        except LimitReached as limit:
            return error_response(path, 429, f"a limit of this question is reached: {limit}", _NO_RETRY)
        except ModelError as error:
            response = error.response or ErrorResponse(error.status or BAD_GATEWAY)
            headers = {**response.headers, **_NO_RETRY}
            return error_response(path, response.status, str(error), headers, response.fields)
        except SessionClosed:
            return error_response(path, 401, "this question has ended", _NO_RETRY)
        except BadRequest as error:
            return error_response(path, error.status, str(error), _NO_RETRY)

    async def _answer(self, request: web.Request, session: AgentSession, path: str) -> web.StreamResponse:
        method, dialect = request.method, dialect_of(path)
        if method == "POST" and (dialect in PATHS or gemini.PATH.fullmatch(path)):
            return await self._complete(request, session, path)
        if (found := _MODELS.fullmatch(dialect)) is not None:
            models = []  # as in the lists of OpenAI, Anthropic and Gemini
            for name in filter(None, (self.model_name, self.embedding_name)):
                verbs = ["generateContent"]
                of_gemini = {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": verbs}
                of_openai = {"id": name, "object": "model", "created": 0, "owned_by": "rewoo_bench"}
                models.append({**of_openai, "type": "model", **of_gemini})
            whole = {"object": "list", "data": models, "models": models}
            return json_response(models[0] if found["name"] else whole)
        if path == "/mcp":
            return await answer_mcp(request, session)
        if path == "/tools" and method == "GET":
            return json_response(openapi(session.tools.values(), f"{self.address(session)}/tools"))
        name = path.removeprefix("/tools/")
        if not path.startswith("/tools/") or method != "POST" or name not in session.tools:
            return error_response(path, 404, f"there is no {method} {path}; tools: {', '.join(session.tools)}")
        _, arguments = await read_body(request)
        if not isinstance(arguments, dict):
            raise BadRequest(f"the arguments are no JSON object but {type(arguments).__name__}")
        observation = await session.call_tool(name, arguments)
        return json_response({"result": observation.text, "failed": observation.failed})

    async def _complete(self, request: web.Request, session: AgentSession, path: str) -> web.StreamResponse:
        """The model's answer to a request in its own dialect; one in Gemini's is asked as OpenAI's."""
        dialect = dialect_of(path)
        data, body = await read_body(request)
        if not isinstance(body, dict):
            raise BadRequest(f"the request is no JSON object but {type(body).__name__}")
        form = None
        try:
            if gemini.PATH.fullmatch(path):
                form = gemini.read_gemini(path, request.query, body)
                if form is None:
                    raise BadRequest(f"there is no {path}", 404)
                dialect, body = form.path, form.body
            if dialect == RESPONSES:
                check_whole(body)
            passed = self._passed_on(session, dialect, body)
            facts = read_request(dialect, passed, session.conversations, session.secrets)
        except (AttributeError, LookupError, TypeError) as error:  # a field has another type than the dialect says
            raise BadRequest(f"the request can't be read: {error}") from None
        if passed is not body or form is not None:
            data = json.dumps(passed).encode()  # half of a surrogate pair stays escaped
        sender = Sender(request, session, form)
        wire = WireRequest(
            dialect,
            data,
            passed_on(request.headers.items(), key=session.key),
            # The query of Gemini's dialect is for another server.
            "" if form is not None else passed_query(request.query_string, key=session.key),
            sender.set_headers,
            sender.send if facts.streamed else None,
            secrets=session.secrets,
            parsed=passed,
            is_translated=form is not None,
            dropped=tuple(form.dropped) if form is not None else (),
        )
        # Whether an SDK makes its request again; the header is that of Stainless's SDKs.
        is_retry = request.headers.get("x-stainless-retry-count", "0") not in ("", "0")
        try:
            call = await session.complete(wire, facts, is_retry=is_retry, is_client_gone=lambda: sender.is_client_gone)
        except (ModelError, LimitReached, SessionClosed) as error:
            if isinstance(error, ModelError) and error.response is not None and error.response.begun:
                sender.set_headers(error.response.headers)
                if sender.response is None:
                    await sender.send(error.response.begun.encode())  # the recorded part of a stream, of a replay
            if sender.response is None:
                raise
            sender.break_off()
            return sender.response
        return await sender.finish(call)

    def _passed_on(self, session: AgentSession, path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        """The request for the run's model: every architecture of a run asks the same. Raises `BadRequest`."""
        is_embedding = path == EMBEDDINGS
        name = self.embedding_name if is_embedding else self.model_name
        if name is None:
            raise BadRequest(
                "this run has no --embedding-model; name one, such as --embedding-model openai/text-embedding-3-small"
            )
        if body.get("model") == name:
            return body
        session.notes[f"asked for the {'embedding ' if is_embedding else ''}model {str(body.get('model'))[:80]}"] += 1
        return {**body, "model": name}


# Its requests and answers over HTTP: bodies, keys, errors in the form of each dialect.


LARGEST_REQUEST = 64 << 20  # bytes


class BadRequest(Exception):
    """A request that can't be read or passed on, and the status to answer with."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def read_body(request: web.Request) -> tuple[bytes, Any]:
    """The body of a request, and its JSON. Raises `BadRequest`."""
    try:
        data = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise BadRequest(f"the request has more than {LARGEST_REQUEST >> 20} MB", 413) from None
    except web.RequestPayloadError as error:
        raise BadRequest(f"the body of the request can't be read: {error}") from None
    try:
        return data, load_json(data)
    except ValueError as error:
        raise BadRequest(f"the request isn't JSON that can be read: {error}") from None


def check_whole(body: Mapping[str, Any]) -> None:
    """Raises `BadRequest` for a request of Responses that lacks a part of its conversation, or would lack its answer.

    So the meter, the limits and the journal have the whole prompt, and no request refers to another question.
    """
    if body.get("background") is True:
        raise BadRequest("background responses can't be metered; leave `background` out")
    refers = body.get("previous_response_id") is not None
    items = body["input"] if isinstance(body.get("input"), list) else []
    if refers or any(isinstance(each, Mapping) and each.get("type") == "item_reference" for each in items):
        said = "earlier responses aren't kept: send the whole conversation as `input`, with `store: false`"
        raise BadRequest(f"{said}, instead of {'`previous_response_id`' if refers else 'a reference to an item'}")


def dialect_of(path: str) -> str:
    """A path as `PATHS` has it."""
    return path.removeprefix("/v1")


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    body = json.dumps(value).encode()
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def error_response(
    path: str,
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    fields: Mapping[str, str | int] = NO_FIELDS,
) -> web.Response:
    """An error in the form of the path's dialect."""
    if gemini.PATH.fullmatch(path):
        body = gemini.gemini_error(status, message)
    else:
        dialect = dialect_of(path)
        of_messages = dialect.startswith(MESSAGES) and dialect not in OF_ANTHROPIC
        body = dialect_error(MESSAGES if of_messages else dialect, status, message, fields)
    return json_response(body, status, headers)


class Sender:
    """Sends a streamed answer as it arrives, or a whole one, in the dialect of `form` if the request has one."""

    def __init__(self, request: web.Request, session: AgentSession, form: gemini.GeminiChat | None = None) -> None:
        self.response: web.StreamResponse | None = None
        """A stream that has begun."""
        self.headers: Mapping[str, str] = {}
        """The provider's, to be set before a stream begins."""
        self._form = form
        self._request = request
        self._session = session
        self._is_gone = False
        self._has_ended = False  # the last event was sent: a client may close its connection there

    @property
    def is_client_gone(self) -> bool:
        """Whether the client has closed its connection without the whole answer."""
        transport = self._request.transport
        return not self._has_ended and (transport is None or transport.is_closing())

    def set_headers(self, headers: Mapping[str, str]) -> None:
        self.headers = headers

    def break_off(self) -> None:
        """Closes the connection, so that the client sees the failure of a stream that has begun."""
        if self._request.transport is not None:
            self._request.transport.close()

    async def send(self, piece: bytes) -> None:
        """Sends a piece. A client that has hung up changes nothing: the provider's answer is paid for."""
        kind = "text/event-stream"
        if self._form is not None:
            kind, piece = self._form.stream_type, self._form.add(piece)
        if self._is_gone or not piece:
            return
        try:
            if self.response is None:
                self.response = web.StreamResponse(headers={**self.headers, "Content-Type": kind})
                await self.response.prepare(self._request)
            is_last = self._form is None and ends_stream(piece)
            for _ in range(2 if is_last else 0):
                await asyncio.sleep(0)  # a client that has hung up by now is seen before the event is written
            await self.response.write(piece)
            self._has_ended |= is_last
        except (ConnectionError, RuntimeError):
            self._note_hang_up()

    async def finish(self, call: AgentCall) -> web.StreamResponse:
        """The response; a recorded answer, or that of an earlier attempt, is sent whole."""
        response = self.response
        if response is None:
            wire = call.answer.result().wire
            assert wire is not None  # models without an endpoint are refused before the run
            kind, text = wire.content_type, wire.body
            if self._form is not None:
                kind, text = self._form.translated(wire)
            response = web.Response(text=text, headers={**wire.headers, "Content-Type": kind})
        if self._is_gone:
            return response
        try:
            await response.prepare(self._request)
            if self.response is not None and self._form is not None:
                await response.write(self._form.end())
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


def openapi(tools: Iterable[Tool], address: str) -> dict[str, Any]:
    """The question's tools as JSON over HTTP: an OpenAPI 3.1 document with a POST operation for each tool."""
    fields = {"result": {"type": "string"}, "failed": {"type": "boolean"}}
    result = {"type": "object", "properties": fields, "required": [*fields]}
    answer = {"description": "The tool's answer", "content": {"application/json": {"schema": result}}}
    paths = {}
    for tool in tools:
        body = {"required": True, "content": {"application/json": {"schema": input_schema(tool.arguments)}}}
        operation = {"operationId": tool.name, "description": tool.description, "responses": {"200": answer}}
        paths[f"/{tool.name}"] = {"post": {**operation, "requestBody": body}}
    info = {"title": "Tools of a question", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "servers": [{"url": address}], "paths": paths}


_MCP_VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
_NO_JSON, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32601, -32602


async def answer_mcp(request: web.Request, session: AgentSession) -> web.StreamResponse:
    """The question's tools over MCP: JSON-RPC 2.0 in HTTP requests ("streamable HTTP", answers as JSON, no session).

    Raises `LimitReached` or `SessionClosed`. Source: modelcontextprotocol.io, specification of 2025-06-18.
    """
    if request.method == "DELETE":
        return web.Response(status=200)
    if request.method != "POST":
        return web.Response(status=405, headers={"Allow": "POST"})
    try:
        _, message = await read_body(request)
    except BadRequest as error:
        return json_response(_mcp_error(None, _NO_JSON, str(error)), error.status)
    answer = await _mcp_answer(message, session)
    return web.Response(status=202) if answer is None else json_response(answer)


async def _mcp_answer(message: Any, session: AgentSession) -> dict[str, Any] | None:
    """The answer to a message; None for a notification."""
    if not isinstance(message, dict) or not isinstance(method := message.get("method"), str):
        return _mcp_error(None, _INVALID_REQUEST, "expected a JSON-RPC request")
    if "id" not in message:
        return None
    number, result = message["id"], dict[str, Any]()
    params: dict[str, Any] = message["params"] if isinstance(message.get("params"), dict) else {}
    if method == "initialize":
        wanted = params.get("protocolVersion")
        info = {"name": "rewoo_bench", "version": version("rewoo-bench")}
        spoken = wanted if wanted in _MCP_VERSIONS else _MCP_VERSIONS[0]
        result = {"protocolVersion": spoken, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        tools = [
            {"name": tool.name, "description": tool.description, "inputSchema": input_schema(tool.arguments)}
            for tool in session.tools.values()
        ]
        result = {"tools": tools}
    elif method == "tools/call":
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or name not in session.tools or not isinstance(arguments, dict):
            return _mcp_error(number, _INVALID_PARAMS, f"no tool {name!r}; available: {', '.join(session.tools)}")
        observation = await session.call_tool(name, arguments)
        result = {"content": [{"type": "text", "text": observation.text}], "isError": observation.failed}
    elif method != "ping":
        return _mcp_error(number, _NO_METHOD, f"no method {method!r}")
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _mcp_error(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
