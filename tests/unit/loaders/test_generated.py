"""A data set may be made by a class that dataset.toml names, with options in the data set's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loader_rows import own_set
from pydantic import BaseModel, ConfigDict

from rewoo_bench.errors import UsageError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.types import Example


class Counting(BaseModel):
    """A generator of one's own."""

    model_config = ConfigDict(extra="forbid")

    step: int = 1
    same_id: bool = False
    last: int = 1000

    def examples(self, seed: int) -> Iterator[Example]:
        for number in range(1, self.last + 1):
            name = "q" if self.same_id else f"q{self.step}-{seed}-{number}"
            yield Example(name, f"What follows {number}?", (str(number + self.step),))


def counting(tmp_path: Path, **changes: Any) -> str:
    """A folder whose questions are made by `Counting`."""
    folder = own_set(tmp_path, **{"questions": "", "generator": "test_generated:Counting", **changes})
    with (folder / "dataset.toml").open("a") as file:
        file.write("default_limit = 5\n")
    return str(folder)


def fault(dataset: str, **options: Any) -> str:
    """What is wrong with the data set: one line."""
    with pytest.raises(UsageError) as caught:
        load_dataset_examples(dataset, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_class_of_ones_own_makes_the_questions(tmp_path: Path) -> None:
    found = load_dataset_examples(f"{counting(tmp_path)}?step=3", seed=2)
    assert [example.answers for example in found.examples] == [(str(number + 3),) for number in range(1, 6)]
    assert (found.name, found.examples[0].id, found.scoring) == ("mine?step=3", "q3-2-1", "hotpotqa")
    assert found.manifest["source"]["settings"] == {"step": 3, "same_id": False, "last": 1000}


def test_the_generator_of_the_examples_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "docs" / "examples")
    found = load_dataset_examples(f"{counting(tmp_path, generator='sums:Sums')}?most=20", limit=50)
    for example in found.examples:
        a, b = map(int, re.findall(r"\d+", example.question))
        assert example.answers == (str(a + b),)
    assert found.examples[0].id == "sums-20-s0-1"


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            "chain?hop=3",
            "unknown key 'hop', did you mean 'hops'? available: branching, hops, results",
        ),
        ("chain?hops=21", "hops: expected a number from 1 to 20, or a range such as 1..20, got '21'"),
        (
            "chain?branching=2",
            "branching: expected fewer than the hops, hops=2, since the question always states the first hop",
        ),
        ("chain?results=value&words=9", "results=value returns no pages: leave out words and branching"),
        ("sample?hops=2", "data set 'sample' has no options but objectives and inject, so 'hops=2' can't be given"),
    ],
)
def test_an_option_that_does_not_fit_is_named_with_what_would(dataset: str, message: str) -> None:
    assert message in fault(dataset)


@pytest.mark.parametrize(
    ("generator", "options", "message"),
    [
        ("pydantic:BaseModel", "", "expected a pydantic model with examples(seed)"),
        ("test_generated:Counting", "?last=0", "generator 'test_generated:Counting' made no questions"),
        ("test_generated:Counting", "?same_id=true", "row 2: the id 'q' is already that of row 1"),
    ],
)
def test_a_generator_that_can_not_be_used_is_named(tmp_path: Path, generator: str, options: str, message: str) -> None:
    assert message in fault(counting(tmp_path, generator=generator) + options)


OWN_CODE = """
from pydantic import BaseModel
from rewoo_bench import Example, Score
from words import WORD

class Mine(BaseModel):
    def examples(self, seed):
        yield Example("1", "Which word?", (WORD,))

def always(prediction, answers):
    return Score(exact_match=True, f1=1.0)
"""


@pytest.mark.parametrize("word", ["oak", "elm"])
def test_a_folder_may_hold_its_generator_and_scorer(tmp_path: Path, word: str) -> None:
    folder = own_set(tmp_path, questions="", generator="own_code:Mine", scoring="own_code:always")
    with (folder / "dataset.toml").open("a") as file:
        file.write("default_limit = 5\n")
    (folder / "own_code.py").write_text(OWN_CODE.replace("words", f"words_{word}"))
    (folder / f"words_{word}.py").write_text(f"WORD = {word!r}\n")
    dataset = load_dataset_examples(str(folder))
    assert dataset.examples[0].answers == (word,)
    assert dataset.scorer("anything", ("x",)).exact_match
