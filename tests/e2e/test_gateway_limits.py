"""Limits of external agents, requests that belong to no question, and the question's tools over MCP."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from anthropic import AsyncAnthropic, AuthenticationError
from command_runs import quiet
from dialect_server import DialectServer
from gateway_runs import check_books, rows, run_agents, write_function
from gateway_settings import with_settings
from mcp import Client, MCPError
from openai import AsyncOpenAI, RateLimitError
from parts import Told

from rewoo_bench.agents.gateway import Gateway
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.calls.meter import Limits, Meter
from rewoo_bench.errors import ToolError
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings

ASK = [{"role": "user", "content": "Which river is q00?"}]


@asynccontextmanager
async def question(
    gateway: Gateway, provider: DialectServer, limits: Limits | None = None
) -> AsyncIterator[tuple[AgentSession, Meter]]:
    """An open question with a tool, and its meter."""
    model = HostedModel("openai/gpt-x", ModelSettings(api_base=provider.api_base), api_key="k")
    meter = Meter({"": model}, limits)

    def page(query: str) -> str:
        if query == "Atlantis":
            raise ToolError("no such page")
        return f"page of {query}"

    tools = meter.wrap({"Search": Told(page)})
    with gateway.open_session(meter, tools) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(session.serve)
            yield session, meter
            group.cancel_scope.cancel()
    await model.aclose()


@pytest.mark.usefixtures("own_folder")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_cap_of_a_run_holds_for_agents_and_a_resumed_run_ends_like_an_unbroken_one() -> None:
    flags = ("--concurrency", 4)
    with DialectServer() as provider, with_settings(calls=3):
        assert run_agents(provider, [write_function("chat")], *flags, "--run-tokens", 9000, questions=6) == 3
        assert provider.total < 9000 + 1100
        assert quiet("--resume", "out", "--run-tokens", "none") == 0
        assert set(rows().stop_reason) == {"answered"}
        assert set(rows().llm_calls) == {3}
        check_books(provider)
        assert len(provider.books) == 18


@pytest.mark.anyio
async def test_a_limit_is_an_error_in_the_dialects_own_form() -> None:
    with DialectServer() as provider:
        async with Gateway("gpt-x") as gateway, question(gateway, provider, Limits(tokens=1000)) as (session, _):
            address = gateway.address(session)
            async with AsyncOpenAI(base_url=f"{address}/v1", api_key="any") as client:
                await client.completions.create(model="gpt-x", prompt="Which river is q00?")
                with pytest.raises(RateLimitError, match="a limit of this question is reached: used 1") as limited:
                    await client.completions.create(model="gpt-x", prompt="Which river is q00?")
            async with httpx.AsyncClient() as web:
                refused = await web.post(f"{address}/v1/messages", json={"model": "gpt-x", "messages": ASK})
    assert limited.value.type == "rate_limit_error"
    assert refused.status_code == 429
    assert refused.json()["type"] == "error"
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert len(provider.books) == 1


@pytest.mark.anyio
async def test_a_request_without_the_key_of_an_open_question_is_refused_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DialectServer() as provider:
        async with Gateway("gpt-x") as gateway, httpx.AsyncClient() as web:
            async with question(gateway, provider) as (session, _):
                address, root = gateway.address(session), gateway.address(session).partition("/q/")[0]
                unknown = await web.post(f"{address}/v1/audio/speech", json={})
                async with AsyncAnthropic(base_url=root, api_key="q-unknown", max_retries=0) as stranger:
                    with pytest.raises(AuthenticationError, match="the key of no open question"):
                        await stranger.messages.count_tokens(model="gpt-x", messages=[{"role": "user", "content": "?"}])
                async with AsyncAnthropic(base_url=root, api_key=session.key, max_retries=0) as known:
                    await known.messages.count_tokens(model="gpt-x", messages=[{"role": "user", "content": "q00"}])
            answers = [await web.post(f"{each}/v1/chat/completions", json={}) for each in (root, address, address)]
    assert unknown.status_code == 404
    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert answers[0].json()["error"]["type"] == "authentication_error"
    assert gateway.refused == Counter({"/chat/completions": 3, "/messages/count_tokens": 1})
    assert sum("/chat/completions" in record.message for record in caplog.records) == 1
    assert len(provider.books) == 1


@pytest.mark.anyio
async def test_the_tools_of_a_question_are_called_over_mcp() -> None:
    with DialectServer() as provider:
        async with (
            Gateway("gpt-x") as gateway,
            question(gateway, provider) as (session, meter),
            Client(gateway.environment(session)["REWOO_BENCH_MCP_URL"]) as client,
        ):
            (tool,) = (await client.list_tools()).tools
            good = await client.call_tool("Search", {"query": "Kyiv"})
            bad = await client.call_tool("Search", {"query": "Atlantis"})
            unfit = await client.call_tool("Search", {"year": "1"})
            with pytest.raises(MCPError, match="no tool 'Nothing'"):
                await client.call_tool("Nothing", {})
    assert (tool.name, list(tool.input_schema["properties"])) == ("Search", ["query"])
    assert (good.is_error, good.content[0].type, getattr(good.content[0], "text", "")) == (
        False,
        "text",
        "page of Kyiv",
    )
    assert bad.is_error
    assert unfit.is_error
    assert [(step.tool, step.failed) for step in session.steps] == [
        ("Search", False),
        ("Search", True),
        ("Search", True),
    ]
    assert [call.status for call in meter.calls] == ["ok", "error"]


@pytest.mark.anyio
async def test_a_warning_of_a_refused_request_has_no_key(caplog: pytest.LogCaptureFixture) -> None:
    with DialectServer() as provider:
        async with Gateway("gpt-x") as gateway, question(gateway, provider) as (session, _):
            root = gateway.address(session).partition("/q/")[0]
            async with httpx.AsyncClient() as web:
                refused = await web.get(f"{root}//evil.com/q/{session.key}/v1/models")
    assert refused.status_code == 401
    assert session.key not in caplog.text + str(gateway.refused)
    assert "[key]" in caplog.text
