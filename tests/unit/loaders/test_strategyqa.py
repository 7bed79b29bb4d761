"""StrategyQA: true and false become yes and no, the evidence becomes the gold pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from loader_rows import Hub, only, strategyqa_hub_row, strategyqa_row

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Example, Hop


@pytest.mark.parametrize("name", ["train.json", "train.jsonl"])
def test_an_official_row_has_the_pages_of_its_first_annotator(tmp_path: Path, name: str) -> None:
    swan, piano = "How much does a swan weigh?", "How much does a piano weigh?"
    assert only(tmp_path, [strategyqa_row()], name) == Example(
        "q1",
        "Could 1 swans carry a piano?",
        ("no",),
        chain=(Hop("Swan", "", swan), Hop("Bird", "", swan), Hop("Grand piano", "", piano)),
    )


def test_a_hub_row_has_no_evidence_and_its_facts_are_no_documents() -> None:
    hub = Hub([strategyqa_hub_row(number) for number in range(3)])
    found = load_dataset_examples("strategyqa", load_rows=hub)
    assert hub.asked == ("ChilleD/StrategyQA", "default", "test", True)
    assert (found.style, found.scoring, found.tools) == ("yes_no", "yes_no", ("Search", "LLM"))
    assert all((example.answers, example.chain, example.documents) == (("no",), (), ()) for example in found.examples)


@pytest.mark.parametrize(("answer", "gold"), [(True, "yes"), ("true", "yes"), ("No.", "no"), ("False", "no")])
def test_answers_are_yes_or_no(tmp_path: Path, answer: object, gold: str) -> None:
    assert only(tmp_path, [strategyqa_row(answer=answer)]).answers == (gold,)
