"""Where a trajectory begins to repeat itself, in the rows of every architecture."""

from __future__ import annotations

import doctest
from typing import Any

import pandas as pd
import pytest

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.text import loops
from rewoo_bench.text.loops import first_repetition

pytestmark = pytest.mark.anyio

SEARCH = "Thought: find it\nAction: Search[Kyiv]"
OTHER = "Thought: find another\nAction: Search[Oslo]"
FINISH = "Thought: I know it\nAction: Finish[Kyiv]"


@pytest.mark.parametrize(
    ("steps", "first"),
    [("", None), ("a", None), ("aa", None), ("aaa", 1), ("abbb", 2), ("aaab", None), ("aab", None),
     ("abab", 2), ("xababa", 3), ("abcabc", 3), ("abcabca", 3), ("abcab", None), ("aabaab", 3), ("abcdabcd", None)],
)  # fmt: skip
async def test_a_loop_is_what_repeats_until_the_end(steps: str, first: int | None) -> None:
    assert first_repetition(steps) == first


async def test_the_examples_hold() -> None:
    assert doctest.testmod(loops).failed == 0


async def row(architecture: str, lines: list[Any], **settings: Any) -> Any:
    results = await evaluate("sample", [architecture], model=ScriptedModel(lines), questions=1, **settings)
    return results.to_frame().iloc[0], results.calls_to_frame().query("kind == 'model'")


async def test_the_loop_of_react_begins_at_its_first_repetition() -> None:
    question, calls = await row("react?max_steps=5", [OTHER, *[SEARCH] * 4])
    assert (question["stop_reason"], question["loop_step"]) == ("step_limit", 3)
    assert question["loop_tokens"] == (calls["input_tokens"] + calls["output_tokens"]).iloc[2:].sum()


@pytest.mark.parametrize("lines", [[SEARCH, OTHER, FINISH], [*[SEARCH] * 3, FINISH]])
async def test_a_question_that_was_answered_does_not_loop_until_its_end(lines: list[str]) -> None:
    question, _ = await row("react", lines)
    assert pd.isna(question["loop_step"])
    assert question["loop_tokens"] == 0


async def test_a_step_of_plan_and_execute_is_its_plan_and_its_action() -> None:
    plan, action = "Plan:\n1. Find it.", "Action: Search[Kyiv]"
    question, calls = await row("plan-execute?max_steps=3", [plan, action] * 3)
    assert question["loop_step"] == 2
    assert question["loop_tokens"] == (calls["input_tokens"] + calls["output_tokens"]).iloc[2:].sum()


@pytest.mark.parametrize("failures", [0.0, 1.0])
async def test_the_oracle_never_triggers_a_guard(failures: float) -> None:
    guarded = [f"{name}?repeat_guard=stop" for name in ("react", "react-native", "plan-execute", "rewoo-react")]
    rows = (await evaluate("sample", guarded, model="oracle", questions=25, tool_failure_rate=failures)).to_frame()
    assert len(rows) == 100
    assert "repeated" not in set(rows["stop_reason"])
    assert not rows["loop_tokens"].any()
