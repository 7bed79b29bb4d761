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
    assert set(found) - set(printed) <= {"p50 latency", "p95 latency"}


@pytest.mark.parametrize("n", [30, 50])
def test_thirty_or_fifty_latencies_have_no_p95(n: int) -> None:
    found = SCRIPT["coverage"](SCRIPT["population"]("branching-smollm2-135m", "react"), n, 1, 5)
    assert math.isnan(found["p95 latency"])
    assert not math.isnan(found["p50 latency"])


def test_what_holds_too_little_is_marked() -> None:
    shares = dict.fromkeys(SCRIPT["KINDS"], 0.95) | {"F1": 0.899, "p95 latency": math.nan}
    written = SCRIPT["document"]({(1, 30): {"run, react": shares}}, 1000)
    row = next(line for line in written.splitlines() if line.startswith("| run, react"))
    assert (row.count("**90%**"), row.count("95%"), row.count("| - |")) == (1, len(shares) - 2, 1)
    assert "don't edit" in written
