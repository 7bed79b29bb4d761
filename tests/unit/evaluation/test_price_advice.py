"""What a refused limit in dollars advises prices the model that has none."""

from dataclasses import replace

import pytest

from rewoo_bench.errors import UnknownPrice
from rewoo_bench.evaluation.prepare import check_price, given_prices
from rewoo_bench.runs.options import RunOptions


def test_a_planner_without_a_price_is_told_the_flag_that_prices_it() -> None:
    options = RunOptions(
        architectures=("rewoo",), dataset="sample", model="openai/cheap", planner_model="openai/mine", run_cost=1.0
    )
    with pytest.raises(UnknownPrice) as refusal:
        check_price(options, "openai/mine", None)
    advised = str(refusal.value).partition("--price ")[2].partition(")")[0]
    assert list(given_prices(replace(options, price=(advised,)))) == ["planner"]
