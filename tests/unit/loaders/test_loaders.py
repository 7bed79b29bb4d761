"""Rows of every format, from every kind of file and from the hub, become examples."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from loader_rows import (
    Hub,
    hotpotqa_hub_row,
    hotpotqa_row,
    load,
    official_triviaqa,
    only,
    own_set,
    sample_row,
    triviaqa_row,
)

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.errors import DataError, SpecError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.text.scoring import Score
from rewoo_bench.types import Document, Example, Hop


def only_of(path: Path) -> Example:
    (example,) = load_dataset_examples(str(path)).examples
    return example


def test_a_hotpotqa_row_brings_its_paragraphs_and_a_chain_that_ends_at_the_answer(tmp_path: Path) -> None:
    assert only(tmp_path, [hotpotqa_row()]) == Example(
        "id1",
        "In which city did the author of book 1 live?",
        ("Lund",),
        (
            Document("Ann Ek", "Ann Ek was a writer. She lived in Lund."),
            Document("Other", "Nothing here."),
            Document("Book", "The book was written by Ann Ek."),
        ),
        "bridge",
        (Hop("Book", "Ann Ek"), Hop("Ann Ek", "Lund", needs=(0,))),
        "hard",
    )


def test_a_bridge_whose_pages_dont_name_each_other_is_two_look_ups(tmp_path: Path) -> None:
    context = [["Ann Ek", ["She lived in Lund."]], ["Book", ["It was written by a woman."]]]
    assert only(tmp_path, [hotpotqa_row(context=context)]).chain == (Hop("Book", ""), Hop("Ann Ek", "Lund"))


def test_the_pages_of_a_comparison_stay_in_order_and_a_yes_is_on_none_of_them(tmp_path: Path) -> None:
    row = hotpotqa_row(type="comparison", answer="yes")
    assert only(tmp_path, [row]).chain == (Hop("Ann Ek", ""), Hop("Book", ""))


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet", "a.json.gz", "a.jsonl.gz", "a.parquet.gz"])
def test_hugging_face_rows_are_the_official_rows_in_every_kind_of_file(tmp_path: Path, name: str) -> None:
    expected = load(tmp_path, [hotpotqa_row(1), hotpotqa_row(2)]).examples
    assert load(tmp_path, [hotpotqa_hub_row(1), hotpotqa_hub_row(2)], name).examples == expected


def test_triviaqa_answers_are_value_and_aliases_once_each(tmp_path: Path) -> None:
    example = only(tmp_path, [triviaqa_row()], "a.jsonl")
    assert (example.answers, example.kind, example.chain) == (("Mars", "The Red Planet"), "trivia", ())


def test_triviaqa_documents_are_the_pages_that_have_text(tmp_path: Path) -> None:
    example = only(tmp_path, [triviaqa_row()], "a.parquet")
    assert example.documents == (Document("Mars", "Mars is red."), Document("Web", "Seen on the web."))


@pytest.mark.parametrize("indent", [None, 1])
def test_an_official_triviaqa_file_counts_human_answers(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "wikipedia-dev.json"
    answer = {"Value": "Mars", "Aliases": ["Mars"], "NormalizedAliases": ["mars"], "HumanAnswers": ["red one"]}
    path.write_text(
        json.dumps(official_triviaqa(answer, {"Value": "Pluto", "NormalizedAliases": ["pluto"]}), indent=indent)
    )
    examples = load_dataset_examples(str(path)).examples
    assert [example.answers for example in examples] == [("Mars", "red one"), ("Pluto", "pluto")]


def test_a_question_in_both_halves_of_triviaqa_counts_once_with_all_its_pages(tmp_path: Path) -> None:
    web = triviaqa_row(entity_pages=None)
    wikipedia = triviaqa_row(search_results=None)
    found = load(tmp_path, [web, triviaqa_row(2), wikipedia])
    assert [page.title for page in found.examples[0].documents] == ["Web", "Mars"]
    assert (len(found.examples), found.manifest["rows"], found.manifest["repeated_rows"]) == (2, 3, 1)


def test_the_hops_of_the_sample_format_count_from_zero(tmp_path: Path) -> None:
    assert only(tmp_path, [sample_row()], "a.jsonl").chain == (
        Hop("Book", "Ann Ek", "Who wrote it?"),
        Hop("Ann Ek", "Lund", "Where did she live?", (0,)),
    )


def test_a_file_says_its_style_its_scoring_and_what_it_was(tmp_path: Path) -> None:
    found = load(tmp_path, [triviaqa_row(1), triviaqa_row(2)], "dev.jsonl.gz", limit=1, seed=3)
    assert (found.name, found.style, found.scoring, found.split) == ("dev", "trivia", "triviaqa", "file")
    assert found.manifest["source"]["file"] == str(tmp_path / "dev.jsonl.gz")
    assert {key: found.manifest[key] for key in ("seed", "limit", "rows", "examples", "ids_hash")} == {
        "seed": 3,
        "limit": 1,
        "rows": 2,
        "examples": 1,
        "ids_hash": found.ids_hash,
    }
    assert json.loads(json.dumps(found.manifest)) == found.manifest


def test_a_hub_set_takes_its_default_limit_from_the_stream_of_its_default_split() -> None:
    hub = Hub([hotpotqa_hub_row(number) for number in range(300)])
    found = load_dataset_examples("hotpotqa", load_rows=hub)
    assert hub.asked == ("hotpotqa/hotpot_qa", "distractor", "validation", True)
    assert (len(found.examples), found.manifest["rows"]) == (100, 300)
    assert found.manifest["source"] == {"hub": "hotpotqa/hotpot_qa", "config": "distractor", "revision": "c0ffee"}


def test_a_named_configuration_shows_in_the_name() -> None:
    hub = Hub([triviaqa_row(number) for number in range(3)])
    found = load_dataset_examples("triviaqa:rc.wikipedia", split="train", limit=2000, load_rows=hub)
    assert hub.asked == ("mandarjoshi/trivia_qa", "rc.wikipedia", "train", False)
    assert (found.name, found.split, len(found.examples)) == ("triviaqa:rc.wikipedia", "train", 3)


def test_the_bundled_sample_comes_whole_with_its_passages() -> None:
    found = load_dataset_examples("sample")
    assert (found.name, found.manifest["limit"], len(found.examples)) == ("sample", None, found.manifest["rows"])
    assert found.corpus is not None
    assert found.manifest["source"]["file"] == "sample/questions.jsonl"


def test_questions_come_from_a_csv_file_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('Question,Answers,type\n"Who wrote ""Tide"", and when?",Ann Ek | A. Ek,bridge\nWhere?,Lund,\n')
    first, second = load_dataset_examples(str(path)).examples
    assert (first.id, first.question, first.answers) == ("1", 'Who wrote "Tide", and when?', ("Ann Ek", "A. Ek"))
    assert (first.kind, second.id, second.answers) == ("bridge", "2", ("Lund",))


@pytest.mark.parametrize("row", ["Who wrote it, Bob and Eve?,Ann Ek", "Who?"])
def test_a_csv_row_whose_values_do_not_fit_the_columns_is_an_error(row: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f'question,answer\n"When, then?",1905\n{row}\n')
    with pytest.raises(DataError, match=r"mine\.csv, row 2: its values don't fit the 2 columns; put a text"):
        load_dataset_examples(str(tmp_path / "mine.csv"))


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("""['Höje å', "Ann's river"]""", ("Höje å", "Ann's river")),
        ("[1811, 1812]", ("1811", "1812")),
        ("[sic] 'so'", ("[sic] 'so'",)),
    ],
)
def test_a_list_in_a_cell_is_read_as_its_items(tmp_path: Path, cell: str, answers: tuple[str, ...]) -> None:
    with (tmp_path / "mine.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["question", "answers"], ["Who?", cell]])
    assert only_of(tmp_path / "mine.csv").answers == answers


def test_rows_of_kilt_are_read(tmp_path: Path) -> None:
    provenance = [{"wikipedia_id": "12", "title": "Bell Rock"}]
    output = [{"answer": "1811", "provenance": provenance}, {"provenance": provenance}, {"answer": "in 1811"}]
    found = load(tmp_path, [{"id": "5ab2", "input": "When was it built?", "output": output, "meta": {}}], "a.jsonl")
    [example] = found.examples
    assert (example.id, example.question, example.answers) == ("5ab2", "When was it built?", ("1811", "in 1811"))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
@pytest.mark.parametrize("gold", [{"answer": "Lund"}, {"answers": ["Lund"]}, {"answer": 42}])
def test_rows_of_a_question_and_an_answer_have_their_numbers_for_ids(
    tmp_path: Path, name: str, gold: dict[str, Any]
) -> None:
    found = load(tmp_path, [{"question": "Where?", **gold}, {"question": "And then?", **gold}], name)
    assert [example.id for example in found.examples] == ["1", "2"]
    assert found.examples[0].answers in (("Lund",), ("42",))
    assert (found.manifest["format"], found.scoring) == ("sample", "hotpotqa")


def contains(prediction: str, answers: Sequence[str]) -> Score:
    """A scorer of one's own."""
    match = any(answer in prediction for answer in answers)
    return Score(match, float(match))


def raises(prediction: str, answers: Sequence[str]) -> Score:
    raise KeyError(prediction)


def test_a_data_set_brings_its_scorer(tmp_path: Path) -> None:
    found = load_dataset_examples(str(own_set(tmp_path, scoring="test_loaders:contains")))
    assert found.manifest["scoring"] == found.scoring == "test_loaders:contains"
    assert found.scorer("It is Lund.", ["Lund"]).exact_match
    assert found.scorer(" ", ["Lund"]) == Score(False, 0.0)


def test_an_unknown_scorer_is_named(tmp_path: Path) -> None:
    message = "dataset.toml: unknown scoring 'hotpot', did you mean 'hotpotqa'? available: gsm8k, hotpotqa, "
    with pytest.raises(SpecError, match=re.escape(message)):
        load_dataset_examples(str(own_set(tmp_path, scoring="hotpot")))


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("test_loaders:raises", "the scorer 'test_loaders:raises' raised KeyError: 'Lund'"),
        ("builtins:print", "the scorer 'builtins:print' returned None, expected rewoo_bench.Score"),
    ],
)
def test_a_scorer_that_fails_is_the_questions_error(tmp_path: Path, scoring: str, message: str) -> None:
    folder = str(own_set(tmp_path, scoring=scoring))
    (result,) = anyio.run(lambda: evaluate(folder, ["direct"], model=ScriptedModel(["Answer: Lund"])))
    assert result.score is None
    assert message in str(result.error)
