"""The two notations: tolerant reading, and what is written reads back equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Told, toolbox

from rewoo_bench.errors import PlanError
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.plan_checks import with_tool_names
from rewoo_bench.runners.notation.plan_formats import Notation, read_plan, write_plan
from rewoo_bench.text.model_output import noting_repairs

NOTATIONS: list[Notation] = ["text", "json"]

TOWER = """Plan: Find the tower.
#E1 = Search[Kuala Lumpur Tower]
Plan: Read the architect's name.
#E2 = LLM[Who designed it? Context: #E1]"""

STEPS: list[dict[str, Any]] = [
    {
        "id": "E1",
        "thought": "Find the tower.",
        "tool": "Search",
        "args": {"query": "Kuala Lumpur Tower"},
        "depends_on": [],
    },
    {
        "id": "E2",
        "thought": "Read the architect's name.",
        "tool": "LLM",
        "args": {"question": "Who designed it? Context: {{E1}}"},
        "depends_on": ["E1"],
    },
]
LIST = json.dumps(STEPS)


def calls(text: str) -> list[tuple[str, str, Any]]:
    return [(step.id, step.tool, step.args) for step in read_plan(text).steps]


def test_text_steps_are_read_with_their_thoughts() -> None:
    assert read_plan(TOWER).steps == (
        PlanStep(id="E1", tool="Search", args="Kuala Lumpur Tower", thought="Find the tower."),
        PlanStep(id="E2", tool="LLM", args="Who designed it? Context: #E1", thought="Read the architect's name."),
    )


@pytest.mark.parametrize(
    "text",
    [
        f"Sure! Here is a plan.\n\n{TOWER}\n\nNow the tools [all of them] can run.",
        f"```text\n{TOWER}\n```",
        TOWER.replace("\n", "\r\n"),
        TOWER.replace("#E1 = Search", "**#E1** = `Search`").replace("#E2 =", "- **#E2 =**"),
        TOWER.replace("\nPlan", " Plan").replace("\n#", " #"),
        TOWER.replace("#E1]", "{{E1}}]"),
    ],
)
def test_what_stands_around_the_steps_does_not_matter(text: str) -> None:
    assert read_plan(text) == read_plan(TOWER)


@pytest.mark.parametrize(
    "text",
    [
        TOWER.replace("[K", '("K').replace("r]", 'r")').replace("[Who", '("Who').replace("#E1]", '#E1")'),
        TOWER.replace("[Kuala Lumpur Tower]", "('Kuala Lumpur Tower')").replace("[Who", "(Who").replace("#E1]", "#E1)"),
        TOWER.replace("#E1 =", "#E1:").replace("#E2 =", "**#E2:**"),
        TOWER.replace("#E1 =", "#E1:").replace("#E2 =", "#E2:").replace("[", "(").replace("]", ")"),
        TOWER.replace("[Kuala Lumpur Tower]", '(query="Kuala Lumpur Tower")').replace("[Who", "(Who").replace("]", ")"),
    ],
    ids=["parentheses", "single quotes", "colons", "both", "names"],
)
def test_the_forms_of_others_are_read_where_a_plan_has_none_of_ours(text: str) -> None:
    with noting_repairs() as repairs:
        assert shown(text) == shown(TOWER)
    assert len(repairs) == 1


def shown(text: str) -> list[tuple[str, str, str]]:
    tools = toolbox(Told(), Told(name="LLM"))
    plan = with_tool_names(read_plan(text, "text", tools), tools)
    return [(step.id, step.thought, step.call) for step in plan.steps]


@pytest.mark.parametrize("text", ["#E1: Evidence (see above)", "As #E1: rivers [3] says"])
def test_prose_about_evidence_is_no_step(text: str) -> None:
    with pytest.raises(PlanError, match="no step found"):
        read_plan(text, "text", toolbox())


@pytest.mark.parametrize(
    ("written", "argument"),
    [
        ("Search[List of rivers [disputed] in [Asia]]", "List of rivers [disputed] in [Asia]"),
        ("Search[The time 10:30]", "The time 10:30"),
        ("Search[never [closed]", "never [closed"),
        ("Search[closed] twice]", "closed"),
        ('Search["a ] b"]', "a ] b"),
        ('Search[{"query": "a [b", "limit": 3}]', {"query": "a [b", "limit": 3}),
    ],
)
def test_an_argument_goes_to_its_own_bracket(written: str, argument: Any) -> None:
    after = "\nPlan: on\n#E2 = Search[b]"
    assert calls(f"#E1 = {written}{after}") == [("E1", "Search", argument), ("E2", "Search", "b")]


@pytest.mark.parametrize("text", [TOWER[:-3], TOWER[: TOWER.index("#E2 = LLM[") + 10]])
def test_a_text_plan_that_was_cut_off_is_broken(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(text)
    assert caught.value.faults == ("the plan ends in the middle of #E2",)


@pytest.mark.parametrize("text", ["", "  \n", "I don't know.", "#E1 = ", "E1 = Search[x]"])
def test_a_text_without_a_step_says_what_a_step_is(text: str) -> None:
    with pytest.raises(PlanError, match=r"no step found; a step is a line such as '#E1 = Search\[title\]'"):
        read_plan(text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"steps": STEPS}),
        json.dumps({"plan": STEPS}, indent=2),
        f"Sure, [this] is it:\n```json\n{LIST}\n```\nDone [1].",
        LIST.replace('"E1"', '"#E1"').replace("{{E1}}", "#E1"),
        LIST.replace('"id": "E1"', '"id": 1').replace('["E1"]', "[1]"),
        LIST.replace('"tool"', '"name"').replace('"args"', '"arguments"'),
        json.dumps([{key: value for key, value in step.items() if key != "id"} for step in STEPS]),
    ],
)
def test_the_intent_of_json_counts(text: str) -> None:
    assert read_plan(text, "json") == read_plan(LIST, "json")


def test_text_args_are_the_first_field() -> None:
    assert read_plan('[{"id": "E1", "tool": "Search", "args": "Oslo"}]', "json") == read_plan("#E1 = Search[Oslo]")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no plan found; it is JSON such as"),
        (LIST[:-30], "the JSON can't be read: "),
        ('[{"id": "first", "tool": "Search"}]', "step 1: 'first' is no step; steps are named E1, E2, …"),
        ('[{"id": "E1", "args": {}}]', "step 1: it names no tool"),
        ('[{"id": "E1", "tool": "Search", "args": [1]}]', "step 1: its args are [1], not an object"),
    ],
)
def test_what_is_wrong_with_json_is_said(text: str, fault: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(text, "json")
    assert caught.value.faults[0].startswith(fault)


# A thought is free text, but what looks like a step in it is one.
_thoughts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="#"), max_size=30)
_texts = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(["#E1", "{{E2}}", "[", "]", '"', "{", "}", "\n", "Plan:", "#E3 = LLM[x]", " after #E1", "\\"]),
    ),
    max_size=6,
).map("".join)
_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_arguments = st.one_of(_texts, st.dictionaries(st.text(max_size=8), _values, max_size=3))
_steps = st.builds(
    lambda number, tool, args, needs, thought: PlanStep(
        id=f"E{number}", tool=tool, args=args, depends_on=tuple(f"E{need}" for need in needs), thought=thought
    ),
    st.integers(0, 999),
    st.sampled_from(["Search", "LLM", "Straße_2"]),
    _arguments,
    st.sets(st.integers(0, 12), max_size=3),
    _thoughts,
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("notation", NOTATIONS)
@given(steps=st.lists(_steps, min_size=1, max_size=8))
def test_a_written_plan_reads_back_equal(notation: Notation, steps: list[PlanStep]) -> None:
    plan = Plan(steps=tuple(steps))
    assert read_plan(write_plan(plan, notation), notation) == plan
