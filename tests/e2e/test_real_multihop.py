"""Real rows of MuSiQue, 2WikiMultihopQA and ParallelQA, which aren't part of the project."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from real_data import EXTRA, RealData

from rewoo_bench import evaluate
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.text.words import fold

pytestmark = pytest.mark.anyio
MUSIQUE = "musique_ans_train_100.jsonl"
WIKI = "2wiki_dev_100.json"
PARALLELQA = "parallelqa_113.json"

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def extra(real_data: RealData) -> Path:
    return real_data(EXTRA)


@pytest.fixture(scope="module")
def musique(extra: Path) -> Dataset:
    return load_dataset_examples(str(extra / MUSIQUE))


@pytest.fixture(scope="module")
def musique_rows(extra: Path) -> Rows:
    return [json.loads(line) for line in (extra / MUSIQUE).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def wiki(extra: Path) -> Dataset:
    return load_dataset_examples(str(extra / WIKI))


def squeezed(texts: list[str]) -> str:
    return "".join("".join(texts).split())


def test_every_musique_row_keeps_every_word_of_its_paragraphs(
    musique: Dataset, musique_rows: list[dict[str, Any]]
) -> None:
    rows = musique_rows
    assert [example.id for example in musique.examples] == [row["id"] for row in rows]
    for example, row in zip(musique.examples, rows, strict=True):
        written = squeezed([paragraph["paragraph_text"] for paragraph in row["paragraphs"]])
        assert squeezed([page.text for page in example.documents]) == written
        assert len({page.title for page in example.documents}) == len(example.documents) >= 20


def test_every_musique_chain_shows_its_values_and_ends_at_the_answer(
    musique: Dataset, musique_rows: list[dict[str, Any]]
) -> None:
    assert musique.manifest["with_chain"] == 100
    for example, row in zip(musique.examples, musique_rows, strict=True):
        pages = {page.title: page.text for page in example.documents}
        assert len(example.chain) == len(row["question_decomposition"])
        assert all(hop.value and fold(hop.value) in fold(pages[hop.title]) for hop in example.chain)
        assert example.chain[-1].value in example.answers
        assert not any("#" in hop.ask for hop in example.chain)


def test_every_2wiki_row_has_a_chain_over_its_supporting_pages(wiki: Dataset, extra: Path) -> None:
    rows = json.loads((extra / WIKI).read_text(encoding="utf-8"))
    assert (wiki.manifest["format"], wiki.manifest["with_chain"], len(wiki.examples)) == ("2wiki", 100, 100)
    for example, row in zip(wiki.examples, rows, strict=True):
        assert {hop.title for hop in example.chain} == {title for title, _ in row["supporting_facts"]}


@pytest.mark.parametrize(
    ("kind", "needs"),
    [("comparison", {((), ())}), ("bridge_comparison", {((), (), (0,), (1,))})],
)
def test_the_comparisons_of_2wiki_are_parallel(wiki: Dataset, kind: str, needs: set[Any]) -> None:
    assert {tuple(hop.needs for hop in example.chain) for example in wiki.examples if example.kind == kind} == needs


def test_parallelqa_has_113_questions_and_no_chain(extra: Path) -> None:
    dataset = load_dataset_examples(f"parallelqa={extra / PARALLELQA}")
    assert (dataset.name, dataset.scoring, dataset.manifest["with_chain"]) == ("parallelqa", "parallelqa", 0)
    kinds = Counter(example.kind for example in dataset.examples)
    assert kinds == {"2 branches": 21, "3 branches": 31, "4 branches": 31, "5 branches": 30}


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("file", "questions", "misses"), [(MUSIQUE, 100, 0), (WIKI, 80, 2)], ids=["musique", "2wiki"])
@pytest.mark.parametrize("architecture", ["rewoo", "react"])
async def test_the_oracle_reaches_the_answers(
    file: str, questions: int, misses: int, architecture: str, extra: Path
) -> None:
    results = await evaluate(str(extra / file), [architecture], model="oracle")
    missed = [result.task.example.id for result in results if not (result.score and result.score.exact_match)]
    assert (len(results), len(missed)) == (questions, misses)
