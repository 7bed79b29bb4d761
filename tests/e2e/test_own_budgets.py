"""The bundled architectures keep the project's own token budgets, question by question."""

from __future__ import annotations

from pathlib import Path

import rewoo_bench
from rewoo_bench.config.names import bundled_names
from rewoo_bench.evaluation.api import bench

BUDGETS = Path(__file__).parents[1] / "golden" / "budgets"
NAMES = [name if name != "llmcompiler" else f"{name}?stream=false" for name in bundled_names("architectures")]
"""A stream's tasks start before its plan is found too long, and how many do depends on the machine."""


def test_the_bundled_architectures_keep_their_budgets_on_the_sample(tmp_path: Path) -> None:
    """Where a change is meant: `rewoo-bench gate --update`, as CONTRIBUTING.md says."""
    run = bench(NAMES, out=tmp_path / "run")
    assert len(run.rows) == 100 * len(NAMES)
    rewoo_bench.assert_within_budget(run, BUDGETS / "budgets.toml", baseline=BUDGETS / "baseline.json")
