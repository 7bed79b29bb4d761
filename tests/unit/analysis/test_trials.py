"""pass^k and trials that differ: by hand, by simulation, and in every table of a run with trials."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rewoo_bench import compare, load
from rewoo_bench.analysis.stats.solved import by_trials, difference_of_passes, flips, pass_hat
from rewoo_bench.analysis.summary import summaries_of
from rewoo_bench.evaluation.api import bench
from rewoo_bench.gate.budgets import Budget, Ceiling, Floor, check_budgets
from rewoo_bench.runs.rows import Rows

QUESTIONS = np.repeat(["a", "b", "c"], 4)
SCORES = np.array([1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0], dtype=float)


def test_by_hand() -> None:
    outcomes = by_trials(SCORES, QUESTIONS)
    assert outcomes.right.tolist() == [4, 2, 0]
    assert pass_hat(outcomes, 1).estimate == pytest.approx(SCORES.mean())
    assert pass_hat(outcomes, 2).estimate == pytest.approx((1 + 1 / 6 + 0) / 3)
    assert pass_hat(outcomes, 4).estimate == pytest.approx(1 / 3)
    assert flips(outcomes).estimate == pytest.approx(1 / 3)


def test_it_is_the_mean_over_all_choices_of_k_trials() -> None:
    drawn = np.random.default_rng(3).integers(0, 2, (40, 6)).astype(float)
    outcomes = by_trials(drawn.ravel(), np.repeat(np.arange(40), 6))
    for k in range(1, 7):
        direct = np.mean([drawn[:, list(chosen)].all(axis=1) for chosen in combinations(range(6), k)])
        assert pass_hat(outcomes, k).estimate == pytest.approx(direct)


def test_questions_that_lack_trials_are_in_no_figure_that_needs_them() -> None:
    scores = [1, 1, math.nan, 1, 1, 1]
    outcomes = by_trials(scores, ["a", "a", "b", "b", "c", "c"])
    assert outcomes.trials.tolist() == [2, 1, 2]
    assert (pass_hat(outcomes, 2).n, flips(outcomes).n) == (2, 2)


def test_the_intervals_hold_the_truth() -> None:
    """200 samples of 60 questions with 4 trials each; a question's chance of a right answer is drawn anew."""
    random = np.random.default_rng(7)
    held = {"pass": 0, "flips": 0}
    truth_pass, truth_flips = 1 / 5, 1 - 2 / 5  # for a uniform chance p: E[p^4], and 1 - E[p^4] - E[(1 - p)^4]
    for _ in range(200):
        chances = random.uniform(size=60)
        outcomes = by_trials(
            (random.uniform(size=(60, 4)) < chances[:, None]).astype(float).ravel(), np.repeat(np.arange(60), 4)
        )
        for name, found, truth in (
            ("pass", pass_hat(outcomes, 4), truth_pass),
            ("flips", flips(outcomes), truth_flips),
        ):
            held[name] += found.low <= truth <= found.high
    assert min(held.values()) >= 180


def test_a_difference_is_paired_by_question() -> None:
    worse = SCORES.copy()
    worse[3] = 0
    interval, p = difference_of_passes(by_trials(SCORES, QUESTIONS), by_trials(worse, QUESTIONS), 4)
    assert interval.estimate == pytest.approx(-1 / 3)
    assert 0 < p <= 1


def with_flips(rows: pd.DataFrame) -> pd.DataFrame:
    """One question right in its first trial alone, all others always."""
    changed = rows.copy()
    first = changed["example_id"] == changed["example_id"].iloc[0]
    changed["exact_match"] = (~first | (changed["trial"] == 0)).astype("boolean[pyarrow]")
    return changed


def test_every_table_of_a_run_with_trials_has_them(tmp_path: Path) -> None:
    run = bench("direct,cot", out=tmp_path / "run", questions=5, trials=3)
    rows = with_flips(load(run.folder))
    for summary in summaries_of(rows):
        assert {k: each.estimate for k, each in summary.passes.items()} == pytest.approx({2: 0.8, 3: 0.8})
        assert summary.flips.estimate == pytest.approx(0.2)
        assert summary.flips.n == 5
    comparison = compare(rows)
    table = str(comparison)
    assert "pass^3" in table
    assert "trials differ" in table
    frame = comparison.to_frame()
    assert list(frame[frame["measure"] == "flips"]["estimate"]) == pytest.approx([0.2, 0.2])
    (pair,) = comparison.pairs
    assert (pair["pass^3"].interval.estimate, pair["pass^3"].p) == (0.0, 1.0)
    assert math.isnan(pair["pass^3"].p_holm)  # exploratory


def test_the_gate_limits_them(tmp_path: Path) -> None:
    rows = with_flips(load(bench("direct", out=tmp_path / "run", questions=5, trials=2).folder))
    rows = rows.assign(oracle=False, model="mine", planner_model="mine", solver_model="mine")
    of = {"architecture": "direct", "dataset": "sample", "model": "mine"}

    def checked(**limits: Floor | Ceiling) -> tuple[str, str]:
        (check,) = check_budgets((Budget(**of, **limits),), Rows(rows))  # type: ignore[arg-type]
        return check.status, check.text

    assert checked(every_trial_right=Floor(min=0.8))[0] == "pass"
    assert checked(trials_differ=Ceiling(max=0.2))[0] == "pass"
    status, text = checked(every_trial_right=Floor(min=0.9))
    assert status == "warn"  # five questions are too few to fail on
    assert "every_trial_right min: 0.800 of questions with 2 trials is below the limit of at least 0.9" in text
    many = pd.concat([rows.assign(example_id=rows["example_id"].astype(str) + str(n)) for n in range(40)])
    (check,) = check_budgets((Budget(**of, trials_differ=Ceiling(max=0.1, margin=0.05)),), Rows(many))  # type: ignore[arg-type]
    assert check.status == "fail"
    (check,) = check_budgets((Budget(**of, every_trial_right=Floor(min=0.1)),), Rows(rows[rows["trial"] == 0]))  # type: ignore[arg-type]
    assert (check.status, "several trials" in check.text) == ("fail", True)
