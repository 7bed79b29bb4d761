"""The oracle's calculations: worked out by the tool in every architecture's form, or by itself where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing import processor_time

import rewoo_bench
from rewoo_bench.config.names import bundled_names
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.models.oracle.gold_plan import Evidence, LookupPath, read_number, same_number, shown_numbers
from rewoo_bench.types import Document, Example, Hop, Message

pytestmark = pytest.mark.anyio

ALL = bundled_names("architectures")
PLANNED = ("rewoo", "rewoo-json", "rewoo-code", "rewoo-react")
TOOLS = {
    "rewoo": "LLM+Calculator",
    "rewoo-json": "LLM+Calculator",
    "rewoo-react": "LLM+Calculator",
    "rewoo-code": "LLM+Calculator",
    "react-code": "Calculator",
    "react": "Calculator",
    "react-native": "Calculator",
    "plan-execute": "Calculator",
}


def sums(expression: str, value: str, ask: str, *needs: int) -> Hop:
    return Hop(expression, value, ask, needs, tool="Calculator")


CLIPS = Example(
    "c1", "Ann sells 48 clips in April and half as many in May. How many is that?", ("72",),
    chain=(sums("48 / 2", "24", "the clips of May"), sums("48 + {0}", "72", "the clips of both months", 0)),
)  # fmt: skip
TOWERS = Example(
    "c2", "How much taller is Tower A than Tower B?", ("1234",),
    (Document("Tower A", "Tower A is 1,534 metres tall."), Document("Tower B", "Tower B is 300 metres tall.")),
    chain=(Hop("Tower A", "1,534", "the height of Tower A"), Hop("Tower B", "300", "the height of Tower B"),
           sums("{0} - {1}", "1234", "the difference", 0, 1)),
)  # fmt: skip


async def only(example: Example, architecture: str, *tools: str, model: str = "oracle", **more: Any) -> Result:
    named = "+".join((*tools, *TOOLS.get(architecture, "").split("+")))
    options = f"?tools={named}" if architecture in TOOLS else ""
    (result,) = await rewoo_bench.evaluate([example], [architecture + options], model=model, **more)
    return result


def made(result: Result, tool: str = "Calculator") -> list[tuple[str, str]]:
    steps = result.trajectory.steps
    return [(step.argument, step.observation) for step in steps if step.tool == tool]


def planned(result: Result) -> list[str]:
    return [f"{step['tool']}[{step['args']}]" for step in result.trajectory.plan or ()]


@pytest.mark.parametrize("architecture", ALL)
async def test_every_architecture_works_out_each_number_once(architecture: str) -> None:
    result = await only(CLIPS, architecture)
    assert (result.trajectory.answer, result.trajectory.stop_reason) == ("72", "answered")
    expected = [("48 / 2", "24"), ("48 + 24", "72")] if architecture in TOOLS else []
    assert made(result) == expected


@pytest.mark.parametrize("architecture", ALL)
async def test_every_architecture_calculates_with_what_it_found(architecture: str) -> None:
    result = await only(TOWERS, architecture, "Search")
    assert result.trajectory.answer == "1234"
    assert not any(step.failed for step in result.trajectory.steps)
    if architecture in TOOLS:
        assert made(result) == [("1,534 - 300", "1234")]
        assert [query for query, _ in made(result, "Search")] == ["Tower A", "Tower B"]


async def test_a_plan_has_the_slots_of_earlier_results_and_reads_numbers_from_pages() -> None:
    assert planned(await only(CLIPS, "rewoo")) == ["Calculator[48 / 2]", "Calculator[48 + {{E1}}]"]
    assert planned(await only(TOWERS, "rewoo", "Search")) == [
        "Search[Tower A]", "Search[Tower B]",
        "LLM[The height of Tower A? Context: {{E1}}]", "LLM[The height of Tower B? Context: {{E2}}]",
        "Calculator[{{E3}} - {{E4}}]",
    ]  # fmt: skip


async def test_two_equal_results_are_each_worked_out() -> None:
    equal = (sums("48 / 2", "24", "one"), sums("30 - 6", "24", "other"), sums("{0} + {1}", "48", "both", 0, 1))
    for architecture in TOOLS:
        result = await only(replace(CLIPS, chain=equal, answers=("48",)), architecture)
        assert [value for _, value in made(result)] == ["24", "24", "48"], architecture
        assert result.trajectory.answer == "48"


def test_a_long_chain_of_sums_that_share_inputs_is_looked_through_in_no_time() -> None:
    chain = [sums("1", "1", "one"), sums("1", "1", "other")]
    chain += [sums(f"{{{n - 2}}} + {{{n - 1}}}", str(n), "the next", n - 2, n - 1) for n in range(2, 200)]
    path = LookupPath(replace(CLIPS, chain=tuple(chain)))
    with processor_time(1):
        assert path.found(Evidence("")) == [True] * 200
        assert path.found(Evidence("", ("1",), calculator=True)) == [True] + [False] * 199


@pytest.mark.parametrize("architecture", TOOLS)
async def test_without_a_calculator_the_oracle_works_it_out_itself(architecture: str) -> None:
    tools = "Search+LLM" if architecture in PLANNED else "Search"
    for example, searched in ((CLIPS, 0), (TOWERS, 2)):
        (result,) = await rewoo_bench.evaluate([example], [f"{architecture}?tools={tools}"], model="oracle")
        assert result.trajectory.answer == example.answers[0]
        if example is TOWERS or architecture.startswith("react"):  # a plan has at least one step
            assert len(made(result, "Search")) == searched
        assert made(result) == []


@pytest.mark.parametrize(
    ("shown", "gold", "same"),
    [
        ("24.0", "24", True),
        ("1,234", "1234", True),
        ("$3.50", "3.5", True),
        ("33.3333333333", "33.33", True),
        ("33.34", "33.33", False),
        ("24.4", "24", False),
        ("-7", "7", False),
        ("24 clips", "24", False),
        ("", "24", False),
    ],
)
def test_which_numbers_are_the_same(shown: str, gold: str, same: bool) -> None:
    assert same_number(shown, gold) is same


def test_a_number_counts_where_it_is_a_whole_observation() -> None:
    solver = "Plan: a\n#E1 = Calculator[48 / 2]\nEvidence: 24\n\nPlan: b\n#E2 = LLM[7]\nEvidence: the same as #E1"
    messages = [
        Message("user", "Observation: 12\nMake a new plan from what is known now, or answer."),
        Message("user", "Observation: Tower A: 300"),
        Message("tool", "5.5\n(2 turns left.)"),
        Message("assistant", "Observation: 99"),
        Message("user", solver),
    ]
    assert shown_numbers(messages) == ("12", "5.5", "24", "24")
    numbered = '1. Calculator("48 / 2")\nResult: 24\n\n2. Calculator("$1 + 0")\nResult: the same as $1'
    assert shown_numbers([Message("user", numbered)]) == ("24", "24")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_a_number_is_read_with_and_without_separators_of_thousands(number: Any) -> None:
    assert read_number(f"{number:,}") == read_number(f"{number:f}") == float(number)
