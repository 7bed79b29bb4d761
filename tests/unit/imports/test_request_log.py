"""Requests that a proxy logged one by one: each call is counted once, in the conversation that it belongs to."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.imports.formats import NO_FIELDS, Fields, read_files
from rewoo_bench.imports.record import RecordedTrajectory, ToolUse, Turn
from rewoo_bench.types import Usage

TOOLS = [{"type": "function", "function": {"name": "weather"}}]


def message(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def asked(id_: str, city: str) -> dict[str, Any]:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return message("assistant", None, tool_calls=[{"id": id_, "type": "function", "function": function}])


def whole(city: str) -> list[dict[str, Any]]:
    """A conversation of four calls, three of them with a tool."""
    found = [message("system", "Be brief."), message("user", f"How warm is it in {city}?")]
    for number in range(3):
        id_ = f"{city}{number}"
        found += [asked(id_, city), message("tool", str(number), tool_call_id=id_)]
    return [*found, message("assistant", f"2 degrees in {city}.")]


def requests(messages: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """The growing requests, a line each, without responses."""
    places = [place for place, each in enumerate(messages) if each["role"] == "assistant"]
    return [{"model": "m", "messages": messages[:place], "tools": TOOLS, **more} for place in places]


def pairs(messages: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """The requests with their responses, as a proxy logs them. The n-th call has 100 n + 1 tokens."""
    found = []
    for number, request in enumerate(requests(messages), 1):
        usage = {"prompt_tokens": 100 * number, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 64}}
        reply = {**messages[len(request["messages"])], "refusal": None, "reasoning_content": f"thought {number}"}
        response = {"id": f"r{number}", "model": f"m-{number}", "choices": [{"message": reply}], "usage": usage}
        found.append({"request": request, "response": response, **more})
    return found


def read(folder: Path, records: list[Any], fields: Fields = NO_FIELDS) -> list[RecordedTrajectory]:
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    found = list(read_files([path], fields=fields))
    assert [each.fault for each in found if each.fault] == []
    return [each.trajectory for each in found if each.trajectory is not None]


def calls(found: list[RecordedTrajectory]) -> list[int]:
    return [len(list(each.calls)) for each in found]


def uses(found: RecordedTrajectory) -> list[str | None]:
    return [event.result for event in found.events if isinstance(event, ToolUse)]


def in_turns(*logs: list[Any]) -> list[Any]:
    return [each for each in chain.from_iterable(zip_longest(*logs)) if each is not None]


def test_requests_with_responses_are_one_conversation_with_the_usage_of_each_call(tmp_path: Path) -> None:
    (found,) = read(tmp_path, pairs(whole("Oslo")))
    assert [(call.usage, call.model, call.thoughts) for call in found.calls] == [
        (Usage(100 * number, 64, 1), f"m-{number}", f"thought {number}") for number in (1, 2, 3, 4)
    ]
    assert [len(call.messages or ()) for call in found.calls] == [2, 4, 6, 8]
    assert [list(call.tools) for call in found.calls] == [TOOLS] * 4
    assert uses(found) == ["0", "1", "2"]
    assert (found.task, found.question, found.answer) == (
        "log.jsonl, line 1",
        "How warm is it in Oslo?",
        "2 degrees in Oslo.",
    )


def test_requests_alone_are_one_conversation_whose_last_reply_isnt_known(tmp_path: Path) -> None:
    (found,) = read(tmp_path, requests(whole("Oslo")))
    replies = [(call.model, len(call.messages or ()), len(call.tool_calls)) for call in found.calls]
    assert replies == [("m", 2, 1), ("m", 4, 1), ("m", 6, 1), ("m", 8, 0)]
    assert (uses(found), found.answer) == (["0", "1", "2"], None)


@pytest.mark.parametrize("logged", [requests, pairs])
def test_conversations_at_the_same_time_are_told_apart(logged: Callable[..., list[Any]], tmp_path: Path) -> None:
    cities = [f"city {number}" for number in range(20)]
    found = read(tmp_path, in_turns(*(logged(whole(city)) for city in cities)))
    assert [each.question for each in found] == [f"How warm is it in {city}?" for city in cities]
    assert calls(found) == [4] * 20


def test_a_reply_as_the_next_request_has_it_may_look_different(tmp_path: Path) -> None:
    first, second = pairs(whole("Oslo"))[:2]
    first["response"]["choices"][0]["message"] |= {"content": "", "function_call": None, "annotations": []}
    call = second["request"]["messages"][2]["tool_calls"][0]
    call["function"]["arguments"] = call["function"]["arguments"].replace(" ", "")
    assert calls(read(tmp_path, [first, second])) == [2]


def test_thoughts_in_a_reply_may_be_left_out_of_the_next_request(tmp_path: Path) -> None:
    messages = [
        message("user", "2 + 2?"),
        message("assistant", "4"),
        message("user", "5 + 5?"),
        message("assistant", "10"),
    ]
    first, second = pairs(messages)
    first["response"]["choices"][0]["message"]["content"] = "<think>Easy.</think>\n\n4"
    assert calls(read(tmp_path, [first, second])) == [2]


def test_requests_and_replies_of_anthropic(tmp_path: Path) -> None:
    user = message("user", "How warm is it?")
    said_ = [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "a", "name": "weather", "input": {}}]
    got = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "2"}]}
    cached = [{"type": "text", "text": "How warm is it?", "cache_control": {"type": "ephemeral"}}]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 3}
    records = [
        {
            "request": {"model": "claude-x", "system": "Be brief.", "messages": messages},
            "response": {"role": "assistant", "content": reply, "usage": usage},
        }
        for messages, reply in (
            ([{"role": "user", "content": cached}], [{"type": "thinking", "thinking": "Hm."}, *said_]),
            ([user, {"role": "assistant", "content": said_}, got], [{"type": "text", "text": "2 degrees."}]),
        )
    ]
    (found,) = read(tmp_path, records)
    assert [call.usage for call in found.calls] == [Usage(100, 90, 3)] * 2
    assert (found.system, uses(found), found.answer) == ("Be brief.", ["2"], "2 degrees.")


def test_messages_that_dont_go_on_with_the_reply_are_another_conversation(tmp_path: Path) -> None:
    first, second = pairs(whole("Oslo"))[:2]
    second["request"]["messages"][2] = asked("other", "Bergen")
    assert calls(read(tmp_path, [first, second])) == [1, 2]


@pytest.mark.parametrize("logged", [requests, pairs])
def test_a_branch_is_a_conversation_whose_calls_begin_where_it_departs(
    logged: Callable[..., list[Any]], tmp_path: Path
) -> None:
    main = whole("Oslo")
    branch = [*main[:4], message("user", "Stop."), message("assistant", "Good bye.")]
    found = read(tmp_path, [*logged(main), logged(branch)[-1]])
    assert calls(found) == [4, 1]
    assert [uses(each) for each in found] == [["0", "1", "2"], []]
    (call,) = found[1].calls
    assert [each.role for each in call.messages or ()] == ["system", "user", "assistant", "tool", "user"]
    assert [event.text for event in found[1].events if isinstance(event, Turn)] == ["Stop."]


def test_a_request_that_was_sent_twice_is_one_call_more(tmp_path: Path) -> None:
    log = pairs(whole("Oslo"))
    found = read(tmp_path, [*log[:3], log[2], log[3]])
    assert sorted(calls(found)) == [1, 4]
    assert sum(len(uses(each)) for each in found) == 3 + 1  # the reply that nothing followed asked for a tool, too


def test_records_of_other_tasks_or_trials_are_not_joined(tmp_path: Path) -> None:
    one, two, three, four = requests(whole("Oslo"))
    for name, values in (("task_id", "ab"), ("trial", [0, 1]), ("session_id", "xy")):
        records = [{**one, name: values[0]}, {**two, name: values[1]}]
        assert calls(read(tmp_path, records)) == [0, 1]
    named = [
        {**each, "task_id": "t", "trial": 3, "id": f"request {n}"} for n, each in enumerate((one, two, three, four))
    ]
    (found,) = read(tmp_path, named)
    assert (found.task, found.trial, calls([found])) == ("t", 3, [4])
    records = [{**one, "info": {"task": "a"}}, {**two, "info": {"task": "b"}}]
    assert [each.task for each in read(tmp_path, records, Fields(task="info.task"))] == ["a", "b"]


def test_conversations_of_a_data_set_are_read_as_they_are(tmp_path: Path) -> None:
    """Some have the same beginning, and two are equal: only where one is the beginning of another are they one."""
    hello = [message("user", "Hi"), message("assistant", "Hello")]
    sets = [
        [*hello, message("user", "How are you?"), message("assistant", "Fine.")],
        [*hello, message("user", "What's the time?"), message("assistant", "Noon.")],
        whole("Oslo"),
        whole("Oslo"),
    ]
    found = read(tmp_path, [{"messages": each} for each in sets])
    assert calls(found) == [2, 2, 4, 4]
    assert [each.task for each in found] == [f"log.jsonl, line {number}" for number in (1, 2, 3, 4)]
    grown = [{"messages": messages} for messages in (hello, sets[0])]  # a line for each reply
    assert calls(read(tmp_path, grown)) == [2]
    unanswered = [{"messages": messages} for messages in (hello, sets[0][:3])]  # no requests, so nothing was asked
    assert calls(read(tmp_path, unanswered)) == [1]


def items(number: int) -> list[dict[str, Any]]:
    """A reply in OpenAI's Responses API: what the model thought, and a call of a tool."""
    return [
        {"type": "reasoning", "id": f"rs{number}", "summary": [{"type": "summary_text", "text": f"thought {number}"}]},
        {"type": "function_call", "call_id": f"c{number}", "name": "weather", "arguments": '{"city": "Oslo"}'},
    ]


def result(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": str(number)}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def responses(*, chained: bool) -> list[dict[str, Any]]:
    """Three calls: each has all items before it as its input, or the new ones and the id of the response before."""
    outputs = [items(1), items(2), [said("2 degrees.")]]
    given: list[list[dict[str, Any]]] = [[{"role": "user", "content": "How warm is it?"}], [result(1)], [result(2)]]
    records, before = [], list[dict[str, Any]]()
    for number, (new, output) in enumerate(zip(given, outputs, strict=True), 1):
        usage = {
            "input_tokens": 100 * number, "output_tokens": 9, "total_tokens": 100 * number + 9,
            "input_tokens_details": {"cached_tokens": 64}, "output_tokens_details": {"reasoning_tokens": 5},
        }  # fmt: skip
        record = {
            "id": f"resp{number}", "model": "m", "instructions": "Be brief.", "tools": TOOLS,
            "input": new if chained else [*before, *new], "output": output, "usage": usage,
        }  # fmt: skip
        if chained and number > 1:
            record["previous_response_id"] = f"resp{number - 1}"
        before += [*new, *output]
        records.append(record)
    return records


def as_pair(record: dict[str, Any]) -> dict[str, Any]:
    response = {name: record[name] for name in ("id", "model", "output", "usage")}
    return {"request": {name: value for name, value in record.items() if name not in response}, "response": response}


@pytest.mark.parametrize("chained", [True, False], ids=["by ids", "by items"])
@pytest.mark.parametrize("form", [dict, as_pair], ids=["one object", "request and response"])
def test_responses_of_openai_are_one_conversation(
    form: Callable[[dict[str, Any]], dict[str, Any]], chained: bool, tmp_path: Path
) -> None:
    (found,) = read(tmp_path, [form(each) for each in responses(chained=chained)])
    assert [call.usage for call in found.calls] == [Usage(100 * number, 64, 9, 5) for number in (1, 2, 3)]
    roles = [[each.role[0] for each in call.messages or ()] for call in found.calls]
    assert roles == [["s", "u"], ["s", "u", "a", "t"], ["s", "u", "a", "t", "a", "t"]]
    assert [call.thoughts for call in found.calls] == ["thought 1", "thought 2", ""]
    assert [list(call.tools) for call in found.calls] == [TOOLS] * 3
    assert uses(found) == ["1", "2"]
    assert (found.system, found.question, found.answer) == ("Be brief.", "How warm is it?", "2 degrees.")


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_a_request_that_is_made_again_after_a_failure_is_one_call(place: int, times: int, tmp_path: Path) -> None:
    log = pairs(whole("Oslo"))
    failed = {"request": log[place]["request"], "error": "429: too many requests"}
    (found,) = read(tmp_path, [*log[:place], *[failed] * times, *log[place:]])
    assert [call.usage and call.usage.input_tokens for call in found.calls] == [100, 200, 300, 400]
    assert found.answer == "2 degrees in Oslo."


def test_a_proxys_log_has_times_and_failures(tmp_path: Path) -> None:
    """As LiteLLM writes it: times beside the response, and a refused request without one."""
    ask = {
        "messages": [{"role": "user", "content": "How deep is Loch Ness?"}],
        "startTime": 1.7e9,
        "endTime": 1.7e9 + 2.5,
    }
    reply = {"choices": [{"message": {"role": "assistant", "content": "230 metres"}, "finish_reason": "stop"}]}
    failed = {**ask, "messages": [{"role": "user", "content": "And Lomond?"}], "status": "failure", "error_str": "429"}
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(json.dumps(each) for each in ({**ask, "response": reply}, {**failed, "response": None})))
    found = [each.trajectory for each in read_files([file]) if each.trajectory is not None]
    assert [each.stop_reason for each in found] == [None, "error"]
    assert [
        (call.times and call.times.end - call.times.start, call.error) for each in found for call in each.calls
    ] == [
        (2.5, None),
        (2.5, "429"),
    ]
