"""The agents in architectures/agents that need no framework: what they ask, call and answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_runs import quiet
from gateway_runs import rows, traces, write_questions
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.config.names import agents_folder
from rewoo_bench.types import ToolCall

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]
NODE = pytest.param("javascript", marks=pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js"))


def example(name: str) -> Path:
    """The agent's folder; its packages are those of the tests, so that nothing is installed."""
    folder = Path(name)
    shutil.copytree(agents_folder() / name, folder)
    shutil.copy(agents_folder() / "agent_worker.py", ".")
    spec = folder / "architecture.toml"
    spec.write_text(spec.read_text().replace('requirements = "requirements.txt"\n', ""))
    return folder


def looks_up(request: dict[str, Any]) -> ServerReply:
    """A call of a tool that doesn't exist and a search, then the search's result as the answer."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if results:
        return ServerReply(f"of {len(results)}: {results[1]}")
    calls = [ToolCall("call_1", "Nonsense", {}), ToolCall("call_2", "Search", {"query": "Kyiv"})]
    return ServerReply("", tool_calls=calls)


@pytest.mark.parametrize("name", [NODE, "mcp-client"])
def test_an_example_calls_the_questions_tools_and_counts_what_the_meter_counts(name: str) -> None:
    with ModelServer(looks_up) as provider:
        asked = ("--dataset", write_questions(2).absolute(), "--out", "out")
        model = ("--model", "openai/gpt-x", "--api-base", provider.api_base)
        assert quiet("--arch", example(name).absolute(), *model, *asked) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert all("Kyiv lies on a river." in answer for answer in rows().prediction)
    tools = {tool["function"]["name"] for tool in provider.books[0].request["tools"]}
    assert tools == {"Search", "Lookup", "Calculator"}
    own = [trace["notes"]["own_count"] for trace in traces()]
    counted = [{"input": r.input_tokens, "output": r.output_tokens, "calls": 2} for r in rows().itertuples()]
    assert json.dumps(own) == json.dumps(counted)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [NODE, "mcp-client"])
def test_an_example_that_is_refused_says_why(name: str) -> None:
    with ModelServer(lambda request: ServerFault(status=400, message="no such option")) as provider:
        asked = ("--dataset", write_questions(1).absolute(), "--out", "out", "--max-retries", 0)
        quiet("--arch", example(name).absolute(), "--model", "openai/gpt-x", "--api-base", provider.api_base, *asked)
    (error,) = rows().error
    assert "no such option" in error
