"""The MCP servers of a run, and those of a question.

    async with McpServers() as servers:
        await servers.connect("uvx mcp-server-time")      # reads its tools
        async with servers.of_question() as question:
            await question.server("uvx mcp-server-time").tool("get_current_time")(…)

Each question of each architecture gets a server of its own, so that none reads what another wrote; servers whose
tools change nothing, and those that the user calls `shared`, are asked by all. `tools.mcp_client` has a server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from rewoo_bench.errors import UsageError
from rewoo_bench.system.processes import ProcessGroups
from rewoo_bench.tools.mcp import McpAddress

if TYPE_CHECKING:
    from rewoo_bench.tools.mcp_client import McpServer

TIMEOUT_S = 60.0  # a server may have to be downloaded first


class McpServers:
    """The servers of a run, by their addresses. A context manager, which ends them.

    `timeout_s` is that of a start, and of a call.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._groups = ProcessGroups()
        self._servers: dict[str, McpServer] = {}  # which no question calls unless they are shared

    async def __aenter__(self) -> McpServers:
        await self._groups.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await _end_all(list(self._servers.values()))
        await self._groups.__aexit__()

    async def connect(self, address: str) -> McpServer:
        """The server, whose tools have been read. Raises `UsageError` where it can't be started or reached."""
        try:
            from rewoo_bench.tools.mcp_client import McpServer  # the SDK is an extra, and takes half a second
        except ModuleNotFoundError:
            raise UsageError("--mcp needs the MCP SDK: pip install 'rewoo-bench[mcp]'") from None
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
            await _end_all([*question.fresh.values()])


class QuestionServers:
    """The servers of one question: shared ones, and `fresh` ones."""

    def __init__(self, described: dict[str, McpServer]) -> None:
        self._described = described
        self.fresh: dict[str, McpServer] = {}

    def server(self, address: str) -> McpServer:
        """A server that `McpServers.connect` knows."""
        described = self._described[address]
        return described if described.is_shared else self.fresh.setdefault(address, described.fresh())


async def _end_all(servers: Sequence[McpServer]) -> None:
    if servers:
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for server in servers:
                    group.start_soon(server.aclose)
