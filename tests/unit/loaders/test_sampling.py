"""The seeded sample depends on the ids alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.sampling import select, shuffled
from rewoo_bench.types import Document, Example

EXAMPLES = [Example(f"q{number}", f"Question {number}?", ("Oslo",)) for number in range(200)]


def ids(examples: list[Example], limit: int | None, seed: int = 0) -> list[str]:
    return [example.id for example in select(examples, limit=limit, seed=seed).examples]


def test_without_a_limit_all_rows_come_in_file_order() -> None:
    assert ids(EXAMPLES, None, seed=7) == [example.id for example in EXAMPLES]


def test_a_sample_is_the_same_on_every_machine() -> None:
    assert ids(EXAMPLES, 5) == ["q16", "q48", "q133", "q136", "q165"]  # what sha256sum says


@given(small=st.integers(1, 60), more=st.integers(0, 60), seed=st.integers(0, 5))
def test_a_smaller_limit_gives_a_prefix_of_a_larger(small: int, more: int, seed: int) -> None:
    assert ids(EXAMPLES, small + more, seed)[:small] == ids(EXAMPLES, small, seed)


@given(rows=st.permutations(EXAMPLES[:30]))
def test_the_order_of_the_rows_does_not_matter(rows: list[Example]) -> None:
    assert ids(rows, 10) == ids(EXAMPLES[:30], 10)


def test_a_duplicate_id_names_both_rows() -> None:
    with pytest.raises(DataError, match=r"dev\.json, row 3: the id 'q0' is already that of row 1"):
        select([EXAMPLES[0], EXAMPLES[1], EXAMPLES[0]], limit=2, seed=0, where="dev.json")


def test_a_repeated_question_adds_its_documents_and_answers() -> None:
    web = replace(EXAMPLES[0], answers=("Oslo", "Kristiania"), documents=(Document("Web", "…"),))
    wikipedia = replace(EXAMPLES[0], answers=("Oslo", "Christiania"), documents=(Document("Oslo", "…"),))
    found = select([web, EXAMPLES[1], wikipedia], limit=None, seed=0, repeats=True)
    assert (found.rows, found.repeats, len(found.examples)) == (3, 1, 2)
    assert found.examples[0].answers == ("Oslo", "Kristiania", "Christiania")
    assert [page.title for page in found.examples[0].documents] == ["Web", "Oslo"]


def test_one_id_for_two_questions_is_an_error_even_where_repeats_are_allowed() -> None:
    with pytest.raises(DataError, match="'q0' is that of 'Other\\?' here and of 'Question 0\\?' before"):
        select([EXAMPLES[0], replace(EXAMPLES[0], question="Other?")], limit=None, seed=0, repeats=True)


def test_questions_are_put_in_the_order_of_a_sample() -> None:
    assert [example.id for example in shuffled(EXAMPLES, 7)][:20] == ids(EXAMPLES, 20, seed=7)
