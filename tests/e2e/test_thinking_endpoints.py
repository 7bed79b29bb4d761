"""Endpoints that think: thoughts never reach an answer, an action or a plan, and budgets leave room for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from answering import examples
from asking import ASK, client, run
from endpoints import ARCHITECTURES, THINKING, THOUGHT, Thinker, plain
from model_server import ModelServer, ServerReply

from rewoo_bench.evaluation.prepare import ModelJudge
from rewoo_bench.types import Example, Request, Usage

pytestmark = pytest.mark.anyio

SAME = (
    "prediction",
    "exact_match",
    "stop_reason",
    "llm_calls",
    "tool_calls",
    "steps",
    "total_tokens",
    "reasoning_tokens",
)


@pytest.mark.parametrize("form", THINKING)
async def test_every_architecture_gives_the_rows_of_a_model_that_hides_its_thoughts(form: str, tmp_path: Path) -> None:
    found: list[list[list[Any]]] = []
    for reply in (plain, THINKING[form]):
        with ModelServer(reply) as server:
            rows, _ = await run(tmp_path / str(len(found)), server, examples(1), ARCHITECTURES)
        assert sum(row["billed_tokens"] for row in rows) == server.totals().total_tokens
        found.append([[row[name] for name in SAME] for row in rows])
    assert found[0] == found[1]
    assert all(row[2] == "answered" for row in found[0])


async def test_the_trace_keeps_the_thoughts(tmp_path: Path) -> None:
    with ModelServer(THINKING["think"]) as server:
        await run(tmp_path, server, examples(1), ["react"])
    (trace,) = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    assert [reply["thoughts"] for reply in trace["replies"]] == [THOUGHT] * 3
    assert [reply["place"] for reply in trace["replies"]] == ["turn 1", "turn 2", "turn 3"]
    assert THOUGHT not in json.dumps(trace["steps"])


@pytest.mark.parametrize("hidden", [True, False])
async def test_a_reply_that_was_cut_while_thinking_is_tried_with_twice_the_budget(hidden: bool, tmp_path: Path) -> None:
    with ModelServer(Thinker(700, hidden=hidden)) as server:
        rows, calls = await run(tmp_path, server, examples(4), ["rewoo", "react"])
    assert {row["stop_reason"] for row in rows} == {"answered"}
    assert sum(row["billed_tokens"] for row in rows) == server.totals().total_tokens
    model_calls = [call for call in calls if call["kind"] == "model"]
    assert {call["output_tokens"] for call in model_calls} == {720}  # that of the reply that counts
    assert sum(call["attempts"] for call in model_calls) == len(server.books)
    assert len(server.books) < 2 * len(model_calls)  # once it has helped, it is sent at once


async def test_small_budgets_leave_room_for_thoughts_too() -> None:
    def reply(request: dict[str, Any]) -> ServerReply:
        if request["max_tokens"] > 700:
            return ServerReply("yes", usage=Usage(9, 0, 720, 700))
        return ServerReply("", finish_reason="length", usage=Usage(9, 0, request["max_tokens"]))

    with ModelServer(reply) as server:
        async with client(server) as model:
            judged = await ModelJudge().judge(Example("1", "Which?", ("Oslo",)), "Oslo", model)
    assert judged is True
    assert [entry.request["max_tokens"] for entry in server.books] == [8, 1024]


async def test_a_thought_that_never_ends_has_a_stop_reason_of_its_own(tmp_path: Path) -> None:
    with ModelServer(Thinker(10**6)) as server:
        rows, calls = await run(tmp_path, server, examples(1), ["rewoo", "direct"])
    assert {row["stop_reason"] for row in rows} == {"reasoning_truncated"}
    assert [row["exact_match"] for row in rows] == [False, False]
    assert {call["finish_reason"] for call in calls} == {"reasoning_truncated"}
    assert sorted(entry.request["max_tokens"] for entry in server.books) == [512, 512, 1024, 1024]
    assert sum(row["billed_tokens"] for row in rows) == server.totals().total_tokens


async def test_a_budget_grows_up_to_the_models_own_limit() -> None:
    with ModelServer(Thinker(900, most=800)) as server:
        async with client(server) as model:
            completion = await model.complete(Request(ASK, role="agent"))
    assert completion.finish_reason == "reasoning_truncated"
    assert [entry.request["max_tokens"] for entry in server.books] == [512, 1024, 800]


async def test_a_stop_string_inside_a_thought_is_no_end() -> None:
    def reply(request: dict[str, Any]) -> ServerReply:
        text = "<think>First\nObservation: none.</think>Action: Finish[Oslo]"
        cut = text.partition("\nObservation")[0] if "stop" in request else text
        return ServerReply(cut, usage=Usage(10, 0, 9))

    with ModelServer(reply) as server:
        async with client(server) as model:
            completion = await model.complete(Request(ASK, role="agent", stop=["\nObservation"]))
            assert model.sent() == {"left_out": ["stop"]}
    assert completion.text == "Action: Finish[Oslo]"
    assert completion.call_cost.billed == server.totals()


async def test_a_cut_reply_of_an_endpoint_that_begins_in_thoughts_is_a_thought() -> None:
    replies = [ServerReply("Norway.</think>Oslo"), *[ServerReply("Norway, or", finish_reason="length")] * 2]
    with ModelServer(lambda _: replies.pop(0)) as server:
        async with client(server) as model:
            assert (await model.complete(Request(ASK, role="agent"))).text == "Oslo"
            cut = await model.complete(Request(ASK, role="agent"))
    assert (cut.text, cut.thoughts, cut.finish_reason) == ("", "Norway, or", "reasoning_truncated")
