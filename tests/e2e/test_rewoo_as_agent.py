"""ReWOO as an external agent, which makes the runner's requests through the gateway, costs what the runner costs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
from answering import asked_about
from command_runs import quiet
from gateway_runs import rows, write_agent, write_questions
from model_server import ModelServer
from pydantic import BaseModel

from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.tools.search import SearchArguments

pytestmark = pytest.mark.usefixtures("own_folder")
ARCHITECTURE = "rewoo?tools=Search"
SAME = ["prediction", "stop_reason", "llm_calls", "tool_calls", "input_tokens", "output_tokens", "billed_tokens"]
Call = Callable[..., Coroutine[Any, Any, str]]


class Through:
    """A tool of the question, called as the agent was given it."""

    name = "Search"
    arguments: type[BaseModel] = SearchArguments

    def __init__(self, call: Call) -> None:
        self.description = call.__doc__ or ""
        self._call = call

    async def __call__(self, arguments: Any) -> str:
        return await self._call(**arguments.model_dump())


async def rewoo(question: str, *, base_url: str, api_key: str, model: str, tools: Mapping[str, Call]) -> str:
    """ReWOO's own runner, whose model is the gateway."""
    hosted = HostedModel(f"openai/{model}", ModelSettings(api_base=base_url), api_key=api_key)
    runner = load_architecture(ARCHITECTURE, style="multihop").runner
    try:
        trajectory = await runner.run(question, model=hosted, tools={"Search": Through(tools["Search"])})
    finally:
        await hosted.aclose()
    return trajectory.answer or ""


def answer(request: dict[str, Any]) -> str:
    """A plan of two searches, then an answer."""
    name = asked_about(request)
    if "Evidence" in str(request["messages"][-1]["content"]):
        return f"Thought: known\nAnswer: the river of {name}"
    return f"Plan: find it\n#E1 = Search[Kyiv {name}]\nPlan: find the rest\n#E2 = Search[Oslo {name}]"


def test_rewoo_costs_the_same_as_a_runner_and_as_an_external_agent() -> None:
    agent = write_agent("rewoo-outside", callable="test_rewoo_as_agent:rewoo")
    with ModelServer(answer) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--out", "out")
        asked = ("--dataset", write_questions(6).absolute())
        assert quiet("--arch", ARCHITECTURE, "--arch", agent.absolute(), *model, *asked) == 0
        sent = [entry.request for entry in server.books]
    inside, outside = (
        found.sort_values("example_id")[SAME].reset_index(drop=True)
        for _, found in rows().groupby(rows().architecture == "rewoo-outside")
    )
    assert inside.equals(outside), f"{inside}\n{outside}"
    assert set(inside.stop_reason) == {"answered"}
    assert (inside.tool_calls == 2).all()
    assert set(Counter(json.dumps(request["messages"]) for request in sent).values()) == {2}
