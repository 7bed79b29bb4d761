"""What tools take of each prompt in tokens, without a model and without a run.

await tool_sizes(["uvx mcp-server-time"], ["Search"])
[ToolSize(name="get_current_time", source="uvx mcp-server-time", schema=181, line=45), …]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewoo_bench.calls.meter import Meter
from rewoo_bench.config.tools import checked_tools, named_settings
from rewoo_bench.errors import UsageError
from rewoo_bench.notation.tool_forms import form
from rewoo_bench.redaction import hide_credentials
from rewoo_bench.text.prompt_parts import ToolSize, count_tool
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.tools import Calculator, DocumentPages, Lookup, Search, Wikipedia
from rewoo_bench.tools.factories import Supplies, find_factory
from rewoo_bench.tools.llm import LLM
from rewoo_bench.tools.mcp_server import TIMEOUT_S
from rewoo_bench.tools.mcp_servers import McpServers
from rewoo_bench.types import Tool

_BUNDLED = {made.name: made for made in (Search, Lookup, LLM, Calculator, Wikipedia)}


async def tool_sizes(
    mcp: Sequence[str] = (), tools: Sequence[str] = (), timeout_s: float = TIMEOUT_S
) -> list[ToolSize]:
    """The tools of MCP servers, which are started for it, and tools by name or import path; the largest first.

    Raises `UsageError` for a server that can't be used and for two tools of one name, `SpecError` for an unknown tool.
    """
    found = [_size(tool, "--tools") for tool in _named(tools)]
    async with McpServers(timeout_s) as servers:
        for address in dict.fromkeys(mcp):
            server = await servers.connect(address)
            offered = (server.tool(remote, name) for name, remote in server.names.items())
            found += [_size(tool, hide_credentials(address)) for tool in offered]
    names = [size.name for size in found]
    if twice := next((size for size in found if names.count(size.name) > 1), None):
        sources = " and ".join(repr(size.source) for size in found if size.name == twice.name)
        raise UsageError(
            f"two tools have the name {twice.name!r}, of {sources}; give one a prefix: --mcp '[prefix=other] …'"
        )
    return sorted(found, key=lambda size: (-size.schema, size.name))


def _named(names: Sequence[str]) -> Iterator[Tool]:
    supplies = Supplies((), DocumentPages(()), Meter({}))
    for given in checked_tools(names, "--tools"):
        name, settings = named_settings(given, "--tools")
        where = f"--tools: {given}"
        if factory := find_factory(name, settings, where):
            factory.check(supplies, where)
            tool = factory.tool(supplies)
            tool.name = name  # what a model reads is what it may call
            yield tool
        else:
            yield _BUNDLED[name]  # type: ignore[misc]  # a class has the three as its attributes


def _size(tool: Tool, source: str) -> ToolSize:
    line = count_tokens(f"{form(tool, 'text')}: {tool.description}")
    return ToolSize(tool.name, source, count_tool(tool), line)
