"""Whatever is wrong with a data set becomes one line that says where and what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loader_rows import (
    Hub,
    gsm8k_row,
    hotpotqa_hub_row,
    hotpotqa_row,
    load,
    own_set,
    sample_row,
    strategyqa_row,
    triviaqa_row,
    written,
)

from rewoo_bench.errors import DataError, SpecError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Document


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows.json has no rows"),
        (
            [{"id": 1, "paragraphs": []}],
            "name the keys, or the columns, 'question' and 'answers'; found id, paragraphs, which is no known format",
        ),
        ([hotpotqa_row(), hotpotqa_row()], "row 2: the id 'id1' is already that of row 1"),
        ([hotpotqa_row(), {"_id": "id2", "answer": "x"}], "row 2: no 'question'; it has _id, answer"),
        ([hotpotqa_row(answer=None)], "row 1: no answer under 'answer'; every question needs one"),
        ([hotpotqa_row(context=[["Ann Ek"]])], "row 1: not in the form of hotpotqa: ValueError: not enough values"),
        ([triviaqa_row(answer={"value": "<unk>", "aliases": []})], "row 1: no answer under 'answer'; every"),
        ([gsm8k_row(), {"question": "And then?"}], "row 2: no answer under 'answer'; every question needs one"),
        ([gsm8k_row(), gsm8k_row(answer="#### ?")], "row 2: 'answer' is '#### [?]', expected a text that ends in ####"),
        ([strategyqa_row(answer="maybe")], "row 1: 'answer' is 'maybe', expected true or false"),
        (
            [sample_row(chain=[{"title": "Book", "needs": [1]}])],
            r"row 1: hop 1 needs \[1\], expected numbers of earlier",
        ),
    ],
)
def test_a_wrong_row_is_named_with_what_is_wrong(tmp_path: Path, rows: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path, rows)
    assert str(tmp_path / "rows.json") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet", "a.json.gz", "a.jsonl.gz", "a.parquet.gz"])
def test_a_file_that_was_cut_off_says_so(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, [hotpotqa_hub_row(number) for number in range(50)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="cut off"):
        load_dataset_examples(str(path))


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("", "unknown data set ''"),
        ("triviaqa:rc.wiki", "unknown configuration 'rc.wiki', did you mean 'rc.wikipedia'"),
    ],
)
def test_an_unknown_data_set_names_those_there_are(dataset: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset_examples(dataset, load_rows=Hub([]))


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"questions": "none.jsonl"}, {}, "names 'none.jsonl', and there is no such file"),
        ({"questions": ""}, {}, "no questions; give 'questions', 'generator' or a \\[hub\\] table"),
        ({"format": "triviaqa"}, {}, "aren't of the format 'triviaqa', which has .*; they are 'sample'"),
        ({}, {"split": "train"}, "unknown split 'train'; available: validation"),
    ],
)
def test_a_description_that_does_not_hold_is_an_error(
    tmp_path: Path, changes: dict[str, str], options: dict[str, str], message: str
) -> None:
    with pytest.raises((DataError, SpecError), match=message):
        load_dataset_examples(str(own_set(tmp_path, **changes)), **options)  # type: ignore[arg-type]


def test_offline_the_hub_fails_at_once_and_says_what_works() -> None:
    with pytest.raises(DataError, match=r"can't read hotpotqa/hotpot_qa .*--dataset sample"):
        load_dataset_examples("hotpotqa")


def test_other_texts_with_half_a_surrogate_pair_are_read(tmp_path: Path) -> None:
    page = {"title": "B\udc00", "text": "Lund\ud800"}
    (example,) = load(tmp_path, [sample_row(question="Who\ud800?", answers=["\ud800"], documents=[page])]).examples
    assert (example.question, example.answers) == ("Who\ufffd?", ("\ufffd",))
    assert example.documents == (Document("B\ufffd", "Lund\ufffd"),)


def test_a_file_with_tabs_is_read(tmp_path: Path) -> None:
    (tmp_path / "it.tsv").write_text("question\tanswers\nWhere, and when?\tOslo | Oslo, 1900\n")
    (example,) = load_dataset_examples(str(tmp_path / "it.tsv")).examples
    assert (example.question, example.answers) == ("Where, and when?", ("Oslo", "Oslo, 1900"))
