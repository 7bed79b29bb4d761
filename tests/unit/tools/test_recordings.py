"""Tools that answer from a recording: what counts as the same call, and what a foreign recording may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_runs import called, imported, said

from rewoo_bench.errors import DataError, NotRecorded, ToolError
from rewoo_bench.tools.mcp import LONGEST_NAME
from rewoo_bench.tools.recordings import RecordedTask, Recording

pytestmark = pytest.mark.anyio


async def task(folder: Path, id_: str = "t1") -> RecordedTask:
    return Recording.read(await imported(folder)).of_task(id_)


async def ask(recorded: RecordedTask, name: str, **arguments: Any) -> str:
    """The answer of a tool that is asked once."""
    tool = recorded.tool(name, name)
    return await tool(tool.arguments(**arguments))


async def test_the_nth_call_gets_the_nth_result_and_then_the_last(tmp_path: Path) -> None:
    seats = (await task(tmp_path)).tool("seats", "seats")
    answers = [await seats(seats.arguments(city="Oslo", day=3)) for _ in range(3)]
    assert answers == ["4 seats", "3 seats", "3 seats"]


async def test_calls_that_are_the_same_but_for_their_spelling_are_counted_together(tmp_path: Path) -> None:
    balance = [*called("balance", {"id": "A1"}, "100"), *called("balance", {"id": "A1"}, "40")]
    others = [*called("balance", {"id": "B1"}, "7"), *called("balance", {"id": "b1"}, "8")]
    record = {"task_id": "t", "messages": [*said("How much is it?"), *balance, *others]}
    tool = Recording.read(await imported(tmp_path, [record])).of_task("t").tool("balance", "balance")
    answers = [await tool(tool.arguments(id=name)) for name in ("A1", "a1", "A1", "a1", "b1", "B1", "B1")]
    assert answers == ["100", "40", "40", "40", "8", "7", "7"]


async def test_a_call_that_failed_fails_again_and_the_text_is_that_of_the_recording(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"^Error: no such airport$") as raised:
        await ask(await task(tmp_path), "seats", city="Bergen")
    assert not isinstance(raised.value, NotRecorded)


async def test_another_trial_of_the_task_may_answer_and_another_task_never(tmp_path: Path) -> None:
    recording = Recording.read(await imported(tmp_path))
    assert await ask(recording.of_task("t1"), "seats", city="Kyiv") == "9 seats"
    for id_ in ("t2", "unknown"):
        with pytest.raises(NotRecorded, match="this call of seats isn't in the recording"):
            await ask(recording.of_task(id_), "seats", city="Kyiv")


async def test_a_result_that_is_empty_answers_and_one_that_was_not_recorded_does_not(tmp_path: Path) -> None:
    recorded = await task(tmp_path, "t2")
    assert await ask(recorded, "status") == ""
    with pytest.raises(NotRecorded):
        await ask(recorded, "seats", city="Rome")


@pytest.mark.parametrize(
    ("given_", "same"),
    [
        ({"city": " oslo\n ", "day": 3}, True),
        ({"day": 3.0, "city": "OSLO"}, True),
        ({"city": "Oslo", "day": "3"}, True),
        ({"city": "Oslo", "day": 4}, False),
        ({"city": "Os lo", "day": 3}, False),
        ({"city": "Oslo"}, False),
    ],
)
async def test_arguments_may_differ_in_case_space_and_forms_of_numbers(
    tmp_path: Path, given_: dict[str, Any], same: bool
) -> None:
    recorded = await task(tmp_path)
    if same:
        assert await ask(recorded, "seats", **given_) == "4 seats"
    else:
        with pytest.raises(NotRecorded):
            await ask(recorded, "seats", **given_)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("1.10", "1.1"),
        ("12e5", "1200000"),
        ("3,000", 3000),
        ("if x:\n  a\nb", "if x:\n  a\n  b"),
    ],
)
async def test_another_version_code_or_indentation_is_another_call(
    tmp_path: Path, recorded: str, asked: str | int
) -> None:
    messages = [*said("?"), *called("get", {"id": recorded}, "found"), *called("get", {"id": 5}, "five")]
    of_task = Recording.read(await imported(tmp_path, [{"id": "t", "messages": messages}])).of_task("t")
    assert await ask(of_task, "get", id=recorded) == "found"
    assert await ask(of_task, "get", id="5") == "five"
    with pytest.raises(NotRecorded):
        await ask(of_task, "get", id=asked)


async def test_defaults_that_the_recorded_schema_has_may_be_left_out_or_given(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "an airport"},
            "most": {"type": "integer", "default": 5},
        },
        "required": ["city"],
    }
    tools = [{"type": "function", "function": {"name": "seats", "description": "counts seats", "parameters": schema}}]
    messages = [*said("?"), *called("seats", {"city": "Oslo", "most": 5}, "4"), *called("seats", {"city": "Rome"}, "2")]
    recording = Recording.read(await imported(tmp_path, [{"id": "t", "messages": messages, "tools": tools}]))
    assert recording.schemas["seats"].description == "counts seats"
    assert recording.schemas["seats"].schema == schema
    assert await ask(recording.of_task("t"), "seats", city="oslo") == "4"
    assert await ask(recording.of_task("t"), "seats", city="Rome", most=5) == "2"
    with pytest.raises(NotRecorded):
        await ask(recording.of_task("t"), "seats", city="Rome", most=6)


async def test_a_schema_is_inferred_from_the_calls(tmp_path: Path) -> None:
    schemas = Recording.read(await imported(tmp_path)).schemas
    assert schemas["seats"].schema == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "day": {"type": "integer"}},
        "required": ["city"],
    }
    person = {"name": {"type": "string"}, "age": {"type": "integer"}}
    people = {"type": "array", "items": {"type": "object", "properties": person, "required": ["name", "age"]}}
    assert schemas["book"].schema["properties"]["people"] == people


async def test_odd_names_and_names_that_are_taken_become_safe_ones(tmp_path: Path) -> None:
    odd = ["Finish", "LLM", "get-user", "get_user", "a.b/c", "../etc", "日本", "x" * 90, "__import__('os')", "l" * 62]
    messages = [*said("?"), *(message for name in odd for message in called(name, {}, name))]
    recording = Recording.read(await imported(tmp_path, [{"id": "t", "messages": messages}]))
    names = recording.names(taken=("LLM", "l" * 62))
    assert sorted(names.values()) == sorted(odd)
    assert all(name.isascii() and name.replace("_", "a").isalnum() and len(name) <= LONGEST_NAME for name in names)
    assert not {"finish", "llm", "l" * 62} & {name.lower() for name in names}
    assert names["recorded_LLM"] == "LLM"
    recorded = recording.of_task("t")
    for name, remote in names.items():
        tool = recorded.tool(remote, name)
        assert tool.name == name
        assert await tool(tool.arguments()) == remote


async def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    folder = await imported(tmp_path, [{"id": "t", "messages": [*said("?"), {"role": "assistant", "content": "!"}]}])
    with pytest.raises(DataError, match="no tool was called in this run"):
        Recording.read(folder)
    (folder / "journal.sqlite").unlink()
    with pytest.raises(DataError, match=r"it has no journal\.sqlite, where the calls are"):
        Recording.read(folder)
    with pytest.raises(DataError, match="is no run"):
        Recording.read(tmp_path / "nothing")
