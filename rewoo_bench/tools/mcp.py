"""Tools of MCP servers (modelcontextprotocol.io), through the official SDK (`pip install 'rewoo-bench[mcp]'`).

    async with McpServers() as servers:
        server = await servers.connect("uvx mcp-server-time")      # or https://…
        tool = server.tool("get_current_time")
        await tool(tool.arguments(timezone="Europe/Paris"))

A server is started once for a run, and once more when it has died. It gets this process's environment without
credentials; NAME=VALUE in front of its command sets a variable, and `$NAME` there is the value of NAME here.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import anyio
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from rewoo_bench.errors import ToolError, UsageError
from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.notation.schemas import Schema
from rewoo_bench.redaction import hide_credentials, plain_environment, redact
from rewoo_bench.tools.mcp_messages import repaired

if TYPE_CHECKING:
    from mcp import Client

CONNECT_TIMEOUT_S = 60.0  # a server may have to be downloaded first
_LONGEST_RESULT = 1_000_000  # characters
_LONGEST_LOG = 10_000
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list[Any]}


class McpServers:
    """The servers of a run, by their command or address. A context manager, which ends them."""

    def __init__(self) -> None:
        self._servers: dict[str, McpServer] = {}

    async def __aenter__(self) -> McpServers:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            for server in self._servers.values():
                await server.aclose()

    async def connect(self, address: str) -> McpServer:
        """The server, with its tools. Raises `UsageError` where it can't be started or reached."""
        if address not in self._servers:
            server = McpServer(address)
            self._servers[address] = server
            await server.start()
        return self._servers[address]

    def of(self, address: str) -> McpServer:
        """A server that `connect` has started."""
        return self._servers[address]


class McpServer:
    """One server: a command that is started, or an address. `schemas` maps a tool's name to its description."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.schemas: dict[str, ToolSchema] = {}
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = anyio.Lock()
        self._ends = asyncio.Event()
        self._log = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by `aclose`

    def tool(self, remote: str, name: str | None = None) -> McpTool:
        """A tool of the server, under another `name` if given. Raises `KeyError`."""
        return McpTool(self, self.schemas[remote], name or remote)

    async def start(self) -> None:
        """Connects and reads the tools. Raises `UsageError`."""
        async with self._starting:
            if self._client is not None and not self._ends.is_set():
                return
            if self._task is not None:
                await asyncio.wait([self._task])
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._ends = asyncio.Event()
            self._task = asyncio.create_task(self._live(started))
            await asyncio.shield(started)

    async def aclose(self) -> None:
        """Ends the server."""
        self._ends.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError, Exception):  # its errors were those of its calls
                await asyncio.wait_for(self._task, timeout=5)
        self._log.close()

    async def call(self, remote: str, arguments: dict[str, Any]) -> str:
        """The text of a tool's result. Raises `ToolError`, also for a server that has died."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        try:
            await self.start()
            assert self._client is not None
            encodable = json.loads(replace_surrogates(json.dumps(arguments, ensure_ascii=False)))
            result = await self._client.call_tool(remote, encodable)
        except UsageError as error:
            raise ToolError(str(error)) from None
        except ValidationError as error:
            about = error.errors()[0]
            where = ".".join(map(str, about["loc"]))
            raise ToolError(f"{self._shown}: the result of {remote!r} can't be read: {where}: {about['msg']}") from None
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError, RuntimeError) as error:
            if not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED:
                self._ends.set()  # the next call starts it again
            raise ToolError(f"{self._shown}: {redact(str(error)) or type(error).__name__}") from error
        text = replace_surrogates(_text_of(result))
        if result.is_error:
            raise ToolError(text[:_LONGEST_RESULT] or "the tool failed without a message")
        return text[:_LONGEST_RESULT]

    async def _live(self, started: asyncio.Future[None]) -> None:
        """The life of a connection, in one task from its beginning to its end, as the SDK requires."""
        try:
            async with _client(self.address, self._log) as client:
                with anyio.fail_after(CONNECT_TIMEOUT_S):
                    listed = await _all_tools(client)
                schemas = [ToolSchema(tool.name, tool.description, tool.input_schema) for tool in listed]
                self.schemas = {schema.name: schema for schema in schemas}
                self._client = client
                started.set_result(None)
                await self._ends.wait()
        except Exception as error:  # of the server, or of its program; raised where it was started
            if not started.done():
                started.set_exception(UsageError(f"--mcp: {self._shown!r} can't be used: {self._reason(error)}"))
        finally:
            self._client = None
            if not started.done():
                started.cancel()

    @property
    def _shown(self) -> str:
        return hide_credentials(self.address)

    def _reason(self, error: BaseException) -> str:
        """An error and the last line of the server's log, as one line."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, UsageError):
            return str(error).removeprefix("--mcp: ")
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read()[-_LONGEST_LOG:].splitlines() if line.strip()]
        message = " ".join([str(error) or type(error).__name__, *lines[-1:]]).split()
        return redact(" ".join(message))[:300]


class ToolSchema:
    """A tool as its server describes it."""

    def __init__(self, name: str, description: str | None, schema: Mapping[str, Any]) -> None:
        self.name = name
        self.description = (description or name).strip()
        self.schema = dict(schema)

    @property
    def sha256(self) -> str:
        """A hash of all that a model reads of the tool."""
        return sha256(json.dumps([self.name, self.description, self.schema], sort_keys=True).encode()).hexdigest()


class McpTool:
    """A tool of a server, as a `rewoo_bench.types.Tool`."""

    def __init__(self, server: McpServer, schema: ToolSchema, name: str) -> None:
        self.name = name
        self.description = schema.description
        self.arguments: type[BaseModel] = _arguments_of(schema)
        self._server = server
        self._remote = schema.name

    async def __call__(self, arguments: BaseModel) -> str:
        return await self._server.call(self._remote, arguments.model_dump(exclude_unset=True, by_alias=True))


def _arguments_of(schema: ToolSchema) -> type[BaseModel]:
    """A model of a tool's arguments, checked as far as notation/schemas.py reads schemas; the server does all."""
    whole = {"type": "object", "properties": {}, **schema.schema}
    about = Schema(whole)
    resolved = about.resolve(whole)
    properties = resolved.get("properties") or {}
    required = set(resolved.get("required") or ())
    fields: dict[str, Any] = {}
    for number, name in enumerate(sorted(properties, key=lambda name: name not in required)):
        part = about.resolve(properties[name])
        kind: Any = Annotated[_TYPES.get(str(part.get("type")), Any), AfterValidator(partial(_fitting, about, part))]
        default = ... if name in required else part.get("default")
        own = _is_field_name(name)
        described = Field(default, alias=None if own else name, description=part.get("description"))
        fields[name if own else f"field_{number}"] = (kind if name in required else kind | None, described)
    base = _ClosedMcpArguments if resolved.get("additionalProperties") is False else _McpArguments
    made: type[BaseModel] = create_model(schema.name, __base__=base, **fields)
    made.json_schema = whole  # type: ignore[attr-defined]
    return made


def _fitting(about: Schema, part: Mapping[str, Any], value: Any) -> Any:
    if fault := about.fault(part, value):
        raise PydanticCustomError("schema", "{fault}", {"fault": fault})
    return value


def _is_field_name(name: str) -> bool:
    """Whether a model may have a field of that name."""
    return name.isidentifier() and not name.startswith(("_", "model_")) and not hasattr(_McpArguments, name)


class _McpArguments(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        schema: dict[str, Any] = cls.json_schema  # type: ignore[attr-defined]
        return schema


class _ClosedMcpArguments(_McpArguments):
    """Of a schema that allows no other properties."""

    model_config = ConfigDict(extra="forbid")


def _client(address: str, log: TextIO) -> Client:
    try:
        from mcp import Client, StdioServerParameters, stdio_client
    except ImportError:
        raise UsageError("--mcp needs the MCP SDK: pip install 'rewoo-bench[mcp]'") from None
    if address.startswith(("http://", "https://")):
        return Client(address, cache=None)
    env, (program, *arguments) = _split(address)
    command = StdioServerParameters(command=program, args=arguments, env=env, encoding_error_handler="replace")
    return Client(repaired(stdio_client(command, errlog=log)), cache=None)


def _split(command: str) -> tuple[dict[str, str], list[str]]:
    """The environment and the words of a command. Raises `UsageError`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--mcp: {command!r} is not a command: {error}") from None
    env = plain_environment()
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = os.path.expandvars(value)
    if not words:
        raise UsageError("--mcp: name a command or an address")
    return env, words


async def _all_tools(client: Client) -> list[Any]:
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def _text_of(result: Any) -> str:
    """The texts of a result; other content by its kind; structured content where there is nothing else."""
    parts = [getattr(getattr(part, "resource", part), "text", None) or f"[{part.type}]" for part in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)
