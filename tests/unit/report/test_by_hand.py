"""Dollars worked out by hand, and what belongs to them."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from priced_runs import Ask, Cost, ask, asked, costs, sheet, text, write

import rewoo_bench
from rewoo_bench.analysis.comparison_tables import Comparison
from rewoo_bench.analysis.prices import Pricing, pricing_of
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.columns import SHARED
from rewoo_bench.runs.folder import load, manifests

PREFIX = text("P", 1280)
PARTS = ("context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens")
AUTOMATIC = """
[cache.blocks]
kind = "automatic"
minimum_prefix_tokens = 1024
block_tokens = 128
lifetime_s = 300
source = "made up"
as_of = 2026-11-24
[models.m]
input = 1
output = 4
cache_read = 0.1
cache = "blocks"
"""
EXPLICIT = """
[cache.marks]
kind = "explicit"
minimum_prefix_tokens = 1024
lifetime_s = 300
source = "made up"
as_of = 2026-11-24
[models.m]
input = 3
output = 15
cache_read = 0.3
cache_write = 3.75
cache = "marks"
"""
PLAIN = """
[models.m]
input = 1
output = 4
"""


def two_questions() -> dict[tuple[str, str], list[Ask]]:
    """The calls of the first and the third case."""
    first, second = (PREFIX, asked("q1", 100)), (PREFIX, asked("q2", 100))
    return {
        ("react", "q1"): [ask(0, 10, 1380, 50, *first), ask(20, 30, 1580, 50, *first, text("o1", 200))],
        ("react", "q2"): [ask(25, 35, 1380, 50, *second), ask(400, 410, 1400, 50, PREFIX, asked("r2", 120))],
    }


def only(found: dict[str, Cost]) -> Cost:
    (cost,) = found.values()
    return cost


def compared(run: Path, *prices: str | Path) -> Comparison:
    return rewoo_bench.compare(run, prices=[str(each) for each in prices])


def test_automatic_caching_in_blocks(tmp_path: Path) -> None:
    """Input 1, cached 0.1, output 4 dollars a million; blocks of 128, at least 1,024, kept for 300 s.

    q1, second 0:    1,380 in, nothing is known yet          1,380 x 1                =  1,380
        second 20:   1,580 in, 1,380 known = 10.8 blocks     300 x 1 + 1,280 x 0.1    =    428
        out          100 x 4                                                          =    400
    q2, second 25:   1,380 in, 1,280 known = 10 blocks       100 x 1 + 1,280 x 0.1    =    228
        second 400:  1,400 in; the prefix was last used at second 35, 365 s ago       =  1,400
        out          100 x 4                                                          =    400
    sum 4,236 millionths of a dollar for 2 questions: 2.118 dollars for 1,000
    """
    run = write(tmp_path / "run", two_questions())
    line = only(costs(run, sheet(tmp_path, AUTOMATIC)))
    assert line.usd_per_1000 == pytest.approx(2.118)
    assert line.input_tokens == (1380 + 1580 + 1380 + 1400) / 2
    assert line.cached_share == pytest.approx((1280 + 1280) / (1380 + 1580 + 1380 + 1400))


def test_explicit_caching_up_to_marks_with_a_price_of_writing(tmp_path: Path) -> None:
    """Input 3, written 3.75, cached 0.3, output 15 dollars a million; at least 1,024, kept for 300 s after each use.

    q1, second 0:    2,100 in, marked at 2,000    2,000 x 3.75 + 100 x 3           =  7,800
        second 20:   2,400 in, marked at both     2,000 x 0.3 + 400 x 3.75         =  2,100
        second 40:   2,600 in, marked at both     2,400 x 0.3 + 200 x 3.75         =  1,470
        out          300 x 15                                                      =  4,500
    q2, second 360:  the prefix was last used at second 50, so it is written anew  =  7,800
        out          100 x 15                                                      =  1,500
    sum 25,170 millionths for 2 questions: 12.585 dollars for 1,000
    """
    prefix, question, first, second = text("P", 2000), asked("q1", 100), text("o1", 300), text("o2", 200)
    run = write(
        tmp_path / "run",
        {
            ("react", "q1"): [
                ask(0, 10, 2100, 100, prefix, question, marks=(0,)),
                ask(20, 30, 2400, 100, prefix, question, first, marks=(0, 2)),
                ask(40, 50, 2600, 100, prefix, question, first, second, marks=(0, 3)),
            ],
            ("react", "q2"): [ask(360, 370, 2100, 100, prefix, asked("q2", 100), marks=(0,))],
        },
    )
    line = only(costs(run, sheet(tmp_path, EXPLICIT)))
    assert line.usd_per_1000 == pytest.approx(12.585)
    assert line.cache_write_tokens == (2000 + 400 + 200 + 2000) / 2
    assert line.cached_share == pytest.approx((2000 + 2400) / (2100 + 2400 + 2600 + 2100))


def test_a_cache_within_a_question_finds_no_prompt_of_another(tmp_path: Path) -> None:
    """The two cases above: q2's first prompt is paid in full, or written, though q1 has sent its beginning."""
    within = 'scope = "question"\nsource = "made up"'
    run = write(tmp_path / "run", two_questions())
    automatic = sheet(tmp_path, AUTOMATIC.replace('source = "made up"', within))
    assert only(costs(run, automatic)).usd_per_1000 == pytest.approx(2.118 + 1.152 / 2)
    prefix, question, more = text("P", 2000), asked("q1", 100), text("o1", 300)
    calls = {
        ("react", "q1"): [
            ask(0, 10, 2100, 100, prefix, question, marks=(0,)),
            ask(20, 30, 2400, 100, prefix, question, more, marks=(0, 2)),
        ],
        ("react", "q2"): [ask(60, 70, 2100, 100, prefix, asked("q2", 100), marks=(0,))],
    }
    marked = write(tmp_path / "marked", calls)
    explicit = sheet(tmp_path, EXPLICIT.replace('source = "made up"', within))
    line = only(costs(marked, explicit))
    assert line.cache_write_tokens == (2000 + 400 + 2000) / 2
    assert line.cached_share == pytest.approx(2000 / (2100 + 2400 + 2100))


def test_several_prices_each_have_the_dollars_of_a_comparison_at_them_alone(tmp_path: Path) -> None:
    """A sheet of ten times the price in another file of the same name is another price."""
    run, files = write(tmp_path / "run", two_questions()), []
    for year, body in (("2025", PLAIN), ("2026", PLAIN.replace("input = 1", "input = 10"))):
        (tmp_path / year).mkdir()
        files.append(sheet(tmp_path / year, body))
    several = compared(run, f"{files[0]},openai", files[1], files[0])
    assert [each.price for each in several.under] == [str(files[0]), "openai", str(files[1])]
    dollars = {each.price: 1000 * each.usd["react"].estimate for each in several.under}
    cached = {each.price: each.cached_tokens["react"] for each in several.under}
    assert dollars[str(files[0])] == pytest.approx((5740 * 1 + 200 * 4) / 2000)
    assert dollars[str(files[1])] == pytest.approx((5740 * 10 + 200 * 4) / 2000)
    for price, usd in dollars.items():
        (system,) = compared(run, price).systems
        assert system.summary.cost_usd == pytest.approx(usd / 1000)
        assert system.summary.cached_input_tokens == pytest.approx(cached[price])
    assert several.systems[0].summary.cost_usd == pytest.approx(dollars[str(files[0])] / 1000)
    assert compared(run, "openai").under == ()


def test_two_architectures_break_even_where_cached_input_costs_as_much(tmp_path: Path) -> None:
    """ReAct has 2,960 in, 1,280 of them cached, and 100 out; ReWOO 2,100 in and 50 out; output is 4 times input.

    1,680 + 400 + 1,280 p = 2,100 + 200 at p = 220 / 1,280
    """
    calls = {**two_questions(), ("rewoo", "q1"): [ask(0, 10, 2100, 50, text("W", 2100))]}
    del calls["react", "q2"]
    found = compared(write(tmp_path / "run", calls), sheet(tmp_path, AUTOMATIC), "none")
    (cached,), (uncached,) = (each.pairs for each in found.under)
    assert (cached.a, cached.b) == ("rewoo", "react")
    assert cached.even_at == pytest.approx(220 / 1280)
    assert cached.ratio.estimate == pytest.approx((1680 + 400 + 128) / 2300)
    assert math.isnan(uncached.even_at)
    shown = str(found)
    assert "cached / input  even at" in shown
    assert "0.10     0.17" in shown
    assert "m's prices of 2026-11-24" in shown


def test_a_call_in_flight_is_no_source(tmp_path: Path) -> None:
    prompt = (PREFIX, asked("q1", 100))
    calls = {
        ("react", "q1"): [ask(0, 10, 1380, 0, *prompt), ask(9, 12, 1380, 0, *prompt), ask(10, 12, 1380, 0, *prompt)]
    }
    line = only(costs(write(tmp_path / "run", calls), sheet(tmp_path, AUTOMATIC)))
    assert line.cached_share == pytest.approx(1280 / (3 * 1380))


def test_a_hit_renews_the_lifetime(tmp_path: Path) -> None:
    prompt = (PREFIX, asked("q1", 100))
    calls = {
        ("react", "q1"): [ask(0, 1, 1380, 0, *prompt), ask(200, 201, 1380, 0, *prompt), ask(400, 401, 1380, 0, *prompt)]
    }
    line = only(costs(write(tmp_path / "run", calls), sheet(tmp_path, AUTOMATIC)))
    assert line.cached_share == pytest.approx(2 * 1280 / (3 * 1380))


def test_each_architecture_has_its_own_cache(tmp_path: Path) -> None:
    calls = {
        ("rewoo", "q1"): [ask(0, 10, 1380, 0, PREFIX, asked("q1", 100))],
        ("react", "q1"): [ask(20, 30, 1380, 0, PREFIX, asked("r1", 100))],
    }
    run = write(tmp_path / "run", calls)
    assert [cost.cached_share for cost in costs(run, sheet(tmp_path, AUTOMATIC)).values()] == [0, 0]
    several = compared(run, tmp_path / "sheet.toml", "none")
    assert several.under[0].pairs[0].ratio.estimate == pytest.approx(1)


def test_failed_attempts_cost_and_a_judge_does_not(tmp_path: Path) -> None:
    """As in the column `cost_usd`. What a failed attempt took is priced in full: nobody knows what of it was cached.

    (1,000 + 500 of a retry + 300 of a call that failed) x 1 + 10 x 4 = 1,840 millionths, 1.84 dollars for 1,000
    """
    prompt = (text("P", 1000),)
    calls = {
        ("react", "q1"): [
            ask(0, 10, 1000, 10, *prompt, lost=500),
            ask(20, 30, 0, 0, *prompt, status="error", lost=300),
            ask(40, 50, 2000, 50, text("J", 2000), role="judge"),
        ]
    }
    line = only(costs(write(tmp_path / "run", calls), sheet(tmp_path, AUTOMATIC)))
    assert line.usd_per_1000 == pytest.approx(1.84)


def test_questions_that_the_infrastructure_failed_are_in_no_mean(tmp_path: Path) -> None:
    run = write(tmp_path / "run", two_questions(), exact_match=None, stop_reason="error")
    assert [each.usd["react"].n for each in compared(run, sheet(tmp_path, AUTOMATIC), "none").under] == [0, 0]


def test_a_whole_earlier_prompt_is_shared_with_the_tokens_that_it_had(tmp_path: Path) -> None:
    texts = text("P", 1280), asked("q1", 100)
    calls = {("react", "q1"): [ask(0, 10, 1380, 0, *texts), ask(20, 30, 2000, 0, *texts, text("R", 120))]}
    run = write(tmp_path / "run", calls)
    _, second = pq.read_table(run / "calls.parquet").to_pylist()
    assert second["shared_question_tokens"] == 1380  # by characters it would be 1,840


def test_a_schema_that_constrains_the_reply_is_no_part_of_the_prompt(tmp_path: Path) -> None:
    found: list[list[float]] = []
    for schema in (None, {"type": "object", "description": "x" * 4000}):
        texts = text("P", 1280), asked("q1", 100)
        calls = {("react", "q1"): [ask(0, 10, 1380, 0, *texts, schema=schema)]}
        calls[("react", "q2")] = [ask(20, 30, 1380, 0, texts[0], asked("q2", 100), schema=schema)]
        run = write(tmp_path / f"run-{len(found)}", calls)
        found.append([row["shared_run_tokens"] for row in pq.read_table(run / "calls.parquet").to_pylist()])
    assert found[0] == found[1] == [0, 1280]


def test_calls_of_which_nothing_is_known_have_no_price_under_a_rule_and_it_is_said(tmp_path: Path) -> None:
    run = write(tmp_path / "run", two_questions())
    calls = pq.read_table(run / "calls.parquet").to_pandas().assign(**dict.fromkeys(SHARED))
    calls.to_parquet(run / "calls.parquet")
    with pytest.raises(DataError, match="doesn't say what its prompts share"):
        compared(run, sheet(tmp_path, AUTOMATIC))


ROLES = """
[models.m]
input = 1
output = 4
[models.big]
input = 10
output = 40
"""


def planned(folder: Path, planner: str, main: str = "openai/m") -> Path:
    """A plan of 100 + 10 tokens after a failed attempt of 50, and an answer of 200 + 20."""
    calls = [
        ask(0, 1, 100, 10, text("p", 100), role="planner", lost=50),
        ask(2, 3, 200, 20, text("s", 200), role="solver"),
    ]
    models = {"model": main, "planner_model": planner, "solver_model": main}
    return write(folder, {("rewoo", "q1"): calls}, **models, cost_usd=None)


def dollars(run: Path, *prices: str) -> Pricing:
    return pricing_of([run], load(run), manifests(run), prices)


def test_a_planner_with_a_model_of_its_own_has_that_models_prices(tmp_path: Path) -> None:
    run, prices = planned(tmp_path / "run", "openai/big"), sheet(tmp_path, ROLES)
    found = dollars(run, f"{prices}:m")
    assert found.cost_usd == pytest.approx([(150 * 10 + 10 * 40 + 200 * 1 + 20 * 4) / 1e6])
    assert found.under == "m's prices of 2026-11-24 without a cache (planner: big's)"
    assert found.tariff is None


@pytest.mark.parametrize(("given", "at"), [([], 1), (["planner:{}:big"], 10)])
def test_a_model_that_the_sheet_lacks_is_counted_as_the_others_or_as_given(
    tmp_path: Path, given: list[str], at: int
) -> None:
    run, prices = planned(tmp_path / "run", "openai/other"), sheet(tmp_path, ROLES)
    found = dollars(run, f"{prices}:m", *(each.format(prices) for each in given))
    planner = (150 * 1 + 10 * 4) * at
    assert found.cost_usd == pytest.approx([(planner + 200 * 1 + 20 * 4) / 1e6])
    assert ("openai/other isn't in the sheet sheet, and is counted as the other calls are" in found.note) != bool(given)


def test_by_default_a_planner_of_another_provider_has_the_prices_of_its_own_sheet(tmp_path: Path) -> None:
    found = dollars(planned(tmp_path / "run", "anthropic/claude-sonnet-4-5", main="openai/gpt-4o"))
    assert found.cost_usd == pytest.approx([(150 * 3 + 10 * 15 + 200 * 2.5 + 20 * 10) / 1e6])


@pytest.mark.parametrize(
    ("prices", "line"),
    [
        (["{}", "solver:{}:big"], "the solver has no model of its own in this run"),
        (["{}", "judge:{}:big"], "the judge's calls are in no question's cost"),
        (["planner:{}:big"], "give those of the run's other calls, too: --prices SHEET"),
    ],
)
def test_prices_for_a_role_that_has_none_of_its_own(tmp_path: Path, prices: list[str], line: str) -> None:
    run, path = planned(tmp_path / "run", "openai/other"), sheet(tmp_path, ROLES)
    with pytest.raises(UsageError, match=line):
        dollars(run, *(each.format(path) for each in prices))
