"""Rows of MuSiQue become examples with every paragraph, every alias and the chain of their sub-questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loader_rows import Hub, load, only, written
from multihop_rows import EK, TIDE, musique_row, paragraph, sub_question

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Document, Example, Hop

LONG = " ".join(f"Sentence {number} of the page on Lund has ten words here." for number in range(30))


def test_a_row_brings_paragraphs_aliases_and_the_chain_of_its_sub_questions(tmp_path: Path) -> None:
    assert only(tmp_path, [musique_row()]) == Example(
        "2hop__1_9",
        "Where did the author of Tide Songs live, 1?",
        ("Lund", "Lund, Sweden"),
        (Document("Ann Ek", EK), Document("Lund", "Lund is a town with a cathedral."), Document("Tide Songs", TIDE)),
        "2hop",
        (Hop("Tide Songs", "Ann Ek", "author of Tide Songs"), Hop("Ann Ek", "Lund", "Where did that live", (0,))),
    )


def test_the_name_reads_the_validation_rows_of_the_hub() -> None:
    hub = Hub([musique_row(number) for number in range(3)])
    found = load_dataset_examples("musique", load_rows=hub)
    assert hub.asked == ("dgslibisey/MuSiQue", "default", "validation", True)
    assert (found.name, found.scoring, len(found.examples)) == ("musique", "musique", 3)


def test_branches_join_in_the_hop_that_refers_to_both(tmp_path: Path) -> None:
    steps = [
        sub_question("Tide Songs >> author", "Ann Ek", 2),
        sub_question("Which town has a cathedral?", "Lund", 1),
        sub_question("Where in #2 did #1, a poet, live?", "Lund", 0),
    ]
    example = only(tmp_path, [musique_row(id="3hop2__1_2_3", question_decomposition=steps)])
    assert [hop.needs for hop in example.chain] == [(), (), (0, 1)]
    assert (example.kind, example.chain[2].ask) == ("3hop2", "Where in that did that, a poet, live")


def test_a_long_paragraph_comes_in_parts_and_the_hop_goes_to_the_part_with_its_value(tmp_path: Path) -> None:
    paragraphs = [paragraph(0, "Lund", f"{LONG} Ann Ek lived there."), paragraph(1, "Tide Songs", TIDE)]
    steps = [
        sub_question("Tide Songs >> author", "Ann Ek", 1),
        sub_question("Who lived in Lund, like #1?", "Ann Ek lived", 0),
    ]
    example = only(tmp_path, [musique_row(paragraphs=paragraphs, question_decomposition=steps)])
    parts = [page for page in example.documents if page.title.startswith("Lund")]
    assert [page.title for page in parts] == ["Lund", "Lund (2)", "Lund (3)"]
    assert " ".join(page.text for page in parts) == paragraphs[0]["paragraph_text"]
    assert all(len(page.text.split()) <= 120 for page in parts)
    assert example.chain[1] == Hop("Lund (3)", "Ann Ek lived", "Who lived in Lund, like that", (0,))


def test_a_sub_answer_that_its_page_doesnt_show_is_no_value_and_leads_nowhere(tmp_path: Path) -> None:
    steps = [sub_question("Tide Songs >> author", "A. Ek", 2), sub_question("Where did #1 live?", "Lund", 0)]
    chain = only(tmp_path, [musique_row(question_decomposition=steps)]).chain
    assert [(hop.value, hop.needs) for hop in chain] == [("", ()), ("Lund", ())]


@pytest.mark.parametrize("steps", [[], None, [sub_question("Who?", "Ann Ek", None)]])
def test_without_a_supporting_paragraph_there_is_no_chain(tmp_path: Path, steps: Any) -> None:
    found = load(tmp_path, [musique_row(question_decomposition=steps)])
    assert (found.examples[0].chain, found.manifest["with_chain"]) == ((), 0)


def test_rows_that_cant_be_answered_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [musique_row(1), musique_row(1, answerable=False), musique_row(2, answerable=False), musique_row(2)]
    found = load(tmp_path, rows)
    assert [example.id for example in found.examples] == ["2hop__1_9", "2hop__2_9"]
    assert (found.manifest["rows"], found.manifest["unanswerable_rows"]) == (4, 2)
    assert "unanswerable_rows" not in load(tmp_path, [musique_row()]).manifest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": None}, "no answer under 'answer'; every question needs one"),
        ({"question_decomposition": ["who"]}, "not in the form of musique: AttributeError"),
    ],
)
def test_a_faulty_row_is_one_line_that_names_it(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = written(tmp_path, "dev.json", [musique_row(1), musique_row(2, **changes)])
    with pytest.raises(DataError) as error:
        load_dataset_examples(str(path))
    assert str(error.value).startswith(f"{path}, row 2: {message}")
    assert "\n" not in str(error.value)
