"""When a claim counts as reproduced: each rule on intervals that lie here and there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claim_runs import found, one_claim, run_folder
from comparison_rows import system
from pydantic import ValidationError

from rewoo_bench.analysis.claims.claim_file import Band
from rewoo_bench.analysis.stats.paired import Interval

BAND = {"above": 4.0, "below": 6.0}
FIFTH = {"relative": 0.2}  # of 5: from 4 to 6


def judged(parameters: dict[str, Any], low: float, high: float, claimed: float | None = 5.0) -> str:
    return Band(**parameters).judge(Interval((low + high) / 2, low, high, 9), claimed, str)[0]


@pytest.mark.parametrize(
    ("parameters", "low", "high", "verdict"),
    [
        ({"above": 1.0}, 1.01, 9.0, "reproduced"),
        ({"above": 1.0}, 1.0, 9.0, "undecided"),
        ({"above": 1.0}, 0.5, 0.99, "contradicted"),
        ({"below": 0.0}, -2.0, -0.1, "reproduced"),
        (BAND, 4.1, 5.9, "reproduced"),
        (BAND, 3.9, 5.0, "undecided"),
        (BAND, 6.1, 7.0, "contradicted"),  # more than was claimed is something else, too
        (FIFTH, 4.1, 5.9, "reproduced"),
        (FIFTH, 3.9, 5.9, "undecided"),
        ({"absolute": 0.5}, 4.6, 5.4, "reproduced"),
        ({"absolute": 0.5}, 5.6, 5.7, "contradicted"),
    ],
)
def test_a_verdict_is_where_the_interval_lies(
    parameters: dict[str, Any], low: float, high: float, verdict: str
) -> None:
    assert judged(parameters, low, high) == verdict


def test_a_relative_band_of_a_negative_number_is_around_it() -> None:
    assert judged({"relative": 0.1}, -1.05, -0.95, claimed=-1.0) == "reproduced"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"above": 2.0, "below": 1.0}, "got above = 2.0 and below = 1.0"),
        ({}, "expected above or below or both, or relative, or absolute"),
        ({"above": 0.0, "absolute": 1.0}, "expected above or below or both, or relative, or absolute"),
        ({"above": float("nan")}, "finite"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Band(**parameters)


@pytest.mark.parametrize(("matches", "verdict"), [("0" * 400, "undecided"), ("0" * 399 + "1", "reproduced")])
def test_where_no_answer_is_right_no_parity_is_reproduced(matches: str, verdict: str, tmp_path: Path) -> None:
    measure = 'name = "difference", column = "exact_match", of = "rewoo", minus = "react"'
    text = one_claim("absolute = 0.044", measure, 'data = ["hotpotqa"]', number=0.0)
    run = run_folder(
        tmp_path / "run", system(matches=matches, model="openai/m-8b"), system("react", matches, model="openai/m-8b")
    )
    (finding,) = found(text, tmp_path, run)
    assert finding.verdict == verdict
    assert ("no answer of either is right" in finding.reason) == (verdict == "undecided")
