"""Trajectories of a run read by several threads at once, as `report --live` does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_runs import quiet

from rewoo_bench.report.rows import question_table
from rewoo_bench.report.trajectories import Trajectories
from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")


def test_threads_get_the_trajectories_of_their_own_question() -> None:
    assert quiet("--arch", "rewoo,react", "--model", "oracle", "-n", "60", "--no-report", "--out", "here") == 0
    runs = [Path("here")]
    table = question_table(load("here"))
    trajectories = Trajectories(runs, table)
    with ThreadPoolExecutor(8) as pool:
        alone = [trajectories.question(number) for number in range(len(table.lines))]
        together = list(pool.map(lambda number: trajectories.question(number), list(range(len(alone))) * 5))
    assert together == alone * 5
