"""The grammars, as text; that llama.cpp reads them is checked with the embedded model."""

from __future__ import annotations

import re

import pytest

from rewoo_bench.runners.notation.grammars import (
    numbered_grammar,
    plan_grammar,
)


def rules(grammar: str) -> dict[str, str]:
    return dict(line.split(" ::= ", 1) for line in grammar.splitlines())


@pytest.mark.parametrize("max_steps", [1, 2, 12])
def test_a_step_refers_only_to_steps_before_it(max_steps: int) -> None:
    plan = rules(plan_grammar(["Search", "LLM"], max_steps))
    for number in range(1, max_steps + 1):
        assert re.findall(r"#E(\d+)\"", plan[f"a{number}"]) == [str(n) for n in range(1, number)]
        assert f"#E{number} = " in plan[f"s{number}"]
        assert '"Search["' in plan[f"s{number}"]


@pytest.mark.parametrize("first", [1, 4])
def test_a_numbered_task_refers_only_to_tasks_before_it(first: int) -> None:
    plan = rules(numbered_grammar(["Search"], 3, first))
    for number in range(first, first + 3):
        assert re.findall(r"\$(\d+)\"", plan[f"a{number}"]) == [str(n) for n in range(1, number)]
        assert f'"{number}. " ( "Search(' in plan[f"s{number}"]
        assert f'"{number + 1}. join()"' in plan[f"s{number}"]
    assert f"s{first + 3}" not in plan
