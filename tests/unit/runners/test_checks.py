"""What keeps a plan from being run: found before anything runs, and all of it at once."""

from __future__ import annotations

from typing import Any

import pytest
from parts import Told, plan_of, toolbox
from pydantic import BaseModel, ConfigDict

from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.plan_checks import plan_faults, read_checked


class Flight(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: str
    year: int
    seats: int = 1


def fault_of(args: Any) -> list[str]:
    """The faults of a step E2 of the tool Flight, after a sound step E1."""
    tools = toolbox(Told(), Told(name="Flight", arguments=Flight))
    steps = (PlanStep(id="E1", tool="Search", args="a"), PlanStep(id="E2", tool="Flight", args=args))
    return plan_faults(Plan(steps=steps), tools)


def test_a_forward_reference_without_a_circle_is_only_a_matter_of_order() -> None:
    assert plan_faults(plan_of("Search[#E2]", "Search[a]"), toolbox()) == []


def test_all_faults_are_found_at_once() -> None:
    steps = [*plan_of("Serch[a]", "Search[#E9]", "Search[]").steps, PlanStep(id="E1", tool="Search", args="b")]
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


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ({"city": "Oslo", "year": 1973}, None),
        ({"city": "#E1", "year": "{{E1}}"}, None),
        ({"city": "#E1"}, "'year' is missing"),
        ({"city": "Oslo", "year": "soon"}, "year: 'soon' is not of the type integer"),
        ({"city": "#E1", "year": "#E1", "town": "x"}, "there is no 'town'; there is: city, year, seats"),
    ],
)
def test_fields_are_checked_one_by_one(args: Any, fault: str | None) -> None:
    found = fault_of(args)
    assert [fault in line for line in found] == [True] if fault else found == []


def test_a_tool_may_be_spelt_in_another_case() -> None:
    plan, faults, _ = read_checked("#E1 = SEARCH[a]", "text", toolbox(), 8)
    assert plan is not None
    assert (plan.steps[0].tool, faults) == ("Search", [])


@pytest.mark.parametrize(("too_long", "steps", "dropped"), [("reject", 3, 0), ("truncate", 2, 1)])
def test_a_plan_too_long_is_rejected_or_loses_its_end(too_long: Any, steps: int, dropped: int) -> None:
    text = "#E1 = Search[a]\n#E2 = Search[b]\n#E3 = Search[c]"
    plan, faults, lost = read_checked(text, "text", toolbox(), 2, too_long)
    assert plan is not None
    assert (len(plan.steps), lost) == (steps, dropped)
    assert faults == ([] if dropped else ["the plan has 3 steps, at most 2 are allowed"])
