"""Sessions of Claude Code: one reply in several lines, sub-agents, compactions, and what its SDK streams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn

ASKED = "Which of the tests fail today?"
_Lines = list[dict[str, Any]]


def usage(output: int, read: int = 1000) -> dict[str, int]:
    counts = {"input_tokens": 3, "cache_creation_input_tokens": 200, "cache_read_input_tokens": read}
    return {**counts, "output_tokens": output}


class Session:
    """Writes lines as Claude Code does, each a second after the one before and below it."""

    def __init__(self, **facts: Any) -> None:
        self.lines: _Lines = []
        self.facts = {"sessionId": "s1", "isSidechain": False, "version": "2.1.0", "cwd": "/srv/shop", **facts}
        self._ids = count(1)
        self.last: str | None = None

    def add(self, kind: str, **fields: Any) -> str:
        id_ = f"{self.facts.get('agentId', 'u')}{next(self._ids)}"
        second = 10 + len(self.lines)
        line = {"type": kind, "uuid": id_, "parentUuid": self.last, "timestamp": f"2026-03-01T10:00:{second}.000Z"}
        self.lines.append({**line, **self.facts, **fields})
        self.last = id_
        return id_

    def said(self, text: str, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": text}, **fields)

    def replied(self, id_: str, *content: dict[str, Any], output: int = 20, **more: Any) -> str:
        message = {"id": id_, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
        return self.add("assistant", message={**message, "content": list(content), "usage": usage(output), **more})

    def found(self, call: str, text: str, **fields: Any) -> str:
        result = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.add("user", message={"role": "user", "content": [result]}, **fields)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(id_: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given or {"command": f"pytest {id_}"}}


def read(folder: Path, *files: Sequence[Any]) -> RecordedTrajectory:
    for number, lines in enumerate(files):
        (folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (found,) = read_files([folder])
    assert found.trajectory is not None, found.fault
    return found.trajectory


def session() -> Session:
    """Two replies: the first in three lines, between which a tool's result stands."""
    written = Session()
    written.said(ASKED)
    written.replied("msg_1", {"type": "thinking", "thinking": "I run them."}, output=1)
    written.replied("msg_1", use("a"), output=1)
    written.found("a", "two tests fail")
    written.replied("msg_1", use("b"), output=90, stop_reason="tool_use")
    written.found("b", "no test fails")
    written.replied("msg_2", text("Two tests fail."))
    return written


def test_a_reply_in_several_lines_is_one_call_with_its_last_output(tmp_path: Path) -> None:
    found = read(tmp_path, session().lines)
    first, second = found.calls
    assert (found.task, found.question, found.answer) == ("s1", ASKED, "Two tests fail.")
    assert [call.id for call in first.tool_calls] == ["a", "b"]
    assert (first.thoughts, first.finish_reason, second.reply) == ("I run them.", "tool_use", "Two tests fail.")
    counts = [call.usage and (call.usage.input_tokens, call.usage.cached_input_tokens) for call in found.calls]
    assert counts == [(1203, 1000)] * 2
    assert [call.usage and call.usage.output_tokens for call in found.calls] == [90, 20]


def test_times_are_those_of_lines(tmp_path: Path) -> None:
    found = read(tmp_path, session().lines)
    seconds = [each.times and each.times.end - each.times.start for each in found.events if not isinstance(each, Turn)]
    assert seconds == [4.0, 1.0, 1.0, 1.0]  # a tool's begins when its own part of the reply was there


@pytest.mark.parametrize("is_file_of_its_own", [True, False])
@pytest.mark.parametrize("names_agent", [True, False])
def test_a_sub_agent_follows_the_call_that_asked_for_it(
    is_file_of_its_own: bool, names_agent: bool, tmp_path: Path
) -> None:
    main = Session()
    main.said(ASKED)
    main.replied("msg_1", use("t", "Task", prompt="Run the tests.", subagent_type="Explore"))
    main.found("t", "two tests fail", **({"toolUseResult": {"agentId": "7f"}} if names_agent else {}))
    main.replied("msg_2", text("Two tests fail."))
    side = Session(isSidechain=True, **({"agentId": "7f"} if is_file_of_its_own or names_agent else {}))
    side.said("Run the tests." if not names_agent else "Please run them.")
    side.replied("msg_3", use("c"))
    side.found("c", "2 failed")
    side.replied("msg_4", text("Two tests fail."))
    if not is_file_of_its_own:
        for line in side.lines:  # in one file each line has an id of its own
            line |= {name: f"side-{line[name]}" for name in ("uuid", "parentUuid") if line[name]}
    files = [main.lines, side.lines] if is_file_of_its_own else [[*main.lines[:2], *side.lines, *main.lines[2:]]]
    found = read(tmp_path, *files)
    shown = [(each.agent, each.role) if isinstance(each, ModelCall) else each.name for each in found.events
             if not isinstance(each, Turn)]  # fmt: skip
    assert shown == [("", "agent"), "Task", ("Explore", "tool"), "Bash", ("Explore", "tool"), ("", "agent")]
    assert found.answer == "Two tests fail."


def test_what_the_sdk_streams(tmp_path: Path) -> None:
    def line(kind: str, asked: str | None = None, **message: Any) -> dict[str, Any]:
        return {"type": kind, "message": message, "parent_tool_use_id": asked, "session_id": "s1"}

    reply: dict[str, Any] = {"role": "assistant", "model": "claude-sonnet-4-5", "usage": usage(5)}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "two tests fail"}
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s1", "tools": ["Bash"], "model": "claude-sonnet-4-5"},
        line("user", role="user", content=ASKED),
        line("assistant", id="msg_1", content=[use("t", "Task", prompt="Run the tests.")], **reply),
        line("assistant", "t", id="msg_2", content=[text("Two fail.")], **reply),
        line("user", role="user", content=[result]),
        line("assistant", id="msg_3", content=[text("Two tests fail.")], **reply),
        {"type": "result", "subtype": "success", "is_error": False, "result": "Two tests fail.", "num_turns": 2,
         "total_cost_usd": 0.25, "session_id": "s1"},
    ]  # fmt: skip
    found = read(tmp_path, lines)
    assert [(call.agent, call.role) for call in found.calls] == [("", "agent"), ("sub-agent", "tool"), ("", "agent")]
    assert (found.answer, found.cost_usd, found.error) == ("Two tests fail.", 0.25, None)


def prompts(found: RecordedTrajectory) -> list[list[str]]:
    return [[message.content for message in call.messages or ()] for call in found.calls]


def test_a_compaction_begins_the_prompt_anew(tmp_path: Path) -> None:
    written = session()
    written.last = None
    written.add("system", subtype="compact_boundary", content="Conversation compacted")
    written.said("So far: two tests fail.", isCompactSummary=True)
    written.said("Mend them, please.")
    written.replied("msg_9", text("Done with both."))
    found = read(tmp_path, written.lines)
    assert prompts(found)[-1] == ["So far: two tests fail.", "Mend them, please."]
    assert [each.text for each in found.events if isinstance(each, Turn)] == ["Mend them, please."]


def test_a_user_who_goes_back_leaves_the_prompt_as_it_was_there(tmp_path: Path) -> None:
    written = Session()
    first = written.said(ASKED)
    written.replied("msg_1", text("All of them."))
    written.said("That can't be.")
    written.replied("msg_2", text("I was wrong."))
    written.last = first
    written.said("Only those of the shop.")
    written.replied("msg_3", text("None of these."))
    found = read(tmp_path, written.lines)
    assert prompts(found)[-1] == [ASKED, "Only those of the shop."]
    assert len(prompts(found)) == 3


def test_the_programs_own_lines_are_no_calls_and_no_faults(tmp_path: Path) -> None:
    written = Session()
    written.lines.append({"type": "summary", "summary": "A shop's tests", "leafUuid": "x"})
    written.lines.append({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
    written.said("<reminder>Be careful.</reminder>", isMeta=True)
    written.said(ASKED)
    written.add("attachment", attachment={"type": "skills", "content": "The skills are many."})
    written.replied("msg_1", text("None of them."))
    failed = {"role": "assistant", "model": "<synthetic>", "content": [text("API Error: 529")], "usage": usage(0, 0)}
    written.add("assistant", message=failed, isApiErrorMessage=True)
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, written.lines)))
    (found,) = read_files([tmp_path / "a.jsonl"])
    assert found.trajectory is not None
    assert len(list(found.trajectory.calls)) == 1
    assert (found.trajectory.question, found.trajectory.error) == (ASKED, "API Error: 529")
    assert prompts(found.trajectory) == [["<reminder>Be careful.</reminder>", ASKED]]
    assert found.unread == {"attachment.content": 1}


def test_replies_that_a_later_session_begins_with_count_once(tmp_path: Path) -> None:
    first, second = session(), session()
    second.said("Mend them.")
    second.replied("msg_3", text("They pass."))
    for number, (id_, lines) in enumerate((("one", first.lines), ("two", second.lines), ("three", first.lines))):
        text_ = "\n".join(json.dumps({**line, "sessionId": id_}) for line in lines)
        (tmp_path / f"{number}.jsonl").write_text(text_)
    one, two, three = read_files([tmp_path])
    assert one.trajectory is not None
    assert two.trajectory is not None
    assert [len(list(each.trajectory.calls)) for each in (one, two) if each.trajectory] == [2, 1]
    (prompt,) = prompts(two.trajectory)
    assert (prompt[0], prompt[-1]) == (ASKED, "Mend them.")
    assert two.trajectory.answer == "They pass."
    assert three.is_copy


def test_messages_without_any_id_are_no_other_sessions(tmp_path: Path) -> None:
    for session_id, question in (("one", "Which river?"), ("two", "Which town?")):
        said = {"type": "user", "sessionId": session_id, "message": {"role": "user", "content": question}}
        replied = {"role": "assistant", "content": [text("The Neva.")], "usage": usage(20)}
        lines = [said, {"type": "assistant", "sessionId": session_id, "message": replied}]
        (tmp_path / f"{session_id}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = [each.trajectory for each in read_files([tmp_path]) if each.trajectory]
    assert [(each.question, len(list(each.calls))) for each in found] == [("Which river?", 1), ("Which town?", 1)]


@pytest.mark.parametrize("have_all_an_id", [True, False])
def test_replies_in_plain_messages_are_joined_by_their_id(have_all_an_id: bool, tmp_path: Path) -> None:
    messages = [each["message"] for each in session().lines]
    for number, each in enumerate(messages):
        each |= {"id": f"user-{number}"} if have_all_an_id and each["role"] == "user" else {}
    found = read(tmp_path, messages)
    assert [call.usage and call.usage.output_tokens for call in found.calls] == [90, 20]
    assert [each.result for each in found.events if isinstance(each, ToolUse)] == ["two tests fail", "no test fails"]


def test_replies_with_the_conversations_id_stay_apart(tmp_path: Path) -> None:
    called = {"id": "a", "function": {"name": "tests", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "id": "c1", "content": "", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "a", "content": "two tests fail"},
        {"role": "assistant", "id": "c1", "content": "Two tests fail."},
    ]
    assert len(list(read(tmp_path, messages).calls)) == 2
