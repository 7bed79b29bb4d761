"""Endpoints that refuse parameters: every architecture runs, and only what was left out differs."""

from __future__ import annotations

import logging
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from answering import examples
from asking import ASK, Row, client, run
from endpoints import ARCHITECTURES, Strict, refusal
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.errors import ModelError
from rewoo_bench.types import Request

pytestmark = pytest.mark.anyio

REFUSED = ("stop", "temperature", "seed", "max_tokens", "response_format", "grammar")
NO_SYSTEM = ServerFault(status=400, message="Unsupported value: 'messages[0].role'", param="messages[0].role")
CHANGING = {
    "run_id",
    "started_at",
    "latency_s",
    "working_s",
    "startup_s",
    "waiting_s",
    "retries",
    "attempts",
    "call_index",
}


def fixed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without times and attempts, in an order of their own."""
    kept = [{name: value for name, value in row.items() if name not in CHANGING} for row in rows]
    return sorted(kept, key=lambda row: (row["architecture"], row["example_id"], str(row.get("place")), str(row)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
async def test_every_architecture_gives_the_rows_of_a_lenient_endpoint(architecture: str, tmp_path: Path) -> None:
    found: list[tuple[list[Row], list[Row], int]] = []
    for strict in (Strict(), Strict(REFUSED, no_system=NO_SYSTEM, trailing="\nObservation: x\nQuestion: y\nStep: z")):
        fixed_usage = Strict(strict.refuses, no_system=strict.no_system, trailing=strict.trailing)
        with ModelServer(fixed_usage) as server:
            rows, calls = await run(tmp_path / str(len(found)), server, examples(3), [architecture])
            refused = [entry for entry in server.books if entry.status == 400]
            billed = server.totals()
        assert sum(row["billed_tokens"] for row in rows) == billed.total_tokens
        assert sum(call["attempts"] for call in calls if call["kind"] == "model") == len(server.books)
        found.append((rows, calls, len(refused)))
    (lenient, calls, none), (strict_rows, strict_calls, some) = found
    assert (none, some > 0) == (0, True)
    same = ("prediction", "exact_match", "stop_reason", "llm_calls", "tool_calls", "steps", "input_tokens")
    assert [[row[name] for name in same] for row in fixed(strict_rows)] == [
        [row[name] for name in same] for row in fixed(lenient)
    ]
    assert len(strict_calls) == len(calls)


async def test_what_was_learnt_is_not_asked_again_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with ModelServer(Strict(("stop", "seed"), reply=lambda _: "ok")) as server:
        async with client(server, seed=1) as model:
            with caplog.at_level(logging.WARNING):
                for _ in range(3):
                    await model.complete(Request(ASK, role="agent", stop=["\n"]))
            assert model.sent() == {"left_out": ["seed", "stop"]} or model.sent() == {"left_out": ["stop", "seed"]}
    assert [entry.status for entry in server.books] == [400, 400, 200, 200, 200]
    assert len(caplog.records) == 2


async def test_the_system_message_becomes_a_developers_or_the_users() -> None:
    strict = Strict(no_system=NO_SYSTEM, no_developer=NO_SYSTEM, reply=lambda _: "ok")
    with ModelServer(strict) as server:
        async with client(server) as model:
            await model.complete(Request(ASK, role="agent"))
            assert model.sent() == {"system_as": "user", "merged_turns": True}
    roles = [[message["role"] for message in entry.request["messages"]] for entry in server.books]
    assert roles == [["system", "user"], ["developer", "user"], ["user"]]
    assert server.books[-1].request["messages"][0]["content"].startswith("Be brief.\n\nWhich river")


async def test_an_endpoint_without_text_completions_is_asked_as_a_chat() -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        return "ok" if "messages" in request else ServerFault(status=404, message="Not Found")

    with ModelServer(reply) as server:
        async with client(server, prompt_form="completion") as model:
            for _ in range(2):
                assert (await model.complete(Request(ASK, role="agent"))).text == "ok"
            assert model.sent() == {"style": "chat"}
    assert [entry.status for entry in server.books] == [404, 200, 200]


async def test_a_change_that_did_not_help_is_not_kept() -> None:
    with ModelServer(lambda _: refusal("stop")) as server:  # refuses it though it isn't there
        async with client(server) as model:
            with pytest.raises(ModelError, match="answered 400: Unsupported parameter: 'stop'") as caught:
                await model.complete(Request(ASK, role="agent", stop=["\n"]))
            assert model.sent() == {}
    assert caught.value.call_cost is not None
    assert caught.value.call_cost.attempts == len(server.books) == 2


async def test_a_parameter_can_be_left_out_and_fields_added_by_hand() -> None:
    with ModelServer(lambda _: "ok") as server:
        async with client(
            server, drop_params=("temperature",), extra_body={"top_k": 3}, reasoning_effort="low"
        ) as model:
            await model.complete(Request(ASK, role="agent"))
    (entry,) = server.books
    assert "temperature" not in entry.request
    assert (entry.request["top_k"], entry.request["reasoning_effort"]) == (3, "low")


async def test_a_later_session_begins_with_what_was_learnt() -> None:
    with ModelServer(Strict(("stop",), reply=lambda _: "ok")) as server:
        async with client(server) as model:
            model.recall({"left_out": ["stop"], "output_tokens_for_thoughts": 400})
            await model.complete(Request(ASK, role="agent", stop=["\n"]))
    (entry,) = server.books
    assert (entry.status, entry.request["max_tokens"]) == (200, 912)


async def test_room_for_thoughts_grows_to_a_bound() -> None:
    """Every second reply is cut in its thoughts, whatever room it has: no doubling is the start of one without end."""
    replies = count()

    def reply(_: dict[str, Any]) -> ServerReply:
        return ServerReply("Oslo") if next(replies) % 2 else ServerReply("<think>Norway, or", "length")

    with ModelServer(reply) as server:
        async with client(server) as model:
            for _ in range(12):
                await model.complete(Request(ASK, role="agent"))
    assert max(entry.request["max_tokens"] for entry in server.books) == 64 * 512
