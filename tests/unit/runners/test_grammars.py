"""The grammars, as text; that llama.cpp reads them is checked with the embedded model."""

from __future__ import annotations

import re

import pytest
from gbnf import fits
from parts import Told, Year, toolbox
from pydantic import BaseModel

from rewoo_bench.runners.notation.grammars import (
    action_grammar,
    answer_grammar,
    join_grammar,
    numbered_grammar,
    plan_grammar,
    plan_schema,
    words_grammar,
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


@pytest.mark.parametrize(
    "grammar",
    [
        plan_grammar(["Search"], 3),
        action_grammar(["Search", "Finish"]),
        numbered_grammar(["Search"], 3),
        numbered_grammar(["Search", "LLM"], 2, first=4),
        join_grammar(replan=True),
        join_grammar(replan=False),
        answer_grammar(),
        answer_grammar(thought=True),
        words_grammar(3, answer=True),
        words_grammar(1, answer=False),
    ],
)
def test_every_rule_that_is_used_is_there(grammar: str) -> None:
    defined = rules(grammar)
    for rule in defined.values():
        bare = re.sub(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]])*\]', "", rule)
        assert set(re.findall(r"[a-z]\w*", bare)) <= set(defined)


def test_the_schema_of_a_plan_has_a_step_for_each_tool_with_its_fields() -> None:
    schema = plan_schema(toolbox(Told(), Told(name="Year", arguments=Year)), 5)
    steps = schema["properties"]["steps"]
    assert (schema["type"], steps["maxItems"]) == ("object", 5)
    search, year = (step["properties"] for step in steps["items"]["anyOf"])
    assert set(search) == {"id", "thought", "tool", "args", "depends_on"}
    (bare,) = plan_schema(toolbox(), 5, bare=True)["properties"]["steps"]["items"]["anyOf"]
    assert set(bare["properties"]) == {"id", "tool", "args"}
    assert (search["tool"], list(search["args"]["properties"])) == ({"const": "Search"}, ["query"])
    assert [kind["type"] for kind in year["args"]["properties"]["year"]["anyOf"]] == ["integer", "string"]


def test_an_answer_may_end_with_its_line() -> None:
    """A transcript goes on with a line end; where that isn't allowed, small models write on to the limit."""
    assert rules(answer_grammar())["root"].endswith('[^\\n]{1,120} "\\n"?')


class Filters(BaseModel):
    lang: str = "en"
    year: int | None = None


@pytest.mark.parametrize(
    ("inputs", "is_allowed"),
    [
        ("", True),
        ('lang="de"', True),
        ("year=1973", True),
        ('lang="de", year=1973', True),
        ('year=1973, lang="de"', False),
        ('lang="de" year=1973', False),
        (", year=1973", False),
    ],
)
def test_inputs_that_may_be_left_out_come_in_their_order(inputs: str, is_allowed: bool) -> None:
    actions = action_grammar(toolbox(Told(name="List", arguments=Filters)))
    assert fits(actions, f"Thought: x\nAction: List[{inputs}]") is is_allowed
