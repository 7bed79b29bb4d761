"""Imported trajectories as a run: its rows, calls and traces hold what a ledger of the conversation has."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from delegated_spans import delegated
from langfuse_traces import asks, langfuse_trace, observation

import rewoo_bench
from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.cli.main import group
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.evaluation.resume import resumed
from rewoo_bench.gate.check import check_run
from rewoo_bench.imports.formats import FORMATS
from rewoo_bench.imports.write import ImportChoices, Imported, import_run
from rewoo_bench.runs.rows import failed
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.types import Message


def call(id_: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id_, "function": {"name": "weather", "arguments": json.dumps(arguments)}}


def record(task: str, trial: int, reward: float | None, **usage: Any) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"How warm is it in {task}?"},
        {"role": "assistant", "content": None, "tool_calls": [call("a", city=task)], **usage},
        {"role": "tool", "tool_call_id": "a", "content": "12"},
        {"role": "assistant", "content": "12 degrees.", **usage},
    ]
    return {"task_id": task, "trial": trial, "reward": reward, "messages": messages}


_TOKENS = {"prompt_tokens": 40, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 32}}
USAGE = {"usage": _TOKENS, "cost": 0.001}


def imported(folder: Path, records: list[Any], **choices: Any) -> Imported:
    path = folder / "traces.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return anyio.run(partial(import_run, [path], folder / "run", ImportChoices(**choices)))


def test_rows_have_what_was_recorded(tmp_path: Path) -> None:
    done = imported(tmp_path, [record("Oslo", 0, 1.0, **USAGE), record("Oslo", 1, 0.0, **USAGE)], agent="bot")
    assert (done.rows, done.unreadable, dict(done.formats)) == (2, 0, {"messages": 2})
    rows = pq.read_table(done.folder / "questions.parquet").to_pylist()
    assert [(row["architecture"], row["example_id"], row["trial"], row["exact_match"]) for row in rows] == [
        ("bot", "Oslo", 0, True),
        ("bot", "Oslo", 1, False),
    ]
    for row in rows:
        amounts = [
            row[name] for name in ("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens")
        ]
        assert amounts == [2, 1, 80, 64, 10]
        assert row["cost_usd"] == pytest.approx(0.002)
        assert (row["usage_source"], row["stop_reason"], row["prediction"]) == ("provider", "answered", "12 degrees.")
        assert (row["latency_s"], row["f1"]) == (None, None)
    calls = pq.read_table(done.folder / "calls.parquet").to_pylist()
    assert [(each["kind"], each["place"], each["status"]) for each in calls[:3]] == [
        ("model", "turn 1", "ok"),
        ("tool", "turn 1", "ok"),
        ("model", "turn 2", "ok"),
    ]
    for column in ("input_tokens", "output_tokens", "cached_input_tokens"):
        assert sum(each[column] or 0 for each in calls) == sum(row[column] for row in rows)
    assert [each["started_at"] for each in calls] == [each["latency_s"] for each in calls] == [None] * 6
    (first, _) = map(json.loads, (done.folder / "traces.jsonl").read_text().splitlines())
    assert first["system"] == "Be brief."
    assert [(step["id"], step["tool"], step["argument"], step["observation"]) for step in first["steps"]] == [
        ("1", "weather", '{"city": "Oslo"}', "12"),
        ("2", None, "", ""),
    ]


def test_tokens_that_werent_recorded_are_counted_and_said(tmp_path: Path) -> None:
    done = imported(tmp_path, [record("Oslo", 0, 1.0)])
    (row,) = pq.read_table(done.folder / "questions.parquet").to_pylist()
    first = count_messages([Message("system", "Be brief."), Message("user", "How warm is it in Oslo?")])
    written = count_tokens("weather") + count_tokens('{"city": "Oslo"}')
    second = first + 3 + written + 3 + count_tokens("12")  # two messages more
    assert row["input_tokens"] == first + second
    assert row["output_tokens"] == written + count_tokens("12 degrees.")
    assert row["usage_source"] == "estimated"
    assert set(done.lacks) == {"usage", "tools", "times"}


def test_tokens_of_a_whole_conversation_are_shared_among_its_calls(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 101, "prompt_tokens_details": {"cached_tokens": 640}}
    done = imported(tmp_path, [{**record("Oslo", 0, 1.0), "usage": usage}])
    (row,) = pq.read_table(done.folder / "questions.parquet").to_pylist()
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "usage_source")
    assert [row[name] for name in names] == [1000, 640, 101, "provider"]
    first, second = calls_of(done, "model")
    assert first["input_tokens"] + second["input_tokens"] == 1000
    assert first["output_tokens"] + second["output_tokens"] == 101
    assert 0 < first["input_tokens"] < second["input_tokens"]
    assert first["cached_input_tokens"] + second["cached_input_tokens"] == 640
    assert first["usage_source"] == "estimated"
    assert set(done.lacks) == {"shares", "times"}
    assert len(plannable(done.folder).calls) == 1


def test_tokens_of_one_call_beside_a_conversation_arent_those_of_all(tmp_path: Path) -> None:
    bare = record("Oslo", 0, 1.0)
    (tmp_path / "bare").mkdir()
    counted = [row["input_tokens"] for row in calls_of(imported(tmp_path / "bare", [bare]), "model")]
    done = imported(tmp_path, [{**bare, "usage": {"prompt_tokens": counted[-1], "completion_tokens": 4}}])
    assert [row["input_tokens"] for row in calls_of(done, "model")] == counted
    assert "usage" in done.lacks


@pytest.mark.parametrize("form", ["ISO 8601", "seconds", "milliseconds"])
def test_times_of_messages_are_those_of_calls(form: str, tmp_path: Path) -> None:
    def moment(second: int) -> Any:
        return f"2026-01-01T00:00:{second:02}Z" if form == "ISO 8601" else second + {"seconds": 10**9}.get(form, 10**12)

    timed_record = record("Oslo", 0, 1.0, **USAGE)
    unit = 1000 if form == "milliseconds" else 1
    for message, second in zip(timed_record["messages"], (0, 1, 3, 7, 8), strict=True):
        message["created_at"] = moment(second * unit)
    done = imported(tmp_path, [timed_record])
    assert not done.lacks["times"]
    assert [row["latency_s"] for row in calls_of(done, "model")] == [2.0, 1.0]
    assert [row["latency_s"] for row in calls_of(done, "tool")] == [4.0]


def test_tasks_that_nobody_judged_havent_failed(tmp_path: Path) -> None:
    done = imported(tmp_path, [record("Oslo", 0, None), record("Bergen", 0, None)])
    rows = rewoo_bench.load(done.folder)
    assert rows["exact_match"].isna().all()
    assert not failed(rows).any()
    (summary,) = rewoo_bench.summarise(rows)
    assert (summary.failed, summary.exact_match.n, summary.llm_calls) == (0, 0, 2.0)


def test_trials_of_a_task_are_numbered_where_nobody_says(tmp_path: Path) -> None:
    records = [record("Oslo", 0, 1.0) for _ in range(3)]
    del records[1]["trial"]
    done = imported(tmp_path, records)
    rows = pq.read_table(done.folder / "questions.parquet").to_pylist()
    assert [row["trial"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize("named", [True, False], ids=["with a task", "without"])
def test_a_file_that_is_there_twice_is_read_once(named: bool, tmp_path: Path) -> None:
    records = [record(city, 0, 1.0) for city in ("Oslo", "Oslo", "Bergen")]
    lines = [json.dumps(each if named else {"messages": each["messages"]}) for each in records]
    (tmp_path / "all").mkdir()
    for name in ("a", "a (copy)"):
        (tmp_path / "all" / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "all" / "b.jsonl").write_text(json.dumps({**record("Oslo", 0, 1.0), "agent": "another"}))
    out = tmp_path / "run"
    made = CliRunner().invoke(group, ["import", str(tmp_path / "all"), "--out", str(out)], standalone_mode=False)
    assert made.return_value == 0
    assert pq.read_table(out / "questions.parquet").num_rows == 4
    assert "note: 3 traces" in made.output


def test_a_tool_belongs_to_the_call_that_asked_for_it_and_an_agent_in_a_tool_is_left_as_it_is(tmp_path: Path) -> None:
    done = imported(tmp_path, [delegated(number) for number in (1, 2)])
    calls = pq.read_table(done.folder / "calls.parquet").to_pylist()[:7]
    assert [(each["name"], each["role"], each["place"]) for each in calls] == [
        ("gpt-4o", "agent", "turn 1"),
        ("ask", "tool", "turn 1"),
        ("gpt-4o", "tool", "helper/turn 2"),
        ("look", "tool", "helper/turn 2"),
        ("search", "tool", "turn 1"),
        ("gpt-4o", "tool", "helper/turn 3"),
        ("gpt-4o", "agent", "turn 4"),
    ]
    rows = pq.read_table(done.folder / "questions.parquet").to_pylist()
    assert [(row["steps"], row["llm_calls"], row["tool_calls"]) for row in rows] == [(3, 4, 3)] * 2
    found = plannable(done.folder).tasks
    assert set(found[found["way"] == "loop"]["model_calls"]) == {4}


def test_an_agent_that_asks_models_in_tools_alone_is_a_loop(tmp_path: Path) -> None:
    document = delegated()
    (scope,) = document["resourceSpans"][0]["scopeSpans"]
    scope["spans"] = [span for span in scope["spans"] if span["parentSpanId"][-1:] != "1" or span["name"] != "chat"]
    done = imported(tmp_path, [document])
    models = [each for each in pq.read_table(done.folder / "calls.parquet").to_pylist() if each["kind"] == "model"]
    assert [(each["role"], each["place"]) for each in models] == [
        ("agent", "helper/turn 1"),
        ("agent", "helper/turn 2"),
    ]


def test_users_turns_that_only_prompts_have_are_turns(tmp_path: Path) -> None:
    def span(number: int, texts: list[str], reply: str) -> dict[str, Any]:
        prompt = [
            {"role": "user" if place % 2 == 0 else "assistant", "content": text} for place, text in enumerate(texts)
        ]
        attributes = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o",
            "gen_ai.input.messages": json.dumps(prompt),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": reply}]),
        }  # fmt: skip
        listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        times = {"startTimeUnixNano": str(number * 10**9), "endTimeUnixNano": str((number + 1) * 10**9)}
        return {"traceId": "a" * 32, "spanId": f"{number:016x}", "name": "chat", "attributes": listed, **times}

    spans = [span(1, ["Hi"], "Where to?"), span(2, ["Hi", "Where to?", "Oslo"], "Booked.")]
    done = imported(tmp_path, [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}])
    (trace,) = map(json.loads, (done.folder / "traces.jsonl").read_text().splitlines())
    assert trace["turns"] == [{"before_step": 1, "text": "Oslo"}]
    assert [step["thought"] for step in trace["steps"]] == ["Where to?", "Booked."]
    (row,) = pq.read_table(done.folder / "questions.parquet").to_pylist()
    assert (row["llm_calls"], row["latency_s"], row["model"]) == (2, 2.0, "gpt-4o")


def test_an_odd_value_costs_its_own_record_at_most(tmp_path: Path) -> None:
    many, odd = record("Oslo", 0, 1.0), record("Hamar", 0, 1.0)
    many["messages"][2]["usage"] = {"prompt_tokens": 10**30, "completion_tokens": 1}
    odd["messages"][2]["finish_reason"] = {"a": [1]}
    done = imported(tmp_path, [many, odd, record("Bergen", 0, 1.0)])
    assert done.rows + done.unreadable == 3
    assert "Bergen" in pq.read_table(done.folder / "questions.parquet")["example_id"].to_pylist()


def test_an_import_that_broke_off_can_be_made_again(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(record("Oslo", 0, 1.0)))
    with pytest.raises(KeyboardInterrupt):
        anyio.run(partial(import_run, [path], tmp_path / "run", ImportChoices(), stop))
    assert imported(tmp_path, [record("Oslo", 0, 1.0)]).rows == 1


def test_a_folder_with_a_run_is_refused_and_nothing_readable_leaves_none(tmp_path: Path) -> None:
    imported(tmp_path, [record("Oslo", 0, 1.0)])
    with pytest.raises(UsageError, match="holds another run; choose a new folder"):
        imported(tmp_path, [record("Oslo", 0, 1.0)])
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(DataError, match=r"nothing could be read: traces.jsonl: no known format"):
        imported(other, [{"rows": 1}])
    assert not (other / "run").exists()


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b"a,b\n1,2\n"), ("b.zip", b"PK\3\4\24\0\0\0"), ("c.json", b""), ("d.json", b"[]")]
)
def test_what_holds_no_traces_is_refused_with_what_can_be_read(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refused:
        anyio.run(partial(import_run, [tmp_path / name], tmp_path / "run"))
    said = str(refused.value)
    assert [each for each in (name, "JSON lines", *FORMATS) if each not in said] == []


@pytest.mark.parametrize(
    ("recorded", "given", "said"),
    [("", [], "--model NAME"), ("", ["--model", "gpt-4o"], ""), ("gpt-4o", [], ""), ("mine-7b", [], "mine-7b")],
)
def test_a_model_without_a_price_is_said(recorded: str, given: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({**record("Oslo", 0, 1.0), "model": recorded}))
    made = CliRunner().invoke(
        group, ["import", str(path), "--out", str(tmp_path / "run"), *given], standalone_mode=False
    )
    lines = [line for line in made.output.splitlines() if "prices are an example's" in line]
    assert len(lines) == bool(said)
    assert said in "".join(lines)
    shown = tables.text(plannable(tmp_path / "run"))
    assert ("an example, since" in shown) == bool(said)


def test_an_import_cant_be_resumed(tmp_path: Path) -> None:
    done = imported(tmp_path, [record("Oslo", 0, 1.0)])
    with pytest.raises(UsageError, match="this run was imported: there is nothing to go on with"):
        resumed(done.folder, {})


def test_the_command_says_what_it_read_what_is_missing_and_what_it_couldnt_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(record("Oslo", 0, 1.0)) + '\n{"rows": 1}\n')
    out = tmp_path / "run"
    result = CliRunner().invoke(
        group, ["import", str(path), "--out", str(out), "--agent", "bot"], standalone_mode=False
    )
    assert result.return_value == 3
    assert result.stdout.splitlines()[0] == f"{out}: 1 trace, read as messages (1)"
    assert "note: no tokens were recorded: they are counted with a tokenizer, and marked as estimated" in result.stdout
    assert result.stderr.startswith("not read: mine.jsonl, line 2: no known format: an object with 'rows'")


def test_calls_whose_arguments_are_no_json_are_counted(tmp_path: Path) -> None:
    trace = record("Oslo", 0, 1.0)
    trace["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{bad"
    (tmp_path / "traces.json").write_text(json.dumps(trace))
    args = ["import", str(tmp_path / "traces.json"), "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(group, args, standalone_mode=False)
    said = "note: 1 call has arguments that aren't JSON: they are kept as one text"
    assert said in result.stdout.splitlines()


def calls_of(done: Imported, kind: str) -> list[dict[str, Any]]:
    return [row for row in pq.read_table(done.folder / "calls.parquet").to_pylist() if row["kind"] == kind]


def test_cached_tokens_are_null_where_nobody_recorded_them(tmp_path: Path) -> None:
    without_field = {"usage": {"prompt_tokens": 40, "completion_tokens": 5}}
    zero = {"usage": {"input_tokens": 40, "output_tokens": 5, "cache_read_input_tokens": 0}}
    cities: dict[str, dict[str, Any]] = {"Oslo": {}, "Bergen": USAGE, "Moss": zero, "Hamar": without_field}
    done = imported(tmp_path, [record(city, 0, 1.0, **usage) for city, usage in cities.items()], agent="bot")
    assert [row["cached_input_tokens"] for row in calls_of(done, "model")] == [None, None, 32, 32, 0, 0, None, None]
    questions = pq.read_table(done.folder / "questions.parquet")
    assert questions["cached_input_tokens"].to_pylist() == [None, 64, 0, None]
    (summary,) = rewoo_bench.summarise(rewoo_bench.load(done.folder))
    assert summary.cached_input_tokens == 32  # of the two that say it
    budgets = tmp_path / "budgets.toml"
    limits = 'architecture = "bot"\ndataset = "traces"\nmodel = "unknown"\ncached_input_tokens = { mean_at_least = 30 }'
    budgets.write_text(f"[[budget]]\n{limits}\n")
    assert check_run(done.folder, budgets=budgets, baseline=done.folder).code == 0


def timed(task: str, begun: float, *, tool: bool) -> dict[str, Any]:
    """A trace with two calls of 2 seconds, 10 seconds apart."""

    def times(start: float) -> tuple[float, float]:
        return begun + start, begun + start + 2

    asked = asks("weather", json.dumps({"city": task}))
    said = [{"role": "user", "content": "How warm is it? " * 400}]
    found = [*said, asked, {"role": "tool", "tool_call_id": "a", "content": "12"}]
    weather = observation("TOOL", times(4), name="weather", input={"city": task}, output="12")
    observations = [
        observation("GENERATION", times(0), input=said, output=asked),
        *([weather] if tool else []),
        observation("GENERATION", times(10), input=found, output={"role": "assistant", "content": "12 degrees."}),
    ]
    return langfuse_trace(task, observations, solved=True)


def test_a_tool_whose_time_is_missing_takes_nothing_from_the_other_calls(tmp_path: Path) -> None:
    done = imported(tmp_path, [timed("Oslo", 1.7e9, tool=False), timed("Bergen", 1.7e9 + 60, tool=True)])
    assert dict(done.lacks) == {"usage": 2, "tools": 2, "tool times": 1}
    assert [row["latency_s"] for row in calls_of(done, "model")] == [2.0] * 4
    assert [row["latency_s"] for row in calls_of(done, "tool")] == [None, 2.0]
    assert [row["started_at"] is None for row in calls_of(done, "tool")] == [True, False]
    places = [(row["kind"], row["call_index"]) for row in pq.read_table(done.folder / "calls.parquet").to_pylist()]
    assert places[:3] == [("model", 0), ("tool", 1), ("model", 2)]
    assert pq.read_table(done.folder / "questions.parquet")["latency_s"].to_pylist() == [12.0, 12.0]
    assert [row["shared_question_age_s"] for row in calls_of(done, "model")] == [None, 8.0, None, 8.0]
    assert calls_of(done, "model")[2]["shared_run_age_s"] == pytest.approx(48.0)


def spans(trace: str, *, arguments: bool, said: bool = False) -> dict[str, Any]:
    """A call of a model, of a tool, and of the model again, as OpenTelemetry writes them without what was said."""
    prompt = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"How warm is it in {trace}?"}]}])
    chat: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 40}
    chat |= {"gen_ai.input.messages": prompt} if said else {}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    tool |= {"gen_ai.tool.call.arguments": json.dumps({"city": trace})} if arguments else {}
    listed = [
        {
            "traceId": trace, "spanId": f"{trace}{place}", "name": "x",
            "startTimeUnixNano": str(10**18 + place), "endTimeUnixNano": str(10**18 + place + 1),
            "attributes": [
                {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue": value}}
                for key, value in attributes.items()
            ],
        }
        for place, attributes in enumerate((chat, tool, chat))
    ]  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "a"}, "spans": listed}]}]}


@pytest.mark.parametrize(
    ("arguments", "lacks", "reason"),
    [
        (False, "arguments", "the arguments of its tool calls weren't recorded"),
        (True, "said", "what the user said wasn't recorded"),
    ],
)
def test_spans_without_what_was_said_or_asked_for_cant_be_judged(
    arguments: bool, lacks: str, reason: str, tmp_path: Path
) -> None:
    silent = [spans(trace, arguments=arguments) for trace in ("Oslo", "Bergen")]
    done = imported(tmp_path, silent)
    assert done.lacks[lacks] == 2
    with pytest.raises(DataError, match=f"{reason}: 2"):
        plannable(done.folder)
    (tmp_path / "both").mkdir()
    done = imported(tmp_path / "both", [*silent, spans("Moss", arguments=True, said=True)])
    found = plannable(done.folder)
    assert found.left_out == {reason: 2}
    assert found.calls[["example_id", "known", "values"]].to_numpy().tolist() == [["moss", 1, 1]]


def test_an_answer_that_wasnt_recorded_isnt_empty(tmp_path: Path) -> None:
    empty = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": ""}]
    done = imported(tmp_path, [spans("Oslo", arguments=False), {"messages": empty}])
    rows = pq.read_table(done.folder / "questions.parquet").to_pylist()
    assert {row["stop_reason"]: row["prediction"] for row in rows} == {"answered": None, "empty_answer": None}
