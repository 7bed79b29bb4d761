"""A connection to an MCP server through the official SDK, an extra that `tools.mcp_server` imports this module for.

A server is started by its first call, which isn't part of the latency, and once more when it has died.

Half of a surrogate pair in a message is replaced by U+FFFD. What can't be read is a line of the server's log, and the
call that it answers ends at its time limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from mcp.types import CONNECTION_CLOSED
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from rewoo_bench.errors import HarnessFault, ToolError, UsageError
from rewoo_bench.events import starting
from rewoo_bench.system.processes import ProcessGroups, Tail, read_into
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.redaction import plain_environment, redact, without, without_in
from rewoo_bench.tools.mcp import McpAddress, McpTool, ToolSchema

_LONGEST_RESULT = 1_000_000  # characters
_LOG_LINES, _LONGEST_REASON = 3, 500
_END_TIMEOUT_S = 10.0
_IDLE_S = 86_400.0  # a stream without events stays open
_LONGEST_LINE = 64 << 20  # bytes
_END_GRACE_S = 1.0  # for a server to end by itself once its input is closed
_log = logging.getLogger(__name__)
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())  # the SDK's own lines are no lines of a run


class McpServer:
    """One server: a program that is started, or an address. `schemas` has its tools by its own names."""

    def __init__(self, address: McpAddress, groups: ProcessGroups, timeout_s: float) -> None:
        self.address = address
        self.schemas: dict[str, ToolSchema] = {}
        self.names: dict[str, str] = {}
        """Name of a tool in an architecture -> the server's name, of those that are offered."""
        self.is_shared = False
        self._groups = groups
        self._timeout_s = timeout_s
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = anyio.Lock()
        self._ends = asyncio.Event()
        self._limit = anyio.CancelScope()
        self._log = Tail()

    def fresh(self) -> McpServer:
        """Another server at the same address, that isn't started."""
        server = McpServer(self.address, self._groups, self._timeout_s)
        server.schemas, server.names = self.schemas, self.names
        return server

    def tool(self, remote: str, name: str | None = None, timeout_s: float | None = None) -> McpTool:
        """A tool of the server, under another `name` if given. Raises `KeyError`."""
        schema = self.schemas[remote]
        call = partial(self.call, timeout_s=timeout_s)
        # A resumed question calls it again where a new process of ours has nothing of the earlier calls. What a remote
        # server keeps isn't ours: a second call could write twice.
        stateful = not (self.is_shared or self.address.is_remote or schema.is_read_only)
        return McpTool(call, schema, name or remote, stateful=stateful)

    def begin(self) -> None:
        """Begins to start, if it hasn't been; the first call waits for the rest, and raises what went wrong."""
        if self._task is not None:
            return
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._started.add_done_callback(lambda started: started.cancelled() or started.exception())
        self._ends, self._limit = asyncio.Event(), anyio.CancelScope()
        self._log = Tail()
        self._task = asyncio.create_task(self._live(self._started))

    async def start(self) -> None:
        """Connects and reads the tools. Raises `UsageError`."""
        async with self._starting:
            if self._client is not None and not self._ends.is_set():
                return
            if self._task is not None and (self._ends.is_set() or self._started.done()):
                await asyncio.wait([self._task])
                self._task = None
            self.begin()
            with starting():
                await asyncio.shield(self._started)

    async def aclose(self) -> None:
        """Ends the server; a later call starts it again."""
        if self._client is None:
            self._limit.cancel()
        await self._end()

    async def _end(self) -> None:
        self._ends.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_END_TIMEOUT_S)
            self._task.cancel()

    async def call(self, remote: str, arguments: dict[str, Any], *, timeout_s: float | None = None) -> str:
        """The text of a tool's result. Raises `ToolError`, also for a server that has died."""
        limit = timeout_s or self._timeout_s
        try:
            await self.start()
            assert self._client is not None
            with anyio.fail_after(limit):
                result = await self._client.call_tool(remote, arguments)
        except UsageError as error:
            raise ToolError(str(error)) from None
        except TimeoutError:
            raise self._error(f"no answer within {limit:g} s") from None
        except (MCPError, ValidationError, RuntimeError) as error:
            if getattr(error, "code", None) == CONNECTION_CLOSED:
                raise await self._gone(error) from error
            raise self._error(str(error) or type(error).__name__) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError) as error:
            raise await self._gone(error) from error
        text = without(result_text(result), self.address.secrets)
        if (surplus := len(text) - _LONGEST_RESULT) > 0:
            text = f"{text[:_LONGEST_RESULT]}\n… {surplus:,} characters left out"
        if result.is_error:
            raise ToolError(redact(text, self.address.secrets) or "the tool failed without a message")
        return text

    async def _gone(self, error: Exception) -> ToolError:
        """The error of a call whose server has ended; the next call starts it again."""
        await self._end()
        return self._error(self._with_lines(str(error) or type(error).__name__))

    async def _live(self, started: asyncio.Future[None]) -> None:
        """The life of a connection, in one task from its beginning to its end, as the SDK requires."""
        reason = ""
        self._limit.deadline = anyio.current_time() + self._timeout_s
        with self._limit:
            try:
                async with self._client_of() as client:
                    await self._read_tools(client)
                    self._limit.deadline = math.inf
                    self._client = client
                    started.set_result(None)
                    await self._ends.wait()
            except HarnessFault as error:
                if not started.done():
                    started.set_exception(error)
            except Exception as error:  # of the server, or of its program; raised where it was started
                first: BaseException = error
                while isinstance(first, BaseExceptionGroup):
                    first = first.exceptions[0]
                if isinstance(first, UsageError):
                    reason = self._hidden(str(first).removeprefix("--mcp: "))
                else:
                    said = str(first).partition("\nFor more information")[0]
                    reason = self._with_lines(said or type(first).__name__)
            finally:
                self._client = None
                self._ends.set()
        if not started.done():
            if self._limit.cancel_called or not reason:
                reason = self._with_lines(f"it didn't answer within {self._timeout_s:g} s (--mcp-timeout)")
            started.set_exception(UsageError(f"--mcp: {self.address.shown!r} can't be used: {reason}"))

    @asynccontextmanager
    async def _client_of(self) -> AsyncIterator[Client]:
        """The SDK's client, connected."""

        async def note_refusal(response: Any) -> None:
            # The SDK's errors don't name the status.
            if response.status_code >= 400 and response.request.method == "POST":
                self._log.add(f"HTTP {response.status_code} {response.reason_phrase}\n".encode())

        async with AsyncExitStack() as stack:
            transport: Any
            needs_folder = self.address.needs_folder and not self.address.is_remote
            folder = TemporaryDirectory(prefix="rewoo-bench-mcp-") if needs_folder else nullcontext("")
            words, values = self.address.filled(stack.enter_context(folder))
            if self.address.is_remote:
                client = await stack.enter_async_context(create_mcp_http_client(values))
                client.follow_redirects = False  # a header goes to no other origin
                client.event_hooks["response"].append(note_refusal)
                client.timeout.read = _IDLE_S
                transport = streamable_http_client(words[0], http_client=client)
            else:
                environment = {**plain_environment(), **values}
                process = await stack.enter_async_context(self._groups.start(words, env=environment, what="--mcp"))
                transport = streams_of(process, self._log)
            yield await stack.enter_async_context(Client(transport, cache=None))

    async def _read_tools(self, client: Client) -> None:
        """Reads the tools, all pages of them; of two with one name, the last. Raises `UsageError`."""
        page = await client.list_tools()
        tools = list(page.tools)
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            tools += page.tools
        if self.schemas:
            return
        if not tools:
            _log.warning("--mcp: %s has no tools", self.address.shown)
        for tool in tools:
            says = tool.annotations
            is_read_only = bool(says and says.read_only_hint)
            changes = bool(says and not is_read_only and (says.read_only_hint is False or says.destructive_hint))
            description, inputs = without_in([tool.description, tool.input_schema], self.address.secrets)
            self.schemas[tool.name] = ToolSchema(
                tool.name, description, inputs, is_read_only=is_read_only, changes_state=changes
            )
        self.names = self.address.names_of(self.schemas)

    def _error(self, message: str) -> ToolError:
        return ToolError(f"{self.address.shown}: {self._hidden(message)}")

    def _hidden(self, text: str) -> str:
        return redact(" ".join(text.split()), self.address.secrets)[:_LONGEST_REASON]

    def _with_lines(self, message: str) -> str:
        """The message, and the last lines that the server printed beside its messages, or its refusals."""
        lines = [line.strip() for line in self._log.text.splitlines() if line.strip()][-_LOG_LINES:]
        verb = "answered" if self.address.is_remote else "printed"
        return self._hidden(f"{message}; it {verb}: {' | '.join(dict.fromkeys(lines))}" if lines else message)


@asynccontextmanager
async def streams_of(process: Process, log: Tail) -> AsyncIterator[tuple[Any, Any]]:
    """A transport over the pipes of a process; its standard error, and lines that are no messages, go to `log`."""
    incoming, read = anyio.create_memory_object_stream[Any]()
    write, outgoing = anyio.create_memory_object_stream[Any]()
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def read_messages() -> None:
        stream = BufferedByteReceiveStream(stdout)
        async with incoming:  # its end fails the open calls
            with suppress(
                anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError
            ):
                while True:
                    try:
                        line = await stream.receive_until(b"\n", _LONGEST_LINE)
                    except anyio.DelimiterNotFound:
                        log.add(f"\na line of more than {_LONGEST_LINE >> 20} MB\n".encode())
                        return
                    message = read_message(line)
                    if message is None:
                        log.add(line[-1000:] + b"\n")
                    else:
                        await incoming.send(message)

    async def write_messages() -> None:
        try:
            async with outgoing:
                async for message in outgoing:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(f"{text}\n".encode())
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await incoming.aclose()  # fails the open calls

    async with anyio.create_task_group() as group, read, write:
        group.start_soon(read_into, process.stderr, log)
        group.start_soon(read_messages)
        group.start_soon(write_messages)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_END_GRACE_S), suppress(OSError):
                await stdin.aclose()
                await process.wait()
            group.cancel_scope.cancel()


def read_message(line: bytes) -> SessionMessage | None:
    """The message of a line; None for a line that is no message."""
    with suppress(ValueError):  # pydantic's own error is one, too
        message = load_json(line.decode("utf-8", "replace"))
        return SessionMessage(jsonrpc_message_adapter.validate_python(message, by_name=False))
    return None


def result_text(result: Any) -> str:
    """The text of a result, with a line for what is no text; its structured content if it has no other.

    >>> [image: image/png]
    >>> [resource_link: file:///x.txt]
    """
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    texts = []
    for part in result.content:
        held = getattr(part, "resource", part)
        name = getattr(held, "uri", None) or getattr(held, "mime_type", "")
        texts.append(str(getattr(held, "text", f"[{part.type}: {name}]")))
    return "\n".join(texts)
