"""Every Eval Ever: what is written is read again as the same rows, and so are lines that others wrote."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest
from broken_json import mutated, trajectories_or_faults
from real_data import TAU_BENCH, RealData

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.evaluation.api import bench
from rewoo_bench.gate.check import check_run
from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.publish import publish_as
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse
from rewoo_bench.imports.write import ImportChoices, Imported, import_run
from rewoo_bench.types import Usage

TOKENS = [f"{name}_tokens" for name in ("input", "cached_input", "output", "reasoning", "cache_write", "total")]
COLUMNS = [
    "architecture", "example_id", "trial", "model", "prediction", "exact_match", "f1", "stop_reason", "llm_calls",
    "tool_calls", *TOKENS, "cost_usd", "usage_source",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("every-eval-ever") / "run"
    bench("rewoo,react,rewoo-code", model="oracle?wrong_title=0.3", out=folder, questions=5, trials=2)
    return folder


@pytest.fixture(scope="module")
def tau_bench(real_data: RealData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    traces = json.loads(real_data(TAU_BENCH).read_text())
    folder = tmp_path_factory.mktemp("tau-bench")
    (folder / "traces.json").write_text(json.dumps(traces[:10]))
    return imported(folder / "traces.json", folder / "run").folder


def imported(file: Path, out: Path) -> Imported:
    return anyio.run(partial(import_run, [file], out, ImportChoices(dataset="sample")))


def rows(folder: Path, table: str = "questions") -> list[dict[str, Any]]:
    keys = ("architecture", "example_id", "trial", *(["call_index"] if table == "calls" else []))
    found: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return sorted(found, key=lambda row: [row[key] for key in keys])


def test_a_copy_of_a_file_is_no_further_trial(run: Path, tmp_path: Path) -> None:
    publish_as("every-eval-ever", run, tmp_path / "out")
    for file in (tmp_path / "out").rglob("*_samples.jsonl"):
        file.with_name(f"copy_of_{file.name}").write_bytes(file.read_bytes())
    done = imported(tmp_path / "out", tmp_path / "again")
    assert done.rows == done.copies == len(rows(run))


@pytest.mark.parametrize("texts", [True, False], ids=["with texts", "without texts"])
@pytest.mark.parametrize("name", ["run", pytest.param("tau_bench", marks=pytest.mark.data)])
def test_what_was_written_is_imported_as_the_same_rows(
    name: str, texts: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(name)
    before = rows(folder)
    assert publish_as("every-eval-ever", folder, tmp_path / "out", texts=texts) == len(before)
    done = imported(tmp_path / "out", tmp_path / "again")
    assert (done.rows, done.unreadable, dict(done.formats)) == (len(before), 0, {"every-eval-ever": len(before)})
    assert done.lacks["texts"] == (0 if texts else len(before))
    assert done.lacks["call_usage"] == done.lacks["prompts"] == len(before)
    after = rows(done.folder)
    for one, other in zip(before, after, strict=True):
        shown = [*COLUMNS, *(["question", "answers"] if texts else [])]
        assert {column: other[column] for column in shown} == {column: one[column] for column in shown}
        if texts and one["architecture"] != "rewoo-code":  # whose tool LLM leaves its results in no record of the run
            assert other["evidence_tokens"] == one["evidence_tokens"]
        assert (other["latency_s"] is None) == (one["latency_s"] is None)
        assert one["latency_s"] is None or 0 < other["latency_s"] <= one["latency_s"] + 1e-6  # from call to call
    kinds = [[(row["kind"], row["name"]) for row in rows(each, "calls")] for each in (folder, done.folder)]
    assert sorted(kinds[0]) == sorted(kinds[1])
    for row in rows(done.folder, "calls"):
        assert [row[column] for column in (*TOKENS[:-1], "started_at", "latency_s")] == [None] * 7


@pytest.mark.parametrize("name", ["run", pytest.param("tau_bench", marks=pytest.mark.data)])
def test_an_imported_run_is_published_and_judged_again(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    publish_as("every-eval-ever", request.getfixturevalue(name), tmp_path / "out", texts=True)
    first = imported(tmp_path / "out", tmp_path / "first").folder
    publish_as("every-eval-ever", first, tmp_path / "once more")
    second = imported(tmp_path / "once more", tmp_path / "second").folder
    shown = [*COLUMNS, "latency_s"]
    assert [[row[column] for column in shown] for row in rows(second)] == [
        [row[column] for column in shown] for row in rows(first)
    ]
    with pytest.raises(UsageError, match=r"--format: 'atif' has tokens of single calls, which .* lacks"):
        publish_as("atif", first, tmp_path / "atif")
    of = [f'{column} = "{rows(first)[0][column]}"' for column in ("architecture", "dataset", "model")]
    limits = tmp_path / "budgets.toml"
    for most, code in ((10**9, 0), (1, 1)):
        limits.write_text("\n".join(["[[budget]]", *of, f"total_tokens = {{ mean = {most} }}"]))
        assert check_run(first, budgets=limits).code == code


def test_the_users_turns_are_written_and_read(tau_bench: Path, tmp_path: Path) -> None:
    publish_as("every-eval-ever", tau_bench, tmp_path / "out", texts=True)
    again = imported(tmp_path / "out", tmp_path / "again").folder
    before, after = (
        {(trace["example_id"], trace["trial"]): trace["turns"] for trace in map(json.loads, lines)}
        for lines in ((folder / "traces.jsonl").read_bytes().splitlines() for folder in (tau_bench, again))
    )
    assert before == after
    assert sum(map(len, before.values())) > 20


def line(**more: Any) -> dict[str, Any]:
    """A line that another program wrote: a transcript, and tokens of the whole."""
    messages = [
        {"turn_idx": 0, "role": "system", "content": "Be brief."},
        {"turn_idx": 1, "role": "user", "content": "How warm is it in Oslo and Bergen?"},
        {"turn_idx": 2, "role": "assistant", "content": None, "reasoning_trace": "two calls", "tool_calls": [
            {"id": city, "name": "weather", "arguments": {"city": city}} for city in ("Oslo", "Bergen")
        ]},
        {"turn_idx": 3, "role": "tool", "content": "7", "tool_call_id": ["Bergen"]},
        {"turn_idx": 4, "role": "tool", "content": "2", "tool_call_id": ["Oslo"]},
        {"turn_idx": 5, "role": "assistant", "content": "2 and 7 degrees."},
    ]  # fmt: skip
    taken = {"turn_idx": 5, "source": "messages[turn_idx].content", "extracted_value": "2, 7", "is_terminal": True}
    usage = {"input_tokens": 90, "output_tokens": 20, "total_tokens": 110, "input_tokens_cache_read": 40}
    return {
        "schema_version": "0.3.0", "evaluation_id": "e1", "model_id": "acme/m1", "evaluation_name": "weather",
        "sample_id": "s1", "interaction_type": "agentic", "input": {"raw": "How warm is it?", "reference": ["2, 7"]},
        "output": None, "messages": messages, "answer_attribution": [{**taken, "extraction_method": "regex"}],
        "evaluation": {"score": 1, "is_correct": True}, "token_usage": usage,
        "performance": {"latency_ms": 1500}, **more,
    }  # fmt: skip


def read(folder: Path, *lines: Any) -> list[RecordedTrajectory]:
    path = folder / "e1_samples.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = list(read_files([path]))
    assert [each.fault for each in found if each.fault] == []
    assert {each.format for each in found} == {"every-eval-ever"}
    return [each.trajectory for each in found if each.trajectory is not None]


def test_a_line_of_another_program(tmp_path: Path) -> None:
    (found,) = read(tmp_path, line())
    assert [type(event) for event in found.events] == [ModelCall, ToolUse, ToolUse, ModelCall]
    assert [(each.arguments, each.result) for each in found.events if isinstance(each, ToolUse)] == [
        ({"city": "Bergen"}, "7"),
        ({"city": "Oslo"}, "2"),
    ]
    assert [(call.model, call.thoughts, call.messages) for call in found.calls] == [
        ("acme/m1", "two calls", None),
        ("acme/m1", "", None),
    ]
    assert (found.usage, found.latency_s) == (Usage(90, 40, 20), 1.5)
    assert (found.task, found.system, found.question, found.answers) == ("s1", "Be brief.", "How warm is it?", ["2, 7"])
    assert (found.answer, found.solved, found.f1, found.trial) == ("2, 7", True, None, None)


def test_scores_of_a_sample_are_one_trajectory_and_equal_scores_are_trials(tmp_path: Path) -> None:
    f1 = line(evaluation_name="weather f1", evaluation={"score": 0.5, "is_correct": True})
    one, other = read(tmp_path, line(), f1, line(), f1)
    assert (one.task, one.solved, one.f1) == (other.task, other.solved, other.f1) == ("s1", True, 0.5)
    of_another_part = line(evaluation_name="wind", input={"raw": "How windy is it?", "reference": []})
    assert [each.question for each in read(tmp_path, line(), of_another_part)] == [
        "How warm is it?",
        "How windy is it?",
    ]


def test_a_transcript_without_tokens_is_taken_as_what_was_sent(tmp_path: Path) -> None:
    (found,) = read(tmp_path, line(token_usage=None))
    assert [len(call.messages or ()) for call in found.calls] == [2, 5]
    assert ([call.usage for call in found.calls], found.usage) == ([None, None], None)


def test_a_single_turn_is_a_call(tmp_path: Path) -> None:
    (found,) = read(tmp_path, line(interaction_type="single_turn", messages=None, output={"raw": ["2 degrees"]}))
    assert [(call.reply, call.messages) for call in found.calls] == [("2 degrees", None)]
    assert found.question == "How warm is it?"


def test_calls_without_a_result_count_where_the_line_counts_them(tmp_path: Path) -> None:
    messages = line()["messages"]
    del messages[4]
    for evaluation, results in (
        ({}, ["7", None]),
        ({"tool_calls_count": 1}, ["7"]),
        ({"tool_calls_count": 2}, ["7", None]),
    ):
        (found,) = read(tmp_path, line(messages=messages, evaluation={"score": 0, "is_correct": False, **evaluation}))
        assert [each.result for each in found.events if isinstance(each, ToolUse)] == results


def test_scores_without_their_samples_are_said(run: Path, tmp_path: Path) -> None:
    publish_as("every-eval-ever", run, tmp_path / "out", without=["react", "rewoo-code"])
    (file,) = (tmp_path / "out").rglob("*.json")
    alone = tmp_path / "alone.json"
    alone.write_bytes(file.read_bytes())
    (found,) = read_files([alone])
    assert "it has scores alone: its samples" in found.fault
    assert [each.fault for each in read_files([file.parent]) if each.fault] == []


def test_broken_lines_end_in_rows_or_faults(tmp_path: Path, draws: Callable[[int], int]) -> None:
    random_ = random.Random(5)
    metadata = {"agent": "a", "trial": "1", "llm_calls": "2", "llm_call_turns": "2 5", "cost_usd": "0.25"}
    path = tmp_path / "e1_samples.jsonl"
    faults = 0
    for trial in range(draws(3_000)):
        lines = [line(metadata=metadata), line(token_usage=None), line(evaluation_name="f1")]
        path.write_text("\n".join(json.dumps(mutated(each, random_)) for each in lines))
        for found in trajectories_or_faults(path):
            faults += bool(found.fault)
        if trial % 50 == 0:
            with suppress(DataError):  # nothing could be read
                imported(path, tmp_path / str(trial))
    assert faults > draws(3_000) / 20


def test_failures_names_of_tools_and_models_are_written_and_read(tmp_path: Path) -> None:
    def asks(model: str, *names: str) -> dict[str, Any]:
        calls = [{"id": "same", "function": {"name": name, "arguments": "{}"}} for name in names]
        return {"role": "assistant", "model": model, "content": None, "tool_calls": calls}

    results = [{"role": "tool", "tool_call_id": "same", "content": text} for text in "ab"]
    messages = [
        {"role": "user", "content": "Go on."}, asks("small", "look", "find"), *results,
        asks("large", "look"), {"role": "tool", "tool_call_id": "same", "content": "nope", "is_error": True},
        {"role": "assistant", "model": "small", "content": "Done."},
    ]  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps({"task_id": "t", "reward": 1, "messages": messages}))
    first = imported(tmp_path / "mine.json", tmp_path / "first").folder
    publish_as("every-eval-ever", first, tmp_path / "out", texts=True)
    again = imported(tmp_path / "out", tmp_path / "again").folder
    told = [[(row["kind"], row["name"], row["status"]) for row in rows(folder, "calls")] for folder in (first, again)]
    assert told[0] == told[1]
    assert ("tool", "look", "error") in told[0]
    assert {name for kind, name, _ in told[0] if kind == "model"} == {"small", "large"}
