"""The gate on a live model: it fails where the growth is sure and large, and not by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_runs import FACTS, lines, write_run

from rewoo_bench.gate.check import ComparisonTerms, check_run, live_fall
from rewoo_bench.gate.count_checks import LIVE_MARGIN, ratio_beyond
from rewoo_bench.gate.verdict import Check, Verdict


def judged(folder: Path, before: list[dict[str, Any]], now: list[dict[str, Any]], **terms: Any) -> Verdict:
    baseline = write_run(folder / "before", before, FACTS)
    return check_run(write_run(folder / "now", now, FACTS), baseline=baseline, terms=ComparisonTerms(**terms))


def test_a_sure_and_large_increase_fails_with_its_interval(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lines(200), lines(200, 1.15, seed=1))
    (check,) = verdict.failures
    assert (check.kind, check.name, check.n) == ("growth", "total_tokens", 200)
    assert "at 99.00%: above 1, and beyond the margin of 5%" in check.text


def test_a_sure_increase_within_the_margin_passes(tmp_path: Path) -> None:
    assert judged(tmp_path / "a", lines(200, noise=0), lines(200, 1.04, noise=0)).code == 0
    assert judged(tmp_path / "b", lines(200, noise=0), lines(200, 1.04, noise=0), max_increase=0.03).code == 1


def test_a_large_increase_that_may_be_chance_passes(tmp_path: Path) -> None:
    before = lines(10)
    grown = {name: 4 * before[0][name] for name in ("input_tokens", "output_tokens", "total_tokens")}
    now = [{**before[0], **grown}, *before[1:]]
    verdict = judged(tmp_path, before, now)
    assert verdict.code == 0
    assert "which may be chance" in next(check.text for check in verdict.checks if check.name == "total_tokens")


def test_other_counts_of_a_live_model_only_warn(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lines(200), lines(200, llm_calls=3))
    assert verdict.code == 0
    (check,) = verdict.warnings
    assert check.name == "llm_calls"


def test_counts_of_a_live_model_can_be_compared_exactly(tmp_path: Path) -> None:
    before, now = lines(20, noise=0), lines(20, 1.03, noise=0)
    assert judged(tmp_path / "a", before, now).code == 0
    assert judged(tmp_path / "b", before, now, mode="exact").code == 1


def answers(verdict: Verdict, name: str = "exact_match") -> Check:
    (check,) = [check for check in verdict.checks if check.name == name]
    return check


@pytest.mark.parametrize(("count", "status"), [(400, "fail"), (150, "fail"), (20, "warn")])
def test_a_fall_in_accuracy_that_is_no_chance_fails(tmp_path: Path, count: int, status: str) -> None:
    before = lines(count)
    now = [{**line, "exact_match": n % 4 > 0} for n, line in enumerate(before)]
    check = answers(judged(tmp_path, before, now))
    assert (check.status, check.before) == (status, 1.0)
    assert check.measured == pytest.approx(0.75, abs=0.01)


def test_a_run_that_is_cut_off_fails_on_few_questions(tmp_path: Path) -> None:
    cut = {"stop_reason": "token_limit", "exact_match": False}
    now = [{**line, **(cut if n else {})} for n, line in enumerate(lines(100, seed=1))]
    verdict = judged(tmp_path, lines(100), now)
    assert [check.name for check in verdict.failures] == ["exact_match", "answered"]
    assert answers(verdict, "answered").text == (
        "answered 1.000 -> 0.010: 99 of 100 rows only before and 0 only now, p < 0.0001 (exact McNemar)"
    )


def test_answers_of_the_same_system_hardly_ever_fail() -> None:
    """A fall fails at a two-sided p of 0.5%, so by chance in fewer than 0.25% of comparisons: one of 300."""
    draw, failed = np.random.default_rng(3), 0
    for _ in range(300):
        right = draw.uniform(size=100)
        before, now = ((draw.uniform(size=100) < right).astype(float) for _ in range(2))
        failed += live_fall(before, now, np.arange(100), tests=1)[0] == "fail"
    assert failed <= 3


def pairs(increase: float, count: int, n: int = 300) -> int:
    """How many of `count` simulated gates over 4 architectures fail at one of them."""
    random = np.random.default_rng(7)
    failed = 0
    for _ in range(count):
        lengths = random.lognormal(7, 0.5, n)
        before, now = (lengths * random.normal(1, 0.25, n).clip(0.2) for _ in range(2))
        ratio = ratio_beyond(before, now * increase, np.arange(n), LIVE_MARGIN, tests=4)
        failed += ratio is not None and ratio.low > 1
    return failed


def test_one_and_the_same_system_hardly_ever_fails() -> None:
    # Under 0.125% a test: 3 of 400 would be one case in 600.
    assert pairs(1.0, 400) <= 2


def test_ten_percent_more_is_caught() -> None:
    # The ratio's standard error is about 0.023: 10% more is 4.3 of them, and 3.02 are asked for.
    assert pairs(1.10, 20) >= 14
