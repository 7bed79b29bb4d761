"""pytest: the fixture `run_bench`, and `assert_within_budget`, without an import or a conftest.

    def test_our_agent_keeps_its_budget(run_bench, assert_within_budget):
        run = run_bench(arch="rewoo", dataset="sample", model="oracle", limit=20)
        assert_within_budget(run, "budgets.toml")

Loaded by every pytest in an environment that has rewoo_bench, so it imports nothing of it until a
test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rewoo_bench.bench import BenchRun


@pytest.fixture
def run_bench(tmp_path: Path) -> Callable[..., BenchRun]:
    """Runs the benchmark as `rewoo-bench run` does, into a folder of the test's own.

    `run_bench(arch="rewoo,react", dataset="sample", model="oracle", limit=20)`; the other flags of
    `rewoo-bench run` are keywords too (`max_steps=4`), and the model is the oracle unless given.
    What comes back has `.folder`, `.rows`, `.status` and `.reason`. For tests that aren't async.
    """
    from rewoo_bench.bench import bench

    runs = 0

    def run(arch: str | list[str], **options: Any) -> BenchRun:
        nonlocal runs
        runs += 1
        return bench(arch, out=tmp_path / f"run-{runs}", **options)

    return run


@pytest.fixture
def assert_within_budget() -> Callable[..., None]:
    """`rewoo_bench.assert_within_budget`."""
    from rewoo_bench.bench import assert_within_budget

    return assert_within_budget
