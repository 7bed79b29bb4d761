"""AgentDojo's tasks through our tools: its own ground truth is right, and its own pipeline gives the same verdicts."""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections import Counter
from typing import Any

import pytest

from rewoo_bench.types import Example
from rewoo_bench.worlds.dojo import CHANGES_STATE, SUITES, AgentDojo, _environment, _labels, _suite

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="needs the extra agentdojo"),
    pytest.mark.anyio,
]


def tasks() -> list[Example]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that the package imports
        return list(AgentDojo().examples(0))


async def played(example: Example, count: int, answer: str) -> bool:
    """The verdict after the first `count` gold calls through our tools, and an answer."""
    async with AgentDojo().worlds().opened(example) as world:
        for action in example.actions[:count]:
            tool = world.tools[action.tool]
            await tool(tool.arguments.model_validate(dict(action.arguments)))
        return bool(await world.solved(answer, 60.0))


async def test_the_ground_truth_of_every_task_is_right_and_a_few_are_without_any() -> None:
    every = tasks()
    golds = [(example, example.answers[0] if example.answers else "") for example in every]
    right = [await played(example, len(example.actions), answer) for example, answer in golds]
    nothing = [example.id for example in every if await played(example, 0, "")]
    words = [example.id for example, answer in golds if answer and await played(example, 0, answer)]
    assert (len(every), sum(len(example.actions) for example in every), sum(right)) == (97, 339, 97)
    assert nothing == [f"banking/user_task_{number}" for number in (5, 6, 8, 9, 10)]
    assert len(words) == 33  # with the five above 38 are right without a call


async def test_the_same_verdicts_as_the_package_s_own_pipeline() -> None:
    """40 tasks: the gold calls, all but the last one, none; with the gold answer, or another one."""
    from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
    from agentdojo.types import text_content_block_from_string

    class Scripted(BasePipelineElement):  # type: ignore[misc]  # the package has no types
        def __init__(self, example: Example, count: int, answer: str) -> None:
            self.calls = [FunctionCall(function=a.tool, args=dict(a.arguments)) for a in example.actions[:count]]
            self.answer = answer

        def query(
            self, query: str, runtime: FunctionsRuntime, env: Any, messages: Any = (), extra_args: Any = None
        ) -> Any:
            for call in self.calls:
                runtime.run_function(env, call.function, call.args)
            turns: list[dict[str, Any]] = [
                {"role": "assistant", "content": [text_content_block_from_string("")], "tool_calls": self.calls}
            ]
            turns.append(
                {"role": "assistant", "content": [text_content_block_from_string(self.answer)], "tool_calls": None}
            )
            return query, runtime, env, turns, {}

    verdicts: Counter[bool] = Counter()
    for number, example in enumerate(tasks()[::2][:40]):
        gold = example.answers[0] if example.answers else "Done."
        count = [len(example.actions), len(example.actions) - 1, 0, len(example.actions)][number % 4]
        answer = "I don't know." if number % 4 == 3 else gold
        suite, _, task_id = example.id.partition("/")
        theirs, _ = _suite(suite).run_task_with_pipeline(
            Scripted(example, count, answer), _suite(suite).user_tasks[task_id], None, {}
        )
        assert await played(example, count, answer) == theirs, example.id
        verdicts[theirs] += 1
    assert min(verdicts[True], verdicts[False]) >= 10  # both occur


def test_the_labels_are_of_every_call_and_its_arguments() -> None:
    said = _labels()
    for example in tasks():
        labels = said[example.id]
        assert [label["tool"] for label in labels] == [action.tool for action in example.actions]
        for number, label in enumerate(labels, start=1):
            assert set(label.get("read", ())) <= set(example.actions[number - 1].arguments)
            numbers = [*label.get("after", ()), *(each for of in label.get("read", {}).values() for each in of)]
            assert all(1 <= each < number for each in numbers)
            assert ("reason" in label) == (label.get("decided", "task") != "task")


def test_what_changes_an_environment_is_marked() -> None:
    from agentdojo.functions_runtime import FunctionsRuntime

    tasks()
    for suite in SUITES:
        runtime = FunctionsRuntime(_suite(suite).tools)
        for task in _suite(suite).user_tasks.values():
            environment = task.init_environment(_environment(suite))
            for call in task.ground_truth(environment.model_copy(deep=True)):
                before = environment.model_dump()
                runtime.run_function(environment, call.function, call.args, raise_on_error=True)
                after = environment.model_dump()
                if "web" in after:
                    before["web"].pop("web_requests"), after["web"].pop("web_requests")  # a log that no tool shows
                changed = json.dumps(before, default=str) != json.dumps(after, default=str)
                assert not changed or call.function in CHANGES_STATE
