"""An MCP server, through the official SDK (`pip install 'rewoo-bench[mcp]'`): a program that is started, or an address.

It is started by its first call, which isn't part of the latency, and once more when it has died.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from rewoo_bench.errors import HarnessFault, ToolError, UsageError
from rewoo_bench.events import starting
from rewoo_bench.system.processes import ProcessGroups, Tail
from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.redaction import plain_environment, redact, without, without_in
from rewoo_bench.tools.mcp import CHARACTERS_LEFT_OUT, McpTool, ToolSchema, streams_of, text_of
from rewoo_bench.tools.mcp_address import McpAddress

if TYPE_CHECKING:
    from mcp import Client


TIMEOUT_S = 60.0  # a server may have to be downloaded first
_LONGEST_RESULT = 1_000_000  # characters
_MOST_TOOLS = 10_000
_LOG_LINES, _LONGEST_REASON = 3, 500
_END_TIMEOUT_S = 10.0
_IDLE_S = 86_400.0  # a stream without events stays open
_log = logging.getLogger(__name__)
_QUIET = logging.NullHandler()  # the SDK's own lines and tracebacks are no lines of a run


class McpServer:
    """One server: a program that is started, or an address. `schemas` has its tools by its own names."""

    def __init__(self, address: McpAddress, groups: ProcessGroups, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self.schemas: dict[str, ToolSchema] = {}
        self.names: dict[str, str] = {}
        """Name of a tool in an architecture -> the server's name, of those that are offered."""
        self.is_shared = False
        self._groups = groups
        self._timeout_s = timeout_s
        self._mode: Any = "auto"
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = anyio.Lock()
        self._ends = asyncio.Event()
        self._limit = anyio.CancelScope()
        self._log = Tail()

    @property
    def is_restored(self) -> bool:
        """Whether a resumed question calls it again: a new process of ours has nothing of the earlier calls.

        What a remote server keeps isn't ours: a second call could write twice.
        """
        return not self.is_shared and not self.address.is_remote

    def fresh(self) -> McpServer:
        """Another server at the same address, that isn't started."""
        server = McpServer(self.address, self._groups, self._timeout_s)
        server.schemas, server.names, server._mode = self.schemas, self.names, self._mode
        return server

    def tool(self, remote: str, name: str | None = None, timeout_s: float | None = None) -> McpTool:
        """A tool of the server, under another `name` if given. Raises `KeyError`."""
        schema = self.schemas[remote]
        call = partial(self.call, timeout_s=timeout_s)
        return McpTool(call, schema, name or remote, stateful=self.is_restored and not schema.is_read_only)

    def begin(self) -> None:
        """Begins to start, if it hasn't been; the first call waits for the rest, and raises what went wrong."""
        if self._task is None:
            self._begin()

    def _begin(self) -> None:
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
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        limit = timeout_s or self._timeout_s
        try:
            await self.start()
            assert self._client is not None
            encodable = json.loads(replace_surrogates(json.dumps(arguments, ensure_ascii=False)))
            with anyio.fail_after(limit):
                result = await self._client.call_tool(remote, encodable)
        except UsageError as error:
            raise ToolError(str(error)) from None
        except TimeoutError:
            raise ToolError(self._told(f"no answer within {limit:g} s")) from None
        except ValidationError as error:
            raise ToolError(self._told(f"the result of {remote!r} can't be read: {_first_of(error)}")) from None
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError, RuntimeError) as error:
            if not isinstance(error, MCPError | RuntimeError) or getattr(error, "code", None) == CONNECTION_CLOSED:
                await self._end()  # the next call starts it again
                raise ToolError(self._told(self._with_lines(str(error) or type(error).__name__))) from error
            raise ToolError(self._told(str(error) or type(error).__name__)) from error
        text = without(replace_surrogates(text_of(result)), self.address.secrets)
        if (surplus := len(text) - _LONGEST_RESULT) > 0:
            text = f"{text[:_LONGEST_RESULT]}\n… {surplus:,} {CHARACTERS_LEFT_OUT}"
        if result.is_error:
            raise ToolError(redact(text, self.address.secrets) or "the tool failed without a message")
        return text

    async def _live(self, started: asyncio.Future[None]) -> None:
        """The life of a connection, in one task from its beginning to its end, as the SDK requires."""
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
                if not started.done() and not self._limit.cancel_called:
                    started.set_exception(self._unusable(self._reason(error)))
            finally:
                self._client = None
                self._ends.set()
        if not started.done():
            late = f"it didn't answer within {self._timeout_s:g} s (--mcp-timeout)"
            started.set_exception(self._unusable(self._with_lines(late)))

    @asynccontextmanager
    async def _client_of(self) -> AsyncIterator[Client]:
        """The SDK's client, connected."""
        try:
            from mcp import Client
        except ImportError:
            raise UsageError("--mcp needs the MCP SDK: pip install 'rewoo-bench[mcp]'") from None
        for name in ("mcp", "client"):
            logging.getLogger(name).addHandler(_QUIET)
        async with AsyncExitStack() as stack:
            transport = self._remote(stack) if self.address.is_remote else self._process(stack)
            yield await stack.enter_async_context(Client(await transport, cache=None, mode=self._mode))

    async def _process(self, stack: AsyncExitStack) -> Any:
        folder = stack.enter_context(
            TemporaryDirectory(prefix="rewoo-bench-mcp-") if self.address.needs_folder else nullcontext("")
        )
        words, values = self.address.filled(folder)
        environment = {**plain_environment(), **values}
        process = await stack.enter_async_context(self._groups.start(words, env=environment, what="--mcp"))
        return streams_of(process, self._log)

    async def _remote(self, stack: AsyncExitStack) -> Any:
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        (url,), headers = self.address.filled("")

        def client_of(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
            client = create_mcp_http_client(headers, timeout, auth)
            client.follow_redirects = False  # a header goes to no other origin
            client.event_hooks["response"].append(self._note_refusal)
            return client

        if self.address.is_sse:
            return sse_client(url, headers, sse_read_timeout=_IDLE_S, httpx_client_factory=client_of)
        client = await stack.enter_async_context(client_of(headers))
        client.timeout.read = _IDLE_S
        return streamable_http_client(url, http_client=client)

    async def _note_refusal(self, response: Any) -> None:
        """Keeps the status of a refused request, which the SDK's errors don't name."""
        if response.status_code >= 400 and response.request.method == "POST":
            self._log.add(f"HTTP {response.status_code} {response.reason_phrase}\n".encode())

    async def _read_tools(self, client: Client) -> None:
        """Reads the tools, all pages of them; of two with one name, the first. Raises `UsageError`."""
        page = await client.list_tools()
        tools, cursors = list(page.tools), {page.next_cursor}
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            tools += page.tools
            if page.next_cursor in cursors or len(tools) > _MOST_TOOLS or not page.tools:
                raise UsageError(f"its list of tools has no end ({len(tools):,} tools in {len(cursors) + 1} pages)")
            cursors.add(page.next_cursor)
        if self.schemas:
            return
        self._mode = "legacy" if client.session.initialize_result is not None else "auto"
        if not any(tool.name for tool in tools):
            _log.warning("--mcp: %s has no tools", self.address.shown)
        for tool in tools:
            if not tool.name:
                _log.warning("--mcp: %s lists a tool without a name; it is left out", self.address.shown)
                continue
            if tool.name in self.schemas:
                _log.warning("--mcp: %s lists the tool %r twice; the first one counts", self.address.shown, tool.name)
                continue
            is_read_only = bool(tool.annotations and tool.annotations.read_only_hint)
            description, inputs = without_in([tool.description, tool.input_schema], self.address.secrets)
            schema = ToolSchema(tool.name, description, inputs, is_read_only=is_read_only)
            self.schemas[tool.name] = schema
        self.names = self.address.names_of(self.schemas)

    def _unusable(self, reason: str) -> UsageError:
        return UsageError(f"--mcp: {self.address.shown!r} can't be used: {reason}")

    def _told(self, message: str) -> str:
        return f"{self.address.shown}: {self._hidden(message)}"

    def _hidden(self, text: str) -> str:
        return redact(" ".join(text.split()), self.address.secrets)[:_LONGEST_REASON]

    def _with_lines(self, message: str) -> str:
        """The message, and the last lines that the server printed beside its messages, or its refusals."""
        lines = [line.strip() for line in self._log.text.splitlines() if line.strip()][-_LOG_LINES:]
        verb = "answered" if self.address.is_remote else "printed"
        return self._hidden(f"{message}; it {verb}: {' | '.join(dict.fromkeys(lines))}" if lines else message)

    def _reason(self, error: BaseException) -> str:
        """An error and the last lines of the server's log, as one line."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ValidationError):
            return self._hidden(f"its list of tools can't be read: {_first_of(error)}")
        if isinstance(error, UsageError):
            return self._hidden(str(error).removeprefix("--mcp: "))
        return self._with_lines(str(error).partition("\nFor more information")[0] or type(error).__name__)


def _first_of(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


# The MCP servers of a run, and those of a question.
#
#     async with McpServers() as servers:
#         await servers.connect("uvx mcp-server-time")      # reads its tools
#         async with servers.of_question() as question:
#             await question.server("uvx mcp-server-time").tool("get_current_time")(…)
#
# Each question of each architecture gets a server of its own, so that none reads what another wrote; servers whose
# tools change nothing, and those that the user calls `shared`, are asked by all.


class McpServers:
    """The servers of a run, by their addresses. A context manager, which ends them.

    `timeout_s` is that of a start, and of a call.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._groups = ProcessGroups()
        self._servers: dict[str, McpServer] = {}

    async def __aenter__(self) -> McpServers:
        await self._groups.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await _end_all(list(self._servers.values()))
        await self._groups.__aexit__()

    async def connect(self, address: str) -> McpServer:
        """The server, whose tools have been read. Raises `UsageError` where it can't be started or reached."""
        if address not in self._servers:
            server = McpServer(McpAddress.read(address), self._groups, self._timeout_s)
            self._servers[address] = server
            await server.start()
            offered = [server.schemas[remote] for remote in server.names.values()]
            server.is_shared = server.address.shared or all(schema.is_read_only for schema in offered)
            if not server.is_shared:
                await server.aclose()
        return self._servers[address]

    @asynccontextmanager
    async def of_question(self, addresses: Sequence[str] = ()) -> AsyncIterator[QuestionServers]:
        """The servers of one question. Those at `addresses` are begun at once, the others by their first call."""
        question = QuestionServers(self._servers)
        for address in addresses:
            question.server(address).begin()
        try:
            yield question
        finally:
            await _end_all(question.fresh)


class QuestionServers:
    """The servers of one question: shared ones, and fresh ones."""

    def __init__(self, described: dict[str, McpServer]) -> None:
        self._described = described
        self._fresh: dict[str, McpServer] = {}

    def server(self, address: str) -> McpServer:
        """A server that `McpServers.connect` knows."""
        described = self._described[address]
        if described.is_shared:
            return described
        if address not in self._fresh:
            self._fresh[address] = described.fresh()
        return self._fresh[address]

    @property
    def fresh(self) -> list[McpServer]:
        return list(self._fresh.values())


async def _end_all(servers: Sequence[McpServer]) -> None:
    if servers:
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for server in servers:
                    group.start_soon(server.aclose)
