"""Whatever is wrong with a data set becomes one line that says where and what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loader_rows import (
    Hub,
    hotpotqa_hub_row,
    hotpotqa_row,
    load,
    official_triviaqa,
    own_set,
    sample_row,
    triviaqa_row,
    written,
)

from rewoo_bench.errors import DataError, SpecError, UsageError
from rewoo_bench.loaders.load import load_dataset_examples


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows.json has no rows"),
        ([3], "row 1: 3, expected an object"),
        (
            [{"id": 1, "paragraphs": []}],
            "unknown format with the keys id, paragraphs; known formats .*hotpotqa.*sample",
        ),
        ([hotpotqa_row(), hotpotqa_row()], "row 2: the id 'id1' is already that of row 1"),
        ([hotpotqa_row(), {"_id": "id2", "answer": "x"}], "row 2: no 'question'; it has _id, answer"),
        ([hotpotqa_row(answer=None)], "row 1: no answer under 'answer'; test splits hide their answers"),
        ([hotpotqa_row(question=" ")], "row 1: 'question' is ' ', expected text"),
        ([hotpotqa_row(context=[["Ann Ek"]])], r"row 1: expected title and sentences, got \['Ann Ek'\]"),
        ([hotpotqa_row(context=[["Ann Ek", "text"]])], "expected a title and sentences"),
        ([triviaqa_row(answer={"value": "<unk>", "aliases": []})], "row 1: no answer under 'answer'; test splits"),
        ([triviaqa_row(answer="Mars")], "row 1: 'answer' is 'Mars', expected an object"),
        (official_triviaqa({"Value": "", "Aliases": []}), "row 1: no answer under 'Answer'"),
        ([sample_row(answers="Lund")], "row 1: 'answers' is 'Lund', expected a list"),
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
