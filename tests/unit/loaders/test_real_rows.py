"""The real rows of the ReWOO paper's data sets, where they are here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest
from real_data import EXTRA, RealData

from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.text.scoring import final_number
from rewoo_bench.tools import Calculator, CalculatorArguments
from rewoo_bench.tools.corpus import read_passages
from rewoo_bench.types import Example


@pytest.fixture
def extra(real_data: RealData) -> Path:
    return real_data(EXTRA)


def load(name: str, file: Path) -> Dataset:
    return load_dataset_examples(f"{name}={file}")


async def worked_out(example: Example) -> list[str]:
    """What the Calculator says to each step, with the earlier results in its place."""
    calculator, values = Calculator(), list[str]()
    for hop in example.chain:
        values.append(await calculator(CalculatorArguments(expression=hop.title.format(*values))))
    return values


def test_the_calculator_gets_from_gsm8k_chains_to_the_answers(extra: Path) -> None:
    found = load("gsm8k", extra / "gsm8k_test.jsonl")
    assert len(found.examples) == 1319
    chained = [example for example in found.examples if example.chain]
    assert len(chained) == 1208  # 18 rows have no calculation, and of 93 the last one isn't written as one
    for example in chained:
        values = anyio.run(worked_out, example)
        assert values == [hop.value for hop in example.chain], example.id
        assert float(values[-1]) == pytest.approx(float(final_number(example.answers[0]) or 0), rel=1e-9), example.id
    assert sum(any(hop.needs for hop in example.chain) for example in chained) == 1164


def test_every_gsm8k_answer_is_right_as_its_own_prediction_and_in_a_sentence(extra: Path) -> None:
    found = load("gsm8k", extra / "gsm8k_test.jsonl")
    for example in found.examples:
        (answer,) = example.answers
        assert found.scorer(f"The answer is ${answer}.", example.answers).exact_match
        assert not found.scorer(f"{answer}1", example.answers).exact_match


def test_strategyqa_answers_are_yes_or_no_and_most_have_pages(extra: Path) -> None:
    found = load("strategyqa", extra / "strategyqa_229.jsonl")
    assert (len(found.examples), sum(bool(example.chain) for example in found.examples)) == (229, 227)
    assert {answer for example in found.examples for answer in example.answers} == {"yes", "no"}
    paragraphs = {page.title for page in read_passages(extra / "strategyqa_paragraphs_998.jsonl")}
    pages = [hop.title for example in found.examples for hop in example.chain]
    assert sum(page in paragraphs for page in pages) > 0.95 * len(pages)
    assert len(load("strategyqa", extra / "rewoo_strategy_qa.csv").examples) == 2290


def test_physics_answers_are_right_as_their_own_predictions(extra: Path) -> None:
    found = load("physics", extra / "rewoo_physics_question.csv")
    assert len(found.examples) == 53
    for example in found.examples:
        assert all(found.scorer(f"So it is about {answer}.", example.answers).exact_match for answer in example.answers)
        assert not found.scorer("It is 123456789.", example.answers).exact_match


def test_sports_answers_are_plausible_or_implausible(extra: Path) -> None:
    found = load("sports", extra / "rewoo_sports_understanding.csv")
    counts = Counter(answer for example in found.examples for answer in example.answers)
    assert counts.keys() == {"plausible", "implausible"}
    assert counts.total() == 1000


def test_sotu_has_questions_and_its_speech_is_a_corpus(extra: Path) -> None:
    assert len(load("sotu", extra / "rewoo_SOTU_QA.csv").examples) == 74
    paragraphs = list(read_passages(extra / "rewoo_state_of_the_union.txt"))
    assert len(paragraphs) == 437
    assert paragraphs[-1].title == "Paragraph 437"
