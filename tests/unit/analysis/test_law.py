"""The law of plan and loop: its closed forms, its bounds, and cells that the oracle answers."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench import evaluate
from rewoo_bench.analysis.law import DESIGNS, Design, Sizes, Task, cost, estimate, requests, tie
from rewoo_bench.analysis.verdict import two_digits
from rewoo_bench.config.price_sheets import Tariff, named_tariff
from rewoo_bench.errors import UsageError
from rewoo_bench.text.tokens import count_tokens

NOTHING = Sizes()
WHOLE = "slot_tokens=9999&map_tokens=99999"


def cached_at(price: float) -> Tariff:
    """Prices of input alone, where any prefix that was sent before costs this part of it."""
    tariff = named_tariff("openai:gpt-5-mini")
    assert tariff.rule is not None
    rule = tariff.rule.model_copy(update={"minimum_prefix_tokens": 0, "block_tokens": 1})
    return replace(tariff, output=0.0, cache_read=tariff.input * price, rule=rule)


def ratio(task: Task, tariff: Tariff, loop: Design = "loop", plan: Design = "plan") -> float:
    """Dollars where pages outweigh everything else."""
    return cost(loop, task, tariff, NOTHING).usd / cost(plan, task, tariff, NOTHING).usd


@pytest.mark.parametrize("price", [1.0, 0.5, 0.25, 0.1])
def test_with_large_pages_the_tie_is_at_two_by_the_price_of_cached_input(price: float) -> None:
    for depth in range(1, 25):
        task = Task(depth=depth, page=1e9, question=0, name=0)
        expected = (depth + price * depth * (depth - 1) / 2) / (2 * depth - 1)
        assert ratio(task, cached_at(price)) == pytest.approx(expected, rel=1e-6)
        assert depth == 1 or (expected > 1) is (depth > 2 / price)


@pytest.mark.parametrize("price", [1.0, 0.5, 0.1])
def test_where_no_page_is_read_twice_the_plan_is_never_dearer(price: float) -> None:
    for depth in range(1, 25):
        task = Task(depth=depth, page=1e9, question=0, name=0)
        expected = pytest.approx(1 + price * (depth - 1) / 2, rel=1e-6)
        assert ratio(task, cached_at(price), plan="plan-unread") == expected
        assert ratio(replace(task, reads=False), cached_at(price)) == expected


def test_a_turn_that_uses_its_own_results_costs_a_plan_or_a_loop() -> None:
    task, tariff = Task(depth=6, page=1e9, question=0, name=0), cached_at(0.1)
    passed_on = replace(task, reads=False)
    assert ratio(task, tariff, loop="loop-references", plan="loop") == pytest.approx(1)
    assert ratio(passed_on, tariff, loop="loop-references", plan="plan") == pytest.approx(1, rel=1e-6)


@given(st.integers(1, 20), st.integers(1, 5), st.booleans(), st.sampled_from(DESIGNS))
def test_calls_are_those_of_the_table(depth: int, breadth: int, reads: bool, design: Design) -> None:
    task = Task(depth=depth, breadth=breadth, reads=reads)
    look_ups = depth * breadth
    calls = {
        "loop": depth + 1,
        "loop-one": look_ups + 1,
        "react": look_ups + 1,
        "loop-references": depth + 1 if reads else 2,
    }.get(design, 2 + (look_ups - breadth) * reads)
    assert len(requests(design, task)) == calls
    assert cost(design, task, named_tariff("none")).in_sequence == (
        calls if design in ("loop", "loop-one", "react", "loop-references") else 2 + (depth - 1) * reads
    )


def test_a_shape_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="depth must be 1 or more: 0"):
        Task(depth=0)
    with pytest.raises(ValueError, match="page must be 0 or more"):
        Task(page=-1)


def added(design: Design, price: str, task: Task) -> float:
    """Input tokens that a provider bills beyond those of the tools' JSON."""
    counted, billed = (
        cost(design, task, named_tariff(price), tools_as_billed=switch).input_tokens for switch in (False, True)
    )
    return billed - counted


def test_tools_and_schemas_are_billed_as_the_sheet_says() -> None:
    task = Task(depth=4, tools=10, tool=100)  # a loop of five calls
    assert added("loop", "openai", task) == pytest.approx(5 * (0.5 * 1000 + 12 - 1000))
    assert added("loop-references", "openai", replace(task, reads=False)) == pytest.approx(2 * (512 - 1000))
    assert added("plan", "openai", task) == pytest.approx(0.8 * (167 + 10 * 123))  # the planner's call alone
    assert added("loop", "anthropic-5m", task) == pytest.approx(5 * 496)
    assert added("loop-one", "anthropic:claude-opus-5", task) == pytest.approx(5 * 286)
    assert added("loop", "anthropic", replace(task, tools=0)) == added("plan", "anthropic", task) == 0
    texts: tuple[Design, ...] = ("react", "rewoo", "rewoo-unread", "code")
    assert [added(design, price, task) for design in texts for price in ("openai", "anthropic")] == [0] * 8
    assert added("loop", "gemini", task) == 0  # whose sheet says nothing


def test_an_estimate_has_tools_as_their_json_counts_unless_asked() -> None:
    counted = estimate("openai", depth=4, page=300, tools=50)
    billed = estimate("openai", depth=4, page=300, tools=50, tools_as_billed=True)
    assert billed.ratio < counted.ratio  # OpenAI halves the loop's tools, and bills the plan's schema
    assert counted.tie == tie(counted.task, counted.tariff)
    assert billed.tie == tie(billed.task, billed.tariff, tools_as_billed=True) != counted.tie
    assert f"From about {billed.tie:.0f} look-ups in sequence on, rewoo-json costs less" in billed.sentence
    with pytest.raises(UsageError, match=r"google\.toml has no \[tools\]"):
        estimate("gemini", tools_as_billed=True)


@pytest.mark.parametrize(
    ("shape", "cheapest", "most"),
    [
        ({"depth": 4, "page": 1500}, "rewoo-code?max_exemplars=0", "rewoo-json"),  # the calculator's defaults
        ({"depth": 2, "page": 300, "breadth": 3}, "react-native", "rewoo-json"),
        ({"depth": 4, "page": 20, "reads": False}, "react-native?references=true", "react-native"),
    ],
)
def test_an_estimate_names_the_cheapest_design_of_its_table(shape: dict[str, Any], cheapest: str, most: str) -> None:
    found = estimate("openai", **shape)
    dollars = found.to_frame()["usd_of_1000"]
    assert (dollars.idxmin(), dollars.idxmax()) == (cheapest, most)
    assert found.sentence.startswith(f"{cheapest} is cheapest, at about ${two_digits(dollars.min())} for 1,000 tasks")
    assert f" to {two_digits(dollars.max() / dollars.min())} times as much; {most} costs the most." in found.sentence
    assert found.prices == "gpt-5-mini's prices under OpenAI's rule"


@pytest.mark.parametrize("pages", ["results=value", "words=120"])
@pytest.mark.anyio
async def test_the_oracle_follows_the_law(pages: str) -> None:
    names: dict[Design, str] = {"plan": f"rewoo-json?{WHOLE}", "loop": "react-native?tools=Search"}
    found = await evaluate(f"chain?hops=5&{pages}", list(names.values()), model="oracle", questions=12, max_steps=30)
    for design, name in names.items():
        results = [each for each in found if each.task.architecture.name == name]
        steps = [step for each in results for step in each.trajectory.steps if step.tool == "Search"]
        task = Task(
            depth=5,
            page=mean(count_tokens(step.observation) for step in steps),
            reads=pages != "results=value",
            question=mean(count_tokens(each.task.example.question) for each in results),
            name=mean(count_tokens(step.argument) for step in steps),
        )
        sent = [[call.usage for call in each.calls if call.kind == "model"] for each in results]
        assert {len(usages) for usages in sent} == {len(requests(design, task))}
        tokens = mean(sum(usage.total_tokens for usage in usages) for usages in sent)
        assert tokens == pytest.approx(cost(design, task, named_tariff("none")).total_tokens, rel=0.01)
