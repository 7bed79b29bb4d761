"""What an agent writes into a request is never an order to the harness: not where the key goes, nor what is answered.

litellm, which translates the dialects that a provider doesn't speak, takes a request as keyword arguments among its own
for the address, the key, the provider, mock answers and retries.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from dialect_server import DialectServer
from gateway_runs import check_books, rows, run_agents, traces, write_program
from open_questions import OpenQuestion, open_question

from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.dialects import CHAT, COMPLETIONS, EMBEDDINGS, MESSAGES, RESPONSES
from rewoo_bench.models.hosted.wire import FIELDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("own_folder"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),  # of litellm, by pydantic
]
KEY = "the-providers-key-7f3a"
ASKED = [{"role": "user", "content": "Which river is q01?"}]
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": ASKED},
    COMPLETIONS: {"prompt": "Which river is q01?"},
    RESPONSES: {"input": "Which river is q01?"},
    MESSAGES: {"messages": ASKED, "max_tokens": 64},
    EMBEDDINGS: {"input": "Which river is q01?"},
}
FUNCTIONS = (
    "acompletion", "completion", "atext_completion", "text_completion", "aresponses", "responses", "anthropic_messages",
    "aembedding", "embedding",
)  # fmt: skip
# Read by litellm from its **kwargs, and in none of its lists.
UNLISTED = (
    "fallbacks", "mock_tool_calls", "drop_params", "proxy_url", "organization", "callbacks", "hooks", "headers",
    "user_config", "aws_access_key_id", "aws_bedrock_runtime_endpoint", "vertex_project", "vertex_credentials",
)  # fmt: skip


def keywords(*, listed: bool) -> list[str]:
    """litellm's keywords: those of its functions, and with `listed` those that it reads from **kwargs.

    Without one that the gateway refuses, as a field of OpenAI's Responses.
    """
    litellm = providers.load_litellm()
    named = {name for each in FUNCTIONS for name in inspect.signature(getattr(litellm, each)).parameters}
    named -= {"previous_response_id"}
    return sorted(named | {*litellm.types.utils.all_litellm_params, *UNLISTED} if listed else named)


def value_of(name: str, thief: str) -> Any:
    """What an agent would send to have a keyword obeyed."""
    if name.startswith("mock"):
        return "an answer of nobody"
    if name == "model_list":
        return [{"model_name": "x", "litellm_params": {"model": "openai/x", "api_base": thief, "api_key": "k"}}]
    if name.endswith(("provider", "_model")):
        return "openai"
    nested = {"api_base": thief, "base_url": thief, "x-base-url": thief, "mock_response": "an answer of nobody"}
    return nested if name.startswith(("extra_", "headers", "metadata", "litellm_", "user_config")) else thief


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[DialectServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "another-providers-key-55")
    with DialectServer() as server:
        yield server


@pytest.fixture
def thief() -> Iterator[DialectServer]:
    with DialectServer() as server:
        yield server


async def post(asked: OpenQuestion, path: str, **fields: Any) -> httpx.Response:
    async with httpx.AsyncClient(timeout=120) as web:
        body = {"model": "x", **BODIES[path], **fields}
        return await web.post(f"{asked.base_url}{path}", content=json.dumps(body))


def booked(asked: OpenQuestion) -> int:
    return sum(call.call_cost.billed.total_tokens for call in asked.meter.calls if call.call_cost is not None)


def check(asked: OpenQuestion, provider: DialectServer, thief: DialectServer, calls: int) -> None:
    assert thief.books == []
    assert len(provider.books) == len(asked.meter.calls) == calls
    assert {entry.headers["authorization"] for entry in provider.books} == {f"Bearer {KEY}"}
    assert booked(asked) == provider.total


@pytest.mark.parametrize("path", BODIES)
async def test_nor_are_all_of_them_at_once(path: str, provider: DialectServer, thief: DialectServer) -> None:
    every = {name: value_of(name, thief.api_base) for name in keywords(listed=True) if name not in FIELDS[path]}
    async with open_question(provider.api_base, "hosted_vllm/x", api_key=KEY, embedding_name="x") as asked:
        answer = await post(asked, path, **every)
    assert answer.status_code == 200, answer.text
    check(asked, provider, thief, 1)


@pytest.mark.parametrize("path", BODIES)
async def test_a_provider_that_speaks_the_dialect_gets_every_field_and_keeps_its_address(
    path: str, provider: DialectServer, thief: DialectServer
) -> None:
    fields = frozenset().union(*FIELDS.values())
    every = {name: value_of(name, thief.api_base) for name in keywords(listed=True) if name not in fields}
    headers = dict.fromkeys(("X-Api-Base", "X-Forwarded-Host", "X-Portkey-Custom-Host", "Location"), thief.api_base)
    name = "anthropic/claude-x" if path == MESSAGES else "openai/x"
    async with (
        open_question(provider.api_base, name, api_key=KEY, embedding_name="x") as asked,
        httpx.AsyncClient(timeout=60) as web,
    ):
        body = json.dumps({**every, **BODIES[path], "model": "x"})
        answer = await web.post(f"{asked.base_url}{path}", content=body, headers={**headers, "Host": "evil.example"})
    assert answer.status_code == 200
    assert thief.books == []
    (entry,) = provider.books
    assert entry.body["base_url"] == thief.api_base
    assert KEY in (entry.headers.get("x-api-key"), entry.headers.get("authorization", "").removeprefix("Bearer "))
    assert "evil.example" not in str(entry.headers)


AGENT = """
import json, os, sys, urllib.request
question = sys.stdin.read()
body = {"model": "x", "messages": [{"role": "user", "content": question}], "api_base": "THIEF", "base_url": "THIEF",
        "api_key": "k", "timeout": 1, "custom_llm_provider": "openai", "mock_response": "nobody",
        "extra_body": {"a": 1}}
url, key = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["OPENAI_API_KEY"]
asked = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": "Bearer " + key})
print(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"])
"""


def test_an_agent_with_orders_in_its_requests_is_measured_as_any_other(
    provider: DialectServer, thief: DialectServer
) -> None:
    agent = write_program("orders", AGENT.replace("THIEF", thief.api_base))
    assert run_agents(provider, [agent], "--model", "hosted_vllm/x", questions=3) == 0
    assert set(rows().stop_reason) == {"answered"}
    assert [list(flags) for flags in rows()["flags"]] == [["dropped_fields"]] * 3
    assert thief.books == []
    check_books(provider)
    dropped = {"api_base", "base_url", "api_key", "timeout", "custom_llm_provider", "mock_response", "extra_body"}
    for trace in traces():
        assert {f"dropped the field {name}" for name in dropped} <= trace["notes"]["gateway"].keys()
