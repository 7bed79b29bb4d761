"""Which questions a run asks: those of `--ids`, also where a generator makes them late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.question_choice import load_chosen
from rewoo_bench.runs.options import RunOptions


def chosen(*ids: str, **options: Any) -> list[str]:
    run_options = RunOptions(("direct",), dataset="chain?hops=2", model="oracle", ids=ids, **options)
    return [example.id for example in load_chosen(run_options).examples]


@pytest.mark.parametrize("options", [{}, {"failed_in": Path("gone")}, {"questions": 3}])
def test_generated_questions_beyond_the_default_number_are_found_by_their_ids(options: dict[str, Any]) -> None:
    ids = [f"chain-2x1-s0-{number}" for number in (7, 121, 230)]
    assert sorted(chosen(*ids, **options)) == sorted(ids)


def test_an_id_that_a_generator_has_not_made_is_named() -> None:
    said = r"has no question 'chain-3x1-s0-1'; its ids are like 'chain-2x1-s0-1'; it made 1,600 questions, and"
    with pytest.raises(UsageError, match=said):
        chosen("chain-3x1-s0-1")
