"""Files of recorded trajectories: how they are cut into records, and what is said of those that can't be read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from broken_json import trajectories_or_faults

from rewoo_bench.errors import UsageError
from rewoo_bench.imports.documents import local_files
from rewoo_bench.imports.formats import NO_FIELDS, Fields, Found, read_files

CHAT = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def tasks(found: list[Found]) -> list[str]:
    return [each.trajectory.task for each in found if each.trajectory]


def rows(count: int) -> list[dict[str, Any]]:
    return [{"task_id": f"t{number}", "messages": CHAT} for number in range(count)]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(rows(3)),
        json.dumps(rows(3), indent=2),
        "\n".join(map(json.dumps, rows(3))),
        json.dumps({"simulations": rows(3)}),
        json.dumps({"info": 1, "results": rows(3)}, indent=1),
        "\ufeff" + json.dumps(rows(3)),
    ],
    ids=["list", "indented list", "lines", "simulations", "results, indented", "byte order mark"],
)
def test_a_list_lines_or_a_document_with_a_list(text: str, tmp_path: Path) -> None:
    assert tasks([*read_files([write(tmp_path / "a.json", text)])]) == ["t0", "t1", "t2"]


def test_gzip_and_folders(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, rows(2))))
    write(tmp_path / "a.json", json.dumps(rows(1)))
    write(tmp_path / "notes.txt", "nothing")
    found = [*read_files([tmp_path])]
    assert tasks(found) == ["t0", "t1"]
    assert [each.is_copy for each in found] == [False, True, False]


def test_a_message_a_line_is_one_conversation(tmp_path: Path) -> None:
    lines = [*CHAT, {"role": "user", "content": "And 3 + 3?"}, {"role": "assistant", "content": "6"}]
    path = write(tmp_path / "chat.jsonl", "\n".join(map(json.dumps, lines)))
    (found,) = read_files([path])
    assert found.trajectory is not None
    assert (found.trajectory.task, found.trajectory.answer) == ("chat.jsonl", "6")
    assert len(list(found.trajectory.calls)) == 2


SYSTEM = {"role": "system", "content": "Be brief."}


def said(city: str) -> list[dict[str, Any]]:
    return [SYSTEM, {"role": "user", "content": f"How warm is it in {city}?"}, {"role": "assistant", "content": city}]


def read_lines(folder: Path, messages: Iterable[Any], fields: Fields = NO_FIELDS) -> list[tuple[str, str, int]]:
    """Of each trajectory its task, its question, and the number of messages in its last prompt."""
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, messages)))
    found = [each.trajectory for each in read_files([path], fields=fields)]
    return [(each.task, each.question, len(list(each.calls)[-1].messages or ())) for each in found if each]


QUESTIONS = [f"How warm is it in {city}?" for city in ("Oslo", "Bergen")]


@pytest.mark.parametrize("name", ["session_id", "conversation_id", "thread_id", "trace_id", "task_id", "meta"])
def test_messages_are_told_apart_by_the_field_that_all_have(name: str, tmp_path: Path) -> None:
    one, other = ([{**each, name: city, "model": "m"} for each in said(city)] for city in ("Oslo", "Bergen"))
    interleaved = [message for pair in zip(one, other, strict=True) for message in pair]
    fields = Fields(task="meta") if name == "meta" else NO_FIELDS
    for messages in ([*one, *other], interleaved):
        numbered = [{**each, "uuid": place} for place, each in enumerate(messages)]  # each message's own
        expected = [(city, question, 2) for city, question in zip(("Oslo", "Bergen"), QUESTIONS, strict=True)]
        assert read_lines(tmp_path, numbered, fields) == expected
    if name != "meta":
        (tmp_path / "a.json").write_text(json.dumps(interleaved))
        assert [each.trajectory and each.trajectory.question for each in read_files([tmp_path / "a.json"])] == QUESTIONS


def test_a_message_of_the_system_begins_a_conversation_where_no_field_does(tmp_path: Path) -> None:
    found = read_lines(tmp_path, [*said("Oslo"), *said("Bergen")])
    assert found == [("a.jsonl, line 1", QUESTIONS[0], 2), ("a.jsonl, line 4", QUESTIONS[1], 2)]
    reminded = [*said("Oslo")[1:], *said("Bergen")]  # the file's first conversation has none
    assert read_lines(tmp_path, reminded) == [("a.jsonl", QUESTIONS[0], 4)]


def test_a_long_file_of_messages_is_read_a_conversation_after_the_other(tmp_path: Path) -> None:
    messages = ({**each, "session_id": n} for n in range(3_000) for each in said(str(n)))
    found = read_lines(tmp_path, messages)
    assert sorted(int(task) for task, *_ in found) == [*range(3_000)]
    assert {size for *_, size in found} == {2}


def test_messages_among_other_records_are_a_conversation(tmp_path: Path) -> None:
    lines = [*CHAT, rows(1)[0], {"rows": 1}, CHAT[0]]
    found = [*read_files([write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))])]
    assert sorted(tasks(found)) == ["a.jsonl", "t0"]
    assert [each.fault.partition(": ")[0] for each in found if each.fault] == ["a.jsonl, line 4"]


def test_what_cant_be_read_is_a_line_and_the_rest_is_read(tmp_path: Path) -> None:
    first, last = map(json.dumps, rows(2))
    lines = [first, "[1, 2]", '{"rows": 3}', json.dumps({"messages": [CHAT[0], 5]}), last]
    found = [*read_files([write(tmp_path / "a.jsonl", "\n".join(lines))])]
    assert tasks(found) == ["t0", "t1"]
    faults = [each.fault for each in found if each.fault]
    assert faults == [
        "a.jsonl, line 2: no known format: a list of 2",
        "a.jsonl, line 3: no known format: an object with 'rows'",
        "a.jsonl, line 4: not readable as messages: message 1 is int, expected an object with a role",
    ]


@pytest.mark.parametrize("content", ["   ", "hello", "[" * 100_000])
def test_no_file_is_more_than_a_line(content: str, tmp_path: Path) -> None:
    found = trajectories_or_faults(write(tmp_path / "a.json", content))
    assert [each.trajectory for each in found] == [None] * len(found)


def test_fields_say_where_task_and_verdict_stand(tmp_path: Path) -> None:
    records = [{"info": {"task": {"id": 7}, "ok": "passed"}, "messages": CHAT}, {"info": {}, "messages": CHAT}]
    path = write(tmp_path / "a.json", json.dumps(records))
    first, second = read_files([path], fields=Fields("info.task.id", "info.ok"))
    assert first.trajectory is not None
    assert (first.trajectory.task, first.trajectory.solved) == ("7", True)
    assert second.fault == "a.json, record 2: not readable as messages: --task: it has no field 'info.task.id'"


def test_keys_and_passwords_are_taken_out(tmp_path: Path) -> None:
    secret = "sk-proj-" + "a1" * 20
    chat = [{"role": "user", "content": f"use {secret} at https://me:hunter2222@host/"}, CHAT[1]]
    (found,) = read_files([write(tmp_path / "a.json", json.dumps([{"messages": chat}]))])
    assert found.trajectory is not None
    assert found.trajectory.question == "use [key] at https://***@host/"


def test_a_format_that_doesnt_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--format: unknown format 'mesages', did you mean 'messages'"):
        list(read_files([write(tmp_path / "a.json", "[]")], "mesages"))


def test_a_record_of_no_format_is_said_with_the_chosen_one(tmp_path: Path) -> None:
    (found,) = read_files([write(tmp_path / "a.json", '[{"rows": 1}]')], "otel")
    said = "not of the format otel: no known format: an object with 'rows'"
    assert found.fault == f"a.json, record 1: {said}"


def test_missing_files_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"), local_files([str(tmp_path / "no.json")]):
        pass
    with pytest.raises(UsageError, match="has no files of traces"):
        list(read_files([tmp_path]))
