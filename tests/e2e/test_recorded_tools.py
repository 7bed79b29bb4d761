"""`rewoo-bench run --dataset RUN --tools recorded:RUN`: a recording asked of other architectures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from asking import read
from command_runs import quiet
from model_server import ModelServer, ServerReply
from real_data import TAU_BENCH, RealData
from recorded_runs import AIRLINE, called, imported, said

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.types import ToolCall

pytestmark = pytest.mark.anyio
Calls = Sequence[tuple[str, Mapping[str, Any]]]
ANSWERED = AIRLINE[:1]
"""A task whose only trial has all results."""


def repeating(calls_of: Callable[[str], Calls]) -> Callable[[dict[str, Any]], str | ServerReply]:
    """A model that makes these calls of a question, one a turn, and then answers."""

    def reply(request: dict[str, Any]) -> str | ServerReply:
        messages = request["messages"]
        calls, done = calls_of(messages[1]["content"]), sum(each["role"] == "tool" for each in messages)
        if done == len(calls):
            return "Answer: done"
        name, arguments = calls[done]
        return ServerReply("", tool_calls=[ToolCall(f"c{done}", name, arguments)], finish_reason="tool_calls")

    return reply


def recorded_steps(run: Path) -> dict[str, list[dict[str, Any]]]:
    """Task -> the tool steps of its first trace."""
    steps: dict[str, list[dict[str, Any]]] = {}
    for line in (run / "traces.jsonl").read_text().splitlines():
        trace = json.loads(line)
        steps.setdefault(trace["example_id"], [each for each in trace["steps"] if each["tool"]])
    return steps


def asked_in(steps: Sequence[Mapping[str, Any]]) -> Calls:
    return [(step["tool"], json.loads(step["argument"])) for step in steps]


def hosted(run: Path, out: Path, server: ModelServer, *more: object) -> int:
    questions = ("--dataset", run, "--tools", f"recorded:{run}", "--arch", "react-native", "--max-steps", 40)
    return quiet(*questions, "--model", "openai/test", "--api-base", server.api_base, "--out", out, *more)


def test_the_recorded_calls_are_all_found_with_the_recorded_observations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = anyio.run(imported, tmp_path, ANSWERED)
    before = recorded_steps(run)["t1"]
    with ModelServer(repeating(lambda _: asked_in(before))) as server:
        assert hosted(run, tmp_path / "again", server) == 0
    output = capsys.readouterr()
    assert "100.0% of 4" in output.out
    assert "failed" not in output.err
    tools = {each["function"]["name"]: each["function"] for each in server.books[0].request["tools"]}
    assert set(tools) == {"seats", "book"}
    (row,), calls = read(tmp_path / "again")
    assert (row["recorded_hits"], row["recorded_misses"]) == (4, 0)
    assert (row["exact_match"], row["f1"], row["stop_reason"], row["answers"]) == (None, None, "answered", [])
    now = recorded_steps(tmp_path / "again")["t1"]
    assert [step["observation"] for step in now] == [step["observation"] for step in before]
    assert [step["failed"] for step in now] == [step["failed"] for step in before] == [False, False, False, True]
    assert [call["status"] for call in calls if call["kind"] == "tool"] == ["ok", "ok", "ok", "error"]
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(run), str(tmp_path / "again")])
    assert not ended.value.code
    table = capsys.readouterr().out
    assert "calls that were recorded" in table
    assert "total tokens" in table


def test_a_changed_argument_is_a_miss_and_it_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = anyio.run(imported, tmp_path, ANSWERED)
    first, *others = asked_in(recorded_steps(run)["t1"])
    with ModelServer(repeating(lambda _: [("seats", {"city": "Lima", "day": 3}), first, *others])) as server:
        assert hosted(run, tmp_path / "again", server) == 0
        assert "80.0% of 5" in capsys.readouterr().out
        (row,), _ = read(tmp_path / "again")
        assert (row["recorded_hits"], row["recorded_misses"], row["tool_calls"]) == (4, 1, 5)
        missed = recorded_steps(tmp_path / "again")["t1"][0]
        assert missed["observation"] == "ERROR: this call of seats isn't in the recording, so its result isn't known"
        # A replay answers from the journal, and counts the same.
        replayed = ("--model", f"replay/{tmp_path / 'again'}", "--out", tmp_path / "replayed")
        questions = ("--dataset", run, "--tools", f"recorded:{run}", "--arch", "react-native", "--max-steps", 40)
        assert quiet(*questions, *replayed) == 0
    (row,), _ = read(tmp_path / "replayed")
    assert (row["recorded_hits"], row["recorded_misses"]) == (4, 1)


def test_a_resumed_run_goes_on_with_the_same_recording_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = anyio.run(imported, tmp_path, ANSWERED)
    calls = [("seats", {"city": "Lima", "day": 3}), *asked_in(recorded_steps(run)["t1"])]
    with ModelServer(repeating(lambda _: calls)) as server:
        assert hosted(run, tmp_path / "again", server, "--run-tokens", 300) == 3
        capsys.readouterr()
        asked = len(server.books)
        assert 0 < asked < len(calls) + 1
        assert quiet("--resume", tmp_path / "again", "--run-tokens", "none", "--api-base", server.api_base) == 0
        assert len(server.books) == len(calls) + 1
    (row,), _ = read(tmp_path / "again")
    assert (row["recorded_hits"], row["recorded_misses"]) == (4, 1)
    now, before = (recorded_steps(folder)["t1"] for folder in (tmp_path / "again", run))
    assert [step["observation"] for step in now[1:]] == [step["observation"] for step in before]
    for file in run.iterdir():
        file.unlink()
    run.rmdir()
    changed = [*called("seats", {"city": "Oslo", "day": 3}, "5 seats")]
    anyio.run(imported, tmp_path, [{**ANSWERED[0], "messages": [*ANSWERED[0]["messages"], *changed]}])
    capsys.readouterr()
    assert quiet("--resume", tmp_path / "again", "--api-base", "http://127.0.0.1:9") == 2
    assert "a resumed run has to stay the same" in capsys.readouterr().err


async def test_an_own_run_is_a_recording_too(tmp_path: Path) -> None:
    turns = ["Thought: a\nAction: Search[Kyiv]", "Thought: b\nAction: Finish[many]"]
    first = await rewoo_bench.evaluate(
        "sample", "react", model=ScriptedModel(turns), questions=1, tools=("Search",), out=tmp_path / "own"
    )
    own = str(tmp_path / "own")
    again = await rewoo_bench.evaluate(own, "react", model=ScriptedModel(turns), tools=(f"recorded:{own}",))
    assert again[0].trajectory.steps[0] == first[0].trajectory.steps[0]
    assert again[0].score == first[0].score is not None
    rows = rewoo_bench.load(own)
    assert rows["recorded_hits"].isna().all()


async def test_questions_of_another_run_and_a_judge_without_gold_answers_are_refused(tmp_path: Path) -> None:
    run = await imported(tmp_path)
    model = ScriptedModel([])
    with pytest.raises(UsageError, match="has no tool call of these questions"):
        await rewoo_bench.evaluate("sample", "react", model=model, tools=(f"recorded:{run}",), questions=1)
    with pytest.raises(UsageError, match="have no gold answers to judge by"):
        await rewoo_bench.evaluate(
            str(run), "react", model=model, tools=(f"recorded:{run}",), judge_model="local/smollm2-135m"
        )
    with pytest.raises(UsageError, match=r"or take the tools of a recorded run with --tools recorded:RUN"):
        await rewoo_bench.evaluate(str(run), "react", model=model)


def test_a_run_of_somebody_else_reads_no_recording_on_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = anyio.run(imported, tmp_path, ANSWERED)
    with ModelServer(repeating(lambda _: asked_in(recorded_steps(run)["t1"]))) as server:
        assert hosted(run, tmp_path / "again", server) == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user's"))
    capsys.readouterr()
    assert quiet("--resume", tmp_path / "again", "--api-base", "http://127.0.0.1:9") == 2
    assert f"'recorded:{run}'" in capsys.readouterr().err


def test_text_of_a_recording_is_never_run_or_opened(tmp_path: Path) -> None:
    """Names, arguments and schemas that look like paths, addresses and code stay texts."""
    touched = tmp_path / "touched"
    code = f"open({str(touched)!r}, 'w')"
    schema = {"type": "object", "properties": {"x": {"$ref": f"file://{touched}"}}, "$id": "http://127.0.0.1:9/"}
    messages = [
        *said(code),
        *called("my_module:make_tool", {"x": code}, code),
        *called(str(touched), {"x": "1"}, "one"),
    ]
    tools = [{"name": "my_module:make_tool", "description": code, "input_schema": schema}]
    run = anyio.run(imported, tmp_path, [{"id": str(touched), "messages": messages, "tools": tools}])
    with ModelServer(repeating(lambda _: [("my_module_make_tool", {"x": code})])) as server:
        assert hosted(run, tmp_path / "again", server) == 0
    (row,), _ = read(tmp_path / "again")
    assert (row["recorded_hits"], row["recorded_misses"]) == (1, 0)
    assert not touched.exists()


def test_every_recorded_call_of_tau_bench_is_found(real_data: RealData, tmp_path: Path) -> None:
    run = anyio.run(imported, tmp_path, json.loads(real_data(TAU_BENCH).read_text()))
    steps = recorded_steps(run)
    traces = map(json.loads, (run / "traces.jsonl").read_text().splitlines())
    asked = sorted(
        ((trace["question"].strip(), trace["example_id"]) for trace in traces), key=lambda each: -len(each[0])
    )

    def calls_of(text: str) -> Calls:
        return asked_in(steps[next(id_ for question, id_ in asked if question in text)])

    with ModelServer(repeating(calls_of)) as server:
        assert hosted(run, tmp_path / "again", server) == 0
    rows, _ = read(tmp_path / "again")
    assert len(rows) == 50
    assert sum(row["recorded_misses"] for row in rows) == 0
    assert sum(row["recorded_hits"] for row in rows) == sum(map(len, steps.values()))
