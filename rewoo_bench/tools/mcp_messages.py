"""Messages of MCP servers: the pipes of a server's process, and the text of a tool's result.

    async with streams_of(process, log) as (read, write):
        ...                                              # a transport of the SDK

The SDK drops a message that it can't read, and the call that it answers would wait for ever. So half of a surrogate
pair is replaced by U+FFFD, an answer of the wrong form is an error of its call, and broken JSON ends the connection.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import ValidationError

from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.processes import Tail, read_into

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

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
