"""What is measured for a claim: each measure on rows whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claim_runs import found, one_claim, run_folder
from comparison_rows import system
from scipy import stats

from rewoo_bench.analysis.claims import Finding
from rewoo_bench.analysis.stats.bootstrap import curvature, trend

ABOVE = "above = 0"
CHAIN = "chain"


def measured(measure: str, folder: Path, *runs: Path, on: str = "") -> Finding:
    (finding,) = found(one_claim(ABOVE, measure, on), folder, *runs)
    return finding


def estimate(measure: str, folder: Path, *runs: Path, on: str = "") -> float:
    interval = measured(measure, folder, *runs, on=on).interval
    assert interval is not None
    assert interval.low <= interval.estimate <= interval.high
    return interval.estimate


def chain(architecture: str, tokens: dict[int, int], questions: int = 4, **values: Any) -> list[dict[str, Any]]:
    """Rows of the chain data set: so many questions of each number of look-ups, of so many tokens."""
    rows = []
    for hops, amount in tokens.items():
        ids = range(100 * hops, 100 * hops + questions)
        rows += system(architecture, "1" * questions, ids=ids, **values)
        for row in rows[-questions:]:
            row |= {"question_type": f"chain-{hops}x1", "total_tokens": amount}
    return rows


def call(question: str, role: str, index: int, **values: Any) -> dict[str, Any]:
    parts = dict.fromkeys(("context", "exemplar", "question", "written", "found"), 0)
    return {
        "architecture": "rewoo", "example_id": question, "trial": 0, "call_index": index, "kind": "model",
        "role": role, "place": role, "status": "ok", "input_tokens": 100, "cached_input_tokens": 0,
        **{f"{name}_tokens": size for name, size in parts.items()}, **values,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ('name = "ratio", column = "total_tokens", of = "react", to = "rewoo"', (2650 + 140 / 4) / (1050 + 140 / 4)),
        ('name = "saving", column = "llm_calls", of = "rewoo", to = "react"', 0.75),
        ('name = "difference", column = "exact_match", of = "rewoo", minus = "react"', 0.5),
        ('name = "difference", column = "f1", of = "rewoo", minus = "react"', 0.425),
        ('name = "difference", column = "over_limit", of = "react", minus = "rewoo"', 0.25),
        ('name = "mean", column = "exact_match", of = "react"', 0.5),
        ('name = "mean", column = "calls_beyond_tools", of = "react"', 5.0),
        ('name = "mean", column = "over_limit", of = "react", among = "incorrect"', 0.5),
        ('name = "mean", column = "seven_steps", of = "react", among = "exact_match"', 0.0),
    ],
)
def test_a_measure_of_one_run(tmp_path: Path, measure: str, expected: float) -> None:
    react = system("react", "1001", 2600, llm_calls=8)
    react[1]["stop_reason"] = "step_limit"
    run = run_folder(tmp_path / "0001", system(matches="1111"), react)
    assert estimate(measure, tmp_path, run) == pytest.approx(expected)


def test_exact_mcnemar_decides_whether_a_difference_of_shares_is_above_0(tmp_path: Path) -> None:
    """Of five questions that only ReWOO got right the interval leaves 0 out, and the test does not (p = 1 / 16)."""
    of = 'name = "difference", column = "exact_match", of = "rewoo", minus = "react"'
    for right, verdict in ((5, "undecided"), (6, "reproduced")):
        run = run_folder(
            tmp_path / f"{right}", system(matches="1" * right + "0" * 14), system("react", "0" * (right + 14))
        )
        finding = measured(of, tmp_path, run)
        assert finding.interval is not None
        assert finding.interval.low > 0
        assert finding.verdict == verdict
        assert ("exact McNemar leaves it open (p = 0.062)" in finding.reason) == (verdict == "undecided")
    reverse = measured('name = "difference", column = "exact_match", of = "react", minus = "rewoo"', tmp_path, run)
    assert reverse.verdict == "contradicted"


def test_what_the_infrastructure_failed_is_left_out(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "0001", system(matches="11-1"), system("react", "1101", 2600))
    for column, n in (("exact_match", 3), ("f1", 3), ("total_tokens", 3)):
        finding = measured(f'name = "difference", column = "{column}", of = "react", minus = "rewoo"', tmp_path, run)
        assert finding.interval is not None
        assert finding.interval.n == n


def test_trials_of_a_question_are_one_observation(tmp_path: Path) -> None:
    rows = [system(name, "1010", trial=trial) for name in ("rewoo", "react") for trial in range(3)]
    finding = measured(
        'name = "mean", column = "exact_match", of = "rewoo"', tmp_path, run_folder(tmp_path / "1", *rows)
    )
    assert finding.interval is not None
    assert (finding.interval.n, finding.interval.estimate) == (4, 0.5)


def test_calls_of_the_llm_tool_are_not_the_architectures_own(tmp_path: Path) -> None:
    roles = ["planner", "tool", "tool", "solver", "judge"]
    calls = [call(f"q{q}", role, i, cached_input_tokens=90) for q in range(3) for i, role in enumerate(roles)]
    run = run_folder(tmp_path / "0001", system(matches="111"), calls=calls)
    assert estimate('name = "mean", column = "own_calls", of = "rewoo"', tmp_path, run) == 2.0


def test_the_papers_formula_against_the_prompts(tmp_path: Path) -> None:
    planner = {"context_tokens": 40, "exemplar_tokens": 50, "question_tokens": 10}
    solver = {"context_tokens": 20, "exemplar_tokens": 30, "question_tokens": 10, "found_tokens": 40}
    calls = [call("q0", "planner", 0, **planner), call("q0", "solver", 1, **solver)]
    run = run_folder(tmp_path / "0001", system(matches="1"), calls=calls)
    law = 'name = "ratio", column = "formula_tokens", of = "rewoo", to = "rewoo", against = "prompt_tokens"'
    (finding,) = found(one_claim(ABOVE, law), tmp_path, run)
    assert finding.interval is not None
    assert finding.interval.estimate == pytest.approx(170 / 200)  # without the solver's own exemplars


def test_the_change_under_failing_tools_is_against_the_run_without(tmp_path: Path) -> None:
    clean = run_folder(tmp_path / "0001", system(matches="1111"), system("react", "1111", 2600))
    failing = run_folder(
        tmp_path / "0002", system(matches="1100", tokens=900), system("react", "0000", 3600), tool_failure_rate=1.0
    )
    on = "failing = true"
    tokens = 'name = "change", column = "total_tokens", of = "react"'
    assert estimate(tokens, tmp_path, clean, failing, on=on) == 1000
    assert estimate('name = "change", column = "exact_match", of = "react"', tmp_path, clean, failing, on=on) == -1
    both = 'name = "change", column = "exact_match", of = "rewoo", minus = "react"'
    assert estimate(both, tmp_path, clean, failing, on=on) == 0.5
    alone = measured(tokens, tmp_path, failing, on=on)
    assert alone.verdict == "no data"
    assert "--tool-failure-rate 1 --tool-failure-mode empty; and the same without failing tools" in alone.reason


def test_another_way_of_failing_is_another_condition(tmp_path: Path) -> None:
    mean = 'name = "mean", column = "exact_match", of = "rewoo"'
    verdicts = {}
    for mode in ("error", "empty"):
        failing = run_folder(tmp_path / mode, system(), tool_failure_rate=1.0, tool_failure_mode=mode)
        verdicts[mode] = measured(mean, tmp_path, failing, on="failing = true").verdict
    assert verdicts == {"error": "no data", "empty": "reproduced"}


def test_growth_is_measured_on_chains(tmp_path: Path) -> None:
    line = {hops: 1000 + 250 * hops for hops in range(1, 7)}
    square = {hops: 1000 + 500 * (hops - 1) + 100 * (hops - 1) ** 2 for hops in range(1, 7)}
    run = run_folder(tmp_path / "1", chain("rewoo", line), chain("react", square), data="chain", generator=CHAIN)
    bent = 'name = "curvature", column = "total_tokens", of = '
    assert estimate(f'{bent}"rewoo"', tmp_path, run) == pytest.approx(0, abs=1e-9)
    assert estimate(f'{bent}"react"', tmp_path, run) == pytest.approx(2500 / (2500 + 2500))
    widening = 'name = "ratio_trend", column = "total_tokens", of = "react", to = "rewoo"'
    ratios = [square[hops] / line[hops] for hops in line]
    assert estimate(widening, tmp_path, run) == pytest.approx(np.polyfit(list(line), ratios, 1)[0])
    long = measured(
        'name = "mean", column = "total_tokens", of = "rewoo"', tmp_path, run, on='data = ["chain"], least_steps = 5'
    )
    assert long.interval is not None
    assert (long.interval.n, long.interval.estimate) == (8, 2375)
    elsewhere = run_folder(tmp_path / "2", system())
    assert measured(f'{bent}"rewoo"', tmp_path, elsewhere).verdict == "no data"


def test_chains_with_look_ups_that_no_plan_can_foresee_dont_count(tmp_path: Path) -> None:
    rows = chain("rewoo", {3: 100, 4: 100})
    for row in rows[:4]:
        row["question_type"] += "+2"
    run = run_folder(tmp_path / "1", rows, data="chain", generator=CHAIN)
    finding = measured('name = "mean", column = "total_tokens", of = "rewoo"', tmp_path, run, on='data = ["chain"]')
    assert finding.interval is not None
    assert finding.interval.n == 4


def test_the_intervals_of_growth_hold_the_truth() -> None:
    draw = np.random.default_rng(7)
    steps = np.repeat(np.arange(1, 9), 8).astype(float)
    amounts = 1000 + 300 * steps + 40 * steps**2
    truth = 40 * 49 / ((300 + 2 * 40) * 7 + 40 * 49)
    held = [0, 0]
    for _ in range(60):
        noisy = amounts * draw.lognormal(0, 0.05, len(steps))
        bent, sloped = curvature(steps, noisy), trend(steps, 2 + 0.3 * steps + draw.normal(0, 1, len(steps)))
        held[0] += bent.low <= truth <= bent.high
        held[1] += sloped.low <= 0.3 <= sloped.high
    assert min(held) >= 50  # of 60; 57 are expected, fewer than 50 have a chance of one in a thousand


def test_a_trend_has_the_percentiles_of_its_slope_widened_for_few_questions() -> None:
    """With 40,000 other resamples; the tail is that of Student's quantile, times the root of n / (n - 1)."""
    steps, values = np.array([1.0, 1, 2, 2, 3, 4, 5, 6]), np.array([3.0, 5, 4, 7, 6, 9, 8, 14])
    drawn = np.random.default_rng(3).integers(8, size=(40_000, 8))
    x, y = (column[drawn] - column[drawn].mean(axis=1, keepdims=True) for column in (steps, values))
    free = 7  # a slope takes one
    tail = stats.norm.cdf(-math.sqrt(free / (free - 1)) * stats.t.ppf(0.975, free - 1))
    slopes = (x * y).sum(axis=1)[x.any(axis=1)] / (x * x).sum(axis=1)[x.any(axis=1)]
    low, high = np.quantile(slopes, [tail, 1 - tail])
    each = trend(steps, values)
    assert each.estimate == pytest.approx(np.polyfit(steps, values, 1)[0])
    assert (each.low, each.high) == pytest.approx((low, high), abs=0.02 * (high - low))
