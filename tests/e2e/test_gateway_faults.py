"""External agents whose provider fails, and whose clients give up: everything is paid, counted and noted once."""

from __future__ import annotations

import anyio
import httpx
import pytest
from aiohttp import web
from dialect_server import DialectServer, Entry, Fault
from gateway_runs import calls, check_books, rows, run_agents, traces, write_function
from gateway_settings import EACH_WAY, with_settings
from open_questions import open_question
from web_server import serving_app

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]
FAULTS: list[Fault | None] = ["429", "500", "cut", "slow", "error body", "error first", None, "429"]
STREAMED = tuple(name for name in EACH_WAY if name.endswith("_streamed"))


def first_time(faults: list[Fault | None]) -> DialectServer:
    """A provider that fails at the first of equal requests, in another way for each question."""

    def fault(entry: Entry, nth: int) -> Fault | None:
        return faults[int(min(entry.names)[1:]) % len(faults)] if nth == 0 else None

    return DialectServer(fault)


def test_a_fault_is_tried_again_and_paid_once() -> None:
    with first_time(FAULTS) as provider:
        assert run_agents(provider, [write_function(name) for name in EACH_WAY], "--concurrency", 16) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    check_books(provider)
    assert set(rows().llm_calls) == {1}
    assert len(calls()) + rows().retries.sum() == len(provider.books)


def test_a_client_that_gives_up_and_asks_again_gets_the_answer_that_is_on_its_way() -> None:
    names = ("chat", "responses", "messages", "chat_streamed", "messages_streamed")
    with first_time(["slow"]) as provider, with_settings(timeout_s=4):
        provider.slow_s = 6.0  # so long that a busy machine makes no third attempt of the second
        assert run_agents(provider, [write_function(name) for name in names], "--concurrency", 20, questions=4) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert len(provider.books) == 4 * len(names)
    assert set(rows().llm_calls) == {1}
    check_books(provider)
    notes = [trace["notes"]["gateway"] for trace in traces()]
    assert all(note["second_attempts"] == note["clients_that_hung_up"] == 1 for note in notes), notes


STREAM = b'data: {"choices": [{"index": 0, "delta": {"content": "Neva"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


async def ends_late(request: web.Request) -> web.StreamResponse:
    """A provider whose connection ends some time after the last event of its stream."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(STREAM)
    await anyio.sleep(0.3)
    return response


@pytest.mark.anyio
async def test_a_client_that_closes_at_the_last_event_has_its_answer_and_may_ask_the_same_again() -> None:
    asking = {"model": "gpt-x", "stream": True, "messages": [{"role": "user", "content": "Which river?"}]}
    async with serving_app(ends_late) as address, open_question(f"{address}/v1") as question:
        for _ in range(2):
            async with (
                httpx.AsyncClient(timeout=30) as client,
                client.stream("POST", f"{question.base_url}/chat/completions", json=asking) as response,
            ):
                await anext(line async for line in response.aiter_lines() if line == "data: [DONE]")
        await anyio.sleep(1.0)
    assert len(question.meter.calls) == 2
    assert not question.session.notes


@pytest.mark.parametrize("fault", ["cut stream", "error event", "quiet end"])
def test_a_stream_that_breaks_off_is_an_error_for_the_client_and_billed_as_far_as_it_was_sent(fault: Fault) -> None:
    """OpenAI sends the usage at the end, so that the prompt of a broken stream can only be estimated."""
    with first_time([fault]) as provider, with_settings(max_retries=0):
        run_agents(provider, [write_function(name) for name in STREAMED], questions=2)
    found = rows()
    assert set(found.stop_reason) == {"error"}
    assert found.error.notna().all()
    assert len(provider.books) == len(found) == len(calls())
    assert set(calls().status) == {"error"}
    assert (found.billed_tokens > 10).all()
    messages = found[found.architecture == "messages-streamed"].groupby("example_id").billed_tokens.sum()
    for name, billed in messages.items():
        (entry,) = (entry for entry in provider.of(str(name)) if entry.path == "/messages")
        assert billed == entry.tokens.total
        assert entry.tokens.output == 3


def test_a_provider_that_refuses_the_key_ends_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    def fault(entry: Entry, nth: int) -> Fault | None:
        return "refused"

    with DialectServer(fault) as provider:
        assert run_agents(provider, [write_function("asks_for_ever")], "--concurrency", 1, questions=4) != 0
    assert "401" in capfd.readouterr().err
