"""Whole runs against a real model server, whose books must agree with ours to the token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from answering import Trouble, answer, asked_about, examples, role_of, spent
from asking import RUN, Row, architectures, model_of, read, run
from model_server import ModelServer, ServerFault, ServerReply
from parts import architecture

import rewoo_bench
from rewoo_bench.errors import ProviderRefused, SpecError
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import Result, open_run
from rewoo_bench.evaluation.prepare import ModelJudge
from rewoo_bench.events import flag, starting
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.tools import Corpus
from rewoo_bench.types import Model, Tool, Trajectory

pytestmark = pytest.mark.anyio

NAMES = ["rewoo", "react", "direct", "cot"]
MODEL_CALLS = {"rewoo": 3, "react": 3, "direct": 1, "cot": 1}
TOOL_CALLS = {"rewoo": 2, "react": 2, "direct": 0, "cot": 0}


def total(calls: Sequence[Row], row: Row, column: str) -> int:
    return sum(c[column] for c in calls if c["example_id"] == row["example_id"] and c["kind"] == "model")


@pytest.mark.parametrize("name", NAMES)
async def test_every_token_is_counted_once(tmp_path: Path, corpus: Corpus, name: str) -> None:
    with ModelServer(answer, cached_share=0.25) as server:
        rows, calls = await run(tmp_path, server, examples(12), [name], corpus)
    assert [row["example_id"] for row in rows] == [f"q{i:02}" for i in range(12)]
    for row in rows:
        sent = spent(server, row["example_id"])
        assert sent.cached_input_tokens > 0
        for column in ("input_tokens", "cached_input_tokens", "output_tokens"):
            assert row[column] == total(calls, row, column) == getattr(sent, column)
        assert row["total_tokens"] == row["billed_tokens"] == sent.total_tokens
        assert (row["stop_reason"], row["prediction"]) == ("answered", f"the river of {row['example_id']}")
        assert (row["llm_calls"], row["tool_calls"]) == (MODEL_CALLS[name], TOOL_CALLS[name])
        assert (row["usage_source"], row["cost_usd"], row["retries"]) == ("provider", None, 0)
    assert server.totals().total_tokens == sum(row["total_tokens"] for row in rows)


async def test_roles_are_told_apart(tmp_path: Path, corpus: Corpus) -> None:
    with ModelServer(answer) as server:
        (row,), calls = await run(tmp_path, server, examples(1), ["rewoo"], corpus)
    assert [(c["kind"], c["name"], c["role"], c["place"], c["plan_depth"]) for c in calls] == [
        ("model", "openai/test", "planner", "planner 0", 0),
        ("tool", "Search", "tool", "E1", 0),
        ("tool", "LLM", "tool", "E2", 1),
        ("model", "openai/test", "tool", "E2", 1),
        ("model", "openai/test", "solver", "solver", 0),
    ]
    assert row["planner_tokens"] + row["tool_llm_tokens"] + row["solver_tokens"] == row["total_tokens"]


async def test_faults_are_retried_or_become_data(tmp_path: Path, corpus: Corpus) -> None:
    once = {
        "q01": ServerFault(status=429, retry_after=0),
        "q02": ServerFault(status=500),
        "q03": ServerFault("truncated"),
        "q04": ServerFault("body", 200, body=b'{"choices": []}'),
        "q05": ServerFault("hang"),
        "q06": ServerFault("disconnect"),
        "q07": ServerFault("truncated"),
    }
    always = {"q08": ServerFault(status=500, message="on fire"), "q09": ServerFault(status=400, message="too rude")}
    with ModelServer(Trouble(once, always)) as server:
        rows, calls = await run(tmp_path, server, examples(10), ["rewoo"], corpus, patience={"timeout": 2.0})
    assert [row["retries"] for row in rows] == [0, 1, 1, 1, 1, 1, 1, 1, 3, 0]
    assert [row["exact_match"] for row in rows] == [False] * 8 + [None] * 2
    assert [row["stop_reason"] for row in rows] == ["answered"] * 8 + ["error"] * 2
    assert "answered 500: on fire" in rows[8]["error"]
    assert "answered 400: too rude" in rows[9]["error"]
    for row in rows:
        assert row["llm_calls"] == (MODEL_CALLS["rewoo"] if row["error"] is None else 1)
        assert row["billed_tokens"] >= row["total_tokens"] == total(calls, row, "input_tokens") + row["output_tokens"]
        if row["example_id"] not in (
            "q03",
            "q05",
            "q07",
        ):  # whose broken or late answers have no count: it is estimated
            assert row["billed_tokens"] == spent(server, row["example_id"]).total_tokens
    assert [c["status"] for c in calls if c["example_id"] == "q08"] == ["error"]


async def test_a_failure_halfway_keeps_what_was_spent(tmp_path: Path, corpus: Corpus) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        return ServerFault(status=400) if role_of(request) == "solver" else answer(request)

    with ModelServer(reply) as server:
        (row,), _ = await run(tmp_path, server, examples(1), ["rewoo"], corpus)
    assert (row["exact_match"], row["stop_reason"]) == (None, "error")
    assert row["total_tokens"] == row["planner_tokens"] + row["tool_llm_tokens"] == server.totals().total_tokens > 0


async def test_waiting_is_not_working(tmp_path: Path) -> None:
    once = {"q00": ServerFault(status=429, retry_after=3)}
    with ModelServer(Trouble(once)) as server:
        (row,), (call,) = await run(tmp_path, server, examples(1), ["direct"])
    assert row["latency_s"] > 3.0 > row["working_s"]
    assert call["waiting_s"] == pytest.approx(row["latency_s"] - row["working_s"], abs=0.1)


async def test_a_start_is_no_latency(tmp_path: Path) -> None:
    class Starting:
        async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
            with starting():
                await anyio.sleep(3.0)
            flag("no_call")
            return Trajectory("the river of q00", "answered")

    with ModelServer(answer) as server:
        (row,), _ = await run(tmp_path, server, examples(1), [architecture("slow to start", Starting())])
    assert row["startup_s"] >= 3.0 > row["latency_s"]
    assert row["flags"] == ["no_call"]


async def test_all_architectures_of_a_question_come_before_the_next_question(tmp_path: Path, corpus: Corpus) -> None:
    with ModelServer(answer, latency_s=0.01) as server:
        rows, _ = await run(tmp_path, server, examples(3), ["rewoo", "direct"], corpus, trials=2)
    assert [(row["example_id"], row["trial"], row["architecture"]) for row in rows] == [
        (f"q{i:02}", trial, name) for i in range(3) for trial in range(2) for name in ("rewoo", "direct")
    ]


async def test_results_come_as_they_end_and_are_returned_in_the_order_of_the_questions() -> None:
    came: list[Result] = []
    with ModelServer(answer, latency_s=0.1) as server:
        results = await rewoo_bench.evaluate(
            examples(3),
            ["rewoo", "direct"],
            model="openai/test",
            on_result=came.append,
            api_base=server.api_base,
        )
    assert [result.task.example.id for result in results] == ["q00", "q00", "q01", "q01", "q02", "q02"]
    assert [result.task.architecture.name for result in came] == ["direct"] * 3 + ["rewoo"] * 3


@pytest.mark.parametrize(
    ("verdict", "judged"),
    [("yes", True), ("No.", False), ("**Yes**, it does", True), ("perhaps", None), ('" "', None), ("", None)],
)
async def test_a_judge_is_asked_once_and_kept_apart(tmp_path: Path, verdict: str, judged: bool | None) -> None:
    judges = ModelServer(lambda _: ServerReply(verdict))
    with ModelServer(answer) as server, judges:
        async with model_of(server) as model, model_of(judges) as judge:
            evaluator = Evaluator({"": model, "judge": judge}, "hotpotqa", judge=ModelJudge())
            async with open_run(tmp_path, RUN) as opened:
                asked = architectures("direct")
                await evaluator.run(examples(1), asked, store=opened.store, on_result=lambda _: None)
                await opened.export(task.key for task in tasks_of(examples(1), asked, 1))
    (row,), calls = read(tmp_path)
    assert (row["judged_correct"], row["llm_calls"]) == (judged, 1)
    assert row["total_tokens"] == server.totals().total_tokens
    assert [c["input_tokens"] for c in calls if c["role"] == "judge"] == [judges.totals().input_tokens]


@pytest.mark.parametrize(("status", "refused"), [(400, False), (401, True)])
async def test_a_judge_that_fails_is_no_verdict_unless_it_always_will(status: int, refused: bool) -> None:
    results: list[Result] = []
    judges = ModelServer(lambda _: ServerFault(status=status))
    with ModelServer(answer) as server, judges:
        async with model_of(server) as model, model_of(judges) as judge:
            evaluator = Evaluator({"": model, "judge": judge}, "hotpotqa", judge=ModelJudge())
            try:
                await evaluator.run(examples(1), architectures("direct"), on_result=results.append)
            except ProviderRefused:
                assert refused
            else:
                assert not refused
                assert (results[0].judged_correct, results[0].score is None) == (None, False)


async def test_a_runner_that_is_set_up_wrongly_ends_the_run_as_itself() -> None:
    class Broken:
        async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
            raise SpecError("no prompt 'agent'")

    (direct,) = architectures("direct")
    broken = Architecture(direct.spec, direct.prompts, {}, None, Broken())
    with pytest.raises(SpecError, match="no prompt 'agent'"):
        await Evaluator({}, "hotpotqa").run(examples(3), [broken], on_result=_never)


async def test_lookup_reads_in_the_page_of_its_own_question(tmp_path: Path, corpus: Corpus) -> None:
    pages = {"q00": "Kyiv", "q01": "Hobart"}

    def reply(request: dict[str, Any]) -> str:
        page = pages[asked_about(request)]
        return answer(request).replace("Search[Kyiv", f"Search[{page}] [").replace("Lookup[river]", "Lookup[zebra]")

    with ModelServer(reply, latency_s=0.05) as server:
        await run(tmp_path, server, examples(2), ["react"], corpus)
    found = {asked_about(entry.request): entry.request["messages"][-1]["content"] for entry in server.books}
    assert found == {name: f"Observation: No results for 'zebra' on the page {page!r}." for name, page in pages.items()}


def _never(result: Result) -> None:
    raise AssertionError(result)
