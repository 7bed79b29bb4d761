"""What a model wrote is checked where it is read: surrogates, depth, size, types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from parts import Told, toolbox

from rewoo_bench.calls.meter import Meter
from rewoo_bench.evaluation.evaluator import run_noting_repairs
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.notation.arguments import read_call
from rewoo_bench.runners.notation.replies import parse_action
from rewoo_bench.runners.react_native import written_calls
from rewoo_bench.testing.scripted_model import ScriptedModel, ScriptLine
from rewoo_bench.text.model_output import LARGEST_CALL, RAW_ARGUMENTS, check_call, check_reply, noting_repairs
from rewoo_bench.text.openai_format import to_chat
from rewoo_bench.types import Completion, Message, ToolCall, Trajectory

pytestmark = pytest.mark.anyio  # plain functions run as they are


def nested(depth: int) -> Any:
    value: Any = "Oslo"
    for _ in range(depth):
        value = [value]
    return value


async def put(name: str, *said: ScriptLine, tool: Told | None = None) -> Trajectory:
    """The trajectory; its note `repaired` is that of the evaluator."""
    runner = load_architecture(name, style="multihop").runner
    meter = Meter({"": ScriptedModel(said)})
    trajectory = await run_noting_repairs(runner, "Which river?", meter, toolbox(tool or Told()))
    assert isinstance(trajectory, Trajectory)
    return trajectory


async def test_half_of_a_surrogate_pair_in_an_action_is_replaced_and_noted() -> None:
    searched = Told()
    trajectory = await put("react", r'Action: Search["\ud800 x"]', "Action: Finish[Neva]", tool=searched)
    assert (searched.asked, trajectory.answer) == (["\ufffd x"], "Neva")
    assert trajectory.notes["repaired"] == [{"place": "turn 1", "repair": "a lone surrogate became U+FFFD"}]


def test_a_sound_completion_is_passed_on_as_it_is() -> None:
    said = Completion("Neva 🙂", tool_calls=(ToolCall("1", "Search", {"query": ["Oslo", {"a": 1.5}]}),))
    assert check_reply(said) is said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (nested(600), json.dumps(nested(600))),
        ({"query": nested(32)}, json.dumps({"query": nested(32)})),
        ("Oslo", "Oslo"),
        ({"query": float("nan")}, '{"query": NaN}'),
        ({5: "Oslo"}, '{"5": "Oslo"}'),
    ],
)
def test_arguments_that_are_no_json_object_are_text(arguments: Any, text: str) -> None:
    with noting_repairs() as notes:
        call = check_call(ToolCall("1", "Search", arguments))
    assert call == ToolCall("1", "Search", {RAW_ARGUMENTS: text})
    (sent,) = to_chat([Message("assistant", "", tool_calls=(call,))])
    assert sent["tool_calls"][0]["function"]["arguments"] == text
    assert len(notes) == isinstance(arguments, dict)


@pytest.mark.parametrize(("name", "text"), [(None, "None"), ("a\ud800", "a\ufffd")])
async def test_a_tools_name_of_any_type_is_text(name: Any, text: str) -> None:
    asked = Completion("", tool_calls=(ToolCall(name, name, {"query": "x"}),))
    trajectory = await put("react-native", asked, "Answer: Neva")
    assert trajectory.steps[0].observation == f"ERROR: no tool {text!r}; the tools are: Search"
    assert trajectory.answer == "Neva"


def test_arguments_nested_32_deep_are_json_and_deeper_ones_text() -> None:
    for depth, kind in ((31, dict), (32, str)):
        written = json.dumps({"query": nested(depth)})
        arguments, end = read_call(f"{written}]", 0, len(written) + 1)
        assert (type(arguments), end) == (kind, len(written))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_what_is_no_number_of_json_is_text(number: str) -> None:
    action = parse_action(f'Action: Search[{{"limit": {number}}}]', toolbox())
    assert action.arguments == f'{{"limit": {number}}}'
    assert written_calls(f'{{"name": "Search", "arguments": {{"limit": {number}}}}}', toolbox()) == ()


def test_arguments_that_are_too_long_together_are_text() -> None:
    call = check_call(ToolCall("1", "Search", {str(number): "x" * 9_990 for number in range(11)}))
    assert [len(text) for text in call.arguments.values()] == [LARGEST_CALL]
