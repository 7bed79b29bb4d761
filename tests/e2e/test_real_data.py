"""Real rows of HotpotQA and TriviaQA, which aren't part of the project (HotpotQA is CC BY-SA)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from real_data import HOTPOTQA, TRIVIAQA, RealData

from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.text.scoring import normalize_triviaqa

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def hotpotqa_rows(real_data: RealData) -> Rows:
    rows: Rows = json.loads(real_data(HOTPOTQA).read_text(encoding="utf-8"))
    return rows


@pytest.fixture(scope="module")
def triviaqa_rows(real_data: RealData) -> Rows:
    with real_data(TRIVIAQA).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def hotpotqa(real_data: RealData) -> Dataset:
    return load_dataset_examples(str(real_data(HOTPOTQA)))


@pytest.fixture(scope="module")
def triviaqa(real_data: RealData) -> Dataset:
    return load_dataset_examples(str(real_data(TRIVIAQA)))


def test_every_hotpotqa_row_becomes_an_example(hotpotqa: Dataset, hotpotqa_rows: Rows) -> None:
    rows = hotpotqa_rows
    assert [example.id for example in hotpotqa.examples] == [row["_id"] for row in rows]
    assert len({example.id for example in hotpotqa.examples}) == len(rows) == 500
    assert [example.answers for example in hotpotqa.examples] == [(row["answer"],) for row in rows]
    assert {example.kind for example in hotpotqa.examples} == {"bridge", "comparison"}


def test_every_supporting_page_of_hotpotqa_is_among_the_documents(hotpotqa: Dataset) -> None:
    for example in hotpotqa.examples:
        titles = {page.title for page in example.documents}
        assert len(example.chain) == 2
        assert {hop.title for hop in example.chain} <= titles


def test_a_hotpotqa_bridge_ends_on_a_page_with_the_answer_where_one_has_it(hotpotqa: Dataset) -> None:
    for example in (example for example in hotpotqa.examples if example.kind == "bridge"):
        pages = {page.title: page.text for page in example.documents}
        held = [hop for hop in example.chain if example.answers[0] in pages[hop.title]]
        assert example.chain[-1].value == (example.answers[0] if held else "")


def test_every_triviaqa_row_becomes_an_example(triviaqa: Dataset, triviaqa_rows: Rows) -> None:
    rows = triviaqa_rows
    assert [example.id for example in triviaqa.examples] == [row["question_id"] for row in rows]
    assert len({example.id for example in triviaqa.examples}) == len(rows) == 500
    assert all(example.answers and not example.documents for example in triviaqa.examples)


def test_triviaqa_normalisation_gives_the_published_normalised_aliases(triviaqa_rows: Rows) -> None:
    for answer in (row["answer"] for row in triviaqa_rows):
        assert {normalize_triviaqa(alias) for alias in answer["aliases"]} == set(answer["normalized_aliases"])
        assert normalize_triviaqa(answer["value"]) == answer["normalized_value"]
