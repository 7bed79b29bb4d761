"""The gateway's requests and answers over HTTP: bodies, keys, errors in the form of each dialect."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from aiohttp import web

from rewoo_bench.agents import chat_forms as ollama
from rewoo_bench.agents import gemini
from rewoo_bench.agents.chat_forms import TranslatedChat, TranslatedRequest
from rewoo_bench.agents.session import AgentCall, AgentSession
from rewoo_bench.models.hosted.dialects import MESSAGES, OF_ANTHROPIC, dialect_error, ends_stream
from rewoo_bench.models.hosted.http_endpoint import load_json
from rewoo_bench.types import NO_FIELDS, Tool, input_schema

LARGEST_REQUEST = 64 << 20  # bytes
AZURE = "/openai/"
_AZURE = re.compile(rf"{AZURE[:-1]}(?:/deployments/(?P<model>[^/]+))?(?=/)")


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


def dialect_of(path: str) -> tuple[str, str | None]:
    """A path as OpenAI and Anthropic have it, and the deployment in one of Azure's."""
    found = _AZURE.match(path)
    plain = path[found.end() :] if found else path
    return plain.removeprefix("/v1"), found["model"] if found else None


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
    if path.startswith(ollama.ROOT):
        body: dict[str, Any] = {"error": message}
    elif gemini.PATH.fullmatch(path):
        body = gemini.gemini_error(status, message)
    else:
        dialect, _ = dialect_of(path)
        of_messages = dialect.startswith(MESSAGES) and dialect not in OF_ANTHROPIC
        body = dialect_error(MESSAGES if of_messages else dialect, status, message, fields)
    return json_response(body, status, headers)


class Sender:
    """Sends a streamed answer as it arrives, or a whole one, in the dialect of `form` if the request has one."""

    def __init__(self, request: web.Request, session: AgentSession, form: TranslatedRequest | None = None) -> None:
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
        if isinstance(self._form, TranslatedChat):
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
            if self.response is not None and isinstance(self._form, TranslatedChat):
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
    is_batch = isinstance(message, list) and bool(message)
    answers = [await _mcp_answer(each, session) for each in (message if is_batch else [message])]
    if not (answers := [answer for answer in answers if answer is not None]):  # notifications alone
        return web.Response(status=202)
    return json_response(answers if is_batch else answers[0])


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
