"""The calls and the table of scripts/check_mcp_servers.py, on a server of the tests' own."""

from __future__ import annotations

import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the MCP SDK (pip install 'rewoo-bench[mcp]')")

ROOT = Path(__file__).parents[3]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "check_mcp_servers.py"))
COMMAND = shlex.join([sys.executable, str(ROOT / "tests" / "support" / "mcp_tools.py")])
CALLS = [
    ("population", {"city": 'Kyiv, "x" [y]', "year": 3}),
    ("population", {"city": "Kyiv"}),
    ("nothing", {}),
    ("read-variable", {"name": "a, b"}),
    ("fails", {"city": "Kyiv"}),
    ("huge", {"size": 3}),
    ("dies", {"city": "Kyiv"}),
]


@pytest.mark.by_day(1)
@pytest.mark.anyio
@pytest.mark.parametrize("architecture", ["rewoo", "rewoo-json", "react", "react-native"])
async def test_each_architecture_reaches_the_server_with_every_call(architecture: str) -> None:
    outcomes = await SCRIPT["check"]("own", SCRIPT["Server"](COMMAND, CALLS), architecture)
    assert [outcome.said for outcome in outcomes[:4]] == [
        'Kyiv, "x" [y] had 3000 people in 3.',
        "Kyiv had 2020000 people in 2020.",
        "nothing was given",
        "not set",
    ]
    assert [outcome.what for outcome in outcomes[4:]] == ["refused by the server", "answered", "refused by the server"]
    assert SCRIPT["table"](outcomes).endswith(f"| {architecture} | 1 | 6 | 7 | 5 | 2 | 0 |")
