"""`--dataset NAME=FILE`: the questions of a file, read and scored as those of a data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from loader_rows import gsm8k_row, hotpotqa_row, own_set, sample_row, triviaqa_row, written

from rewoo_bench.errors import DataError, SpecError
from rewoo_bench.loaders.load import Dataset, load_dataset_examples

PHYSICS = """input,target
How far does it fall in 2 s?,"Can be one of ['19.6 m', '20 m']"
How heavy is it?,Can be one of ['7 kg']
"""
SPORTS = "input,target\nIs it plausible: Ann Ek scored a goal,plausible\nIs it plausible: A swan did,implausible\n"
YES_NO = "input,target\nAnswer with 'Yes' or 'No': Can a swan swim?,Yes\n"
SOTU = 'question,answer\nWho spoke?,"The president, in February"\n'


def csv_set(folder: Path, name: str, text: str) -> Dataset:
    (folder / "q.csv").write_text(text)
    return load_dataset_examples(f"{name}={folder / 'q.csv'}")


def test_a_file_of_physics_has_every_rounding_for_an_answer(tmp_path: Path) -> None:
    found = csv_set(tmp_path, "physics", PHYSICS)
    assert [(example.id, example.answers) for example in found.examples] == [
        ("1", ("19.6 m", "20 m")),
        ("2", ("7 kg",)),
    ]
    assert (found.name, found.split, found.style, found.scoring) == ("physics", "file", "arithmetic", "physics")
    assert found.tools == ("Calculator", "Search", "LLM")
    assert found.scorer("It falls 19.62 metres.", found.examples[0].answers).exact_match


def test_a_file_of_sports_keeps_the_words_of_its_answers(tmp_path: Path) -> None:
    found = csv_set(tmp_path, "sports", SPORTS)
    assert [example.answers for example in found.examples] == [("plausible",), ("implausible",)]
    assert (found.name, found.style, found.scoring, found.tools) == ("sports", "yes_no", "yes_no", ("Search", "LLM"))
    assert found.scorer("No, it isn't.", found.examples[1].answers).exact_match


def test_the_papers_file_of_strategyqa_is_strategyqa(tmp_path: Path) -> None:
    found = csv_set(tmp_path, "strategyqa", YES_NO)
    assert (found.name, found.scoring, found.examples[0].answers) == ("strategyqa", "yes_no", ("yes",))


def test_a_file_of_sotu_is_scored_as_text_with_the_search_alone(tmp_path: Path) -> None:
    found = csv_set(tmp_path, "sotu", SOTU)
    assert (found.name, found.style, found.scoring, found.tools) == ("sotu", "trivia", "triviaqa", ("Search",))
    assert found.examples[0].answers == ("The president, in February",)


def test_every_set_takes_a_file_in_the_place_of_its_own_questions(tmp_path: Path) -> None:
    rows = {"hotpotqa": hotpotqa_row(), "triviaqa": triviaqa_row(), "gsm8k": gsm8k_row(), "sample": sample_row()}
    for name, row in rows.items():
        found = load_dataset_examples(f"{name}={written(tmp_path, f'{name}.json', [row])}")
        assert (found.name, len(found.examples), found.manifest["limit"]) == (name, 1, None)
        assert found.manifest["source"]["file"] == str(tmp_path / f"{name}.json")
    assert found.corpus is not None  # the sample's passages


def test_numbers_without_the_mark_are_gsm8k_where_the_set_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.jsonl", [{"question": "How many?", "answer": "40"}])
    found = load_dataset_examples(f"gsm8k={path}")
    assert (found.scoring, found.examples[0].answers, found.examples[0].chain) == ("gsm8k", ("40",), ())


def test_a_folder_takes_a_file_too(tmp_path: Path) -> None:
    folder = own_set(tmp_path, questions="")
    found = load_dataset_examples(f"{folder}={written(tmp_path, 'q.jsonl', [sample_row()])}")
    assert (found.name, len(found.examples)) == ("mine", 1)
    with pytest.raises(SpecError, match=r"or a file: --dataset mine=FILE"):
        load_dataset_examples(str(folder))


@pytest.mark.parametrize("name", ["physics", "sports", "sotu"])
def test_a_set_without_questions_says_where_they_are(name: str) -> None:
    with pytest.raises(DataError, match=rf"comes without questions: .* --dataset {name}=FILE"):
        load_dataset_examples(name)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("physics=none.csv", "no such data file: 'none.csv'; expected the questions of 'physics', as NAME=FILE"),
        ("chain=q.csv", "data set 'chain' makes its questions, so the file 'q.csv' has no place"),
        ("gsm8k=q.csv", "rows with the keys input, target aren't of the format 'gsm8k', which has question"),
        ("q.csv", r"name the data set that they are of, as in --dataset \w+=FILE \(strategyqa, physics, sports\)"),
        ("physics=hidden.csv", "row 1: no answer under 'target'; every question needs one"),
        ("gsm8k=hotpotqa.json", "aren't of the format 'gsm8k', which has question; they are 'hotpotqa'"),
    ],
)
def test_a_file_that_does_not_fit_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {
        "q": PHYSICS,
        "hidden": "input,target\nHow far?,\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    written(tmp_path, "hotpotqa.json", [hotpotqa_row()])
    with pytest.raises(DataError, match=message) as caught:
        load_dataset_examples(dataset)
    assert "\n" not in str(caught.value)
