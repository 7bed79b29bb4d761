"""Messages of MCP servers that the SDK can't read.

Half of a surrogate pair is replaced by U+FFFD; broken JSON ends the connection.

    async with Client(repaired(stdio_client(parameters))) as client:
        ...

The SDK drops a message that it can't read, and the call that it answers would wait for ever.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from rewoo_bench.escaping import replace_surrogates

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream

_READER = logging.getLogger("mcp.client.stdio")


@asynccontextmanager
async def repaired(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a transport; messages that can't be read are repaired on their way."""
    _READER.addFilter(_is_ours)
    async with transport as (messages, write), anyio.create_task_group() as group:
        send, receive = anyio.create_memory_object_stream[Any]()
        group.start_soon(_pass_on, messages, send)
        async with receive:
            yield receive, write
        group.cancel_scope.cancel()


async def _pass_on(messages: Any, send: MemoryObjectSendStream[Any]) -> None:
    async with send:
        async for message in messages:
            readable = _readable(message) if isinstance(message, ValidationError) else message
            if readable is None:
                return  # the SDK fails the open calls
            try:
                await send.send(readable)
            except anyio.BrokenResourceError:  # the client has ended
                return


def _readable(error: ValidationError) -> Any:
    """The message in place of its error; None where it is broken. A line that is no message stays an error."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    (first, *_) = error.errors()
    line = first["input"]
    if first["type"] != "json_invalid" or not isinstance(line, str) or not line.lstrip().startswith("{"):
        return error
    try:
        text = replace_surrogates(json.dumps(json.loads(line), ensure_ascii=False))
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (ValueError, RecursionError):
        return None


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether the SDK's own line about a message is kept: a traceback for each message that it can't read isn't."""
    return not (record.exc_info and isinstance(record.exc_info[1], ValidationError))
