"""`cache` and `cache-map`: which architecture costs less, by the length of a prefix that all prompts share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plot_fit import check_fits
from plot_runs import model_run, oracle_run

from rewoo_bench.analysis.call_costs import cached_tokens, priced, read_calls
from rewoo_bench.analysis.context_prices import context_prices
from rewoo_bench.analysis.prices import priced_rows
from rewoo_bench.config.price_sheets import RULES, CacheRule, named_tariff
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots.cache import map_table, side
from rewoo_bench.report.plots.draw import draw, read
from rewoo_bench.runs.folder import load

PAIR = ("react", "rewoo")


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache") / "chains"
    return oracle_run(folder, "rewoo", "react", dataset="chain?hops=1..3", questions=6)


def sizes(**columns: list[float]) -> dict[str, np.ndarray]:
    ages = {"shared_run_age_s": [1.0, 1.0, 9.0], "shared_question_age_s": [1.0, 1.0, 9.0]}
    return {name: np.array(values) for name, values in {**ages, **columns}.items()}


def rule(**values: object) -> CacheRule:
    return CacheRule.model_validate({"kind": "automatic", "source": "made up", "as_of": "2026-11-24", **values})


def test_a_context_lengthens_what_is_found_and_stays_where_a_longer_prefix_is_too_old() -> None:
    """Blocks of 10 from 100 tokens on. The third call's own prefix is 9 s old, too old; a failed call has 0."""
    calls = sizes(input_tokens=[95, 0, 95], shared_question_tokens=[0, 0, 90], shared_run_tokens=[55, 0, 55])
    blocks = rule(minimum_prefix_tokens=100, block_tokens=10, lifetime_s=5)
    for context, found in ((0, [0, 0, 0]), (44, [0, 0, 0]), (45, [100, 0, 0]), (128, [180, 0, 120])):
        assert cached_tokens(calls, blocks, context)[0].tolist() == found


def test_a_context_is_part_of_what_ends_at_a_mark() -> None:
    calls = sizes(
        input_tokens=[95, 0, 95], shared_run_tokens=[55, 0, 55], marked_tokens=[55, 0, 55],
        last_marked_tokens=[80, 0, 80], shared_marked_tokens=[55, 0, 55],
    )  # fmt: skip
    marks = rule(kind="explicit", minimum_prefix_tokens=100, lifetime_s=5)
    for context, found, written in ((0, [0, 0, 0], [0, 0, 0]), (30, [0, 0, 0], [110, 0, 110]),
                                    (50, [105, 0, 0], [25, 0, 130]), (100, [155, 0, 100], [25, 0, 80])):  # fmt: skip
        assert [part.tolist() for part in cached_tokens(calls, marks, context)] == [found, written]


def test_dollars_without_a_context_are_those_of_the_run_and_with_one_each_call_is_longer(chains: Path) -> None:
    data, rows = read([chains]), load(chains)
    found = context_prices(data.rows, data.calls, PAIR, (0, 1000))
    for name, own in zip(RULES, priced_rows([chains], rows, [[name] for name in RULES]), strict=True):
        mean = pd.Series(own.usd).groupby(rows["architecture"].to_numpy(str)).mean()
        assert found.ratios(name)[0] == pytest.approx(mean["react"] / mean["rewoo"])
    calls, none = read_calls(chains, rows), named_tariff("none")
    more = priced(calls, {"": none}, context=1000).usd - priced(calls, {"": none}).usd
    assert more == pytest.approx(np.full(len(more), 1000 * none.input))


def test_the_line_of_a_rule_has_a_step_at_its_minimum_and_that_of_no_cache_has_none(chains: Path) -> None:
    ((_, picture),) = draw(read([chains]), only=["cache"])
    check_fits(picture.figure)
    lines = dict(zip(RULES, picture.figure.axes[0].lines, strict=False))
    steps = {name: np.abs(np.diff(np.log(line.get_ydata()))).max() for name, line in lines.items()}
    assert steps["openai"] > 0.3 < steps["gemini"]
    assert steps["none"] < 0.05
    assert "OpenAI's rule" in picture.caption
    assert "Anthropic's rule, from\n1,024" in [text.get_text() for text in picture.figure.axes[0].texts]


def test_a_title_says_how_many_questions_are_behind_it(chains: Path, tmp_path: Path) -> None:
    ((_, few),) = draw(read([chains]), only=["cache"])
    assert few.title.endswith("decides which is cheaper (n\xa0=\xa06: too few for an interval)")
    assert "95% intervals" not in few.caption
    more = oracle_run(tmp_path / "more", "rewoo", "react", dataset="chain?hops=1..3", questions=12)
    (_, lines), (_, panels) = draw(read([more]), only=["cache", "cache-map"])
    assert "which is cheaper (n\xa0=\xa012; 95% intervals show it under " in lines.title
    assert lines.title.endswith(" of the prices)")
    assert panels.title.endswith("else it depends (n\xa0=\xa04 in a row, without intervals)")


def test_the_map_has_a_panel_for_each_price_and_a_cell_is_the_ratio_of_its_mean_dollars(chains: Path) -> None:
    data = read([chains])
    ((_, picture),) = draw(data, only=["cache-map"])
    check_fits(picture.figure)
    assert len([axes for axes in picture.figure.axes if axes.get_title()]) == len(RULES)
    table = map_table(data, PAIR).set_index(["price", "look_ups", "context"])
    assert len(table) == len(RULES) * 3 * 32
    found = context_prices(data.rows, data.calls, PAIR, (1024, 1056, 1088, 1120))
    usd = found.usd["openai"][:, :, (found.rows["hops"] == 2).to_numpy(bool)].mean(axis=(0, 2))
    assert table.loc[("openai", 2, 1024), "ratio"] == pytest.approx(usd[0] / usd[1])


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.06] * 9 + [1.0], 1),
        ([0.94] * 9 + [1.04], -1),
        ([1.06] * 8 + [1.0] * 2, 0),
        ([0.94] * 9 + [1.06], 0),
    ],
)
def test_a_price_has_a_side_where_nearly_all_cells_are_clearly_on_it(ratios: list[float], expected: int) -> None:
    assert side(pd.Series(ratios)) == expected


def test_what_they_need_is_told(tmp_path: Path) -> None:
    run = model_run(tmp_path / "run")
    for name in ("cache", "cache-map"):
        with pytest.raises(NothingToDraw, match=r"needs what prompts share: calls.parquet doesn.t say"):
            list(draw(read([run]), only=[name]))
    alone = oracle_run(tmp_path / "alone", "rewoo", questions=2)
    with pytest.raises(NothingToDraw, match="needs rows of 'react' and 'rewoo' on the same questions; there are rewoo"):
        list(draw(read([alone]), only=["cache"]))
