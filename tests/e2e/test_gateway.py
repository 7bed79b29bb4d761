"""External agents with real clients: the books of a run equal those of its provider, to the token."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from answering import KEY
from command_runs import quiet
from dialect_server import DialectServer, Entry, Fault
from gateway_runs import calls, check_books, rows, run_agents, traces, write_function, write_questions
from gateway_settings import FORMS, with_settings

pytestmark = [
    pytest.mark.usefixtures("own_folder"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),  # of litellm, by pydantic
]


@pytest.mark.slow
def test_each_dialect_is_counted_to_the_token_and_its_replay_is_the_same() -> None:
    agents = [write_function(name) for name in FORMS]
    with DialectServer() as provider, with_settings(calls=2):
        assert run_agents(provider, agents, "--concurrency", 16, questions=4) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert all(str(row.prediction).startswith(f"the river of {row.example_id}") for row in rows().itertuples())
    check_books(provider)
    assert len(provider.books) == 4 * 2 * len(FORMS) == rows().llm_calls.sum()
    assert set(calls().usage_source) == {"provider"}
    cached = sum(entry.tokens.cached for entry in provider.books)
    assert rows().cached_input_tokens.sum() == cached > 0
    assert {entry.headers["authorization"] for entry in provider.books} == {f"Bearer {KEY}"}
    translated = {trace["architecture"] for trace in traces() if "translated" in trace["notes"].get("gateway", {})}
    assert translated == {"gemini", "gemini-streamed"}
    for file in (file for file in Path("out").rglob("*") if file.is_file()):
        assert KEY.encode() not in file.read_bytes(), file
    names = [word for agent in agents for word in ("--arch", agent.absolute())]
    with with_settings(calls=2):
        dataset = ("--dataset", write_questions(4).absolute())
        assert quiet(*names, *dataset, "--model", "replay/out", "--out", "again") == 0
    assert list(rows("again").prediction) == list(rows().prediction)
    assert list(rows("again").total_tokens) == list(rows().total_tokens)


@pytest.mark.parametrize("name", ["chat_streamed", "responses_streamed", "messages_streamed"])
def test_a_stream_arrives_while_it_is_made(name: str) -> None:
    """The provider holds each stream back behind its first event until the client has it."""
    arrived: set[str] = set()

    def may_go_on(entry: Entry) -> bool:
        return entry.names <= arrived

    started = time.monotonic()
    with (
        DialectServer(may_go_on=may_go_on) as provider,
        with_settings(on_event=lambda question, event: arrived.add(question[-4:-1])),
    ):
        assert run_agents(provider, [write_function(name)], questions=4) == 0
    assert time.monotonic() - started < 15  # the provider itself goes on after 20 s
    check_books(provider)


@pytest.mark.parametrize("asks", [False, True])
def test_only_a_client_that_asked_for_it_gets_the_usage(asks: bool) -> None:
    counted: list[object] = []
    settings = {"include_usage": asks, "on_event": lambda question, chunk: counted.append(chunk.usage)}
    with DialectServer() as provider, with_settings(**settings):
        assert run_agents(provider, [write_function("chat_streamed")], questions=1) == 0
    assert [entry.body["stream_options"] for entry in provider.books] == [{"include_usage": True}]
    assert bool([usage for usage in counted if usage]) == asks
    check_books(provider)


def test_requests_that_generate_nothing_are_no_llm_calls() -> None:
    with DialectServer() as provider:
        embedding = ("--embedding-model", "openai/embed-x")
        assert run_agents(provider, [write_function("everything")], *embedding, questions=3) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert set(rows().llm_calls) == {5}
    assert set(calls().role) == {"agent", "embedding", "count"}
    check_books(provider)


def test_the_same_request_twice_is_two_samples() -> None:
    """With a client for each, so that the first one's connection is closed before the second request."""
    with DialectServer() as provider:
        assert run_agents(provider, [write_function("same_again")], questions=4) == 0
    assert len(provider.books) == rows().llm_calls.sum() == 8
    check_books(provider)


def test_a_provider_without_a_dialect_is_asked_in_the_one_it_has() -> None:
    def fault(entry: Entry, nth: int) -> Fault | None:
        return "missing" if entry.path in ("/messages", "/responses") else None

    agents = [write_function(name) for name in ("messages", "messages_streamed", "responses", "responses_streamed")]
    with DialectServer(fault) as earlier:  # in an event loop of its own, whose connections can't be used again
        assert run_agents(earlier, agents[:1], "--out", "earlier", questions=1) == 0
    with DialectServer(fault) as provider:
        assert run_agents(provider, agents, questions=2) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert {entry.path for entry in provider.books if entry.status == 200} == {"/chat/completions"}
    assert all(trace["notes"]["gateway"]["translated"] == 1 for trace in traces())
    check_books(provider)


def test_a_translated_call_has_the_providers_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with DialectServer() as provider:
        flags = ("--model", "anthropic/claude-x", "--api-base", provider.root)
        assert run_agents(provider, [write_function("chat")], *flags, questions=2) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert all(trace["notes"]["gateway"]["translated"] == 1 for trace in traces())
    assert {entry.headers["x-api-key"] for entry in provider.books} == {KEY}


@pytest.mark.parametrize("suffix", ["", "/v1"])
def test_anthropics_own_api_gets_its_key_in_its_own_header(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with DialectServer() as provider:
        flags = ("--model", "anthropic/claude-x", "--api-base", provider.root + suffix)
        assert run_agents(provider, [write_function("messages_streamed")], *flags, questions=2) == 0
    assert {entry.headers["x-api-key"] for entry in provider.books} == {KEY}
    assert not any("authorization" in entry.headers for entry in provider.books)
    check_books(provider)


@pytest.mark.parametrize("name", ["chat", "messages_streamed"])
def test_a_key_that_the_provider_repeats_reaches_neither_the_agent_nor_a_file(name: str) -> None:
    with DialectServer() as provider:
        provider.repeats = "authorization"
        assert run_agents(provider, [write_function(name)], questions=2) == 0
    assert all("[key]" in prediction for prediction in rows().prediction)
    for file in (file for file in Path("out").rglob("*") if file.is_file()):
        assert KEY.encode() not in file.read_bytes(), file
