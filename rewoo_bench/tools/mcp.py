"""Descriptions of the tools of MCP servers (modelcontextprotocol.io): a server's schema decides what may be sent.

`tools.mcp_server` has a server, and `tools.mcp_address` the notation in which a user names it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from anyio.abc import ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from rewoo_bench.runners.notation.schemas import Schema, inputs_of
from rewoo_bench.system.processes import Tail, read_into
from rewoo_bench.text.escaping import replace_surrogates

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage


CHARACTERS_LEFT_OUT = "characters left out"  # the end of a result that was cut before it was counted
_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list[Any]}


class ToolSchema:
    """A tool as its server describes it."""

    def __init__(
        self, name: str, description: str | None, schema: Mapping[str, Any], *, is_read_only: bool = False
    ) -> None:
        self.name = name
        self.description = (description or name).strip()
        self.schema = dict(schema)
        self.is_read_only = is_read_only
        """Whether the server says that the tool changes nothing (`readOnlyHint`)."""

    @cached_property
    def sha256(self) -> str:
        """A hash of all that a model reads of the tool."""
        return sha256(json.dumps([self.name, self.description, self.schema], sort_keys=True).encode()).hexdigest()

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """A model of the tool's arguments, made once for all questions."""
        return _arguments_of(self)


class McpTool:
    """A tool of a server, as a `rewoo_bench.types.Tool`; `call` gets the server's name of it and the arguments."""

    def __init__(
        self,
        call: Callable[[str, dict[str, Any]], Awaitable[str]],
        schema: ToolSchema,
        name: str,
        *,
        stateful: bool = False,
    ) -> None:
        self.name = name
        self.description = schema.description
        self.arguments: type[BaseModel] = schema.arguments
        self.stateful = stateful
        self._call = call
        self._remote = schema.name

    async def __call__(self, arguments: BaseModel) -> str:
        return await self._call(self._remote, arguments.model_dump(exclude_unset=True, by_alias=True))


def _arguments_of(schema: ToolSchema) -> type[BaseModel]:
    """A model of a tool's arguments, checked as far as notation/schemas.py reads schemas; the server does all."""
    whole = {"type": "object", "properties": {}, **schema.schema}
    known = inputs_of(whole)
    fields: dict[str, Any] = {}
    for number, each in enumerate(known):
        part = known.schema.resolve(each.schema)
        type_ = _TYPES.get(str(part.get("type")), Any)
        kind: Any = Annotated[type_, AfterValidator(partial(_fitting, known.schema, part))]
        default = ... if each.required else part.get("default")
        own = _is_field_name(each.name)
        described = Field(default, alias=None if own else each.name)
        fields[each.name if own else f"field_{number}"] = (kind if each.required else kind | None, described)
    base = _McpArguments if known.is_open else _ClosedMcpArguments
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


# Messages of MCP servers: the pipes of a server's process, and the text of a tool's result.
#
#     async with streams_of(process, log) as (read, write):
#         ...                                              # a transport of the SDK
#
# The SDK drops a message that it can't read, and the call that it answers would wait for ever. So half of a surrogate
# pair is replaced by U+FFFD, an answer of the wrong form is an error of its call, and broken JSON ends the connection.


_LONGEST_LINE = 64 << 20  # bytes
_END_GRACE_S = 1.0  # for a server to end by itself once its input is closed
_INTERNAL_ERROR = -32603


class _Broken(Exception):
    """A message that ends the connection."""


@asynccontextmanager
async def streams_of(process: Process, log: Tail) -> AsyncIterator[tuple[Any, Any]]:
    """A transport over the pipes of a process; its standard error, and lines that are no messages, go to `log`."""
    incoming, read = anyio.create_memory_object_stream[Any]()
    write, outgoing = anyio.create_memory_object_stream[Any]()
    async with anyio.create_task_group() as group, read, write:
        group.start_soon(read_into, process.stderr, log)
        group.start_soon(_read, process, incoming, log)
        group.start_soon(_write, process.stdin, outgoing, incoming)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_END_GRACE_S), suppress(OSError):
                if process.stdin is not None:
                    await process.stdin.aclose()
                await process.wait()
            group.cancel_scope.cancel()


async def _read(process: Process, messages: MemoryObjectSendStream[Any], log: Tail) -> None:
    assert process.stdout is not None
    stream = BufferedByteReceiveStream(process.stdout)
    async with messages:  # its end fails the open calls
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                try:
                    line = await stream.receive_until(b"\n", _LONGEST_LINE)
                    message = read_message(line)
                except (anyio.DelimiterNotFound, _Broken) as error:
                    too_long = f"a line of more than {_LONGEST_LINE >> 20} MB"
                    log.add(f"\n{error if isinstance(error, _Broken) else too_long}\n".encode())
                    return
                if message is None:
                    log.add(line[-1000:] + b"\n")
                else:
                    await messages.send(message)


async def _write(
    stdin: ByteSendStream | None, messages: MemoryObjectReceiveStream[Any], incoming: MemoryObjectSendStream[Any]
) -> None:
    assert stdin is not None
    try:
        async with messages:
            async for message in messages:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(f"{text}\n".encode())
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        await incoming.aclose()  # fails the open calls


def read_message(line: bytes) -> SessionMessage | None:
    """The message of a line; None for a line that is no message. Raises `_Broken` for broken JSON."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    text = line.decode("utf-8", "replace")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        pass
    try:
        document = json.loads(text)
        repaired = replace_surrogates(json.dumps(document, ensure_ascii=False))
    except (ValueError, RecursionError):
        if text.lstrip().startswith("{"):
            raise _Broken(f"broken JSON: {text.strip()[:200]!r}") from None
        return None
    if not isinstance(document, dict):
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(repaired, by_name=False))
    except ValidationError:
        return _as_error(document)


def _as_error(document: dict[str, Any]) -> SessionMessage | None:
    """An answer of the wrong form as an error of the call that it answers."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    number = document.get("id")
    if "method" in document or isinstance(number, bool) or not isinstance(number, int | str):
        return None
    part = "error" if "error" in document else "result"
    shown = json.dumps(document.get(part))[:300]
    error = {"code": _INTERNAL_ERROR, "message": f"its {part} can't be read: {replace_surrogates(shown)}"}
    answer = {"jsonrpc": "2.0", "id": number, "error": error}
    return SessionMessage(jsonrpc_message_adapter.validate_python(answer))


def text_of(result: Any) -> str:
    """The text of a result, with a line for each image, audio and resource; its structured content if it has no other.

    >>> [image/png, 12,345 bytes]
    >>> [resource link: file:///x.txt (text/plain)]
    """
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(_part(part) for part in result.content)


def _part(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type in ("image", "audio"):
        return f"[{part.mime_type}, {_size(part.data)}]"
    if part.type == "resource_link":
        return f"[resource link: {_named(part)}]"
    if part.type != "resource":
        return f"[{part.type}]"
    resource = part.resource
    text = getattr(resource, "text", None)
    size = f", {_size(resource.blob)}" if text is None else ""
    return f"[resource: {_named(resource)}{size}]" + (f"\n{text}" if text else "")


def _named(resource: Any) -> str:
    return f"{resource.uri} ({resource.mime_type})" if resource.mime_type else str(resource.uri)


def _size(data: str) -> str:
    """The size of what a Base64 text holds."""
    return f"{len(data.rstrip('=')) * 3 // 4:,} bytes"
