"""What is recommended where the truth is known, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from advice_rows import drawn, folder_of, mixed, pair_of, right

from rewoo_bench import advise, load
from rewoo_bench.analysis.advice.advise import Part, advice_sentences
from rewoo_bench.analysis.advice.decision import decide
from rewoo_bench.errors import UsageError


def part_of(folder: Path, systems: dict[str, str], *, costs: dict[str, int] | None = None, **terms: Any) -> Part:
    (part,) = advise(folder_of(folder / "run", systems, costs=costs), **terms).parts
    return part


def text(part: Part) -> str:
    return "\n".join(advice_sentences(part))


def test_a_clear_winner_is_recommended_with_its_interval_and_n(tmp_path: Path) -> None:
    part = part_of(tmp_path, {"rewoo": right(80, 100), "react": right(50, 100)})
    assert (part.decision.kind, part.decision.recommended) == ("most accurate", "rewoo")
    assert text(part).startswith("Use rewoo: it is more accurate than the others.")
    assert "rewoo answers 80.0% [71.1%, 86.7%] of the questions correctly (exact match, n = 100)" in text(part)
    assert "rewoo is 30.0 points more accurate than react ([+21.9, +39.6], n = 100, p < 0.001)" in text(part)
    assert part.more is None


def test_of_two_that_are_alike_the_cheaper_one_is_recommended(tmp_path: Path) -> None:
    rewoo, react = mixed(600, 240, 20, 22)
    part = part_of(tmp_path, {"react": react, "rewoo": rewoo})
    assert (part.decision.kind, part.decision.recommended) == ("cheapest that isn't worse", "rewoo")
    assert dict(part.decision.not_worse)["rewoo"] < 0.05
    assert "less than 5 points worse" in text(part)
    assert "rewoo against react: -0.3 points ([-2.5, +1.9], n = 600, p = 0.88), so neither is shown" in text(part)


def test_the_same_two_need_a_wide_enough_margin(tmp_path: Path) -> None:
    rewoo, react = mixed(600, 240, 40, 45)
    run = folder_of(tmp_path / "run", {"react": react, "rewoo": rewoo})
    kinds = [advise(run, margin=margin).parts[0].decision.kind for margin in (0.05, 0.01)]
    assert kinds == ["cheapest that isn't worse", "undecided"]


def test_an_accurate_one_wins_over_a_cheap_one_and_the_price_is_told(tmp_path: Path) -> None:
    react, direct = mixed(400, 150, 40, 4)
    run = folder_of(tmp_path / "run", {"react": react, "direct": direct})
    (part,) = advise(run).parts
    assert (part.decision.kind, part.decision.recommended, part.decision.near) == ("most accurate", "react", ())
    assert "times its cost" in text(part)
    (wide,) = advise(run, margin=0.2).parts
    assert (wide.decision.recommended, wide.decision.near) == ("react", ("direct",))
    assert "direct: less accurate, but shown to be less than 20 points worse, at less cost." in text(wide)
    for doubt in ({"high": 1.01}, {"rare": True}):
        doubted = {pair: replace(each, cost=replace(each.cost, **doubt)) for pair, each in wide.contrasts.items()}
        assert decide(wide.candidates, doubted, 0.2).near == ()


def test_too_few_questions_decide_nothing_and_the_number_that_would_is_told(tmp_path: Path) -> None:
    rewoo, react = mixed(40, 12, 8, 4)
    part = part_of(tmp_path, {"rewoo": rewoo, "react": react})
    assert (part.decision.kind, part.decision.recommended) == ("undecided", None)
    assert part.more is not None
    assert part.more.questions is not None
    assert part.more.questions > 40
    assert text(part).startswith("Not decided: rewoo or react may be the best.")
    command = f"    rewoo-bench run --from {tmp_path / 'run' / 'run.json'} --arch rewoo,react -n {part.more.questions}"
    assert command in text(part)


def test_the_number_of_questions_told_is_enough_four_times_in_five() -> None:
    """In a world that is as measured on 100 questions."""
    draw = np.random.default_rng(3)
    systems = dict(zip(("rewoo", "react"), pair_of(0.08, 0.2, 100, draw), strict=True))
    (part,) = advise(drawn(systems, {"rewoo": 1.0, "react": 4.0}, draw)).parts
    contrast = part.contrasts["rewoo", "react"]
    assert part.decision.questions is not None
    difference, discordant, needed = contrast.accuracy.estimate, contrast.discordant_share, part.decision.questions
    decided = []
    for _ in range(60):
        again = dict(zip(systems, pair_of(difference, discordant, int(needed), draw), strict=True))
        (more,) = advise(drawn(again, {"rewoo": 1.0, "react": 4.0}, draw)).parts
        decided.append(more.decision.recommended == "rewoo")
    assert 0.65 <= np.mean(decided) <= 0.97


def test_of_two_that_are_the_same_one_is_called_more_accurate_at_most_once_in_twenty(
    repeats: Callable[[int], int],
) -> None:
    kinds = []
    for seed in range(repeats(100)):
        draw = np.random.default_rng(seed)
        systems = dict(zip(("rewoo", "react"), pair_of(0.0, 0.25, 120, draw), strict=True))
        (part,) = advise(drawn(systems, {"rewoo": 1.0, "react": 4.0}, draw)).parts
        kinds.append(part.decision.kind)
    assert kinds.count("most accurate") <= 0.09 * len(kinds)  # 97 times in 100 at most 9 of 100 by chance, at 5%
    assert kinds.count("undecided") > 0.5 * len(kinds)


def test_of_four_that_are_the_same_one_is_called_more_accurate_at_most_once_in_twenty(
    repeats: Callable[[int], int],
) -> None:
    kinds = []
    for seed in range(repeats(50)):
        draw = np.random.default_rng(seed)
        systems = {name: draw.random(100) < 0.5 for name in ("a", "b", "c", "d")}
        (part,) = advise(drawn(systems, dict.fromkeys(systems, 1.0), draw)).parts
        kinds.append(part.decision.kind)
    assert kinds.count("most accurate") <= 0.1 * len(kinds)


def test_a_cheap_one_that_is_worse_by_the_margin_is_seldom_recommended(repeats: Callable[[int], int]) -> None:
    wrong = []
    for seed in range(repeats(100)):
        draw = np.random.default_rng(seed)
        react, rewoo = pair_of(0.05, 0.2, 400, draw)
        (part,) = advise(drawn({"rewoo": rewoo, "react": react}, {"rewoo": 1.0, "react": 4.0}, draw)).parts
        wrong.append(part.decision.recommended == "rewoo")
    assert np.mean(wrong) <= 0.09


@pytest.mark.nightly
def test_of_two_equals_the_dearer_one_is_hardly_ever_recommended() -> None:
    """At a quarter of the questions answered by one alone the dearer one is often shown not to be worse."""
    recommended = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        systems = dict(zip(("rewoo", "react"), pair_of(0.0, 0.25, 300, draw), strict=True))
        (part,) = advise(drawn(systems, {"rewoo": 1.0, "react": 2.0}, draw)).parts
        recommended.append(part.decision.recommended)
    assert recommended.count("react") <= 6  # McNemar's 5%, half of it for the wrong one
    assert recommended.count("rewoo") > 25


def test_a_dearer_one_that_is_shown_not_to_be_worse_leaves_it_open(tmp_path: Path) -> None:
    react, rewoo = mixed(600, 240, 26, 16)
    part = part_of(tmp_path, {"react": react, "rewoo": rewoo}, margin=0.03)
    shown = dict(part.decision.not_worse)
    assert shown["react"] < 0.05 < shown["rewoo"]
    assert (part.decision.kind, part.decision.recommended) == ("undecided", None)
    assert "rewoo, the cheapest, isn't shown to be less than 3 points worse." in text(part)
    assert part.more is not None


def test_trials_of_a_question_are_one_observation(tmp_path: Path) -> None:
    rewoo, react = mixed(40, 12, 6, 5)
    one = folder_of(tmp_path / "one", {"rewoo": rewoo, "react": react})
    rows = load(one)
    thrice = [rows.assign(trial=trial) for trial in range(3)]
    (single,) = advise(rows).parts
    (part,) = advise(pd.concat(thrice, ignore_index=True)).parts
    assert part.contrasts["rewoo", "react"].p == pytest.approx(single.contrasts["rewoo", "react"].p)
    assert (part.decision.kind, part.candidates[0].accuracy.n) == ("undecided", 40)
    assert part.decision.questions == pytest.approx(single.decision.questions, rel=0.1)


def test_one_within_a_limit_of_cost_is_recommended_whatever_is_better(tmp_path: Path) -> None:
    systems = {"react": right(80, 100), "direct": right(30, 100)}
    part = part_of(tmp_path, systems, costs={"direct": 100, "react": 4000}, max_cost=0.001)
    assert (part.decision.kind, part.decision.recommended) == ("only one within the limits", "direct")
    assert [each.state for each in part.candidates] == ["above", "within"]
    assert "Above the limit: react costs $0.00405 [" in text(part)
    assert "direct against react, which isn't surely within the limits: -50.0 points (" in text(part)


def test_an_interval_over_a_limit_may_be_within(tmp_path: Path) -> None:
    react = [0.002, 0.006] * 50
    rows = load(folder_of(tmp_path / "run", {"react": right(80, 100), "direct": right(30, 100)}))
    rows.loc[rows["architecture"] == "react", "cost_usd"] = react
    (part,) = advise(rows, max_cost=0.0041).parts
    assert [each.state for each in part.candidates] == ["may be within", "within"]
    (check,) = part.candidates[0].limits
    assert check.interval.low < 0.004 < 0.0041 < check.interval.high
    assert check.questions > 1000
    assert "May be within the limit: react costs $0.00400 [" in text(part)
    assert "questions decide)" in text(part)
    rows.loc[rows["architecture"] == "direct", "cost_usd"] = 1.0
    (nobody,) = advise(rows, max_cost=0.0041).parts
    assert (nobody.decision.kind, nobody.decision.recommended) == ("limits undecided", None)
    assert text(nobody).startswith("Not decided: react may be within the limits, but none surely is.")


def test_a_limit_of_latency_takes_72_questions(tmp_path: Path) -> None:
    systems = {"react": right(30, 50), "direct": right(30, 50)}
    few = part_of(tmp_path, systems, max_latency=100.0)
    assert {each.state for each in few.candidates} == {"may be within"}
    assert "n = 50; an interval takes 72 questions" in text(few)
    assert few.more is not None
    assert few.more.questions == 72
    more = {"react": right(48, 80), "direct": right(48, 80)}
    (part,) = advise(folder_of(tmp_path / "more", more), max_latency=10.0).parts
    assert [each.state for each in part.candidates] == ["above", "within"]
    assert "react has a 95th percentile of 40 [40, 40] s, limit 10 s" in text(part)


def test_where_none_is_within_the_limits_none_is_recommended(tmp_path: Path) -> None:
    part = part_of(tmp_path, {"react": right(80, 100), "rewoo": right(30, 100)}, max_cost=1e-6)
    assert text(part).startswith("No recommendation: no architecture is within the limits.")
    assert part.decision.recommended is None


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"max_cost": 0}, "--max-cost 0: expected dollars per question, a number above 0"),
        ({"max_cost": float("nan")}, "--max-cost nan: expected"),
        ({"max_latency": True}, "--max-latency True: expected seconds"),
        ({"margin": 5}, "--margin 5: expected a share between 0 and 1, such as 5% or 0.05 (5 points)"),
        ({"intersect": "yes"}, "intersect: expected True or False"),
    ],
)
def test_terms_out_of_range_are_refused(tmp_path: Path, terms: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        part_of(tmp_path, {"rewoo": "10", "react": "01"}, **terms)
    assert said in str(error.value)
