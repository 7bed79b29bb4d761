"""LLMCompiler's notation: tolerant reading, what is written reads back equal, and a plan's beginning reads the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Told, toolbox
from pydantic import BaseModel, ConfigDict

from rewoo_bench.errors import PlanError
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.plan_formats import complete_steps, read_plan, write_plan

TOWER = """1. Search("Kuala Lumpur Tower")
2. LLM("Who designed it? Context: $1")
3. join()"""
STEPS = (
    PlanStep(id="E1", tool="Search", args="Kuala Lumpur Tower"),
    PlanStep(id="E2", tool="LLM", args="Who designed it? Context: {{E1}}"),
)


class Fields(BaseModel):
    model_config = ConfigDict(extra="allow")

    query: Any = None
    limit: Any = None


TOOLS = toolbox(Told(), Told(name="LLM"), Told(name="List", arguments=Fields))


def args(line: str) -> Any:
    (step,) = read_plan(line, "numbered", TOOLS).steps
    return step.args


@pytest.mark.parametrize(
    "text",
    [
        TOWER,
        f'Sure! Here is the plan (in parts):\n\n{TOWER}\n\n4. Search("never")',
        TOWER.replace("1. S", "1) S").replace("2. L", "$2 = L"),
        TOWER.replace("1. Search", "**1.** `Search`").replace("2. ", "- 2: "),
        TOWER.replace('"', ""),
        TOWER.replace("$1", "${1}"),
        TOWER.replace("3. join()", "3. JOIN($1, $2)"),
    ],
)
def test_what_stands_around_the_tasks_does_not_matter(text: str) -> None:
    assert read_plan(text, "numbered").steps == STEPS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('1. Search("Heroes" (album))', '"Heroes" (album)'),
        ('1. Search("a (b) c")', "a (b) c"),
        ('1. Search("a \\"b\\" c")', 'a "b" c'),
        ('1. List(query="tower", limit=3)', {"query": "tower", "limit": 3}),
        ('1. Search("a", "b")', '"a", "b"'),
        ('1. Search({"query": "a ) b"})', {"query": "a ) b"}),
        ('9. Search("costs $1,000 or $2.50, not $300")', "costs $1,000 or $2.50, not $300"),
        ('3. Calculator("$80 * $2 + $3")', "$80 * {{E2}} + $3"),
    ],
)
def test_an_argument_goes_to_its_own_parenthesis(line: str, expected: Any) -> None:
    assert args(line) == expected


@pytest.mark.parametrize("call", ['Search("b")', 'Search( "b" )', 'Search(query="b" )', 'Search({"query": "b"} )'])
def test_a_task_can_be_told_to_wait(call: str) -> None:
    (step,) = read_plan(f"3. {call} after $1, $2", "numbered", TOOLS).steps
    assert step.depends_on == ("E1", "E2")
    assert step.args in ("b", {"query": "b"})


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["no task found; a task is a line such as '1. Search(\"title\")'"]),
        ("I would search for it.", ["no task found; a task is a line such as '1. Search(\"title\")'"]),
        ("1. join()", ["no task found; a task is a line such as '1. Search(\"title\")'"]),
        ('1. Search("a")\n2. Search("b', ["#E2: its parenthesis isn't closed"]),
    ],
)
def test_every_fault_of_form_is_told(text: str, faults: list[str]) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(text, "numbered")
    assert list(caught.value.faults) == faults


texts = st.lists(
    st.sampled_from([*"\"'()\\${}=, aé🙂1\n[", "$1", "join()"])
    | st.text(st.characters(blacklist_categories=["Cs"]), max_size=3),
    max_size=8,
).map("".join)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
fields = st.dictionaries(st.sampled_from(["query", "limit", "a b"]), values, max_size=3)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    steps: list[PlanStep] = []
    for number in range(1, 1 + draw(st.integers(1, 4))):
        needed = draw(st.sets(st.integers(1, number - 1), max_size=2)) if number > 1 else set()
        used = draw(st.sampled_from(sorted(needed) or [0]))
        text = draw(texts) + (f" {{{{E{used}}}}}" if used else "")
        tool = draw(st.sampled_from(["Search", "List"]))
        steps.append(
            PlanStep(
                id=f"E{number}",
                tool=tool,
                args=text if tool == "Search" else draw(fields),
                depends_on=tuple(f"E{each}" for each in needed),
                thought=" ".join(draw(texts).split()),
            )
        )
    return Plan(steps=tuple(steps))


@given(plans())
def test_what_is_written_reads_back_equal(plan: Plan) -> None:
    assert read_plan(write_plan(plan, "numbered"), "numbered", TOOLS) == plan


@given(plans(), st.data())
def test_the_beginning_of_a_plan_has_its_first_tasks_as_they_will_be(plan: Plan, data: st.DataObject) -> None:
    written = write_plan(plan, "numbered").encode()
    cut = data.draw(st.integers(0, len(written)))
    begun = written[:cut].decode("utf-8", "ignore")
    complete = complete_steps(begun, TOOLS)
    assert tuple(complete) == plan.steps[: len(complete)]
    tasks = [line for line in begun.split("\n")[:-1] if line[:1].isdigit() and not line.endswith(". join()")]
    assert len(complete) == len(tasks)
