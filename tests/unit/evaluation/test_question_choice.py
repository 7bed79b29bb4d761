"""Which questions a run asks: those of `--ids`, also where a generator makes them late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.question_choice import first_line, load_chosen, with_first_questions
from rewoo_bench.runs.options import RunOptions


def chosen(*ids: str, **options: Any) -> list[str]:
    run_options = RunOptions(("direct",), dataset="chain?hops=2", model="oracle", ids=ids, **options)
    return [example.id for example in load_chosen(run_options).examples]


@pytest.mark.parametrize("options", [{}, {"failed_in": Path("gone")}, {"questions": 3}])
def test_generated_questions_beyond_the_default_number_are_found_by_their_ids(options: dict[str, Any]) -> None:
    ids = [f"chain-2x1-s0-{number}" for number in (7, 121, 230)]
    assert sorted(chosen(*ids, **options)) == sorted(ids)


def test_an_id_that_a_generator_has_not_made_is_named() -> None:
    said = r"has no question 'chain-3x1-s0-1'; its ids are like 'chain-2x1-s0-1'"
    with pytest.raises(UsageError, match=said):
        chosen("chain-3x1-s0-1")


def asked_first(*architectures: str, **options: Any) -> int | None:
    return with_first_questions(RunOptions(architectures or ("rewoo",), **options)).questions


def test_a_first_run_asks_a_few_questions() -> None:
    assert asked_first() == asked_first("rewoo", "react", trials=2) == 8


@pytest.mark.parametrize(
    "options",
    [{"model": "oracle"}, {"dataset": "sample-yes-no"}, {"ids": ("sample-1",)}, {"question_types": ("bridge",)}],
)
def test_a_run_that_somebody_chose_asks_all(options: dict[str, Any]) -> None:
    assert asked_first(**options) is None


def test_the_number_that_somebody_gave_stays() -> None:
    assert asked_first(questions=3) == 3


def test_the_first_line_says_how_many_how_long_and_how_to_ask_all() -> None:
    def said(done: int = 0, **options: Any) -> list[str]:
        chosen = with_first_questions(RunOptions(("rewoo", "react"), **options))
        return first_line(chosen, load_chosen(chosen), Path("here"), done).split("; ")

    asked = "asking 8 of the 100 questions of sample, 2 architectures, with local/smollm2-135m"
    assert said() == [asked, "about 60 s", "-n 100 asks all", "writing to here"]
    assert said(12)[1:3] == ["4 answers left", "about 15 s"]
    assert said(trials=2)[:2] == [asked.replace("sample,", "sample, 2 times each,"), "about 2 min"]
    oracle = "asking 100 questions of sample, 2 architectures, with oracle"
    assert said(model="oracle") == [oracle, "about 3 s", "writing to here"]
    assert said(model="openai/a", questions=8)[1:] == ["writing to here"]
