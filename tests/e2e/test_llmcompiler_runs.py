"""Whole runs of LLMCompiler with streamed plans, whose books agree with the server's to the token."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answering import asked_about, examples, spent
from asking import run
from command_runs import quiet
from model_server import ModelServer, ServerFault

from rewoo_bench.runs.folder import load
from rewoo_bench.tools import Corpus

pytestmark = pytest.mark.anyio
ARCHITECTURE = "llmcompiler"
TIMES = {"run_id", "run_folder", "started_at", "latency_s", "working_s", "startup_s", "retries", "billed_tokens"}
TIMES |= {"trial_seed"}  # of requests, which a replay doesn't send


def plan_for(name: str) -> str:
    return f'1. Search("Kyiv {name}")\n2. LLM("Which is it, {name}? Context: $1")\n3. join()'


def role_of(request: dict[str, Any]) -> str:
    system = str(request["messages"][0]["content"])
    if "The last line is join()" in system:
        return "planner"
    return "joiner" if "the results of the tasks" in system else "tool"


def answer(request: dict[str, Any]) -> str:
    name, role = asked_about(request), role_of(request)
    if role == "planner":
        return plan_for(name)
    return f"Thought: known\nAnswer: the river of {name}" if role == "joiner" else f"Answer: a river, {name}"


class Trouble:
    """Answers, but for a fault at the planner's first request of each of these questions."""

    def __init__(self, faults: dict[str, ServerFault]) -> None:
        self.faults = dict(faults)

    def __call__(self, request: dict[str, Any]) -> str | ServerFault:
        is_planner = role_of(request) == "planner"
        return (self.faults.pop(asked_about(request), None) if is_planner else None) or answer(request)


def roles(server: ModelServer) -> list[str]:
    return [role_of(dict(entry.request)) for entry in server.books]


async def test_every_token_is_counted_once(tmp_path: Path, corpus: Corpus) -> None:
    with ModelServer(answer, cached_share=0.25, token_delay_s=0.002) as server:
        rows, calls = await run(tmp_path, server, examples(6), [ARCHITECTURE], corpus)
        assert [bool(entry.request.get("stream")) for entry in server.books] == [r == "planner" for r in roles(server)]
    for row in rows:
        sent = spent(server, row["example_id"])
        mine = [call for call in calls if call["example_id"] == row["example_id"] and call["kind"] == "model"]
        for column in ("input_tokens", "cached_input_tokens", "output_tokens"):
            assert row[column] == sum(call[column] for call in mine) == getattr(sent, column)
        assert row["total_tokens"] == row["billed_tokens"] == sent.total_tokens
        assert row["planner_tokens"] + row["tool_llm_tokens"] + row["solver_tokens"] == row["total_tokens"]
        assert (row["stop_reason"], row["prediction"]) == ("answered", f"the river of {row['example_id']}")
        assert (row["llm_calls"], row["tool_calls"], row["usage_source"]) == (3, 2, "provider")
        assert {call["place"]: call["plan_depth"] for call in mine} == {"planner 0": 0, "E2": 1, "joiner 0": 0}


async def test_a_task_is_called_before_its_plan_has_ended(tmp_path: Path, corpus: Corpus) -> None:
    def reply(request: dict[str, Any]) -> str:
        if role_of(request) != "planner":
            return answer(request)
        name = asked_about(request)
        return f'1. LLM("Which is it, {name}?")\n2. LLM("{"so " * 60}{name}")\n3. join()'

    with ModelServer(reply, token_delay_s=0.01) as server:
        _, calls = await run(tmp_path, server, examples(1), [ARCHITECTURE], corpus)
        assert roles(server) == ["planner", "tool", "tool", "joiner"]
    ended = {
        call["place"]: call["started_at"] + timedelta(seconds=call["latency_s"])
        for call in calls if call["kind"] == "model"
    }  # fmt: skip
    assert sorted(ended, key=lambda place: ended[place]) == ["E1", "planner 0", "E2", "joiner 0"]


async def test_faults_of_a_stream_are_retried_and_run_no_task_twice(tmp_path: Path, corpus: Corpus) -> None:
    faults = {
        "q01": ServerFault(status=429, retry_after=0),
        "q02": ServerFault(status=500),
        "q03": ServerFault("cut_stream", message=plan_for("q03"), after=5),
        "q04": ServerFault("error_event", message=plan_for("q04"), after=5),
        "q05": ServerFault("disconnect"),
        "q06": ServerFault("hang"),
        "q07": ServerFault("cut_stream", message='1. Search("elsewhere q07")\n2. join()', after=4),
    }
    with ModelServer(Trouble(faults)) as server:
        rows, calls = await run(tmp_path, server, examples(8), [ARCHITECTURE], corpus, patience={"timeout": 2.0})
    assert [row["stop_reason"] for row in rows] == ["answered"] * 8
    assert [row["retries"] for row in rows] == [0, 1, 1, 1, 1, 1, 1, 1]
    for row in rows:
        name = row["example_id"]
        finished = sum(
            entry.usage.total_tokens for entry in server.books
            if entry.usage and asked_about(entry.request) == name and not isinstance(entry.answer, ServerFault)
        )  # fmt: skip
        assert row["total_tokens"] == finished
        began = name in ("q03", "q04", "q06", "q07")  # q06 was given up, and the server went on
        assert (row["billed_tokens"] > finished) is began
        assert row["usage_source"] == "provider"
        searches = [call for call in calls if call["example_id"] == name and call["name"] == "Search"]
        assert len(searches) == (2 if name == "q07" else 1)


@pytest.mark.usefixtures("own_folder")
def test_a_run_replays_whole_to_the_same_rows() -> None:
    with ModelServer(lambda request: plan_of(request), token_delay_s=0.002) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", ARCHITECTURE, "-n", 4, *hosted, "--out", "recorded") == 0
    recorded = load("recorded")
    assert quiet("--arch", ARCHITECTURE, "-n", 4, "--model", "replay/recorded", "--out", "replayed") == 0
    same = [c for c in recorded.columns if c not in TIMES and c not in ("model", "planner_model", "solver_model")]
    pd.testing.assert_frame_equal(load("replayed")[same], recorded[same])
    assert [early_steps("recorded"), early_steps("replayed")] == [[2] * 4, [0] * 4]


def early_steps(folder: str) -> list[int]:
    traces = [json.loads(line) for line in Path(folder, "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    return [trace["notes"]["early_steps"] for trace in traces]


def plan_of(request: dict[str, Any]) -> str:
    if role_of(request) == "planner":
        return '1. Search("Oslo")\n2. Search("Kyiv")\n3. join()'
    return "Thought: so\nAnswer: Neva"
