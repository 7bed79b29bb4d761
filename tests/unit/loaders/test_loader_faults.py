"""Whatever is wrong with a data set becomes one line that says where and what."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from loader_rows import (
    Hub,
    gsm8k_row,
    hotpotqa_hub_row,
    hotpotqa_row,
    load,
    official_triviaqa,
    own_set,
    sample_row,
    strategyqa_row,
    triviaqa_row,
    written,
)

from rewoo_bench.errors import DataError, SpecError, UsageError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Document


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows.json has no rows"),
        ([3], "row 1: 3, expected an object"),
        (
            [{"id": 1, "paragraphs": []}],
            "name the keys, or the columns, 'question' and 'answers'; found id, paragraphs, .*known .*hotpotqa.*sample",
        ),
        ([hotpotqa_row(), hotpotqa_row()], "row 2: the id 'id1' is already that of row 1"),
        ([hotpotqa_row(), {"_id": "id2", "answer": "x"}], "row 2: no 'question'; it has _id, answer"),
        ([hotpotqa_row(answer=None)], "row 1: no answer under 'answer'; every question needs one"),
        ([hotpotqa_row(question=" ")], "row 1: 'question' is ' ', expected text"),
        ([hotpotqa_row(context=[["Ann Ek"]])], r"row 1: expected title and sentences, got \['Ann Ek'\]"),
        ([hotpotqa_row(context=[["Ann Ek", "text"]])], "expected a title and sentences"),
        ([triviaqa_row(answer={"value": "<unk>", "aliases": []})], "row 1: no answer under 'answer'; every"),
        ([triviaqa_row(answer="Mars")], "row 1: 'answer' is 'Mars', expected an object"),
        (official_triviaqa({"Value": "", "Aliases": []}), "row 1: no answer under 'Answer'"),
        (
            [{"question": "Where?"}],
            "row 1: no answer under 'answers' or 'answer'; it has question; every question",
        ),
        ([{"question": "Where?", "answer": None}], "row 1: no answer under 'answer'; every question needs one"),
        ([gsm8k_row(), {"question": "And then?"}], "row 2: no answer under 'answer'; every question needs one"),
        ([gsm8k_row(), gsm8k_row(answer="#### ?")], "row 2: 'answer' is '#### [?]', expected a text that ends in ####"),
        ([strategyqa_row(answer=None)], "row 1: no answer under 'answer'; every question needs one"),
        ([{"qid": "a", "question": "Is it?"}], "row 1: no answer under 'answer'; every question needs one"),
        ([strategyqa_row(answer="maybe")], "row 1: 'answer' is 'maybe', expected true or false"),
        ([sample_row(answers={"x": "Lund"})], "row 1: 'answers' has {'x': 'Lund'}, expected a text or a number"),
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


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet"])
def test_an_empty_file_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(DataError, match="is empty"):
        load_dataset_examples(str(tmp_path / name))


@pytest.mark.parametrize(("content", "message"), [(b"\x1f\x8b no", "damaged gzip"), (b"plain", "damaged gzip")])
def test_a_file_that_is_no_gzip_says_so(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_dataset_examples(str(tmp_path / "a.jsonl.gz"))


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("hotpot", "unknown data set 'hotpot', did you mean 'hotpotqa'"),
        ("", "unknown data set ''"),
        ("missing/dev.json", "no such data file or folder: 'missing/dev.json'; bundled data sets: .*hotpotqa"),
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
        ({"corpus": "none.jsonl"}, {}, "names 'none.jsonl', and there is no such file"),
        ({"questions": ""}, {}, "no questions; give 'questions', 'generator' or a \\[hub\\] table"),
        ({"format": "triviaqa"}, {}, "dataset.toml says format = 'triviaqa', but the rows are 'sample'"),
        ({}, {"split": "train"}, "unknown split 'train'; available: validation"),
    ],
)
def test_a_description_that_does_not_hold_is_an_error(
    tmp_path: Path, changes: dict[str, str], options: dict[str, str], message: str
) -> None:
    with pytest.raises((DataError, SpecError), match=message):
        load_dataset_examples(str(own_set(tmp_path, **changes)), **options)  # type: ignore[arg-type]


def test_a_set_without_configurations_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'mine' has no configurations, so 'big' can't be chosen"):
        load_dataset_examples(f"{own_set(tmp_path)}:big")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_an_error(limit: int) -> None:
    with pytest.raises(UsageError, match=f"at least 1, got {limit}"):
        load_dataset_examples("hotpotqa", limit=limit)


def test_offline_the_hub_fails_at_once_and_says_what_works() -> None:
    with pytest.raises(DataError, match=r"can't read hotpotqa/hotpot_qa .*--dataset sample"):
        load_dataset_examples("hotpotqa")


def test_offline_the_advice_is_that_of_the_data_set_and_of_the_setting() -> None:
    with pytest.raises(DataError, match="HF_HUB_OFFLINE is set and the cache has no copy; unset it") as caught:
        load_dataset_examples("triviaqa")
    assert "hotpot" not in str(caught.value)


BAD_JSON = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "long": b'{"id": "a", "question": "?", "answers": [' + b"7" * 6000 + b"]}",
}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.jsonl.gz"])
@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
@pytest.mark.parametrize("before", [b"", json.dumps(sample_row()).encode() + b"\n"], ids=["first", "later"])
def test_json_that_python_does_not_read_is_one_line(tmp_path: Path, name: str, content: bytes, before: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(before + content) if name.endswith(".gz") else before + content)
    with pytest.raises(DataError, match="not valid JSON") as caught:
        load_dataset_examples(str(path))
    assert "\n" not in str(caught.value)


def test_an_id_with_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows.json, row 1: the id 'a\\ud800' has half of a surrogate pair"):
        load(tmp_path, [sample_row(id="a\ud800")])


def test_other_texts_with_half_a_surrogate_pair_are_read(tmp_path: Path) -> None:
    page = {"title": "B\udc00", "text": "Lund\ud800"}
    (example,) = load(tmp_path, [sample_row(question="Who\ud800?", answers=["\ud800"], documents=[page])]).examples
    assert (example.question, example.answers) == ("Who\ufffd?", ("\ufffd",))
    assert example.documents == (Document("B\ufffd", "Lund\ufffd"),)


@pytest.mark.parametrize("name", ["bomb.jsonl.gz", "bomb.json.gz", "bomb.csv.gz", "bomb.parquet.gz"])
def test_a_gzip_file_that_holds_far_more_than_its_size_is_refused(tmp_path: Path, name: str) -> None:
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
        for _ in range(70):
            file.write(b" " * 2**20)
    with pytest.raises(DataError, match=r"larger than a data file may be: a line or a document of more than [0-9,]+ "):
        load_dataset_examples(str(tmp_path / name))


def test_a_message_names_only_the_columns_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text("query,target\na,b\n")
    with pytest.raises(
        DataError, match=r"it\.csv: name the keys, or the columns, 'question' and 'answers'; found query, target, which"
    ) as refused:
        load_dataset_examples(str(tmp_path / "it.csv"))
    assert len(str(refused.value).replace(str(tmp_path), "")) < 240


@pytest.mark.parametrize("sign", [";", "|", "\t"])
def test_a_csv_file_with_another_sign_between_its_columns_is_told_what_to_name_them(tmp_path: Path, sign: str) -> None:
    (tmp_path / "it.csv").write_text(f"question{sign}answers\nWhere?{sign}Oslo\n")
    with pytest.raises(
        DataError, match=r"it\.csv: name the columns 'question' and 'answers', with commas between them"
    ):
        load_dataset_examples(str(tmp_path / "it.csv"))


def test_a_file_with_tabs_is_read(tmp_path: Path) -> None:
    (tmp_path / "it.tsv").write_text("question\tanswers\nWhere, and when?\tOslo | Oslo, 1900\n")
    (example,) = load_dataset_examples(str(tmp_path / "it.tsv")).examples
    assert (example.question, example.answers) == ("Where, and when?", ("Oslo", "Oslo, 1900"))


def test_a_spreadsheet_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "it.xlsx").write_bytes(b"PK\3\4")
    with pytest.raises(DataError, match=r"it\.xlsx: a spreadsheet can't be read; save it as CSV, with the columns 'qu"):
        load_dataset_examples(str(tmp_path / "it.xlsx"))
