"""GSM8K: the marked number is the answer, the annotated calculations are the chain."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loader_rows import Hub, gsm8k_row, load, only

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.loaders.short_answers import calculation_chain
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.types import Example, Hop


def step(title: str, value: str, *needs: int) -> Hop:
    return Hop(title, value, needs=needs, tool="Calculator")


def test_a_row_has_its_number_for_an_answer_and_its_place_for_an_id(tmp_path: Path) -> None:
    assert only(tmp_path, [gsm8k_row()], "test.jsonl") == Example(
        "1",
        "Ann has 8 pens and buys 4 times as many. How many has she then?",
        ("40",),
        chain=(step("4*8", "32"), step("{0}+8", "40", 0)),
    )


def test_a_lone_file_is_known_by_its_marked_answers_and_scored_as_numbers(tmp_path: Path) -> None:
    found = load(tmp_path, [gsm8k_row(1), gsm8k_row(2)], "test.jsonl")
    assert (found.name, found.style, found.scoring) == ("test", "arithmetic", "gsm8k")
    assert found.tools == ("Calculator", "LLM")
    assert [example.id for example in found.examples] == ["1", "2"]
    assert found.scorer("She has 40.0 pens.", found.examples[0].answers).exact_match


def test_the_hub_set_is_its_test_split() -> None:
    hub = Hub([gsm8k_row(number) for number in range(300)])
    found = load_dataset_examples("gsm8k", load_rows=hub)
    assert hub.asked == ("openai/gsm8k", "main", "test", True)
    assert (found.name, found.style, found.scoring, found.tools) == (
        *("gsm8k", "arithmetic", "gsm8k"),
        ("Calculator", "LLM"),
    )
    assert (len(found.examples), found.split) == (100, "test")


@pytest.mark.parametrize(
    ("question", "solution", "hops"),
    [
        # the latest result that nothing has used yet
        ("6 and 6?", "<<3+3=6>> <<2*3=6>> <<6+6=12>> <<12-6=6>>",
         [step("3+3", "6"), step("2*3", "6"), step("{1}+{1}", "12", 1), step("{2}-{0}", "6", 0, 2)]),
        # a number of the question stays, once its equal was used; any other is the latest equal result
        ("6?", "<<2*3=6>> <<6+1=7>> <<7-6=1>>", [step("2*3", "6"), step("{0}+1", "7", 0), step("{1}-6", "1", 1)]),
        # spellings of equal numbers
        ("?", "<<1/2=0.5>> <<.50*4=2>>", [step("1/2", "0.5"), step("{0}*4", "2", 0)]),
        # rounded, as the solution has it
        ("?", "<<2/3=.67>> <<3*1=3>>", [step("2/3", "0.666666666667"), step("3*1", "3")]),
    ],
)  # fmt: skip
def test_operands_that_equal_earlier_results_stand_for_them(question: str, solution: str, hops: list[Hop]) -> None:
    assert list(calculation_chain(question, solution, hops[-1].value)) == hops


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        ("It is 5.", "5"),  # no calculation
        ("<<2+3=5>> and one more", "6"),  # the last step isn't annotated
        ("<<2+3=6>>", "6"),  # wrong
        ("<<2+3=5>> <<{0}+1=6>>", "6"),
    ],
)
def test_calculations_that_lead_to_no_answer_are_no_chain(solution: str, answer: str) -> None:
    assert calculation_chain("?", solution, answer) == ()


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 20)), min_size=1, max_size=6), st.integers(0, 20))
def test_any_chain_calculates_to_its_answer(steps: list[tuple[str, int]], start: int) -> None:
    value, parts = start, []
    for sign, operand in steps:
        result = {"+": value + operand, "-": value - operand, "*": value * operand}[sign]
        parts.append(f"<<{value}{sign}{operand}={result}>>")
        value = result
    values: list[str] = []
    for hop in calculation_chain(f"{start}", " ".join(parts), str(value)):
        assert all(need < len(values) for need in hop.needs)
        values.append(show_number(calculate(hop.title.format(*values))))
        assert values[-1] == hop.value
    assert values[-1] == str(value)
