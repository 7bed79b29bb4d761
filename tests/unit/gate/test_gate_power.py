"""What the gate can't tell, and what it catches: seeded regressions with their rates, and none of the same system."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from gate_runs import FACTS, lines, write_run

from rewoo_bench.analysis.stats.tests import smallest_growth
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.evaluation.api import bench
from rewoo_bench.gate.check import ComparisonTerms, check_run
from rewoo_bench.gate.verdict import Verdict


def judged(folder: Path, before: list[dict[str, Any]], now: list[dict[str, Any]], **terms: Any) -> Verdict:
    baseline = write_run(folder / "before", before, FACTS)
    return check_run(write_run(folder / "now", now, FACTS), baseline=baseline, terms=ComparisonTerms(**terms))


def test_the_smallest_growth_is_caught_four_times_in_five() -> None:
    """With the normal approximation's own test, on questions of quite different length."""
    draw, n, error, caught = np.random.default_rng(0), 100, 0.005, []
    for _ in range(400):
        lengths = draw.lognormal(7, 0.5, n)
        before, same = (lengths * draw.lognormal(0, 0.3, n) for _ in range(2))
        smallest = smallest_growth(before, same, np.arange(n), error=error)
        now = same * (1 + smallest)
        relative = now / now.mean() - before / before.mean()
        low = np.log(now.mean() / before.mean()) - 2.576 * relative.std(ddof=1) / np.sqrt(n)
        caught.append(low > 0)
    assert 0.74 < np.mean(caught) < 0.86


def test_a_comparison_of_few_questions_says_that_it_cant_tell(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lines(30), lines(30, seed=1))
    (check,) = verdict.undecided
    assert (verdict.code, check.status) == (0, "warn")
    assert check.text.startswith("can't tell whether total_tokens grew by 5%: on 30 questions growth of ")
    (strict,) = judged(tmp_path / "strict", lines(30), lines(30, seed=1), strict=True).failures
    assert strict.kind == "can't tell"


def test_a_comparison_that_could_have_caught_it_says_how_little(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lines(200, noise=0.02), lines(200, seed=1, noise=0.02))
    assert not verdict.undecided
    (power,) = [check for check in verdict.checks if check.name == "total_tokens power"]
    assert (power.status, power.text) == (
        "pass", "total_tokens: growth of 0.8% or more would have been caught, 4 times in 5"
    )  # fmt: skip


def first_step_only(folder: Path) -> str:
    """ReWOO as it is, but for a plan that is cut after its first step."""
    shutil.copytree(bundled_folder("architectures"), folder)
    path = folder / "rewoo" / "architecture.toml"
    text = path.read_text(encoding="utf-8").replace("max_steps = 8", 'max_steps = 1\ntoo_long = "truncate"')
    assert "max_steps = 1\n" in text
    path.write_text(text, encoding="utf-8")
    return str(path.parent)


def test_an_architecture_that_runs_only_its_first_step_is_caught(tmp_path: Path) -> None:
    whole = bench("rewoo", out=tmp_path / "whole", questions=30)
    cut = bench(first_step_only(tmp_path / "cut-folder"), out=tmp_path / "cut", questions=30)
    verdict = check_run(cut.folder, baseline=whole.folder, terms=ComparisonTerms(accept_prompts=True))
    assert "exact_match" in {check.name for check in verdict.failures}
    again = bench("rewoo", out=tmp_path / "again", questions=30)
    assert check_run(again.folder, baseline=whole.folder).code == 0
