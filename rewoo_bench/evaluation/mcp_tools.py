"""Tools of MCP servers in the architectures of a run: those of `--mcp`, and of `[tools.X] mcp = …`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.redaction import hide_credentials
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.react import FINISH
from rewoo_bench.tools.mcp_servers import McpServers


async def with_mcp_tools(
    architectures: Sequence[Architecture], addresses: Sequence[str], servers: McpServers
) -> list[Architecture]:
    """The architectures with these tools, their servers connected. One without tools stays as it is.

    Raises `UsageError` for a server that can't be used, and for two tools of one name.
    """
    added = [(address, *names) for address in addresses for names in (await servers.connect(address)).names.items()]
    return [await _with_tools(each, added, servers) if each.spec.tools else each for each in architectures]


async def _with_tools(
    architecture: Architecture, added: Sequence[tuple[str, str, str]], servers: McpServers
) -> Architecture:
    tools = {
        name: await _checked(name, settings, servers, architecture.name) if settings.mcp else settings
        for name, settings in architecture.spec.tools.items()
    }
    for address, name, remote in added:
        if name in tools or name.lower() == FINISH.lower():
            taken = "has a tool" if name in tools else "has an action"
            shown = hide_credentials(address)
            raise UsageError(
                f"--mcp: {architecture.name!r} {taken} {name!r} already; give this server's tools a prefix: "
                f"--mcp '[prefix=other] {shown}', or choose some of them: [only=NAME,NAME]"
            )
        settings = ToolSettings(mcp=address, mcp_tool=remote)
        tools[name] = await _checked(name, settings, servers, architecture.name)
    return replace(architecture, spec=architecture.spec.model_copy(update={"tools": tools}))


async def _checked(name: str, settings: ToolSettings, servers: McpServers, architecture: str) -> ToolSettings:
    """The settings with the hash of the server's description. Raises `UsageError` for a tool that it doesn't have."""
    assert settings.mcp is not None
    server = await servers.connect(settings.mcp)
    remote = settings.mcp_tool or name
    if remote not in server.schemas:
        raise UsageError(
            f"architecture {architecture!r}: [tools.{name}]: {unknown('MCP tool', remote, server.schemas)}"
        )
    return settings.model_copy(update={"schema_sha256": server.schemas[remote].sha256})
