"""Messages whose texts and tools' calls are parts: Gemini's, the AI SDK's, those of the GenAI conventions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn

ASKED = "Which tide is it in Oban at six?"
ARGUMENTS = {"place": "Oban", "hour": 6}
ANSWER = "It is high tide."


def read(folder: Path, record: Any) -> RecordedTrajectory:
    path = folder / "a.json"
    path.write_text(json.dumps(record))
    (found,) = read_files([path])
    assert found.trajectory is not None, found.fault
    assert found.unread == {}
    return found.trajectory


def shape(found: RecordedTrajectory) -> list[Any]:
    """The events: of a model's call its reply and what it asked for, of a tool's its arguments and its result."""
    return [
        (each.reply, [call.name for call in each.tool_calls])
        if isinstance(each, ModelCall)
        else (each.name, each.arguments, each.result, each.failed)
        if isinstance(each, ToolUse)
        else each.text
        for each in found.events
    ]


ONE_CALL = [("", ["tides"]), ("tides", ARGUMENTS, "high water", False), (ANSWER, [])]


def gemini(**names: str) -> list[Any]:
    call, response = names.get("call", "functionCall"), names.get("response", "functionResponse")
    return [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"text": "I have to look.", "thought": True},
                                    {call: {"name": "tides", "args": ARGUMENTS}, "thoughtSignature": "c2lnbmVk"}]},
        {"role": "user", "parts": [{response: {"name": "tides", "response": {"output": "high water"}}}]},
        {"role": "model", "parts": [{"text": "It is "}, {"text": "I am sure.", "thought": True},
                                    {"text": "high tide."}]},
    ]  # fmt: skip


def ui(*parts: dict[str, Any]) -> list[Any]:
    return [{"id": "1", "role": "user", "parts": [{"type": "text", "text": ASKED}]},
            {"id": "2", "role": "assistant", "parts": list(parts)}]  # fmt: skip


THOUGHT = {"type": "reasoning", "text": "I have to look."}
SAID = {"type": "text", "text": ANSWER, "state": "done"}
TOOL = {"toolCallId": "a", "state": "output-available", "input": ARGUMENTS, "output": "high water"}
OLD_TOOL = {"state": "result", "toolCallId": "a", "toolName": "tides", "args": ARGUMENTS, "result": "high water"}
STEP = {"type": "step-start"}
SESSION = {
    "sessionId": "s", "projectHash": "f" * 64, "messages": [
        {"id": "1", "type": "user", "content": [{"text": ASKED}]},
        {"id": "2", "type": "gemini", "content": "", "model": "gemini-2.5-pro",
         "thoughts": [{"subject": "Look", "description": "I have to look."}],
         "tokens": {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115},
         "toolCalls": [{"id": "a", "name": "tides", "args": ARGUMENTS, "status": "success",
                        "result": [{"functionResponse": {"id": "a", "response": {"output": "high water"}}}]}]},
        {"id": "3", "type": "gemini", "content": ANSWER},
    ],
}  # fmt: skip
CONVENTIONS = {"messages": [
    {"role": "user", "parts": [{"type": "text", "content": ASKED}]},
    {"role": "assistant", "parts": [{"type": "reasoning", "content": "I have to look."},
                                    {"type": "tool_call", "id": "a", "name": "tides", "arguments": ARGUMENTS}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": "high water"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"},
]}  # fmt: skip
MODELS = [
    {"role": "user", "content": [{"type": "text", "text": ASKED}]},
    {"role": "assistant", "content": [THOUGHT, {"type": "tool-call", "toolCallId": "a", "toolName": "tides",
                                                "input": ARGUMENTS}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "tides",
                                  "output": {"type": "text", "value": "high water"}}]},
    {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
]  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        ui(STEP, THOUGHT, {"type": "tool-tides", **TOOL}, STEP, SAID),
        ui(THOUGHT, {"type": "tool-tides", **TOOL}, SAID),
        ui({"type": "dynamic-tool", "toolName": "tides", **TOOL}, THOUGHT, SAID),
        ui(THOUGHT, {"type": "tool-invocation", "toolInvocation": OLD_TOOL}, SAID),
        [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER, "toolInvocations": [OLD_TOOL]}],
        SESSION,
        CONVENTIONS,
        MODELS,
    ],
    ids=["steps", "no steps", "dynamic", "version 4", "before parts", "gemini-cli", "conventions", "models"],
)
def test_calls_results_and_answers_of_each_form(record: Any, tmp_path: Path) -> None:
    found = read(tmp_path, record)
    assert (found.question, shape(found), found.answer) == (ASKED, ONE_CALL, ANSWER)


@pytest.mark.parametrize("names", [{}, {"call": "function_call", "response": "function_response"}])
@pytest.mark.parametrize("is_request", [True, False])
def test_contents_of_gemini(names: dict[str, str], is_request: bool, tmp_path: Path) -> None:
    contents = gemini(**names)
    told = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "model": "gemini-2.5-pro"}
    found = read(tmp_path, {**told, "contents": contents} if is_request else contents)
    assert (found.question, shape(found)[:2]) == (ASKED, ONE_CALL[:2])
    assert (found.answer, found.system) == (ANSWER, "Be brief." if is_request else "")
    assert [call.thoughts for call in found.calls] == ["I have to look.", "I am sure."]


def test_a_logged_request_of_gemini_with_its_response(tmp_path: Path) -> None:
    *before, last = gemini()
    response = {
        "candidates": [{"content": last, "finishReason": "STOP"}], "modelVersion": "gemini-2.5-pro",
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 7, "totalTokenCount": 107},
    }  # fmt: skip
    declared = [{"functionDeclarations": [{"name": "tides", "description": "The tides of a place."}]}]
    found = read(tmp_path, {"request": {"contents": before, "tools": declared}, "response": response})
    *_, call = found.calls
    assert (call.reply, call.model, call.finish_reason) == (ANSWER, "gemini-2.5-pro", "STOP")
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (100, 7)
    assert [tool["name"] for tool in call.tools] == ["tides"]


def test_code_that_gemini_runs_itself_has_its_result_in_the_same_reply(tmp_path: Path) -> None:
    code = {"language": "PYTHON", "code": "print(2 + 2)"}
    outcome = {"outcome": "OUTCOME_OK", "output": "four in all"}
    parts = [{"text": "I compute it."}, {"executableCode": code}, {"codeExecutionResult": outcome},
             {"text": "It is four."}]  # fmt: skip
    found = read(tmp_path, [{"role": "user", "parts": [{"text": "2 + 2?"}]}, {"role": "model", "parts": parts}])
    expected = [("I compute it.\nIt is four.", ["code_execution"]), ("code_execution", code, "four in all", False)]
    assert shape(found) == expected


def test_an_error_of_a_tool_in_the_interface(tmp_path: Path) -> None:
    tool = {"type": "tool-tides", "toolCallId": "a", "state": "output-error", "input": ARGUMENTS}
    found = read(tmp_path, ui({**tool, "errorText": "no such pier"}, SAID))
    assert shape(found)[1] == ("tides", ARGUMENTS, "no such pier", True)


def test_tokens_of_a_session_of_gemini_cli(tmp_path: Path) -> None:
    first, second = read(tmp_path, SESSION).calls
    assert first.usage is not None
    counts = (first.usage.input_tokens, first.usage.cached_input_tokens, first.usage.output_tokens)
    assert (counts, first.usage.reasoning_tokens, second.usage) == ((100, 40, 15), 5, None)


def test_a_function_that_is_a_name(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "", "function": "tides", "args": ARGUMENTS}]},
        {"role": "tool", "content": "", "tool_call": {"function": "tides"}, "error": "ValueError: no such pier"},
        {"role": "tool", "content": "high water", "function": "weather"},
    ]
    found = read(tmp_path, messages)
    (call,) = found.calls
    assert [each.name for each in call.tool_calls] == ["tides"]
    assert shape(found)[1:] == [
        ("tides", ARGUMENTS, "ValueError: no such pier", True),
        ("weather", None, "high water", False),
    ]


def test_roles_that_nobody_knows_are_results_or_said_by_the_user(tmp_path: Path) -> None:
    called = {"id": "a", "function": {"name": "tides", "arguments": json.dumps(ARGUMENTS)}}
    messages = [
        {"role": "visitor", "content": ASKED},
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "harbour_office", "content": "high water"},
        {"role": "assistant", "content": ANSWER},
        {"role": "visitor", "content": "Thank you very much."},
    ]
    found = read(tmp_path, messages)
    assert (found.question, shape(found)) == (ASKED, [*ONE_CALL, "Thank you very much."])
    assert isinstance(found.events[-1], Turn)
    assert found.notes == {"unknown_roles": ["harbour_office", "visitor"]}
