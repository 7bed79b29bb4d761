"""Intervals hold the truth in samples of the project's own runs: the quick version of results/coverage.md."""

from __future__ import annotations

import math
import re
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
    printed = {kind: held.every for kind, held in found.items() if not math.isnan(held.every)}
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


def test_the_mark_of_a_rare_event_does_not_find_the_samples_without_the_event() -> None:
    """Four of a hundred questions make the spread: a sample that has them is marked, and one that lacks them isn't."""
    rows = SCRIPT["population"]("sample-qwen-1.5b-eight", "plan-execute")
    held = SCRIPT["coverage"](rows, 50, 1, SAMPLES)["token ratio"]
    assert SCRIPT["expected"](rows, 50) < SCRIPT["FEW"]
    assert held.marked > 0.4
    assert held.unmarked < held.every - 0.1


def test_of_few_solved_questions_the_ratio_is_seldom_held() -> None:
    few, _, enough, _ = SCRIPT["of_solved"](60, 34)
    assert few < 0.85
    assert enough > 0.87


def test_the_page_is_short_and_has_the_scripts_sentences_tables_and_runs() -> None:
    page = (ROOT / "results" / "coverage.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 650
    form = re.sub(r"\\\{\w+(:[^{}]*)?\\\}", ".+", re.escape(SCRIPT["_TEXT"]))
    assert re.fullmatch(form, page, re.DOTALL)
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    assert [[line.split(" | ")[0] for line in table[2:]] for table in tables] == [
        [f"| {kind}" for kind in SCRIPT["KINDS"]],
        ["| samples without a mark", "| at least 3 expected", "| fewer expected"],
        [f"| {name}" for name in SCRIPT["TAILS"]],
        [
            *(f"| ratio per solved question, the second solved {low} to {high}" for low, high in SCRIPT["SOLVED"]),
            "| EM of 1 and 2%, three trials",
            "| McNemar's test shows a detectable difference (aim 0.80)",
        ],
    ]
    systems = {f"{run} {name}" for run, names in SCRIPT["RUNS"].items() for name in names}
    assert f"a population, {len(systems)} in all" in page
