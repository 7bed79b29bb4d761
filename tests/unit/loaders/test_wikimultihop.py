"""Rows of 2WikiMultihopQA, in each of their forms, become examples with the chain of their evidence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loader_rows import Hub, load, only, written
from multihop_rows import TIDE, wiki_hub_row, wiki_row, wiki_table_row, wiki_text_row

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Document, Example, Hop

CHAIN = (Hop("Tide Songs", "Ann Ek", "author"), Hop("Ann Ek", "Lund", "residence", (0,)))
FILMS = [["Kelp", ["Kelp is a film by Bo Ek."]], ["Foam", ["Foam is a film by Una Moe."]]]
PEOPLE = [["Bo Ek (director)", ["Bo Ek was born on 3 May 1901."]], ["Una Moe", ["Una Moe was born in 1899."]]]
STRANDS = [
    ["Kelp", "director", "Bo Ek"], ["Foam", "director", "Una Moe"],
    ["Bo Ek", "date of birth", "3 May 1901"], ["Una Moe", "date of birth", "1899"],
]  # fmt: skip


def compared(**changes: Any) -> dict[str, Any]:
    facts = [["Kelp", 0], ["Foam", 0], ["Bo Ek (director)", 0], ["Una Moe", 0]]
    row = wiki_row(type="bridge_comparison", answer="Foam", context=FILMS + PEOPLE, supporting_facts=facts)
    return row | {"evidences": STRANDS} | changes


def test_a_row_brings_its_paragraphs_and_the_chain_of_its_evidence(tmp_path: Path) -> None:
    assert only(tmp_path, [wiki_row()]) == Example(
        "w1",
        "Where did the author of Tide Songs live, 1?",
        ("Lund",),
        (Document("Ann Ek", "Ann Ek was a poet. She lived in Lund."), Document("Tide Songs", TIDE)),
        "compositional",
        CHAIN,
    )


@pytest.mark.parametrize("form", [wiki_hub_row, wiki_text_row, wiki_table_row])
@pytest.mark.parametrize("name", ["a.json", "a.parquet"])
def test_the_forms_of_the_hub_are_the_official_rows(
    tmp_path: Path, name: str, form: Callable[[int], dict[str, Any]]
) -> None:
    found = load(tmp_path, [form(1), form(2)], name)
    assert list(found.examples) == list(load(tmp_path, [wiki_row(1), wiki_row(2)]).examples)
    assert (found.manifest["format"], found.scoring, found.manifest["with_chain"]) == ("2wiki", "hotpotqa", 2)


def test_the_name_reads_the_validation_rows_of_the_hub() -> None:
    hub = Hub([wiki_hub_row(number) for number in range(3)])
    found = load_dataset_examples("2wiki", load_rows=hub)
    assert hub.asked == ("framolfese/2WikiMultihopQA", "default", "validation", True)
    assert (found.name, len(found.examples)) == ("2wiki", 3)


def test_a_bridge_comparison_is_two_strands_of_two_hops(tmp_path: Path) -> None:
    chain = only(tmp_path, [compared()]).chain
    assert [(hop.title, hop.value, hop.needs) for hop in chain] == [
        ("Kelp", "Bo Ek", ()), ("Foam", "Una Moe", ()),
        ("Bo Ek (director)", "3 May 1901", (0,)), ("Una Moe", "1899", (1,)),
    ]  # fmt: skip


def test_two_films_of_one_director_meet_on_one_page(tmp_path: Path) -> None:
    context = [
        ["Kelp", ["Kelp is a film by Bo Ek."]],
        ["Foam", ["Foam is one by Bo Ek."]],
        ["Bo Ek", ["Born in 1901."]],
    ]
    triples = [["Kelp", "director", "Bo Ek"], ["Foam", "director", "Bo Ek"], ["Bo Ek", "date of birth", "1901"]]
    facts = [["Kelp", 0], ["Foam", 0], ["Bo Ek", 0]]
    row = compared(context=context, evidences=triples, supporting_facts=facts)
    assert [hop.needs for hop in only(tmp_path, [row]).chain] == [(), (), (0, 1)]


def test_the_pages_of_a_comparison_need_each_other_nothing_and_one_subject_is_one_look_up(tmp_path: Path) -> None:
    triples = [
        ["Bo Ek", "date of birth", "3 May 1901"],
        ["Bo Ek", "date of death", "1950"],
        ["Una Moe", "date of birth", "1899"],
    ]
    facts = [["Bo Ek (director)", 0], ["Una Moe", 0]]
    row = wiki_row(type="comparison", answer="no", context=PEOPLE, evidences=triples, supporting_facts=facts)
    assert only(tmp_path, [row]).chain == (
        Hop("Bo Ek (director)", "3 May 1901", "date of birth and date of death"),
        Hop("Una Moe", "1899", "date of birth"),
    )


def test_a_subject_of_another_name_is_the_supporting_page_left_over(tmp_path: Path) -> None:
    triples = [["The Songs of the Tide", "author", "Ann Ek"], ["Ms Ek", "residence", "Lund"]]
    chain = only(tmp_path, [wiki_row(evidences=triples)]).chain
    assert [(hop.title, hop.value, hop.needs) for hop in chain] == [
        ("Tide Songs", "Ann Ek", ()),
        ("Ann Ek", "Lund", (0,)),
    ]


@pytest.mark.parametrize(
    "changes", [{"evidences": []}, {"evidences": None}, {"supporting_facts": [["Ann Ek", 0]]}, {"evidences": "[]"}]
)
def test_without_evidence_or_without_a_page_for_it_there_is_no_chain(tmp_path: Path, changes: dict[str, Any]) -> None:
    found = load(tmp_path, [wiki_row(**changes)])
    assert (found.examples[0].chain, found.manifest["with_chain"]) == ((), 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": ""}, "no answer under 'answer'; every question needs one"),
        ({"context": "no table"}, "not in the form of 2wiki: JSONDecodeError"),
    ],
)
def test_a_faulty_row_is_one_line_that_names_it(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = written(tmp_path, "dev.json", [wiki_row(1), wiki_row(2, **changes)])
    with pytest.raises(DataError) as error:
        load_dataset_examples(str(path))
    assert str(error.value).startswith(f"{path}, row 2: {message}")
    assert "\n" not in str(error.value)
