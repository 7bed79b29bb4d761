"""The simulation of the live gate: what it draws from, and what it finds, on a small scale."""

from __future__ import annotations

import csv
import runpy
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_runs import FAILED, row, write_run

RESULTS = Path(__file__).parents[3] / "results"
SCRIPT = RESULTS.parent / "scripts" / "simulate_gate.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_each_question_has_every_total_that_was_measured_for_it(tmp_path: Path, script: dict[str, Any]) -> None:
    first = write_run(tmp_path / "a", [row(0, total_tokens=10), row(1, total_tokens=20), row(2, **FAILED)])
    second = write_run(tmp_path / "b", [row(0, total_tokens=14), row(1, total_tokens=20), row(2)])
    assert script["measured"]([first, second])["rewoo"].tolist() == [[10, 14], [20, 20]]  # q002 failed once


def test_few_trials_keep_the_spread_that_they_were_drawn_from(script: dict[str, Any]) -> None:
    totals = np.random.default_rng(0).normal(1000, 50, (4000, 2))
    widened = script["spread"](totals)
    assert widened.mean() == pytest.approx(totals.mean())
    assert widened.var(axis=1).mean() == pytest.approx(50**2, rel=0.1)  # of two draws as they are it would be half


def test_runs_of_one_system_share_their_questions(script: dict[str, Any]) -> None:
    totals = np.array([[10.0, 11.0], [500.0, 501.0]])
    before, now = script["draw"](totals, 50, np.random.default_rng(0))
    assert np.abs(before - now).max() <= 1


def test_the_gate_tells_a_dearer_system_from_the_same_one(script: dict[str, Any]) -> None:
    lengths = np.random.default_rng(1).lognormal(7, 0.5, (60, 1))
    tables = {"rewoo": lengths * np.random.default_rng(2).normal(1, 0.1, (60, 3))}
    same = script["simulate"](tables, 200, 100, script["same"])
    dearer = script["simulate"](tables, 200, 10, script["dearer"])
    # 5% is five standard errors of the ratio, and 10% is ten.
    assert (same.caught["rewoo"], same.any_failed) == (0, 0)
    assert dearer.caught["rewoo"] >= 0.9


def test_seeded_regressions_of_the_oracle_are_caught_and_the_same_again_is_not(
    tmp_path: Path, script: dict[str, Any]
) -> None:
    lines = script["oracle_runs"](tmp_path, seeds=2, questions=10)
    caught = {(line["second run"], line["architecture"]): 2 * line["caught"] for line in lines}
    assert caught == {
        ("the same again", "rewoo"): 0,
        ("half of the questions failed", "rewoo"): 2,
        ("one step of every plan only", "rewoo"): 2,
        ("the same again", "react"): 0,
        ("half of the questions failed", "react"): 2,
    }


def test_the_published_page_is_made_of_the_published_lines(script: dict[str, Any]) -> None:
    with (RESULTS / "gate.csv").open(encoding="utf-8", newline="") as file:
        lines = [*csv.DictReader(file)]
    page = (RESULTS / "gate.md").read_text(encoding="utf-8")
    assert page == script["page"](lines)
    assert len(page.split()) <= 500
    committed = script["COMMITTED"]
    assert all((run / "run.json").is_file() for runs in committed for run in runs)
    names = [" ".join(run.name for run in runs) for runs in committed]
    assert [*dict.fromkeys(line["runs"] for line in lines)] == [*names, script["ORACLE"]]
    tables = script["measured"]([RESULTS / "gate-live"])
    for now, line in zip(
        islice(script["cells"]("gate-live", tables, [30], int(lines[0]["pairs"])), 2), lines, strict=False
    ):
        assert {name: line[name] for name in now} == {name: str(value) for name, value in now.items()}
