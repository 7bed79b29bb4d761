"""Gold chains in files may have calculations, which are checked when they are read."""

from __future__ import annotations

from typing import Any

import pytest

from rewoo_bench.loaders.row_fields import RowError
from rewoo_bench.loaders.short_answers import sample_example
from rewoo_bench.types import Hop

PAGE = {"title": "Tide Songs", "ask": "the number of pages", "value": "48"}


def read(*chain: Any) -> tuple[Hop, ...]:
    return sample_example({"id": "q", "question": "How many?", "answer": "24", "chain": list(chain)}).chain


def test_a_calculation_counts_hops_from_1_in_the_file_and_from_0_in_python() -> None:
    _, half = read(PAGE, {"calculate": "{1} / 2", "ask": "half of them", "value": "24", "needs": [1]})
    assert half == Hop("{0} / 2", "24", "half of them", (0,), tool="Calculator")


def test_value_and_needs_may_be_left_out() -> None:
    *_, last = read(PAGE, {"calculate": "3 * 7.5"}, {"calculate": "({1} + {2}) / 3"})
    assert last == Hop("({0} + {1}) / 3", "23.5", "", (0, 1), tool="Calculator")


def test_a_page_may_need_a_calculation() -> None:
    _, page = read({"calculate": "1900 + 54"}, {"title": "1954", "value": "Bern", "needs": [1]})
    assert page == Hop("1954", "Bern", "", (0,))


@pytest.mark.parametrize(
    ("hop", "message"),
    [
        ({"calculate": "{1} / 2", "value": "25"}, r"hop 2: '\(48\) / 2' is 24, but its value is '25'"),
        ({"calculate": "{1} / 0"}, "can't be worked out: '\\(48\\) / 0' divides by zero"),
        ({"calculate": "{2} / 2"}, "names hop 2, expected earlier hops"),
        ({"calculate": "pages / 2"}, "can't work out 'pages'"),
        ({"calculate": "{1}", "title": "A"}, "has a 'title' and 'calculate', expected one of them"),
    ],
)
def test_a_calculation_that_is_wrong_is_named(hop: dict[str, Any], message: str) -> None:
    with pytest.raises(RowError, match=message):
        read(PAGE, hop)


def test_a_number_has_to_come_from_a_hop_that_has_one() -> None:
    with pytest.raises(RowError, match="can't work out 'ann'"):
        read({"title": "Tide Songs", "value": "Ann"}, {"calculate": "{1} * 2"})
