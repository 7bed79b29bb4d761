"""What a comparison comes to, in one to three sentences: tokens, dollars at named prices, accuracy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from comparison_rows import A, B, frame, manifest, system
from gate_runs import row, write_run
from priced_runs import ask, text, write

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import ComparisonFormat, render_comparison
from rewoo_bench.analysis.pairs import Effect, Pair, PairUnder, Under, way_round
from rewoo_bench.analysis.prices import Pricing, own_prices, pricing_of
from rewoo_bench.analysis.stats.paired import Interval
from rewoo_bench.analysis.verdict import verdict
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.folder import load, manifests

RIGHT = "1100" * 15


def sentences(*, pricing: Pricing | None = None, rows: pd.DataFrame | None = None) -> list[str]:
    made = frame(system("rewoo", RIGHT), system("react", RIGHT, 2600)) if rows is None else rows
    return compare(made, pricing=pricing).verdicts


def test_it_is_a_sentence_each_on_tokens_dollars_and_accuracy() -> None:
    said = sentences(pricing=Pricing("m's rule; m's prices", name="m's prices under m's rule"))
    assert said == [
        "react took about 1.1 times the tokens of rewoo.",
        "At m's prices under m's rule react cost about 2.6 times the dollars of rewoo.",
        "In accuracy react and rewoo are too close to call.",
    ]


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (
            [Interval(2.7, 2.3, 3.2, 60), Interval(0.84, 0.74, 0.97, 60, rare=True)],
            "react cost about 0.84 times the dollars of rewoo at 'openai', and about 2.7 times at 'none', "
            "but a few questions make most of the spread.",
        ),
        ([Interval(1.2, 0.9, 1.3, 60)] * 2, "Under 2 prices react and rewoo are too close to call in dollars."),
        ([Interval(2.7, 2.3, 3.2, 60)], "react cost about 2.7 times the dollars of rewoo at 'none'."),
    ],
)
def test_under_several_prices_one_sentence_is_about_all(ratios: list[Interval], said: str) -> None:
    under = [
        Under("d", name, {}, {}, None, (PairUnder("rewoo", "react", ratio, 0.1),))
        for name, ratio in zip(("none", "openai"), ratios, strict=False)
    ]
    assert verdict(Pair("d", "rewoo", "react", 60, 60, 0, False, ()), Pricing(), under) == [said]


@pytest.mark.parametrize("order", [("rewoo", "react"), ("react", "rewoo")])
def test_a_loop_is_divided_by_a_plan_whatever_order_they_stand_in(order: tuple[str, str]) -> None:
    scores, tokens = {"rewoo": RIGHT, "react": "1000" * 15}, {"rewoo": 1000, "react": 2600}
    found = compare(frame(*(system(name, scores[name], tokens[name]) for name in order)))
    (pair,) = found.pairs
    assert (pair.b, pair.a) == ("react", "rewoo")
    assert pair["total_tokens"].interval.estimate > 1 > 0 > pair["exact_match"].interval.estimate
    assert found.verdicts[-1] == "rewoo is more accurate than react, by about 25 points of exact match."
    frame_of = found.to_frame().query("measure == 'exact_match' and kind == 'difference'")
    assert frame_of[["system", "against"]].to_numpy().tolist() == [["react", "rewoo"]]


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("rewoo", "react"), ("rewoo", "react")),
        (("react?max_steps=4", "rewoo-lazy?x=1"), ("rewoo-lazy?x=1", "react?max_steps=4")),
        (("direct", "llmcompiler"), ("llmcompiler", "direct")),
        (("react-native", "direct"), ("direct", "react-native")),
        (("react", "react?repeat_guard=stop"), ("react", "react?repeat_guard=stop")),
        (("react, openai/a, run x", "rewoo, openai/a"), ("rewoo, openai/a", "react, openai/a, run x")),
    ],
)
def test_a_pair_is_the_same_way_round_everywhere(pair: tuple[str, str], expected: tuple[str, str]) -> None:
    assert way_round(*pair) == expected


def of_tokens(ratio: Interval, p_holm: float) -> str:
    tokens = Effect("total_tokens", "ratio", ratio, 0.01, p_holm)
    (said,) = verdict(Pair("d", "rewoo", "react", ratio.n, ratio.n, 0, False, (tokens,)), Pricing())
    return said


@pytest.mark.parametrize(
    ("ratio", "p_holm", "said"),
    [
        (Interval(1.234, 1.01, 1.4, 60), 0.049, "react took about 1.2 times the tokens of rewoo."),
        (Interval(0.0584, 0.056, 0.06, 60), 0.01, "react took about 0.058 times the tokens of rewoo."),
        (Interval(1911.0, 1300.0, 2500.0, 60), 0.01, "react took about 1,900 times the tokens of rewoo."),
        (Interval(1.004, 1.002, 1.006, 60), 0.01, "react took slightly more tokens than rewoo."),
        (Interval(1.2, 1.01, 1.4, 60), 0.09, "In tokens react and rewoo are too close to call."),
        (
            Interval(4.79, 2.94, 7.3, 5, rare=True),
            0.01,
            "react took about 4.8 times the tokens of rewoo, but 5 questions are too few to be sure.",
        ),
        (
            Interval(1.2, 1.01, 1.4, 60, rare=True),
            0.01,
            "react took about 1.2 times the tokens of rewoo, but a few questions make most of the spread.",
        ),
    ],
)
def test_a_sentence_is_as_sure_as_its_test(ratio: Interval, p_holm: float, said: str) -> None:
    assert of_tokens(ratio, p_holm) == said


def test_the_sentences_of_a_run_are_adjusted_for_all_of_its_pairs(tmp_path: Path) -> None:
    """Alone react's p is below 0.05; beside other architectures Holm's isn't."""
    draw = np.random.default_rng(0)
    of = {"rewoo": 0.0, "react": 0.02, "direct": 0.0, "cot": 0.0}
    tokens = {name: 1000 * draw.lognormal(more, 0.5, 40) for name, more in of.items()}
    lines = [
        row(architecture=name, example_id=f"q{i}", total_tokens=int(tokens[name][i])) for name in of for i in range(40)
    ]
    run = write_run(tmp_path / "run", lines)
    compared = compare(load(run), manifests=manifests(run), intersect=True)
    effect = compared.pairs[0]["total_tokens"]
    assert effect.p < 0.05 < effect.p_holm
    assert compared.verdicts[0] == "react and rewoo are too close to call in tokens and dollars."


def test_of_three_architectures_each_further_one_has_a_sentence() -> None:
    of = {"rewoo": (RIGHT, 1000), "direct": ("1000" * 15, 100), "react": (RIGHT, 2600)}
    found = compare(frame(*(system(name, *each) for name, each in of.items())))
    react, direct = found.verdicts
    assert re.fullmatch(
        r"react took about [\d.]+ times the tokens of rewoo and cost about [\d.]+ times the dollars; "
        r"accuracy is too close to call\.", react,
    )  # fmt: skip
    assert re.fullmatch(r"direct took .* of rewoo, cost .* times the dollars and is less accurate\.", direct)
    many = {**of, "cot": (RIGHT, 300), "react-json": (RIGHT, 2700)}
    said = compare(frame(*(system(name, *each) for name, each in many.items()))).verdicts
    assert len(said) == 3
    assert said[-1] == "The tables have 2 more pairs."


def test_beside_the_ratio_is_that_where_both_answered() -> None:
    """Two of 60 questions took ten times the tokens and ended at the step limit."""
    react = system("react", RIGHT, 2000)
    for lost in react[:2]:
        lost |= {"stop_reason": "step_limit", "total_tokens": 10 * lost["total_tokens"]}
    rewoo = system("rewoo", RIGHT, 1000)
    found = compare(frame(rewoo, react))
    some = found.pairs[0].both_answered
    assert some is not None
    assert some.n == 58
    means = [sum(each["total_tokens"] for each in rows[2:]) for rows in (rewoo, react)]
    assert some.estimate == pytest.approx(means[1] / means[0])
    assert f"{some.estimate:.3f} [{some.low:.3f}, {some.high:.3f}]" in str(found)
    kinds = found.to_frame().set_index("kind")
    assert kinds.loc["ratio where both answered", "estimate"] == some.estimate
    assert compare(frame(rewoo, system("react", RIGHT, 2000))).pairs[0].both_answered is None


def test_an_oracle_has_no_accuracy() -> None:
    said = sentences(rows=frame(*(system(name, RIGHT, model="oracle") for name in ("rewoo", "react"))))
    assert ["accuracy" in line for line in said] == [False, False]


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex"])
def test_they_are_the_first_lines_of_a_comparison(form: ComparisonFormat) -> None:
    compared = compare(frame(system("rewoo", RIGHT), system("react", RIGHT, 2600)))
    assert "react took about" in render_comparison(compared, form).splitlines()[0]
    assert str(compared).startswith(compared.verdicts[0])
    assert json.loads(render_comparison(compared, "json"))["verdicts"] == compared.verdicts


def test_the_own_prices_are_named_by_their_models() -> None:
    run = manifest("r", prices={"openai/small_1": {"input": 1.0}, "local/x": None})
    compared = compare(frame(system("rewoo", RIGHT), system("react", RIGHT, 2600)), manifests={"r": run})
    assert compared.verdicts[1].startswith("At openai/small_1's prices react cost about")
    assert "dollars are at openai/small_1's prices, cached input as the endpoint counted it\n" in str(compared)


def run_of_two(folder: Path) -> Path:
    """Rewoo asks twice without a shared prefix, react twice with one of 2,048 tokens: by hand, see below."""
    prefix = text("P", 2048)
    calls = {
        ("rewoo", "q1"): [ask(0, 1, 1000, 10, text("a", 1000)), ask(2, 3, 1000, 10, text("b", 1000))],
        ("react", "q1"): [ask(0, 1, 2048, 10, prefix), ask(2, 3, 2148, 10, prefix, text("c", 100))],
    }
    return write(folder, calls, **dict.fromkeys(["model", "planner_model", "solver_model"], "local/x"), cost_usd=None)


def test_a_run_without_prices_has_dollars_under_an_example_whose_cache_rule_is_named(tmp_path: Path) -> None:
    run = run_of_two(tmp_path / "run")
    pricing = pricing_of([run], load(run), manifests(run))
    assert pricing.under == "gpt-5-mini's prices of 2026-11-24 under OpenAI's rule"
    assert pricing.note == "an example, since no price of local/x is known: compare --prices NAME"
    assert pricing.cost_usd is not None
    rewoo, react = pricing.cost_usd  # 0.25, 0.025 and 2 dollars a million
    assert rewoo == pytest.approx((2000 * 0.25 + 20 * 2) / 1e6)
    assert react == pytest.approx((2048 * 0.25 + 100 * 0.25 + 2048 * 0.025 + 20 * 2) / 1e6)


@pytest.mark.parametrize(("model", "price"), [("openai/gpt-4o", (2.5, 1.25, 10)), ("openai/mine", (0.25, 0.025, 2))])
def test_cached_input_that_an_endpoint_counted_is_no_rules(
    tmp_path: Path, model: str, price: tuple[float, ...]
) -> None:
    """Also where the price is an example's: the server said what it had in its cache."""
    run = run_of_two(tmp_path / "run")
    for name, column in (("calls", "name"), ("questions", "model")):
        path = run / f"{name}.parquet"
        table = pd.read_parquet(path).assign(cached_input_tokens=900)
        table[column] = model
        table.to_parquet(path)
    pricing = pricing_of([run], load(run), manifests(run))
    assert pricing.under.endswith("'s prices, cached input as the endpoint counted it")
    assert pricing.cached is not None
    assert pricing.cost_usd is not None
    assert pricing.cached.tolist() == [1800, 1800]
    whole, cached, output = price
    assert pricing.cost_usd[0] == pytest.approx((200 * whole + 1800 * cached + 20 * output) / 1e6)
    ruled = pricing_of([run], load(run), manifests(run), ["openai"])
    assert ruled.cached is not None
    assert ruled.cached.tolist() == [0, 2048]


def run_of_roles(folder: Path, planner: str) -> Path:
    """A run of gpt-4o whose planner is another model: 1,000 + 100 tokens, then 2,000 + 200."""
    calls = [
        ask(0, 1, 1000, 100, text("p", 1000), role="planner"), ask(2, 3, 2000, 200, text("s", 2000), role="solver"),
    ]  # fmt: skip
    models = {"model": "openai/gpt-4o", "planner_model": planner, "solver_model": "openai/gpt-4o"}
    return write(folder, {("rewoo", "q1"): calls}, run_id=folder.name, cost_usd=None, **models)


def test_the_price_of_a_role_that_one_run_has_is_taken_for_all_runs(tmp_path: Path) -> None:
    runs = [run_of_roles(tmp_path / name, f"openai/{planner}") for name, planner in (("a", "gpt-4"), ("b", "gpt-4o"))]
    for order in (runs, runs[::-1]):
        priced = pricing_of(order, load(*order), manifests(*order), ["openai:gpt-4o", "planner:openai:gpt-4o-mini"])
        assert priced.cost_usd is not None
        usd = [(1000 * 0.15 + 100 * 0.6 + 2000 * 2.5 + 200 * 10) / 1e6, (3000 * 2.5 + 300 * 10) / 1e6]
        assert priced.cost_usd == pytest.approx(usd if order is runs else usd[::-1])


def test_a_chosen_sheet_replaces_the_runs_own_prices(tmp_path: Path) -> None:
    run = run_of_two(tmp_path / "run")
    pricing = pricing_of([run], load(run), manifests(run), ["openai:gpt-4o"])
    assert pricing.under == "gpt-4o's prices of 2026-11-24 under OpenAI's rule"
    assert pricing.note == ""
    with pytest.raises(UsageError, match=r"unknown price 'opnai', did you mean 'openai'\?.*anthropic-1h"):
        pricing_of([run], load(run), manifests(run), ["opnai"])


def test_a_run_without_calls_has_no_dollars_and_says_why(tmp_path: Path) -> None:
    run = run_of_two(tmp_path / "run")
    (run / "calls.parquet").unlink()
    pricing = pricing_of([run], load(run), manifests(run))
    assert (pricing.cost_usd, pricing.note[:12]) == (None, "no dollars: ")
    with pytest.raises(DataError, match=r"run' has no calls.parquet"):
        pricing_of([run], load(run), manifests(run), ["openai:gpt-4o"])


CRASHED: dict[str, Any] = {
    "llm_calls": 0,
    "total_tokens": 0,
    "input_tokens": 0,
    "cost_usd": 0.0,
    "stop_reason": "agent_failed",
}


@pytest.mark.parametrize("systems", [("direct", "crash"), ("crash", "direct")])
def test_a_system_that_made_no_model_call_is_in_no_ratio(systems: tuple[str, str]) -> None:
    rows = frame(*(system(name, "000000", **(CRASHED if name == "crash" else {})) for name in systems))
    compared = compare(rows)
    assert [effect.kind for effect in compared.pairs[0].figures] == ["difference", "difference"]
    assert compared.verdicts == ["crash made no model call in any question, so tokens have no ratio."]


@pytest.mark.parametrize(("counts", "said"), [((32, 32), ""), ((32, 1), ": 1 or 32 questions at once")])
def test_a_cache_that_runs_filled_at_another_pace_is_a_caution(counts: tuple[int, int], said: str) -> None:
    prices = {"openai/small_1": {"input": 1.0}}
    runs = {run: manifest(run, prices=prices, concurrency=count) for run, count in zip((A, B), counts, strict=True)}
    found = compare(frame(system(), system(run_id=B)), manifests=runs)
    assert (f"cached input differs by the runs' concurrency alone{said}\n" in str(found)) == bool(said)
    on_other_data = {**runs, B: manifest(B, prices=prices, concurrency=counts[1], dataset__name="chain")}
    assert "concurrency" not in own_prices(on_other_data).note
