"""pytest: the fixture `run_bench`, and `assert_within_budget`, without an import or a conftest.

    def test_our_agent_keeps_its_budget(run_bench, assert_within_budget):
        run = run_bench(architectures="rewoo", dataset="sample", model="oracle", questions=20)
        assert_within_budget(run, "budgets.toml")

Every pytest in an environment with rewoo_bench loads this module, so modules of the package are imported when a test
uses a fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench


@pytest.fixture
def run_bench(tmp_path: Path) -> Callable[..., rewoo_bench.BenchRun]:
    """Runs the benchmark as `rewoo-bench run` does, into a temporary folder.

    `run_bench(architectures="rewoo,react", dataset="sample", model="oracle", questions=20)`; the other flags of
    `rewoo-bench run` are keywords too (`max_steps=4`), and the model is the oracle unless given.
    The result has `.folder`, `.rows`, `.status` and `.reason`. For tests that aren't async.
    """
    runs = 0

    def run(architectures: str | list[str], **options: Any) -> rewoo_bench.BenchRun:
        nonlocal runs
        runs += 1
        return rewoo_bench.bench(architectures, out=tmp_path / f"run-{runs}", **options)

    return run


@pytest.fixture
def assert_within_budget() -> Callable[..., None]:
    """`rewoo_bench.assert_within_budget`."""
    return rewoo_bench.assert_within_budget
