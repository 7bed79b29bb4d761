"""Tools of MCP servers in our own architectures: `--mcp` and `[tools.X] mcp`."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.errors import ToolError
from rewoo_bench.evaluation.inputs import read_run_inputs
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.tools.mcp_server import McpServers

if TYPE_CHECKING:
    from rewoo_bench.tools.mcp_client import McpServer

pytest.importorskip("mcp", reason="needs the MCP SDK (pip install 'rewoo-bench[mcp]')")
pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "support" / "mcp_tools.py"
COMMAND = shlex.join([sys.executable, str(SERVER)])
PLAN = (
    'Plan: ask\n#E1 = population[Kyiv]\nPlan: again\n#E2 = population[{"city": "#E1", "year": 7}]\n'
    "Plan: look\n#E3 = Search[Kyiv]"
)


@pytest.fixture
async def server() -> AsyncIterator[McpServer]:
    async with McpServers() as servers:
        yield await servers.connect(COMMAND)


async def call(server: McpServer, name: str, **arguments: Any) -> str:
    tool = server.tool(name)
    return await tool(tool.arguments(**arguments))


async def test_rewoo_plans_with_a_servers_tools() -> None:
    model = ScriptedModel([PLAN, "Answer: many"])
    (result,) = await rewoo_bench.evaluate("sample", "rewoo", model=model, questions=1, mcp=(COMMAND,))
    observations = [step.observation for step in result.trajectory.steps]
    assert observations[0] == "Kyiv had 2020000 people in 2020."
    assert observations[1] == "Kyiv had 2020000 people in 2020. had 7000 people in 7."
    prompt = model.requests[0].messages[0].content
    assert "population[city" in prompt
    assert "The number of people in a city." in prompt
    tools = [call.name for call in result.calls if call.kind == "tool"]
    assert sorted(tools) == ["Search", "population", "population"]


async def test_react_acts_with_a_servers_tools_and_an_error_is_an_observation() -> None:
    turns = [
        "Thought: a\nAction: fails[Kyiv]",
        "Thought: b\nAction: dies[Kyiv]",
        "Thought: c\nAction: population[Kyiv]",
        "Thought: d\nAction: Finish[many]",
    ]
    results = await rewoo_bench.evaluate("sample", "react", model=ScriptedModel(turns), questions=1, mcp=(COMMAND,))
    steps = results[0].trajectory.steps
    assert "Error executing tool fails" in steps[0].observation
    assert steps[0].failed
    assert steps[1].failed
    assert steps[2].observation == "Kyiv had 2020000 people in 2020."  # it was started again
    assert results[0].trajectory.answer == "many"


async def test_an_architecture_may_name_a_tool_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_architecture(tmp_path, mcp=COMMAND, mcp_tool="read-variable")
    monkeypatch.setenv("SOME_API_KEY", "top-secret-1")
    monkeypatch.setenv("PLAIN", "plain")
    turns = ["Thought: a\nAction: Read[SOME_API_KEY]", "Thought: b\nAction: Read[PLAIN]", "Action: Finish[x]"]
    (result,) = await rewoo_bench.evaluate("sample", str(folder), model=ScriptedModel(turns), questions=1)
    assert [step.observation for step in result.trajectory.steps[:2]] == ["not set", "plain"]
    folder = write_architecture(
        tmp_path / "passed", mcp=f"SOME_API_KEY=$SOME_API_KEY {COMMAND}", mcp_tool="read-variable"
    )
    (result,) = await rewoo_bench.evaluate("sample", str(folder), model=ScriptedModel(turns), questions=1)
    assert result.trajectory.steps[0].observation == "[key]"  # it was set, and is passed on to nobody


THEIRS = ["population", "read_variable", "nothing", "fails", "huge", "dies"]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (("LLM",), {"rewoo": ["LLM", *THEIRS], "react": THEIRS, "agent": THEIRS, "direct": []}),
        (("none",), {"rewoo": THEIRS, "react-native": THEIRS, "router": THEIRS, "agent": THEIRS, "direct": []}),
    ],
)
async def test_every_architecture_that_uses_tools_has_a_servers(
    tools: tuple[str, ...], expected: dict[str, list[str]]
) -> None:
    names = tuple("agent:agent=python a.py" if name == "agent" else name for name in expected)
    async with McpServers() as servers:
        inputs = await read_run_inputs(RunOptions(names, tools=tools, mcp=(COMMAND,)), servers=servers)
    assert {each.name: [*each.spec.tools] for each in inputs.architectures} == expected


def write_architecture(parent: Path, **settings: str) -> Path:
    folder = parent / "mine"
    folder.mkdir(parents=True)
    values = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
    (folder / "architecture.toml").write_text(
        f'runner = "react"\n[prompts]\nagent = "agent.txt"\n[tools.Read]\n{values}\n', encoding="utf-8"
    )
    (folder / "agent.txt").write_text("Tools:\n$tools\n", encoding="utf-8")
    return folder


async def test_the_manifest_has_the_servers_tools_and_a_resumed_run_needs_the_same(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await rewoo_bench.evaluate(
        "sample", "rewoo", model=ScriptedModel([PLAN, "Answer: many"]), questions=1, mcp=(COMMAND,), out=run
    )
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    tool = manifest["architectures"][0]["tools"]["population"]
    assert tool["mcp"] == COMMAND
    assert len(tool["schema_sha256"]) == 64
    assert manifest["options"]["mcp"] == [COMMAND]


async def test_results_of_every_kind_are_text(server: McpServer) -> None:
    assert await call(server, "nothing") == "nothing was given"
    text = await call(server, "huge", size=3_000_000)
    assert text == "x" * 1_000_000 + "\n… 2,000,000 characters left out"
    assert await call(server, "population", city="Kyiv", year=3) == "Kyiv had 3000 people in 3."
    with pytest.raises(ToolError, match="Error executing tool fails"):
        await call(server, "fails", city="Kyiv")
    with pytest.raises(ToolError):
        await call(server, "dies", city="Kyiv")
    assert await call(server, "nothing") == "nothing was given"


@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


async def test_a_server_may_be_an_address(address: str) -> None:
    async with McpServers() as servers:
        assert (
            await call(await servers.connect(address), "population", city="Kyiv") == "Kyiv had 2020000 people in 2020."
        )
