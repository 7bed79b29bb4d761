"""A run folder: its columns, its order, and that what is in it is whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import MOMENT, model_call, result

from rewoo_bench.errors import DataError
from rewoo_bench.evaluation.folder import open_run
from rewoo_bench.events import Place
from rewoo_bench.runs.columns import SHARED
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.manifest import FORMAT_VERSION, Manifest, manifest_of, read_manifest, write_manifest
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import CallCost, Step, Trajectory, Usage

RUN = {"run_id": "r1", "dataset": "sample", "model": "m", "planner_model": "p", "solver_model": "s"}


def written(folder: Path, *results: Any, run: dict[str, str] | None = None) -> Path:
    folder.mkdir(exist_ok=True)

    async def write() -> None:
        async with open_run(folder, run or RUN) as opened:
            for each in results:
                await opened.store(each)
            in_order = sorted(results, key=lambda each: each.task.index)
            await opened.export(dict.fromkeys(each.task.key for each in in_order))

    anyio.run(write)
    return folder


def rows(folder: Path, file: str = "questions.parquet") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / file).to_pylist()
    return found


def traces(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "traces.jsonl").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return [json.loads(line) for line in lines]


def test_the_columns_have_their_types_without_a_single_row(tmp_path: Path) -> None:
    written(tmp_path / "none")
    written(tmp_path / "one", result())
    for file in ("questions.parquet", "calls.parquet"):
        assert pq.read_schema(tmp_path / "none" / file).equals(pq.read_schema(tmp_path / "one" / file))


def test_a_row_is_the_sum_of_its_calls_but_for_the_judges(tmp_path: Path) -> None:
    paid = CallCost(attempts=3, billed=Usage(30, 0, 6, 0))
    calls = [
        model_call(0, role="planner", usage=Usage(10, 5, 2, 1), call_cost=paid),
        model_call(1, role="tool", place=Place("E2", 1), usage=Usage(20, 0, 3, 0)),
        model_call(2, kind="tool", name="LLM", role="tool", usage=Usage()),
        model_call(3, role="solver", usage=Usage(7, 0, 1, 0)),
        model_call(4, role="solver", status="error", usage=Usage(), call_cost=CallCost(attempts=2)),
        model_call(5, role="judge", usage=Usage(1000, 0, 1000, 0), call_cost=CallCost(attempts=9)),
    ]
    (row,) = rows(written(tmp_path, result(calls=calls)))
    expected = {
        "llm_calls": 4, "tool_calls": 1, "input_tokens": 37, "cached_input_tokens": 5, "output_tokens": 6,
        "reasoning_tokens": 1, "total_tokens": 43, "planner_tokens": 12, "solver_tokens": 8, "tool_llm_tokens": 23,
        "agent_tokens": 0, "billed_tokens": 67, "retries": 3,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_a_tools_call_has_no_tokens(tmp_path: Path) -> None:
    calls = [model_call(0), model_call(1, kind="tool", name="Search", role="tool", usage=Usage())]
    folder = written(tmp_path, result(calls=calls))
    of_model, of_tool = rows(folder, "calls.parquet")
    tokens = [name for name in of_tool if name.endswith("_tokens")]
    assert len(tokens) == 20
    assert {of_tool[name] for name in tokens} == {None}
    assert None not in {of_model[name] for name in tokens if name not in SHARED}


def test_the_cost_of_a_question_whose_calls_all_failed_isnt_known(tmp_path: Path) -> None:
    failed = [model_call(status="error", usage=Usage(), call_cost=CallCost(attempts=2))]
    (row,) = rows(written(tmp_path / "failed", result(answer=None, calls=failed, cost_usd=0.0)))
    assert row["cost_usd"] is None
    (row,) = rows(written(tmp_path / "no calls", result(calls=[], cost_usd=0.0)))
    assert row["cost_usd"] == 0.0


def test_what_the_tools_brought_is_counted_once_a_step(tmp_path: Path) -> None:
    steps = (Step("E1", observation="Oslo lies on a fjord."), Step("E2", observation="No results."))
    (row,) = rows(written(tmp_path, replace(result(), trajectory=Trajectory("Oslo", "answered", steps))))
    assert row["evidence_tokens"] == count_tokens("Oslo lies on a fjord.") + count_tokens("No results.")


def test_a_row_says_what_was_asked_answered_and_scored(tmp_path: Path) -> None:
    (row,) = rows(written(tmp_path, result(4, "Rhine", arch="react", trial=2)))
    expected = {
        **RUN, "architecture": "react", "example_id": "q4", "question_type": "bridge", "trial": 2,
        "question": "Which river? (4)", "answers": ["Seine"], "prediction": "Rhine", "exact_match": False, "f1": 0.0,
        "stop_reason": "answered", "error": None, "judged_correct": None, "cost_usd": 0.001, "started_at": MOMENT,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_a_failed_question_has_no_exact_match_and_says_why(tmp_path: Path) -> None:
    (row,) = rows(written(tmp_path, result(answer=None, cost_usd=None)))
    assert (row["exact_match"], row["f1"], row["prediction"], row["cost_usd"]) == (None, None, None, None)
    assert (row["stop_reason"], row["error"]) == ("error", "the provider failed")


@pytest.mark.parametrize(
    ("sources", "source"),
    [
        (["provider", "provider"], "provider"),
        (["estimated"], "estimated"),
        (["provider", "estimated"], "mixed"),
        ([], None),
    ],
)
def test_estimated_tokens_are_marked(tmp_path: Path, sources: list[Any], source: str | None) -> None:
    calls = [model_call(call_cost=CallCost(usage_source=each)) for each in sources]
    failed = model_call(status="error", call_cost=CallCost(usage_source="estimated"))
    written(tmp_path, result(calls=[*calls, failed]))
    assert rows(tmp_path)[0]["usage_source"] == source
    assert [row["usage_source"] for row in rows(tmp_path, "calls.parquet")] == [*sources, None]


def test_calls_are_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    calls = [model_call(start=2.0, end=3.0, role="solver"), model_call(start=0.0, end=4.0, role="planner")]
    written(tmp_path, result(calls=calls))
    found = [(row["call_index"], row["role"], row["latency_s"]) for row in rows(tmp_path, "calls.parquet")]
    assert found == [(0, "planner", 4.0), (1, "solver", 1.0)]


@settings(max_examples=25)
@given(st.permutations(range(7)))
def test_rows_are_written_in_the_order_of_the_run(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    folder = written(tmp_path_factory.mktemp("run"), *(result(index) for index in order))
    expected = [f"q{index}" for index in range(7)]
    assert [row["example_id"] for row in rows(folder)] == expected
    assert [trace["example_id"] for trace in traces(folder)] == expected


def test_an_export_that_fails_leaves_the_files_of_the_one_before(tmp_path: Path) -> None:
    written(tmp_path, result(0))

    def tasks() -> Iterator[TaskKey]:
        yield result(0).task.key
        raise MemoryError

    async def write() -> None:
        async with open_run(tmp_path, RUN) as opened:
            await opened.export(tasks())

    with pytest.raises(MemoryError):
        anyio.run(write)
    assert [row["example_id"] for row in rows(tmp_path)] == ["q0"]


def test_a_question_done_again_takes_the_place_of_its_failure(tmp_path: Path) -> None:
    written(tmp_path, result(0, None), result(0))
    assert [row["prediction"] for row in rows(tmp_path)] == ["Seine"]


def test_a_latency_that_was_not_measured_is_none(tmp_path: Path) -> None:
    resumed = model_call(call_cost=CallCost(measured_s=2.5))
    replayed = model_call(call_cost=CallCost(replayed=True))
    written(tmp_path, result(0, calls=[resumed]), result(1, calls=[replayed]), result(2))
    assert [row["latency_s"] for row in rows(tmp_path)] == [None, None, 1.0]
    assert [row["latency_s"] for row in rows(tmp_path, "calls.parquet")] == [2.5, None, 1.0]


def test_more_rows_than_a_group_holds_are_all_written(tmp_path: Path) -> None:
    written(tmp_path, *(result(index) for index in range(2001)))
    assert [row["example_id"] for row in rows(tmp_path)] == [f"q{index}" for index in range(2001)]
    assert pq.ParquetFile(tmp_path / "questions.parquet").num_row_groups == 3


def test_a_trace_holds_plan_evidence_and_steps(tmp_path: Path) -> None:
    steps = (Step("E1", "find it", "Search", "Île-de-France", "Paris → Seine"),)
    trajectory = Trajectory("Seine", "answered", steps, [{"id": "E1"}], {"E1": "Paris"}, notes={"path": Path("x")})
    written(tmp_path, result(trajectory=trajectory))
    text = (tmp_path / "traces.jsonl").read_text(encoding="utf-8")
    assert "Île-de-France" in text
    trace = json.loads(text)
    assert (trace["plan"], trace["evidence"], trace["notes"]) == ([{"id": "E1"}], {"E1": "Paris"}, {"path": "x"})
    assert trace["steps"][0]["observation"] == "Paris → Seine"


def test_several_runs_load_as_one_table_that_joins_by_question(tmp_path: Path) -> None:
    for arch in ("rewoo", "react"):
        results = [
            result(2 * i + trial, example=result(i).task.example, trial=trial, arch=arch)
            for i in range(3)
            for trial in range(2)
        ]
        written(tmp_path / arch, *results, run={**RUN, "run_id": arch})
    frame = load(tmp_path / "rewoo", str(tmp_path / "react" / "questions.parquet"))
    assert frame["run_id"].tolist() == ["rewoo"] * 6 + ["react"] * 6
    both = frame[frame.run_id == "rewoo"].merge(frame[frame.run_id == "react"], on=["example_id", "trial"])
    assert len(both) == 6


def test_what_is_no_run_is_told_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_manifest(Path("results/local/gone"), Manifest(run_id="gone"))
    with pytest.raises(DataError, match="'gone' is no run: no such file or folder; did you mean 'results/local/gone'"):
        load("gone")


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(tmp_path / "new", Manifest(run_id="new", status="running"))
    written = manifest_of({"run_id": "new", "status": "done", "options": {"seed": 3}, "a later key": [1]})
    write_manifest(tmp_path / "new", written)
    read = read_manifest(tmp_path / "new")
    assert read == written.model_copy(update={"format_version": FORMAT_VERSION})
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.json"]


def test_user_info_of_an_address_is_not_kept(tmp_path: Path) -> None:
    address = "https://me:s3cret@host:8000/v1"
    command = ["run", "--api-base", address, "a:b@c"]
    write_manifest(tmp_path, Manifest(run_id="new", command=command, options={"api_base": address}))
    text = (tmp_path / "run.json").read_text()
    assert "s3cret" not in text
    assert read_manifest(tmp_path).options["api_base"] == "https://***@host:8000/v1"
    assert read_manifest(tmp_path).command[-1] == "a:b@c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"run_id": "new", "dataset": {"examples": "many"}}', "dataset.examples: Input should be a valid integer"),
        ("{}", "run.json: not a manifest of a run: it has no run_id"),
        ('{"run_id": "new", "architectures": [{}]}', "architectures.0.name: Field required"),
        ('{"run_id": "new", "format_version": 99}', "its format_version is 99; this rewoo_bench reads 3"),
    ],
)
def test_what_is_no_manifest_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DataError, match=re.escape(message)):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("drafts", "broken"),
    [
        ([{"faults": []}], 0),
        ([{"faults": ["x"]}, {"faults": []}], 1),
        (None, None),
    ],
)
def test_broken_plans_are_the_drafts_with_faults(tmp_path: Path, drafts: Any, broken: int | None) -> None:
    written(tmp_path, result(trajectory=Trajectory("Seine", "answered", notes={"drafts": drafts})))
    assert rows(tmp_path)[0]["broken_plans"] == broken


def test_a_column_that_came_later_than_the_file_is_null_and_a_file_without_a_key_is_no_run(tmp_path: Path) -> None:
    file = written(tmp_path / "run", result()) / "questions.parquet"
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["retries", "question_type"]), file)
    frame = load(tmp_path / "run")
    assert frame[["retries", "question_type"]].isna().all(axis=None)
    assert list(frame.drop(columns=["retries", "question_type", "run_folder"])) == [
        name for name in table.column_names if name not in ("retries", "question_type")
    ]
    pq.write_table(table.drop_columns(["example_id"]), file)
    with pytest.raises(DataError, match="the column 'example_id' is missing"):
        load(tmp_path / "run")
