"""Requests of external agents that the provider refuses: the agent gets the provider's own reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from answering import KEY
from dialect_server import DialectServer, Entry, Fault
from gateway_runs import calls, rows, run_agents, write_function
from json_server import serving
from open_questions import open_question

from rewoo_bench.runs.manifest import read_manifest

ASK: Any = [{"role": "user", "content": "Which river is q00?"}]
REASONS: dict[str, dict[str, Any]] = {
    "context": {"type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"},
    "nothing": {},
}


@pytest.mark.anyio
@pytest.mark.parametrize("reason", REASONS)
async def test_the_reason_of_a_refusal_reaches_the_openai_sdk(reason: str) -> None:
    refused = {"message": f"maximum context length is 8, {KEY}", **REASONS[reason]}
    with serving((400, {"error": refused})) as provider:
        async with (
            open_question(provider.address, api_key=KEY) as asked,
            openai.AsyncOpenAI(base_url=asked.base_url, api_key="any") as client,
        ):
            with pytest.raises(openai.BadRequestError, match="maximum context length is 8") as raised:
                await client.chat.completions.create(model="gpt-x", messages=ASK)
    found = raised.value
    assert {"type": found.type, "param": found.param, "code": found.code} == {
        "type": "invalid_request_error",
        "param": None,
        "code": None,
        **REASONS[reason],
    }
    assert KEY not in str(found.body)


@pytest.mark.anyio
async def test_the_type_of_a_refusal_reaches_the_anthropic_sdk() -> None:
    refused = {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
    with serving((413, refused)) as provider:
        async with (
            open_question(provider.address, "anthropic/claude-x") as asked,
            anthropic.AsyncAnthropic(base_url=asked.address, api_key="any") as client,
        ):
            with pytest.raises(anthropic.APIStatusError, match="exceeds the maximum size") as raised:
                await client.messages.create(model="claude-x", max_tokens=8, messages=ASK)
    assert raised.value.status_code == 413
    assert raised.value.body["error"]["type"] == "request_too_large"  # type: ignore[index]  # the SDK says object


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(("fault", "ended"), [("unread reply", "agent_failed"), ("500", "error")])
def test_a_reply_that_the_server_cant_read_is_the_models_failure(fault: Fault, ended: str) -> None:
    with DialectServer(lambda entry, nth: fault if "q01" in entry.names else None) as provider:
        run_agents(provider, [write_function("chat")], questions=3)
    found = rows().set_index("example_id")
    assert sorted(found.stop_reason) == sorted(["answered", "answered", ended])
    assert found.exact_match.isna().sum() == (ended == "error")  # a failure of the infrastructure has no score


def without_stream_options(entry: Entry, nth: int) -> Fault | None:
    return "bad option" if "stream_options" in entry.body else None


@pytest.mark.usefixtures("own_folder")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_endpoint_that_refuses_stream_options_is_asked_without_and_its_usage_is_estimated() -> None:
    agents = [write_function("chat_streamed"), write_function("completion_streamed")]
    with DialectServer(without_stream_options) as provider:
        assert run_agents(provider, agents, "--concurrency", 1, questions=3) == 0
    found = rows()
    assert set(found.stop_reason) == {"answered"}, list(found.error.dropna())
    assert set(found.usage_source) == {"estimated"}
    assert (found.input_tokens > 0).all()
    assert (found.output_tokens > 0).all()
    assert found.retries.sum() == 1  # the endpoint is asked once; later requests are sent without
    assert len(provider.books) == len(calls()) + 1
    assert read_manifest(Path("out")).sent == {"default": {"left_out": ["stream_options"]}}
