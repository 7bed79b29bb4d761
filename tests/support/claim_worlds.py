"""Made-up run groups in which a claim is exactly right, or clearly wrong: what a run of that world would hold.

group, groups = world(claim, truth, n=1000, draw=np.random.default_rng(0))
claim.test.measure.measure(group, groups)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.claims import Claim
from rewoo_bench.analysis.claims.measures import Measure
from rewoo_bench.analysis.claims.run_groups import SCORES, ArchitectureRows, RunGroup

Floats = NDArray[np.float64]
DISCORDANT = 0.25
"""Of two systems, the share of questions that one alone answers rightly; more where they differ by as much."""
CHAIN_NOISE, NOISE = 0.03, 0.2
"""Spread of a question's tokens: 1 to 3% of chains of one length with the oracle, far more elsewhere."""


def world(claim: Claim, truth: float, n: int, draw: np.random.Generator) -> tuple[RunGroup, list[RunGroup]]:
    """A run group in which the measure is `truth` but for chance, and all run groups."""
    measure = claim.measure
    steps = draw.integers(claim.on.least_steps or 1, 9, n).astype(float)
    below, above = columns_of(measure, truth, steps, draw)
    if measure.name == "change" and not measure.minus:
        before = run_group({measure.of: below}, measure, steps)
        failing = run_group({measure.of: above}, measure, steps, failure_rate=1.0)
        return failing, [before, failing]
    if measure.name == "change":
        before = run_group({measure.of: below, measure.minus: below}, measure, steps)
        failing = run_group({measure.of: above, measure.minus: below}, measure, steps, failure_rate=1.0)
        return failing, [before, failing]
    others = measure.architectures()[1:]
    found = run_group({measure.of: above, **dict.fromkeys(others, below)}, measure, steps)
    return found, [found]


def columns_of(measure: Measure, truth: float, steps: Floats, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """The column of the other architecture, or condition, and of the one that the claim is about."""
    n = len(steps)
    spread = CHAIN_NOISE if measure.name in ("curvature", "ratio_trend") else NOISE
    noise = draw.lognormal(0, spread, n)
    if measure.name == "curvature":
        u = (steps - 1) / 7
        return steps, 1_000 * (1 + 5 * ((1 - truth) * u + truth * u**2)) * noise
    if measure.name == "ratio_trend":
        return 1_000 * noise, 1_000 * noise * (2 + truth * steps) * draw.lognormal(0, spread, n)
    if measure.name == "mean":
        share = measure.column in SCORES
        return steps, (draw.random(n) < truth).astype(float) if share else truth + draw.normal(0, 0.1, n)
    if measure.name in ("difference", "change"):
        if measure.column in SCORES:
            return answers(truth, draw, n)
        return 10_000 * noise, 10_000 * noise + truth * draw.lognormal(0, spread, n)
    below = 1_000 * draw.lognormal(0, 0.4, n)
    ratio = 1 - truth if measure.name == "saving" else truth
    return below, ratio * below * noise


def answers(difference: float, draw: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Right and wrong of two systems on the same questions; the second is right more often by `difference`."""
    lot = draw.random(n)
    discordant = max(DISCORDANT, abs(difference) + 0.05)
    gained, lost = (discordant + difference) / 2, (discordant - difference) / 2
    both = draw.random(n) < 0.3
    first = np.where(lot < gained, 0.0, np.where(lot < gained + lost, 1.0, both))
    second = np.where(lot < gained, 1.0, np.where(lot < gained + lost, 0.0, both))
    return first, second


def run_group(columns: dict[str, Floats], measure: Measure, steps: Floats, *, failure_rate: float = 0.0) -> RunGroup:
    """One run group of the chain data set; a column for each architecture."""
    index = pd.MultiIndex.from_product([[f"q{i}" for i in range(len(steps))], [0]], names=["example_id", "trial"])
    shapes = [f"chain-{step:.0f}x1" for step in steps]
    rows = {
        name: pd.DataFrame(
            {"exact_match": True, "stop_reason": "answered", "question_type": shapes, **held(measure, column)}, index
        )
        for name, column in columns.items()
    }
    nowhere = Path("no calls here")
    built = {name: ArchitectureRows(name, rows[name], nowhere) for name in columns}
    return RunGroup("chain", "made up", "made/up", failure_rate, "empty", "base", "ids", built)


def held(measure: Measure, column: Floats) -> dict[str, object]:
    """The columns of questions.parquet that hold what the measure's column is made from."""
    if measure.name == "mean" and measure.among:
        named: dict[str, dict[str, object]] = {
            "over_limit": {"stop_reason": np.where(column == 1, "step_limit", "answered")},
            "seven_steps": {"steps": np.where(column == 1, 8, 3)},
        }
        return {**named[measure.column], "exact_match": measure.among == "exact_match"}
    if measure.column == "plan_steps":
        return {"steps": column - 1}
    if measure.column == "calls_beyond_tools":
        return {"llm_calls": column + 2, "tool_calls": 2.0}
    return {measure.column: column == 1 if measure.column == "exact_match" else column}
