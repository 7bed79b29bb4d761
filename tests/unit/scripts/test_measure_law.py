"""The page of the law is what its script makes, and its sizes and errors are those that the oracle gives again."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

import law_map  # noqa: E402
import measure_law  # noqa: E402

from rewoo_bench.config.price_sheets import named_tariff  # noqa: E402
from rewoo_bench.report.calculator import calculator_page  # noqa: E402

BOUNDS = {"tokens": 0.01, "dollars": 0.03}


def test_the_page_is_what_the_script_makes() -> None:
    table = pd.read_csv(measure_law.ERRORS)
    assert measure_law.page(table) == measure_law.PAGE.read_text("utf-8")
    assert calculator_page() == measure_law.CALCULATOR.read_text("utf-8")


def test_the_law_is_within_its_bounds_in_every_cell() -> None:
    table = pd.read_csv(measure_law.ERRORS)
    assert len(table) == len(measure_law.GRID) * len(measure_law.NAMES)
    assert (table["calls"] == table["calls_law"]).all()
    assert (table["tokens_law"] / table["tokens"] - 1).abs().max() < BOUNDS["tokens"]
    for name in measure_law.PRICES:
        assert (table[f"{name} law"] / table[name] - 1).abs().max() < BOUNDS["dollars"]


def test_the_shares_of_openais_sheet_are_those_of_the_formulas_that_it_names() -> None:
    billing = named_tariff("openai").tools
    assert billing
    assert [measure_law.plan_schema_tokens(others) for others in (0, 1, 9)] == [167, 290, 1274]  # 1, 2, 10 tools
    for json_tokens, formula in ((167, 141), (290, 238), (1274, 1014)):  # without some keywords, and 9 more
        assert billing.response_schema * json_tokens == pytest.approx(formula, rel=0.06)
    for json_tokens, formula in ((117, 72), (117 + 115, 72 + 53)):  # Search; Search and Lookup
        assert billing.share * json_tokens + billing.per_call == pytest.approx(formula, rel=0.03)


def test_the_studys_page_says_the_largest_errors() -> None:
    table = pd.read_csv(measure_law.ERRORS)
    tokens = (table["tokens_law"] / table["tokens"] - 1).abs().max()
    dollars = max((table[f"{name} law"] / table[name] - 1).abs().max() for name in measure_law.PRICES)
    said = f"at most {tokens:.1%} of the tokens and {dollars:.1%} of the dollars away"
    assert said in (ROOT / "results" / "study" / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 1, 0, 200), (4, 1, 225, 0)])  # the second's loops share beginnings that grow
def test_a_cell_is_the_same_again(shape: tuple[int, int, int, int]) -> None:
    table = pd.read_csv(measure_law.ERRORS)
    own = table[(table[["depth", "breadth", "words", "reasoning"]] == [*shape]).all(axis=1)].set_index("design")
    for design, found in measure_law.measure(measure_law.Cell(*shape), 24).items():
        assert found.tokens == pytest.approx(own["tokens"][design], rel=1e-5)
        for name in measure_law.PRICES:
            assert found.usd[name] == pytest.approx(own[name][design], rel=1e-5)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", [each.name for each in law_map.MAPS])
def test_the_map_is_what_the_script_makes(name: str) -> None:
    (wanted,) = (each for each in law_map.MAPS if each.name == name)
    assert law_map.picture(wanted) == (law_map.FOLDER / f"{name}.svg").read_text("utf-8")
