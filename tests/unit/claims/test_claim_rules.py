"""When a claim counts as reproduced: each rule on intervals that lie here and there."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rewoo_bench.claims.rules import RULES
from rewoo_bench.stats.paired import Interval

BAND = {"low": 4.0, "high": 6.0, "null": 1.0}
LOSS = {"low": -6.0, "high": -4.0, "null": 0.0}
ANY = {"low": -1.0, "high": 1.0}
FIFTH = {"relative": 0.2, "null": 1.0}  # of 5: from 4 to 6


def judged(rule: str, parameters: dict[str, Any], low: float, high: float, claimed: float | None = 5.0) -> str:
    return RULES[rule](**parameters).judge(Interval((low + high) / 2, low, high, 9), claimed, str)[0]


@pytest.mark.parametrize(
    ("rule", "parameters", "low", "high", "verdict"),
    [
        ("above", {"null": 1.0}, 1.01, 9.0, "reproduced"),
        ("above", {"null": 1.0}, 1.0, 9.0, "undecided"),
        ("above", {"null": 1.0}, 0.5, 0.99, "contradicted"),
        ("below", {"null": 0.0}, -2.0, -0.1, "reproduced"),
        ("below", {"null": 0.0}, -2.0, 0.0, "undecided"),
        ("below", {"null": 0.0}, 0.1, 2.0, "contradicted"),
        ("within", BAND, 4.0, 6.0, "reproduced"),
        ("within", BAND, 3.9, 5.0, "undecided"),
        ("within", BAND, 1.0, 9.0, "undecided"),
        ("within", BAND, 2.0, 3.9, "contradicted"),
        ("within", BAND, 0.2, 0.3, "contradicted"),  # past the null
        ("within", BAND, 6.1, 7.0, "not reproduced"),  # more than was claimed
        ("within", LOSS, -5.5, -4.5, "reproduced"),
        ("within", LOSS, -3.0, -2.0, "contradicted"),
        ("within", LOSS, -9.0, -7.0, "not reproduced"),
        ("within", ANY, -0.5, 0.5, "reproduced"),
        ("within", ANY, 1.1, 1.2, "contradicted"),
        ("within", ANY, -1.2, -1.1, "contradicted"),
        ("near", FIFTH, 4.1, 5.9, "reproduced"),
        ("near", FIFTH, 3.9, 5.9, "undecided"),
        ("near", FIFTH, 2.0, 3.0, "contradicted"),
        ("near", FIFTH, 7.0, 8.0, "not reproduced"),
        ("near", {"absolute": 0.5}, 4.6, 5.4, "reproduced"),
        ("near", {"absolute": 0.5}, 5.4, 5.6, "undecided"),
        ("near", {"absolute": 0.5}, 5.6, 5.7, "contradicted"),
    ],
)
def test_a_verdict_is_where_the_interval_lies(
    rule: str, parameters: dict[str, Any], low: float, high: float, verdict: str
) -> None:
    assert judged(rule, parameters, low, high) == verdict


@pytest.mark.parametrize(("rule", "parameters"), [("above", {"null": 0.0}), ("within", BAND), ("near", FIFTH)])
def test_an_interval_without_bounds_shows_nothing(rule: str, parameters: dict[str, Any]) -> None:
    assert judged(rule, parameters, -float("inf"), float("inf")) == "undecided"


def test_a_relative_band_of_a_negative_number_is_around_it() -> None:
    assert judged("near", {"relative": 0.1, "null": 0.0}, -1.05, -0.95, claimed=-1.0) == "reproduced"


def test_more_than_claimed_is_said() -> None:
    reason = RULES["within"](**BAND).judge(Interval(7.0, 6.5, 7.5, 9), None, lambda value: f"{value:.1f}")[1]
    assert reason == "the whole interval is above 4.0 to 6.0: a larger effect than claimed"


@pytest.mark.parametrize(
    ("rule", "parameters", "said"),
    [
        ("within", {"low": 2.0, "high": 1.0}, "low is 2.0, high 1.0"),
        ("within", {"low": -1.0, "high": 1.0, "null": 0.0}, "includes null 0.0; leave null out"),
        ("near", {}, "one of relative and absolute"),
        ("near", {"relative": 0.2, "absolute": 1.0}, "one of relative and absolute"),
        ("above", {"null": float("nan")}, "finite"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule: str, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        RULES[rule](**parameters)
