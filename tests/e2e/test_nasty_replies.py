"""Replies that no file or parser likes: the run ends as any other, its folder loads, and it can be resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_runs import quiet, run
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.runs.folder import load
from rewoo_bench.types import ToolCall

pytestmark = pytest.mark.usefixtures("own_folder")

NASTY = '\x00\x1b[2J\ud800 \udfff\u2028\ufffe"\\'
ESCAPED = "\\ud800 x \\u0000"  # as JSON writes them
ARCHITECTURES = ["direct", "rewoo", "rewoo-json", "react-native", "llmcompiler", "react-code"]


def nested(depth: int) -> dict[str, Any]:
    value: Any = "Oslo"
    for _ in range(depth):
        value = {"a": value}
    return {"query": value}


TEXTS = [
    f"Plan: {NASTY}\n#E1 = Search[{NASTY}]\n1. {NASTY}\nAction: Search[{NASTY}]\nAnswer: {NASTY}",
    f'Plan: x\n#E1 = Search["{ESCAPED}"]\n1. find it\nAction: Search["{ESCAPED}"]',
    f'{{"steps": [{{"id": "E1", "tool": "Search", "args": {{"query": "{ESCAPED}"}}}}]}}',
    f"Plan: x\n#E1 = Search[{json.dumps(nested(600))}]\n1. find it\nAction: Search[{json.dumps(nested(600))}]",
    json.dumps({"steps": [{"id": "E1", "tool": "Search", "args": nested(600)}]}),
    json.dumps({"name": "Search", "arguments": nested(300)}),
    json.dumps({"name": ["Search"], "arguments": {"query": "x"}}),
    f'{{"name": "Search", "arguments": {{"query": "{ESCAPED}"}}}}',
    f'1. Search("{NASTY}")\n2. Search("{ESCAPED} $1")\n3. join()',
    f"1. Search({json.dumps(nested(600))})\n2. Search(query={NASTY})\n",
]
CALLS: list[Any] = [
    ToolCall("1", "Search", {"query": NASTY}),
    ToolCall("2", "Search", nested(600)),
    ToolCall("3", 7, {"query": "Oslo"}),  # type: ignore[arg-type]
    ToolCall("4", "Search", {"query": float("nan")}),
    ToolCall("5", "Search", {"query": 10**400}),
    ToolCall(6, "Se\ud800arch", {"\ud800": "Oslo"}),  # type: ignore[arg-type]
]


def replies(request: dict[str, Any], number: int) -> ServerReply:
    if request.get("tools") and number % 2:
        return ServerReply(NASTY, tool_calls=CALLS)
    return ServerReply(TEXTS[number // 2 % len(TEXTS)])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_run_of_nasty_replies_is_kept_and_goes_on(architecture: str) -> None:
    refused = 3  # the n-th request, and every third after it: a question in the middle, to be gone on with

    def reply(request: dict[str, Any]) -> ServerReply | ServerFault:
        number = len(server.books)
        if refused and number % refused == refused - 1:
            return ServerFault(status=400, message="down")
        return replies(request, number)

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1)
        code = quiet("--arch", architecture, "-n", 8, *hosted, "--out", "here")
        assert code in (0, 3)  # done, or some questions failed
        assert load("here")["stop_reason"].eq("error").any()
        refused = 0
        assert run("--no-progress", "--resume", "here") == 0  # with a page, too
        before, asked = load("here"), len(server.books)
        assert quiet("--resume", "here") == 0
    assert len(server.books) == asked
    pd.testing.assert_frame_equal(load("here"), before)
    assert not before["stop_reason"].eq("error").any()


def test_what_was_repaired_stands_in_the_traces() -> None:
    def reply(_: dict[str, Any]) -> ServerReply:
        return ServerReply("", tool_calls=CALLS) if len(server.books) == 0 else ServerReply("Answer: Neva")

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", "react-native", "-n", 1, *hosted, "--out", "here") == 0
    trace = json.loads(Path("here/traces.jsonl").read_text(encoding="utf-8"))
    (reply_of_turn_1,) = trace["replies"]
    assert reply_of_turn_1["place"] == "turn 1"
    assert "a lone surrogate became U+FFFD" in reply_of_turn_1["repairs"]
    read = "the arguments of a tool call were read as text: nested more than 32 deep"
    assert read in reply_of_turn_1["repairs"]
    assert [step["failed"] for step in trace["steps"]] == [False, True, True, True, True, True]
