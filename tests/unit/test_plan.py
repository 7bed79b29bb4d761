"""Plans: tolerant reading, strict validation, one substitution."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Told, Year, plan_of, toolbox

from rewoo_bench.errors import PlanError
from rewoo_bench.runners.plan import Plan, PlanStep, parse_plan, plan_faults, substitute

TOWER = """Plan: Find the tower.
#E1 = Search[Kuala Lumpur Tower]
Plan: Read the architect's name.
#E2 = LLM[Who designed it? Context: #E1]"""


def calls(text: str) -> list[tuple[str, str, str]]:
    return [(step.id, step.tool, step.argument) for step in parse_plan(text).steps]


def test_steps_are_read_with_their_thoughts() -> None:
    assert parse_plan(TOWER).steps == (
        PlanStep(id="E1", tool="Search", argument="Kuala Lumpur Tower", thought="Find the tower."),
        PlanStep(id="E2", tool="LLM", argument="Who designed it? Context: #E1", thought="Read the architect's name."),
    )


@pytest.mark.parametrize(
    "text",
    [
        f"Sure! Here is a plan.\n\n{TOWER}\n\nNow the tools [all of them] can run.",
        f"```text\n{TOWER}\n```",
        TOWER.replace("#E1 = Search", "#E1=Search").replace("#E2 = LLM", "#E2= LLM "),
        TOWER.replace("\n", "\r\n"),
        TOWER.replace("Plan:", "Plan 1:"),
        TOWER.replace("#E1 = Search", "**#E1** = `Search`").replace("#E2 =", "- **#E2 =**"),
        TOWER.replace("\nPlan", " Plan").replace("\n#", " #"),
    ],
    ids=["prose", "fence", "no spaces", "windows line ends", "numbered", "markdown", "one line"],
)
def test_what_stands_around_the_steps_does_not_matter(text: str) -> None:
    assert parse_plan(text) == parse_plan(TOWER)


@pytest.mark.parametrize(
    ("written", "argument"),
    [
        ("Search[List of rivers [disputed] in [Asia]]", "List of rivers [disputed] in [Asia]"),
        ("Search[The time 10:30]", "The time 10:30"),
        ("Search[a = b, #1 hit]", "a = b, #1 hit"),
        ("Search[  over\n  two lines ]", "over two lines"),
        ("Search[never [closed]", "never [closed"),
        ("Search[closed] twice]", "closed"),
    ],
)
def test_an_argument_goes_to_its_own_bracket(written: str, argument: str) -> None:
    after = "\nPlan: on\n#E2 = Search[b]"
    assert calls(f"#E1 = {written}{after}") == [("E1", "Search", argument), ("E2", "Search", "b")]


def test_an_unclosed_argument_ends_with_its_line() -> None:
    assert calls("#E1 = Search[Oslo\nPlan: go on\n#E2 = LLM[#E1]") == [("E1", "Search", "Oslo"), ("E2", "LLM", "#E1")]


def test_a_tenth_step_is_neither_lost_nor_taken_for_the_first() -> None:
    text = "\n".join(f"#E{n} = Search[page {n}]" for n in range(1, 11)) + "\n#E11 = LLM[#E10, #E1, #E10]"
    plan = parse_plan(text)
    assert [step.id for step in plan.steps] == [f"E{n}" for n in range(1, 12)]
    assert plan.steps[-1].references == ("E10", "E1")
    assert substitute("#E10 #E1.", {"E1": "one", "E10": "ten"}) == "ten one."


def test_leading_zeros_are_the_same_step() -> None:
    plan = parse_plan("#E01 = Search[a]\n#E02 = Search[#E01]")
    assert plan.dependencies() == {"E1": set(), "E2": {"E1"}}
    assert plan_faults(plan, toolbox()) == []


def test_evidence_is_put_in_once_and_stays_as_it_is() -> None:
    evidence = {"E1": r"see #E2 and \1", "E2": "[#E1]"}
    assert substitute("#E1 / #E2 / #E3 at 10:30", evidence) == r"see #E2 and \1 / [#E1] / #E3 at 10:30"


@pytest.mark.parametrize("text", [TOWER[:-3], TOWER[: TOWER.index("#E2 = LLM[") + 10]])
def test_a_plan_that_was_cut_off_is_broken(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    assert caught.value.faults == ("the plan ends in the middle of #E2",)


@pytest.mark.parametrize("text", ["", "  \n", "I don't know.", "#E1 = ", "E1 = Search[x]"])
def test_a_text_without_a_step_says_what_a_step_is(text: str) -> None:
    with pytest.raises(PlanError, match=r"no step found; a step is a line such as '#E1 = Search\[title\]'"):
        parse_plan(text)


def test_a_sound_plan_has_no_faults() -> None:
    assert plan_faults(plan_of("Search[a]", "Search[#E1]", "Search[#E1 #E2]"), toolbox()) == []


def test_a_forward_reference_without_a_circle_is_only_a_matter_of_order() -> None:
    assert plan_faults(plan_of("Search[#E2]", "Search[a]"), toolbox()) == []


def test_all_faults_are_found_at_once() -> None:
    steps = [*plan_of("Serch[a]", "Search[#E9]", "Search[]").steps, PlanStep(id="E1", tool="Search", argument="b")]
    assert plan_faults(Plan(steps=tuple(steps)), toolbox(), max_steps=3) == [
        "#E1 is defined more than once",
        "the plan has 4 steps, at most 3 are allowed",
        "#E1 uses the unknown tool 'Serch'; the tools are: Search",
        "#E2 uses #E9, which no step defines",
        "#E3 has an empty argument",
    ]


@pytest.mark.parametrize(
    ("plan", "cycle"),
    [
        (plan_of("Search[#E1]"), "#E1 -> #E1"),
        (plan_of("Search[a]", "Search[#E3]", "Search[#E2]"), "#E2 -> #E3 -> #E2"),
    ],
)
def test_a_circle_is_named(plan: Plan, cycle: str) -> None:
    assert plan_faults(plan, toolbox()) == [f"steps wait for each other: {cycle}"]


def test_an_argument_has_to_fit_its_tool_unless_it_waits_for_evidence() -> None:
    tools = toolbox(Told(name="Year", arguments=Year))
    assert plan_faults(plan_of("Year[1973]", "Year[#E1]"), tools) == []
    (fault,) = plan_faults(plan_of("Year[last year]"), tools)
    assert fault.startswith("#E1: 'last year' doesn't fit Year: Input should be a valid integer")


def test_a_step_number_of_any_length_is_read_or_refused() -> None:
    with pytest.raises(PlanError):
        parse_plan(f"#E{'1' * 5000} = Search[x]")
    assert substitute(f"#E{'1' * 5000}", {"E1": "x"}) == f"#E{'1' * 5000}"


@pytest.mark.parametrize(
    "text", ["Plan: " + " " * 50_000 + "x", "Plan" + " " * 50_000, "#E1 = S[" * 5_000, "#E1" + " " * 50_000]
)
def test_a_runaway_text_is_read_in_no_time(text: str) -> None:
    start = time.perf_counter()
    assert parse_plan(f"{text}]\n#E2 = Search[a]").steps[-1].argument == "a"
    assert time.perf_counter() - start < 1


# What the notation can hold: one line, no brackets, no new step.
_words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="[]#"), max_size=30).map(
    lambda text: " ".join(text.split())
)
_arguments = st.builds(
    lambda parts: " ".join(filter(None, parts)), st.lists(st.one_of(_words, st.just("#E1"), st.just("[x]")))
)


@given(st.lists(st.tuples(_words, st.sampled_from(["Search", "LLM", "Straße_2"]), _arguments), min_size=1, max_size=12))
def test_a_rendered_plan_reads_back_equal(steps: list[tuple[str, str, str]]) -> None:
    plan = Plan(
        steps=tuple(
            PlanStep(id=f"E{number}", thought=thought, tool=tool, argument=argument)
            for number, (thought, tool, argument) in enumerate(steps, start=1)
        )
    )
    assert parse_plan(plan.render()) == plan


@given(
    st.lists(st.sampled_from(["#E", "1", "10", " = ", "Search", "[", "]", "\n", "Plan:", "x", "²", "٣"])).map("".join)
)
def test_any_text_is_a_plan_or_a_plan_error(text: str) -> None:
    with suppress(PlanError):
        plan = parse_plan(text)
        assert plan.steps
        plan_faults(plan, toolbox())


@given(st.text())
def test_any_unicode_is_a_plan_or_a_plan_error(text: str) -> None:
    for candidate in (text, f"#E1 = Search[{text}", f"{text}#E1 = Search[a]"):
        with suppress(PlanError):
            assert parse_plan(candidate).steps
