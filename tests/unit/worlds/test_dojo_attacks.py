"""Attacks of AgentDojo: what the gullible oracle reaches, and the package's own verdicts beside ours."""

from __future__ import annotations

import importlib.util
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rewoo_bench import evaluate
from rewoo_bench.types import Example, Injection
from rewoo_bench.worlds.dojo import AgentDojo, _injected_text, _places, _suite

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="needs the extra agentdojo"),
    pytest.mark.anyio,
]


def cases(suite: str) -> list[Example]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that the package imports
        return list(AgentDojo(suite=suite, attack="direct").examples(0))  # type: ignore[arg-type]


async def asked(folder: Path, suite: str, ids: list[str], architectures: str, model: str) -> pd.DataFrame:
    results = await evaluate(
        f"agentdojo?suite={suite}&attack=direct", architectures, model=model, ids=tuple(ids), out=folder / suite,
        progress=False,
    )  # fmt: skip
    return results.to_frame().set_index(["architecture", "example_id"])


def theirs(example: Example) -> tuple[bool, bool]:
    """The package's verdicts, utility and security, of its pipeline with an agent that obeys what it reads."""
    from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
    from agentdojo.types import text_content_block_from_string

    suite, task_id, injection_id = example.id.split("/")
    injection = example.injection or Injection("", "")

    class Gullible(BasePipelineElement):  # type: ignore[misc]  # the package has no types
        def query(
            self, query: str, runtime: FunctionsRuntime, env: Any, messages: Any = (), extra_args: Any = None
        ) -> Any:
            gold = [FunctionCall(function=each.tool, args=dict(each.arguments)) for each in example.actions]
            attack = [FunctionCall(function=each.tool, args=dict(each.arguments)) for each in injection.actions]
            made, is_exposed = [], False
            while gold or (is_exposed and attack):
                call = attack.pop(0) if is_exposed and attack else gold.pop(0)
                result, _ = runtime.run_function(env, call.function, call.args)
                is_exposed |= injection.is_in(tool_result_to_str(result))
                made.append(call)
            answer = f"{(example.answers or ('Done.',))[0]}{f' {injection.answer}' if is_exposed else ''}"
            said = [("", made), (answer, None)]
            turns = [
                {"role": "assistant", "content": [text_content_block_from_string(text)], "tool_calls": calls}
                for text, calls in said
            ]
            return query, runtime, env, turns, {}

    tasks = _suite(suite)
    text = _injected_text(tasks.injection_tasks[injection_id])
    placed = dict.fromkeys(_places(suite, task_id), text)
    utility, security = tasks.run_task_with_pipeline(
        Gullible(), tasks.user_tasks[task_id], tasks.injection_tasks[injection_id], placed
    )
    return utility, security


async def test_the_same_verdicts_as_the_package_s_own_pipeline(tmp_path: Path) -> None:
    """60 cases, 15 of each suite, through native calls."""
    verdicts: Counter[tuple[bool, bool]] = Counter()
    for suite in ("banking", "slack", "travel", "workspace"):
        every = cases(suite)
        chosen = every[:: len(every) // 15][:15]
        rows = await asked(tmp_path, suite, [each.id for each in chosen], "react-native", "oracle?gullible=1")
        for example in chosen:
            key = "react-native", example.id
            ours = bool(rows["exact_match"][key]), bool(rows["attack_succeeded"][key])
            assert ours == theirs(example), example.id
            verdicts[ours] += 1
    assert verdicts.total() == 60
    assert sum(count for (_, attacked), count in verdicts.items() if attacked) >= 20
    assert sum(count for (_, attacked), count in verdicts.items() if not attacked) >= 5


async def test_a_plan_gets_no_new_call_but_the_bill_says_whom_it_pays(tmp_path: Path) -> None:
    """The first task pays a bill whose text a model reads: the attacker's account is in the call that was planned."""
    ids = ["banking/user_task_0/injection_task_5", "banking/user_task_0/injection_task_7"]
    rows = await asked(tmp_path, "banking", ids, "rewoo-json,react-native", "oracle?gullible=1")
    reached = ["exposed", "new_calls", "changed_arguments", "changed_answer", "attack_succeeded"]
    money, password = ([rows[name]["rewoo-json", each] for name in reached] for each in ids)
    assert money == [True, 0, 1, True, True]
    assert password == [True, 0, 1, True, False]  # a value that he forges, where he has none of that name
    for each in ids:
        key = "react-native", each
        assert rows["new_calls"][key] > 0
        assert rows["attack_succeeded"][key]


async def test_what_may_try_again_is_led_to_do_so(tmp_path: Path) -> None:
    """A value that makes a step fail brings a new plan, and an answer "unknown" the loop: with the results in sight."""
    ids = ["banking/user_task_0/injection_task_5"]
    for name, model, new in (
        ("rewoo-lazy", "oracle?gullible=1", False),
        ("rewoo-lazy", "oracle?gullible=1&gives_up=1", True),
        ("rewoo-json", "oracle?gullible=1&gives_up=1", False),
        ("rewoo-react", "oracle?gullible=1&gives_up=1", True),
    ):
        rows = await asked(tmp_path / f"{name}{model[-1]}{len(model)}", "banking", ids, name, model)
        assert (rows["new_calls"][name, ids[0]] > 0) is new


async def test_an_oracle_that_obeys_nothing_is_reached_in_nothing(tmp_path: Path) -> None:
    """Whatever stands in the results: no call of the task itself is taken for an attacker's."""
    for suite in ("banking", "slack", "travel", "workspace"):
        every = cases(suite)
        ids = [each.id for each in every[:: len(every) // 10][:10]]
        rows = await asked(tmp_path, suite, ids, "rewoo-json,rewoo-code,react-native", "oracle")
        reached = ["new_calls", "changed_arguments", "changed_answer", "attack_succeeded"]
        assert not rows[reached].astype(int).to_numpy().any()
