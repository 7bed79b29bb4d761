"""Spans of real runs, recorded by packages for OpenTelemetry: their calls equal the ledger of the model's server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from broken_json import mutated, trajectories_or_faults
from recorded_telemetry import conversations, file_of, imported_calls, ledger_calls, ledger_of, read

from rewoo_bench.imports.formats import Fields, read_files
from rewoo_bench.imports.record import RecordedTrajectory, Times, ToolUse
from rewoo_bench.imports.tree import Node, trajectories_of

WITH_TEXTS = {  # and what each doesn't record
    "traceloop": (),
    "traceloop-indexed": ("reasoning",),
    "openinference": (),
    "openinference-console": (),
    "openai-v2-attributes": ("cached", "reasoning"),
    "openai-v2-log-events": ("cached", "reasoning"),
    "openai-v2-operation-details": ("cached", "reasoning"),
    "langgraph-twice": (),
    "pydantic-ai": (),
    "pydantic-ai-twice": (),
    "langfuse-sdk": (),
}


@pytest.mark.parametrize("name", WITH_TEXTS)
def test_calls_prompts_and_tools_are_those_of_the_ledger(name: str) -> None:
    assert conversations(read(name)) == ledger_of(name, WITH_TEXTS[name])


@pytest.mark.by_day(4)
@pytest.mark.parametrize("name", WITH_TEXTS)
def test_the_rows_of_the_run_are_those_of_the_ledger(name: str, tmp_path: Path) -> None:
    assert imported_calls(name, tmp_path) == ledger_calls(name, WITH_TEXTS[name])


def test_spans_without_texts_have_their_tokens_and_no_prompts() -> None:
    found = read("openai-v2-without-texts")
    ledger = ledger_of("openai-v2-without-texts", ("cached", "reasoning"))
    for trajectory, of in zip(found, ledger, strict=True):
        calls = list(trajectory.calls)
        assert [call.messages for call in calls] == [None] * len(calls)
        tokens = [(call.usage.input_tokens, call.usage.output_tokens) for call in calls if call.usage]
        assert tokens == [(each["input"], each["output"]) for each in of["calls"]]
        assert len(trajectory.events) == len(calls)
        assert trajectory.answer is None


def chat(id_: str, start: int, parent: str = "", scope: str = "a", **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **more}
    return span(id_, start, start + 10, parent, scope, attributes)


def span(id_: str, start: int, end: int, parent: str, scope: str, attributes: dict[str, Any]) -> dict[str, Any]:
    listed = [{"key": name, "value": typed(value)} for name, value in attributes.items()]
    ids = {"traceId": "0" * 30 + "12", "spanId": id_.rjust(16, "a"), "parentSpanId": parent and parent.rjust(16, "a")}
    times = {"startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str(end * 10**9)}
    spans = [{**ids, **times, "name": "x", "attributes": listed}]
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": spans}]}]}


def typed(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def trajectories(folder: Path, *lines: Any) -> list[RecordedTrajectory]:
    file = folder / "spans.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = list(read_files([file]))
    assert [each.fault for each in found if each.fault] == []
    return [each.trajectory for each in found if each.trajectory is not None]


TOKENS: dict[str, Any] = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}


def test_a_call_in_a_span_of_the_same_call_is_counted_once(tmp_path: Path) -> None:
    more: dict[str, Any] = {"gen_ai.usage.cache_read.input_tokens": 8}
    (found,) = trajectories(tmp_path, chat("1", 5, **{**TOKENS, **more}), chat("2", 5, parent="1", scope="b", **TOKENS))
    (call,) = found.calls
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cached_input_tokens) == (10, 8)


def test_a_span_around_several_calls_is_none_of_them(tmp_path: Path) -> None:
    outer = chat("1", 5, **{**TOKENS, "gen_ai.usage.input_tokens": 20})
    lines = [outer, *(chat(id_, start, "1", "b", **TOKENS) for id_, start in (("2", 5), ("3", 9)))]
    (found,) = trajectories(tmp_path, *lines)
    assert [call.usage and call.usage.input_tokens for call in found.calls] == [10, 10]


def test_a_call_around_its_attempts_has_the_tokens(tmp_path: Path) -> None:
    lines = [chat("1", 5, **TOKENS), *(chat(id_, start, "1", "b") for id_, start in (("2", 5), ("3", 9)))]
    (found,) = trajectories(tmp_path, *lines)
    assert [call.usage and call.usage.input_tokens for call in found.calls] == [10]


def test_equal_calls_of_one_package_at_the_same_time_are_two(tmp_path: Path) -> None:
    (found,) = trajectories(tmp_path, chat("1", 5, **TOKENS), chat("2", 5, **TOKENS))
    assert len(list(found.calls)) == 2
    twice = [chat(id_, 5, scope=scope, **TOKENS) for id_, scope in (("1", "a"), ("2", "a"), ("3", "b"), ("4", "b"))]
    (found,) = trajectories(tmp_path, *twice)
    assert len(list(found.calls)) == 2


def console(id_: str, name: str, start: int, end: int, **attributes: Any) -> dict[str, Any]:
    """A span of the console exporter, which writes no scope."""
    times = {"start_time": f"2026-01-01T00:00:{start:02}Z", "end_time": f"2026-01-01T00:00:{end:02}Z"}
    more = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **TOKENS, **attributes}
    return {"name": name, "context": {"trace_id": "0x12", "span_id": id_}, **times, "attributes": more}


def test_a_call_that_two_packages_recorded_is_counted_once_without_their_names(tmp_path: Path) -> None:
    outer = console("1", "anthropic.chat", 1, 9, **asked("one?"))
    inner = console("2", "anthropic.messages.create", 2, 8)
    (found,) = trajectories(tmp_path, inner, outer)
    assert [len(call.messages or ()) for call in found.calls] == [1]
    answered = [console(id_, id_, 1, 9, **{"gen_ai.response.id": id_}) for id_ in ("1", "2")]
    (found,) = trajectories(tmp_path, *answered)
    assert len(list(found.calls)) == 2
    (found,) = trajectories(tmp_path, console("1", "chat m", 1, 9), console("2", "chat m-mini", 2, 8))
    assert len(list(found.calls)) == 2


def agent(id_: str, start: int, end: int, name: str, parent: str = "") -> dict[str, Any]:
    return span(id_, start, end, parent, "a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name})


def asked(text: str) -> dict[str, Any]:
    return {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])}


def test_an_agent_that_is_asked_twice_in_a_trace_makes_two_trajectories(tmp_path: Path) -> None:
    calls = [chat("3", 5, "1", **asked("one?")), chat("4", 25, "2", **asked("two?"))]
    found = trajectories(tmp_path, agent("1", 0, 20, "bot"), agent("2", 20, 40, "bot"), *calls)
    assert [(each.question, each.agent, len(list(each.calls))) for each in found] == [
        ("one?", "bot", 1),
        ("two?", "bot", 1),
    ]
    assert len({each.task for each in found}) == 2


def test_a_field_of_attributes_names_the_task(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    file.write_text(json.dumps(chat("1", 5, **TOKENS, **{"session.id": "case 9"})))
    (found,) = read_files([file], fields=Fields(task="attributes.session.id"))
    assert found.trajectory is not None
    assert found.trajectory.task == "case 9"


def test_a_prompts_earlier_replies_are_kept_as_no_calls_of_its_own() -> None:
    said = [{"role": role, "content": str(turn)} for turn in range(50) for role in ("user", "assistant")]
    nodes = [
        Node(str(end), "", "model", messages=said[:end], reply=said[end], times=Times(end, end + 1))
        for end in range(1, 100, 2)
    ]
    (found,) = trajectories_of(nodes, "long")
    assert [(len(call.messages or ()), call.reply) for call in found.calls] == [(2 * n + 1, str(n)) for n in range(50)]
    assert [len(node.conversation.events) for node in nodes] == [1] * 50


def test_whatever_is_changed_in_a_file_of_spans_it_is_read_or_a_line(
    tmp_path: Path, draws: Callable[[int], int]
) -> None:
    files = [file_of(name) for name in WITH_TEXTS]
    lines = [json.loads(line) for file in files if file.suffix == ".jsonl" for line in file.read_text().splitlines()]
    random, file = Random(7), tmp_path / "spans.json"
    for _ in range(draws(6_000)):
        file.write_text(json.dumps([mutated(line, random) for line in random.sample(lines, 2)]))
        trajectories_or_faults(file)


def ai_sdk(id_: str, start: int, operation: str, **more: Any) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in more.items()}
    texts = {name: value if isinstance(value, str | int) else json.dumps(value) for name, value in named.items()}
    return span(id_, start, start + 1, "", "ai", {"ai.operationId": operation, **texts})


def test_calls_of_the_ai_sdk_have_prompts_replies_arguments_and_results(tmp_path: Path) -> None:
    asks = [{"role": "user", "content": [{"type": "text", "text": "How deep is Loch Ness?"}]}]
    call = {"toolCallId": "c1", "toolName": "depth", "args": '{"of": "Ness"}'}
    said = {"type": "tool-call", "toolCallId": "c1", "toolName": "depth", "input": {"of": "Ness"}}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "depth", "output": {"type": "json", "value": 230}}
    then = [*asks, {"role": "assistant", "content": [said]}, {"role": "tool", "content": [result]}]
    tokens = {"ai_usage_inputTokens": 30, "ai_usage_outputTokens": 4}
    (found,) = trajectories(
        tmp_path,
        ai_sdk("1", 1, "ai.streamText.doStream", ai_prompt_messages=asks, ai_response_toolCalls=[call], **tokens),
        ai_sdk("2", 2, "ai.toolCall", ai_toolCall_name="depth", ai_toolCall_id="c1", ai_toolCall_args={"of": "Ness"},
               ai_toolCall_result="230"),
        ai_sdk("3", 3, "ai.streamText.doStream", ai_prompt_messages=then, ai_response_text="230 metres", **tokens),
    )  # fmt: skip
    (use,) = [event for event in found.events if isinstance(event, ToolUse)]
    assert (use.name, use.arguments, use.result) == ("depth", {"of": "Ness"}, "230")
    assert (found.question, found.answer) == ("How deep is Loch Ness?", "230 metres")
    assert [(each.usage.total_tokens if each.usage else 0, len(each.messages or ())) for each in found.calls] == [
        (34, 1),
        (34, 3),
    ]


def test_calls_of_googles_adk_have_prompts_replies_and_the_providers_own_tokens(tmp_path: Path) -> None:
    usage = {
        "prompt_token_count": 90, "candidates_token_count": 5, "thoughts_token_count": 20, "total_token_count": 115,
    }  # fmt: skip
    request = {
        "contents": [{"role": "user", "parts": [{"text": "How deep is Loch Ness?"}]}],
        "config": {"system_instruction": "You know lochs."},
    }
    response = {"content": {"role": "model", "parts": [{"text": "230 metres"}]}, "usage_metadata": usage}
    texts = {"gcp.vertex.agent.llm_request": request, "gcp.vertex.agent.llm_response": response}
    attributes = {"gen_ai.request.model": "gemini", **{name: json.dumps(each) for name, each in texts.items()}}
    (found,) = trajectories(tmp_path, span("1", 1, 2, "", "gcp.vertex.agent", attributes))
    (call,) = found.calls
    assert (found.system, found.question, found.answer) == ("You know lochs.", "How deep is Loch Ness?", "230 metres")
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.reasoning_tokens) == (90, 25, 20)


@pytest.mark.parametrize(
    ("recorded", "counted"),
    [
        ({"prompt": 100, "completion": 20, "completion_details.reasoning": 30, "total": 150}, (100, 0, 50, 30)),
        ({"prompt": 100, "completion": 40, "completion_details.reasoning": 30, "total": 170}, (100, 0, 70, 30)),
        ({"prompt": 200, "completion": 20, "prompt_details.cache_read": 150, "total": 370}, (350, 150, 20, 0)),
        ({"prompt": 200, "completion": 20, "prompt_details.cache_read": 150, "total": 220}, (200, 150, 20, 0)),
        ({"prompt": 100, "completion": 20, "prompt_details.cache_read": 150}, (250, 150, 20, 0)),
    ],
)
def test_the_total_of_a_call_says_what_its_parts_hold(
    recorded: dict[str, int], counted: tuple[int, ...], tmp_path: Path
) -> None:
    tokens: dict[str, Any] = {f"llm.token_count.{name}": value for name, value in recorded.items()}
    (found,) = trajectories(tmp_path, chat("1", 1, **tokens))
    (call,) = found.calls
    assert call.usage is not None
    usage = call.usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.reasoning_tokens) == counted
