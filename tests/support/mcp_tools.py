"""An MCP server for tests, made with the official SDK: `python mcp_tools.py [PORT]`, over pipes or over HTTP."""

from __future__ import annotations

import os
import sys

from mcp.server import MCPServer

server = MCPServer("test")


@server.tool()
def population(city: str, year: int = 2020) -> str:
    """The number of people in a city."""
    return f"{city} had {year * 1000} people in {year}."


@server.tool(name="read-variable")
def read_variable(name: str) -> str:
    """The value of a variable of the server's environment."""
    return os.environ.get(name, "not set")


@server.tool()
def nothing() -> str:
    """Takes no argument."""
    return "nothing was given"


@server.tool()
def fails(city: str) -> str:
    """Raises an error."""
    raise ValueError(f"no such city: {city}")


@server.tool()
def huge(size: int) -> str:
    """A text of that many characters."""
    return "x" * size


@server.tool()
def dies(city: str) -> str:
    """Ends the server."""
    os._exit(1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
