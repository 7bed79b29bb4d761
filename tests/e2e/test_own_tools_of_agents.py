"""An agent's own tools are rows and steps, read from the wire; a tool of the question isn't counted twice."""

from __future__ import annotations

import json
from typing import Any

import openai.resources  # noqa: F401 - the SDK imports its parts on first use
import pytest
from command_runs import quiet
from gateway_runs import calls, rows, traces, write_agent, write_questions
from model_server import ModelServer, ServerReply
from openai import OpenAI

from rewoo_bench.types import ToolCall

pytestmark = pytest.mark.usefixtures("own_folder")


def agent(question: str, *, base_url: str, api_key: str, model: str, tools: Any) -> str:
    """Makes the calls that its model asks for: of `clock`, which is its own, and of the question's Search."""
    messages: list[Any] = [{"role": "user", "content": question}]
    with OpenAI(base_url=base_url, api_key=api_key) as client:
        while True:
            said = client.chat.completions.create(model=model, messages=messages).choices[0].message
            if not said.tool_calls:
                return said.content or ""
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                assert call.type == "function"
                arguments = json.loads(call.function.arguments)
                result = "noon" if call.function.name == "clock" else tools["Search"](**arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def reply(request: dict[str, Any]) -> ServerReply | str:
    """Both tools at once, then the clock again, then an answer."""
    turn: int = sum(message["role"] == "assistant" for message in request["messages"])
    clock, search = ToolCall("a", "clock", {"zone": "UTC"}), ToolCall("b", "Search", {"query": "Kyiv"})
    replies: list[ServerReply | str] = [
        ServerReply("I need both.", tool_calls=(clock, search)),
        ServerReply("Once more.", tool_calls=(clock,)),
        "the river",
    ]
    return replies[turn]


def test_own_tools_are_counted_once_with_their_words_arguments_and_results() -> None:
    folder = write_agent("own", callable="test_own_tools_of_agents:agent")
    with ModelServer(reply) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--out", "out")
        assert quiet("--arch", folder.absolute(), *model, "--dataset", write_questions(1).absolute()) == 0
    (row,) = rows().to_dict("records")
    assert (row["llm_calls"], row["tool_calls"], row["steps"]) == (3, 3, 3)
    of_tools = calls()[calls().kind == "tool"]
    assert sorted(zip(of_tools.name, of_tools.role, of_tools.status, strict=True)) == [
        ("Search", "tool", "ok"),
        ("clock", "wire", "ok"),
        ("clock", "wire", "ok"),
    ]
    ((search, first, second),) = (trace["steps"] for trace in traces())
    assert (search["tool"], search["thought"], search["argument"]) == ("Search", "I need both.", "Kyiv")
    assert (first["tool"], first["argument"], first["observation"]) == ("clock", "UTC", "noon")
    assert (second["tool"], second["thought"], second["observation"]) == ("clock", "Once more.", "noon")


def stubborn(question: str, *, base_url: str, api_key: str, model: str, tools: Any) -> str:
    """Takes a refused tool call for a result, and asks its model on."""

    def search(query: str) -> Any:
        try:
            return tools["Search"](query=query)
        except Exception as error:
            return f"Server returned an error: {error}"

    return agent(question, base_url=base_url, api_key=api_key, model=model, tools={"Search": search})


def test_a_tool_call_that_a_limit_refused_is_none_of_the_agents_own() -> None:
    folder = write_agent("stubborn", callable="test_own_tools_of_agents:stubborn")
    again = ServerReply("", tool_calls=(ToolCall("a", "Search", {"query": "Kyiv"}),))
    with ModelServer(lambda request: again) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--question-tokens", 400, "--out", "out")
        assert quiet("--arch", folder.absolute(), *model, "--dataset", write_questions(1).absolute()) == 1
    (row,) = rows().to_dict("records")
    assert row["stop_reason"] == "token_limit"
    assert row["tool_calls"] == row["llm_calls"] - 1 > 3
    assert set(calls().query("kind == 'tool'")["role"]) == {"tool"}
    assert row["loop_step"] == 2


def enough(question: str, *, base_url: str, api_key: str, model: str, tools: Any) -> str:
    """Gives up when the model has asked for a call four times."""
    messages: list[Any] = [{"role": "user", "content": question}]
    with OpenAI(base_url=base_url, api_key=api_key) as client:
        for _ in range(4):
            said = client.chat.completions.create(model=model, messages=messages).choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "noon"} for call in said.tool_calls or ()]
    return ""


@pytest.mark.parametrize("asks_tool", [True, False])
def test_an_agent_whose_model_repeats_itself_is_in_a_loop(asks_tool: bool) -> None:
    """By its own tools' calls, of which the last one gets no result, or by its replies."""

    def again(request: dict[str, Any]) -> ServerReply | str:
        number = len(request["messages"])
        same = ServerReply("Which hour?", tool_calls=(ToolCall(f"{number}", "clock", {"zone": "UTC"}),))
        return same if asks_tool else "I think."

    folder = write_agent("loops", callable="test_own_tools_of_agents:enough")
    with ModelServer(again) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--out", "out")
        assert quiet("--arch", folder.absolute(), *model, "--dataset", write_questions(1).absolute()) == 1
    of_model = calls()[calls().kind == "model"]
    (row,) = rows().to_dict("records")
    assert (row["stop_reason"], row["loop_step"]) == ("empty_answer", 2)
    assert row["loop_tokens"] == (of_model.input_tokens + of_model.output_tokens).iloc[1:].sum()
