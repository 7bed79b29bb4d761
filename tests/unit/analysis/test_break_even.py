"""Where an architecture becomes cheaper: on questions whose cost is a formula."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from plot_fit import check_fits

from rewoo_bench.analysis.cost_laws import PRICES, BreakEven, break_even
from rewoo_bench.errors import DataError
from rewoo_bench.report.plots.break_even import break_even_map
from rewoo_bench.report.plots.style import Picture

PAIR = ("rewoo", "react")


def row(architecture: str, number: int, calls: int, tokens: int, cached: int, **values: Any) -> dict[str, Any]:
    return {
        "architecture": architecture, "example_id": f"q{number}", "trial": 0, "tool_calls": calls,
        "input_tokens": tokens, "cached_input_tokens": cached, "cache_write_tokens": 0, "output_tokens": 0, **values,
    }  # fmt: skip


def questions(look_ups: range = range(1, 6), each: int = 3, **values: Any) -> pd.DataFrame:
    """For h look-ups ReWOO has 1,000 + 200 h new tokens; of ReAct's (h + 1) 800 + h (h + 1) 50, 400 + 200 h are new."""
    rows = []
    for number, h in enumerate(h for h in look_ups for _ in range(each)):
        tokens = (h + 1) * 800 + h * (h + 1) * 50
        rows.append(row("rewoo", number, h + 1, 1000 + 200 * h, 0))
        rows.append(row("react", number, h, tokens, tokens - 400 - 200 * h))
    return pd.DataFrame(rows).assign(**values)


def price(h: int) -> float:
    """400 + 200 h + p (tokens - 400 - 200 h) = 1,000 + 200 h"""
    return 600 / ((h + 1) * 800 + h * (h + 1) * 50 - 400 - 200 * h)


def uneven(each: int) -> pd.DataFrame:
    rows = questions(each=each)
    return rows.assign(input_tokens=rows["input_tokens"] + rows.index % 7)


def mapped(rows: pd.DataFrame, pair: tuple[str, str] = PAIR, *, written: float = 1.0) -> BreakEven:
    """The map where output costs four times as much as input, and what is written to a cache `written` times."""
    new = rows["input_tokens"] - rows["cached_input_tokens"] + rows["cache_write_tokens"] * (written - 1)
    return break_even(rows.assign(paid=new + 4 * rows["output_tokens"]), pair)


def draw(of: BreakEven) -> Picture:
    return break_even_map(of, price=None, priced="m", rule="M's rule: prefixes of any length", facts="n = 15 questions")


def found(**values: Any) -> BreakEven:
    return mapped(questions(**values))


def test_the_measured_price_is_where_both_cost_the_same() -> None:
    rows = found().rows
    assert [(each.tool_calls, each.n) for each in rows] == [(h, 3) for h in range(1, 6)]
    for each in rows:
        assert each.price == pytest.approx(price(each.tool_calls), abs=0.003)  # between two prices the line is straight


def test_the_formula_fits_questions_that_follow_it() -> None:
    predicted = found().predicted
    assert predicted is not None
    for h in (1, 3, 5):
        assert predicted.price(h) == pytest.approx(price(h), abs=0.003)
    assert predicted.price(8) < predicted.price(5)


def test_a_ratio_is_sure_away_from_the_border_and_never_of_under_20_questions() -> None:
    several, few = (mapped(uneven(each)) for each in (40, 19))
    assert all(each.is_sure(len(PRICES) - 1) for each in several.rows)
    assert not any(each.is_sure(place) for each in few.rows for place in range(len(PRICES)))


def test_prices_of_output_and_of_writing_count() -> None:
    dear = questions()
    dear.loc[dear["architecture"] == "react", "output_tokens"] = 1000
    assert all(math.isnan(each.price) for each in mapped(dear).rows)
    written = questions()
    written.loc[written["architecture"] == "react", "cache_write_tokens"] = 400
    first = mapped(written, written=1.25).rows[0]
    assert first.price == pytest.approx((600 - 100) / 1100, abs=0.003)


def test_questions_without_tool_calls_or_that_failed_are_left_out_and_counted() -> None:
    rows = questions()
    rows.loc[(rows["architecture"] == "react") & (rows["example_id"] == "q0"), "tool_calls"] = 0
    failed = (rows["architecture"] == "react") & (rows["example_id"] == "q1")
    assert mapped(rows[~failed]).left_out == 2
    with pytest.raises(DataError, match="no question of 'react' with tool calls"):
        mapped(rows.assign(tool_calls=0))


def test_no_formula_for_other_architectures_or_too_few_questions() -> None:
    others = questions().replace({"architecture": {"react": "mine"}})
    assert mapped(others, ("rewoo", "mine")).predicted is None
    assert found(look_ups=range(2, 3)).predicted is None


def test_the_map_says_below_which_price_which_is_cheaper() -> None:
    picture = break_even_map(
        found(), price=0.1, priced="m", rule="M's rule: prefixes of any length", facts="n = 15 questions"
    )
    assert "the cached share under M's rule: prefixes of any length" in picture.caption
    prices = f"{price(5):.2f} to {price(1):.2f}"
    assert picture.title == f"ReAct is cheaper while cached input costs less than {prices} of input"
    labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert labels == ["break-even, measured", "break-even by the formula of Xu et al. 2023", "m: 0.1", "uncertain"]
    dear = questions()
    dear.loc[dear["architecture"] == "react", "output_tokens"] = 1000
    assert draw(mapped(dear)).title == "ReWOO is cheaper at every price of cached input"


def test_the_title_counts_the_questions_without_a_mapped() -> None:
    rows = questions()
    calls = rows["tool_calls"].where(rows["architecture"] == "react")
    rows.loc[calls == 5, "output_tokens"] = 1000
    rows.loc[calls == 4, ["input_tokens", "cached_input_tokens"]] = 9, 0
    picture = draw(mapped(rows))
    check_fits(picture.figure)
    assert picture.title.endswith(" of input; at every price for 3 of 15 questions; at no price for 3 of 15 questions")


@pytest.mark.parametrize("names", [("rewoo", "react-native"), ("rewoo-json", "my-architecture?slot_tokens=100")])
def test_long_names_stay_on_the_sheet(names: tuple[str, str]) -> None:
    rows = questions().replace({"architecture": dict(zip(PAIR, names, strict=True))})
    rows.loc[rows["tool_calls"].where(rows["architecture"] == names[1]) == 5, "output_tokens"] = 1000
    check_fits(draw(mapped(rows, names)).figure)


def test_blue_is_where_rewoo_is_cheaper_whichever_comes_first() -> None:
    for pair, low in ((PAIR, "ReAct / ReWOO"), (("react", "rewoo"), "ReWOO / ReAct")):
        axes = draw(mapped(questions(), pair)).figure.axes
        assert axes[1].get_ylabel() == f"{low}\n(blue: ReWOO is cheaper)"
        red, _, blue, _ = to_rgba(axes[0].patches[-2].get_facecolor())  # cached input at its dearest: ReWOO is cheaper
        assert blue > red
