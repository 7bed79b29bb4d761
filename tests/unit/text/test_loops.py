"""Where a trajectory begins to repeat itself, in the rows of every architecture."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from parts import model_call, result

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.runs.columns import call_rows, question_row
from rewoo_bench.text import loops
from rewoo_bench.text.loops import first_repetition
from rewoo_bench.types import StopReason, Trajectory, Usage

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


async def test_other_words_for_the_same_action_are_a_repetition() -> None:
    replies = [SEARCH.replace("find", verb) for verb in ("find", "get", "see")]
    question, _ = await row("react?max_steps=3", replies)
    assert question["loop_step"] == 2


@pytest.mark.parametrize("lines", [[SEARCH, OTHER, FINISH], [*[SEARCH] * 3, FINISH]])
async def test_a_question_that_was_answered_does_not_loop_until_its_end(lines: list[str]) -> None:
    question, _ = await row("react", lines)
    assert pd.isna(question["loop_step"])
    assert question["loop_tokens"] == 0


async def test_the_answer_at_the_limit_is_no_step_and_not_in_the_loop() -> None:
    question, calls = await row("react?max_steps=4&answer_at_limit=true", [*[SEARCH] * 4, FINISH])
    tokens = calls["input_tokens"] + calls["output_tokens"]
    assert (question["loop_step"], question["loop_tokens"]) == (2, tokens.iloc[1:4].sum())


async def test_a_step_of_plan_and_execute_is_its_plan_and_its_action() -> None:
    plan, action = "Plan:\n1. Find it.", "Action: Search[Kyiv]"
    question, calls = await row("plan-execute?max_steps=3", [plan, action] * 3)
    assert question["loop_step"] == 2
    assert question["loop_tokens"] == (calls["input_tokens"] + calls["output_tokens"]).iloc[2:].sum()


async def test_plans_that_are_refused_again_and_again_are_a_loop_too() -> None:
    question, _ = await row("rewoo?max_replans=3&invalid_plan=stop", ["no plan"] * 4)
    assert (question["stop_reason"], question["loop_step"]) == ("invalid_plan", 2)


@pytest.mark.parametrize("failures", [0.0, 1.0])
async def test_the_oracle_never_triggers_a_guard(failures: float) -> None:
    guarded = [f"{name}?repeat_guard=stop" for name in ("react", "react-native", "plan-execute", "rewoo-react")]
    rows = (await evaluate("sample", guarded, model="oracle", tool_failure_rate=failures)).to_frame()
    assert len(rows) == 400
    assert "repeated" not in set(rows["stop_reason"])
    assert not rows["loop_tokens"].any()


def tables(turns: Sequence[str], stop_reason: StopReason = "step_limit") -> tuple[pa.Table, pa.Table]:
    """A question of these turns: a reply, and `call -> result` for each tool call that it makes, behind a `|`.

    A reply and a result take a token a letter.
    """
    made: list[Any] = []
    tokens = 100
    for turn in turns:
        said, *acts = turn.split("|")
        calls = [act.split("->") for act in acts]
        usage = Usage(input_tokens=tokens, output_tokens=len(said) + sum(len(call) for call, _ in calls))
        content = f"{said} {sorted(calls)}".encode()
        made.append(model_call(len(made), start=float(len(made)), usage=usage, content=content))
        for call, found in calls:
            more: Any = {"kind": "tool", "name": "Search", "role": "tool", "content": f"{call} {found}".encode()}
            made.append(model_call(len(made), start=float(len(made)), usage=Usage(), **more))
        tokens += usage.output_tokens + sum(len(found) for _, found in calls)
    of = result(calls=made, trajectory=Trajectory(None, stop_reason))
    return (pa.Table.from_pylist([question_row(of, {"run_id": "r"})]), pa.Table.from_pylist(call_rows(of, "r")))


def loop_of(questions: pa.Table) -> tuple[int | None, int | None]:
    (row,) = questions.select(["loop_step", "loop_tokens"]).to_pylist()
    return row["loop_step"], row["loop_tokens"]


SAME = "look|Kyiv->a city"
BOTH, OTHER_ORDER = "look|Kyiv->a city|Oslo->a town", "look|Oslo->a town|Kyiv->a city"
PAGES = ["more|next->one", "more|next->two", "more|next->three", "more|next->four"]
