"""Rows of ParallelQA become examples without documents and without a chain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loader_rows import load, only, written
from multihop_rows import parallelqa_row

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Example


def test_a_row_is_a_question_of_so_many_branches(tmp_path: Path) -> None:
    assert only(tmp_path, [parallelqa_row()]) == Example(
        "1", "How much higher is hill 1?", ("201.9",), (), "2 branches"
    )


@pytest.mark.parametrize(("answer", "gold"), [(201.9, "201.9"), (46, "46"), (" Aconcagua ", "Aconcagua")])
def test_an_answer_is_a_number_or_a_name(tmp_path: Path, answer: object, gold: str) -> None:
    assert only(tmp_path, [parallelqa_row(answer=answer, branch=1)]).answers == (gold,)


def test_a_file_is_known_by_its_keys_and_by_the_name_of_the_set(tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", [parallelqa_row(1), parallelqa_row(2)])
    alone, named = load_dataset_examples(str(path)), load_dataset_examples(f"parallelqa={path}")
    assert list(alone.examples) == list(named.examples)
    assert (alone.name, named.name) == ("p", "parallelqa")
    assert {(each.scoring, each.manifest["format"], each.manifest["with_chain"]) for each in (alone, named)} == {
        ("parallelqa", "parallelqa", 0)
    }


@pytest.mark.parametrize("answer", [None, "", " ", True])
def test_a_row_without_an_answer_is_one_line_that_names_it(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(DataError, match=r"rows\.json, row 2: no answer under 'answer'"):
        load(tmp_path, [parallelqa_row(1), parallelqa_row(2, answer=answer)])
