"""A run as logs of inspect_ai: they are imported again as the same rows."""

from __future__ import annotations

import importlib.util
import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pandas as pd
import pyarrow.parquet as pq
import pytest
from delegated_spans import delegated

from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.cli.main import main
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.evaluation.api import BenchRun, bench
from rewoo_bench.imports.publish import publish_logs
from rewoo_bench.imports.record import RecordedTrajectory
from rewoo_bench.imports.write import ImportChoices, Imported, import_run
from rewoo_bench.runs.columns import SHARED
from rewoo_bench.runs.publish import publish

pytestmark = pytest.mark.filterwarnings("ignore")  # of what inspect_ai imports
needs_inspect = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="needs inspect_ai (pip install 'rewoo-bench[inspect]')"
)
TOKENS = [f"{name}_tokens" for name in ("input", "cached_input", "output", "reasoning", "cache_write")]
OF_QUESTIONS = [
    "architecture", "example_id", "trial", "model", "prediction", "exact_match", "f1", "stop_reason", "llm_calls",
    "tool_calls", *TOKENS, "total_tokens", "cost_usd", "usage_source", "planner_tokens", "solver_tokens",
    "agent_tokens",
]  # fmt: skip
OF_CALLS = ["call_index", "kind", "name", "role", *TOKENS, "usage_source", "finish_reason", "started_at"]
WITH_TEXTS = ["question", "answers", "evidence_tokens"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    folder = tmp_path_factory.mktemp("publish") / "run"
    model = "oracle?wrong_title=0.3"
    return bench("rewoo,react,react-native,direct", model=model, out=folder, questions=5, trials=2)


def read_log(file: Path) -> Any:
    """A log as inspect_ai itself reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from inspect_ai.log import read_eval_log

        return read_eval_log(str(file))


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    keys = ("architecture", "example_id", "trial", *(["call_index"] if table == "calls" else []))
    found: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return sorted(found, key=lambda row: [row[key] for key in keys])


@needs_inspect
@pytest.mark.parametrize("texts", [False, True], ids=["without texts", "with texts"])
def test_what_was_written_is_imported_as_the_same_rows(texts: bool, run: BenchRun, tmp_path: Path) -> None:
    assert publish_logs(run.folder, tmp_path / "out", texts=texts) == 40
    done = anyio.run(partial(import_run, [tmp_path / "out"], tmp_path / "again", ImportChoices(dataset="sample")))
    assert (done.rows, done.unreadable) == (40, 0)
    assert done.lacks["results"] == (0 if texts else 30)  # `direct` uses no tool
    for table, columns in (("questions", OF_QUESTIONS), ("calls", OF_CALLS)):
        shown = [*columns, *((WITH_TEXTS if table == "questions" else ["status"]) if texts else ())]
        before, after = (rows(folder, table) for folder in (run.folder, tmp_path / "again"))
        assert len(before) == len(after) > 0
        for one, other in zip(before, after, strict=True):
            different = {name: (one[name], other[name]) for name in shown if one[name] != other[name]}
            assert not different
            if table == "calls":
                assert other["latency_s"] == pytest.approx(one["latency_s"], abs=5e-6)


@needs_inspect
def test_texts_are_left_out_unless_they_are_asked_for(run: BenchRun, tmp_path: Path) -> None:
    for texts in (False, True):
        publish_logs(run.folder, tmp_path / str(texts), texts=texts)
        told = "".join(read_log(path).model_dump_json() for path in (tmp_path / str(texts)).iterdir())
        questions = {json.dumps(question, ensure_ascii=False)[1:-1] for question in run.rows["question"]}
        assert [question in told for question in questions] == [texts] * len(questions)


@needs_inspect
def test_the_accuracy_of_a_log_is_of_questions_whatever_number_of_their_trials_there_is(tmp_path: Path) -> None:
    from rewoo_bench.imports.inspect_write import write_log

    outcomes = [("a", 0, True), ("a", 1, True), ("a", 2, True), ("b", 0, False)]
    made = [RecordedTrajectory(task, "?", [], "bot", trial, solved=solved) for task, trial, solved in outcomes]
    day = "2026-11-22T09:30:00+00:00"
    facts = {"run_id": "r", "dataset": "d", "agent": "bot", "model": "m", "started_at": day, "finished_at": day}
    write_log(tmp_path / "log.eval", facts, made)
    (score,) = read_log(tmp_path / "log.eval").results.scores
    assert score.metrics["accuracy"].value == 0.5


@needs_inspect
def test_inspect_reads_scores_and_sums_of_the_log(run: BenchRun, tmp_path: Path) -> None:
    publish_logs(run.folder, tmp_path / "out", without=["react", "direct", "react-native"])
    (file,) = (tmp_path / "out").iterdir()
    read = read_log(file)
    mine = run.rows[run.rows["architecture"] == "rewoo"]
    assert (read.status, len(read.samples), read.eval.config.epochs) == ("success", 10, 2)
    assert read.results.scores[0].metrics["accuracy"].value == mine["exact_match"].mean()
    (usage,) = read.stats.model_usage.values()
    assert usage.total_tokens == mine["total_tokens"].sum()


@needs_inspect
def test_wrong_choices_are_a_line(run: BenchRun, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--without: unknown architecture"):
        publish_logs(run.folder, tmp_path / "out", without=["rewo"])
    publish(run.folder, tmp_path / "copy")
    with pytest.raises(UsageError, match=r"--texts: .* has no journal"):
        publish_logs(tmp_path / "copy", tmp_path / "out", texts=True)
    assert publish_logs(tmp_path / "copy", tmp_path / "out") == 40
    with pytest.raises(UsageError, match="isn't empty"):
        publish_logs(run.folder, tmp_path / "out")
    with pytest.raises(SystemExit):
        main(["publish", str(run.folder), "--out", str(tmp_path / "none"), "--texts"])
    assert "it is for --format" in capfd.readouterr().err


WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}}}


def conversation(task: str) -> dict[str, Any]:
    """A conversation in which the user speaks four times, the last time without a reply, and its tools' schema."""

    def asked(id_: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": "weather", "arguments": json.dumps(arguments)}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "function": function}]}

    messages = [
        {"role": "system", "content": "Answer briefly, in the unit of the country."},
        {"role": "user", "content": f"I'm going to {task}."},
        {"role": "assistant", "content": "When?"},
        {"role": "user", "content": "On 2024-05-03."},
        asked("a", city=task, date="2024-05-03", unit="C"),
        {"role": "tool", "tool_call_id": "a", "content": json.dumps({"degrees": 12, "station": "S-4711"})},
        {"role": "assistant", "content": "12 degrees. Anything else?"},
        {"role": "user", "content": "The day after, and in Bergen?"},
        asked("b", city="Bergen", date="2024-05-04", station="S-4711"),
        {"role": "tool", "tool_call_id": "b", "content": "error: no such station"},
        asked("c", city="Bergen", unit="F"),
        {"role": "tool", "tool_call_id": "c", "content": "9"},
        {"role": "assistant", "content": "9 degrees."},
        {"role": "user", "content": "Thanks."},
    ]
    tools = [{"type": "function", "function": WEATHER}] if task != "Moss" else []
    return {"task_id": task, "reward": 1.0, "tools": tools, "messages": messages}


def imported(file: Path, out: Path) -> Imported:
    return anyio.run(partial(import_run, [file], out, ImportChoices(dataset="mine")))


def traces(folder: Path) -> list[dict[str, Any]]:
    names = ("example_id", "trial", "question", "system", "answer", "steps")
    lines = (json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines())
    return [{name: line[name] for name in names} | {"turns": line["turns"]} for line in lines]


def check_same_after(records: list[Any], folder: Path) -> None:
    """Imports records, writes them with their texts, and imports them again."""
    (folder / "mine.json").write_text(json.dumps(records))
    first = imported(folder / "mine.json", folder / "first")
    publish_logs(first.folder, folder / "out", texts=True)
    again = imported(folder / "out", folder / "again")
    assert again.lacks == first.lacks
    # inspect has schemas in words of its own, of another length
    for table, columns in (("questions", ["run_id"]), ("calls", ["run_id", *SHARED])):
        one, other = (pq.read_table(run / f"{table}.parquet").drop(columns) for run in (first.folder, again.folder))
        assert one.equals(other)
    before, after = (traces(run) for run in (first.folder, again.folder))
    for trace in (*before, *after):  # inspect has no place for what the user says at the end
        end = {"before_step": len(trace["steps"]), "text": trace["turns"][-1]["text"]} if trace["turns"] else None
        trace["turns"] = [turn for turn in trace["turns"] if turn != end]
    assert before == after
    found, once_more = plannable(first.folder), plannable(again.folder)
    assert found.calls.equals(once_more.calls)
    priced = [name for name in map(str, found.tasks) if name.startswith(("usd:", "cached:"))]
    one, other = (each.tasks.drop(columns=priced) for each in (found, once_more))
    pd.testing.assert_frame_equal(one, other, rtol=0.01)  # inspect writes a tool's schema with other words


@needs_inspect
def test_a_conversation_is_the_same_after_it_was_written_and_read(tmp_path: Path) -> None:
    check_same_after([conversation(task) for task in ("Oslo", "Moss", "Hamar")], tmp_path)
    (line, *_) = traces(tmp_path / "first")
    texts = ["On 2024-05-03.", "The day after, and in Bergen?", "Thanks."]
    assert [turn["text"] for turn in line["turns"]] == texts
    assert [turn["before_step"] for turn in line["turns"]] == [1, 3, 6]


@needs_inspect
def test_calls_at_once_and_in_a_tool_are_the_same_after_they_were_written_and_read(tmp_path: Path) -> None:
    check_same_after([delegated(number) for number in (1, 2)], tmp_path)


@needs_inspect
def test_what_was_written_without_texts_is_known_as_such(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps([conversation("Oslo"), conversation("Moss")]))
    first = imported(tmp_path / "mine.json", tmp_path / "first")
    assert "texts" not in first.lacks
    publish_logs(first.folder, tmp_path / "out")
    again = imported(tmp_path / "out", tmp_path / "again")
    assert again.lacks["texts"] == 2
    with pytest.raises(DataError, match=r"\(it was written without texts: 2\)"):
        plannable(again.folder)
    publish_logs(again.folder, tmp_path / "more", texts=True)  # there are none to write
    assert imported(tmp_path / "more", tmp_path / "third").lacks["texts"] == 2
