"""Intervals hold the truth in samples of the project's own runs: the quick version of results/coverage.md."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest
from scipy import stats as scipy_stats

ROOT = Path(__file__).parents[3]
SAMPLES = 200
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "measure_coverage.py"))


@pytest.mark.parametrize(
    ("run", "architecture"),
    # few questions reach the step limit; few right answers
    [
        ("hotpotqa-qwen-1.5b-eight", "plan-execute"),
        ("chain-smollm2-135m", "react"),
    ],
)
@pytest.mark.parametrize(("n", "trials"), [(50, 1), (50, 3), (100, 1)])
def test_each_kind_of_interval_holds_the_truth_90_times_in_100(
    run: str, architecture: str, n: int, trials: int
) -> None:
    found = SCRIPT["coverage"](SCRIPT["population"](run, architecture), n, trials, SAMPLES)
    enough = scipy_stats.binom.ppf(0.001, SAMPLES, 0.90) / SAMPLES
    printed = {kind: share for kind, share in found.items() if not math.isnan(share)}
    assert {kind: share for kind, share in printed.items() if share < enough} == {}
    assert set(found) - set(printed) <= {"latency p50"}


def test_a_tail_that_few_questions_have_marks_half_of_the_intervals_or_is_held() -> None:
    rare, common = (
        SCRIPT["of_tail"](name, 100, 200, 34) for name in ("1% of questions at 10 times", "lognormal, sigma 1")
    )
    assert rare[1] > 0.35
    assert common[0] > 0.88


def test_what_the_exact_test_can_detect_it_detects() -> None:
    difference = SCRIPT["minimum_detectable_difference"](0.25, 100, 0.05 / SCRIPT["TESTS"])
    assert SCRIPT["power"](100, 0.25, difference, 0.05 / SCRIPT["TESTS"], 1_000, 34) == pytest.approx(0.8, abs=0.05)


def test_the_cells_of_the_page_are_counted() -> None:
    shares = dict.fromkeys(SCRIPT["KINDS"], 0.95)
    cells = {"run, a": shares, "run, b": shares | {"F1": 0.98, "cost": 0.891, "latency p50": math.nan}}
    counted = dict(zip(SCRIPT["KINDS"], SCRIPT["over_populations"](cells), strict=True))
    assert (counted["F1"], counted["cost"], counted["EM"]) == ("1+1 of 2, 95", "1+0 of 2, 89", "2+0 of 2, 95")
    assert counted["latency p50"] == "1+0 of 1, 95"
    verdict = SCRIPT["_verdict"]({(50, 1): cells})
    assert verdict.startswith("The goal is missed: ")
    assert "Under 90%: run, b (cost at n = 50: 89.1%)." in verdict
    sizes = {(n, 1): cells if n == 50 else dict.fromkeys(cells, shares) for n in SCRIPT["QUESTIONS"]}
    assert "own: run, b (n = 60: cost 89.1%)." in SCRIPT["_published"](sizes, {"run, a": 60, "run, b": 60})
    assert "own: none." in SCRIPT["_published"](sizes, {"run, a": 60, "run, b": 90})
