"""The real rows of MuSiQue, 2WikiMultihopQA and ParallelQA in the folder that REWOO_BENCH_DATA points to.

Not part of the project; without the variable these tests are skipped.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench import evaluate
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.text.scoring import score
from rewoo_bench.text.words import fold

DATA = os.environ.get("REWOO_BENCH_DATA", "")
EXTRA = Path(DATA) / "extra"
MUSIQUE = EXTRA / "musique_ans_train_100.jsonl"
WIKI = EXTRA / "2wiki_dev_100.json"
PARALLELQA = EXTRA / "parallelqa_113.json"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not DATA or not EXTRA.is_dir(), reason="REWOO_BENCH_DATA names no folder with extra/"),
]


@pytest.fixture(scope="module")
def musique() -> Dataset:
    return load_dataset_examples(str(MUSIQUE))


@pytest.fixture(scope="module")
def wiki() -> Dataset:
    return load_dataset_examples(str(WIKI))


def musique_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in MUSIQUE.read_text(encoding="utf-8").splitlines()]


def squeezed(texts: list[str]) -> str:
    return "".join("".join(texts).split())


def test_every_musique_row_keeps_every_word_of_its_paragraphs(musique: Dataset) -> None:
    rows = musique_rows()
    assert [example.id for example in musique.examples] == [row["id"] for row in rows]
    for example, row in zip(musique.examples, rows, strict=True):
        written = squeezed([paragraph["paragraph_text"] for paragraph in row["paragraphs"]])
        assert squeezed([page.text for page in example.documents]) == written
        assert len({page.title for page in example.documents}) == len(example.documents) >= 20


def test_every_musique_chain_shows_its_values_and_ends_at_the_answer(musique: Dataset) -> None:
    assert musique.manifest["with_chain"] == 100
    for example, row in zip(musique.examples, musique_rows(), strict=True):
        pages = {page.title: page.text for page in example.documents}
        assert len(example.chain) == len(row["question_decomposition"])
        assert all(hop.value and fold(hop.value) in fold(pages[hop.title]) for hop in example.chain)
        assert example.chain[-1].value in example.answers
        assert not any("#" in hop.ask for hop in example.chain)


def test_the_branches_of_musique_are_there(musique: Dataset) -> None:
    assert Counter(example.kind for example in musique.examples) == {
        "2hop": 68, "3hop1": 24, "3hop2": 3, "4hop1": 3, "4hop3": 2,
    }  # fmt: skip
    joined = [example for example in musique.examples if any(len(hop.needs) > 1 for hop in example.chain)]
    assert {example.kind for example in joined} == {"3hop2", "4hop3"}
    assert len(joined) == 5


def test_every_2wiki_row_has_a_chain_over_its_supporting_pages(wiki: Dataset) -> None:
    rows = json.loads(WIKI.read_text(encoding="utf-8"))
    assert (wiki.manifest["format"], wiki.manifest["with_chain"], len(wiki.examples)) == ("2wiki", 100, 100)
    for example, row in zip(wiki.examples, rows, strict=True):
        assert {hop.title for hop in example.chain} == {title for title, _ in row["supporting_facts"]}


@pytest.mark.parametrize(
    ("kind", "needs"),
    [("comparison", {((), ())}), ("bridge_comparison", {((), (), (0,), (1,))})],
)
def test_the_comparisons_of_2wiki_are_parallel(wiki: Dataset, kind: str, needs: set[Any]) -> None:
    assert {tuple(hop.needs for hop in example.chain) for example in wiki.examples if example.kind == kind} == needs


def test_the_other_questions_of_2wiki_go_from_one_page_to_the_next(wiki: Dataset) -> None:
    chains = [example.chain for example in wiki.examples if example.kind in ("compositional", "inference")]
    shapes = Counter(tuple(hop.needs for hop in chain) for chain in chains)
    assert shapes == {((), (0,)): 34, ((), ()): 1}  # the one: its first page spells the name in another way


def test_every_gold_answer_scores_full_marks() -> None:
    for path in (MUSIQUE, WIKI, PARALLELQA):
        dataset = load_dataset_examples(str(path))
        for example in dataset.examples:
            assert score(example.answers[-1], example.answers, dataset.scoring).exact_match, example.id


def test_parallelqa_has_113_questions_and_no_chain() -> None:
    dataset = load_dataset_examples(f"parallelqa={PARALLELQA}")
    assert (dataset.name, dataset.scoring, dataset.manifest["with_chain"]) == ("parallelqa", "parallelqa", 0)
    kinds = Counter(example.kind for example in dataset.examples)
    assert kinds == {"2 branches": 21, "3 branches": 31, "4 branches": 31, "5 branches": 30}


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("path", "questions", "misses"), [(MUSIQUE, 100, 0), (WIKI, 80, 2)], ids=["musique", "2wiki"])
@pytest.mark.parametrize("architecture", ["rewoo", "react"])
async def test_the_oracle_reaches_the_answers(path: Path, questions: int, misses: int, architecture: str) -> None:
    results = await evaluate(str(path), [architecture], model="oracle")
    missed = [result.task.example.id for result in results if not (result.score and result.score.exact_match)]
    assert (len(results), len(missed)) == (questions, misses)
