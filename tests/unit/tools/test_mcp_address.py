"""The notation of an MCP server."""

from __future__ import annotations

import pytest

from rewoo_bench.errors import UsageError
from rewoo_bench.tools.mcp import McpAddress


@pytest.mark.parametrize("header", ["Authorization", "authorization"])
def test_a_user_in_an_address_replaces_no_header_in_silence(header: str) -> None:
    with pytest.raises(UsageError) as raised:
        McpAddress.read(f"{header}=$TOKEN http://me:hunter22@127.0.0.1/mcp")
    assert str(raised.value) == (
        "--mcp: 'http://***@127.0.0.1/mcp' has a user, and the header Authorization is given, too; leave one out"
    )
    assert McpAddress.read("X-Team=a http://me:hunter22@127.0.0.1/mcp").is_remote
