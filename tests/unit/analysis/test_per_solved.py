"""What a solved question costs: the sum over the number of exact matches, with intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewoo_bench.analysis.stats.paired import Interval, student
from rewoo_bench.analysis.stats.solved import LEAST_SOLVED, per_solved, ratio_per_solved

RIGHT = [1] * 12 + [0] * 18


def test_equal_amounts_leave_wilsons_interval_of_the_share() -> None:
    found = per_solved([500] * 30, RIGHT)
    whole = 30 + student(30, 0.95) ** 2
    centre = (12 + student(30, 0.95) ** 2 / 2) / whole
    assert found.estimate == 1250
    assert 500 / found.low + 500 / found.high == pytest.approx(2 * centre)


def test_the_bounds_of_what_every_question_solves_are_the_roots_of_its_equation() -> None:
    """(1 - p)² = z² / n (p (1 - p) + c² p²), and beyond p = 1 without the share's own variance: Student's bound."""
    found = per_solved([80, 120] * 15, [1] * 30)
    part, varies = student(30, 0.95) ** 2 / 30, 0.2
    roots = np.roots([1 + part - part * varies**2, -(2 + part), 1])
    assert found.high == pytest.approx(100 / roots.min())
    assert found.low == pytest.approx(100 * (1 - varies * math.sqrt(part)))


@pytest.mark.parametrize(("amounts", "right", "estimate"), [([500], [1], 500), ([0] * 30, RIGHT, 0)])
def test_one_question_and_amounts_of_nothing_have_an_estimate_without_bounds(
    amounts: list[float], right: list[int], estimate: float
) -> None:
    found = per_solved(amounts, right)
    assert (found.estimate, found.low, found.high, found.n) == (estimate, 0.0, math.inf, len(amounts))


def test_none_solved_has_no_upper_bound_and_a_lower_one() -> None:
    found = per_solved([100] * 30, [0] * 30)
    assert (found.estimate, found.high) == (math.inf, math.inf)
    assert found.low == pytest.approx(100 / (student(30, 0.95) ** 2 / (30 + student(30, 0.95) ** 2)))


def test_where_one_question_is_solved_a_rare_event_may_be_missing() -> None:
    amounts = np.arange(100, 150)
    few, many = ([1] * solved + [0] * (50 - solved) for solved in (1, 20))
    assert [per_solved(amounts, solved).rare for solved in (few, many)] == [True, False]
    assert ratio_per_solved((amounts, many), (amounts, few), least=1).rare
    assert not ratio_per_solved((amounts, many), (amounts * 2, many[::-1])).rare


def test_no_question_is_no_estimate() -> None:
    found = per_solved([], [])
    assert math.isnan(found.estimate)
    assert (found.low, found.high, found.n) == (0.0, math.inf, 0)


def test_trials_of_a_question_are_one_observation() -> None:
    amounts, labels = np.arange(100, 130), np.arange(30)
    once = per_solved(amounts, RIGHT)
    thrice = per_solved(np.repeat(amounts, 3), np.repeat(RIGHT, 3), clusters=np.repeat(labels, 3))
    assert (thrice.estimate, thrice.n) == (once.estimate, 30)
    assert thrice.low == pytest.approx(once.low, rel=0.02)
    assert thrice.high == pytest.approx(once.high, rel=0.02)


@pytest.mark.parametrize(("a", "b", "estimate"), [(0, 1, 0.0), (1, 0, math.inf), (0, 0, math.nan)])
def test_a_system_that_solves_nothing_has_a_ratio_without_bounds(a: int, b: int, estimate: float) -> None:
    found = ratio_per_solved(([100] * 9, [a] * 9), ([100] * 9, [b] * 9))
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert (found.low, found.high) == (0.0, math.inf)


@pytest.mark.parametrize(("solved", "bounded"), [(1, False), (LEAST_SOLVED - 1, False), (LEAST_SOLVED, True)])
def test_few_solved_questions_have_a_ratio_without_an_interval(solved: int, bounded: bool) -> None:
    amounts, right = np.arange(100, 130), [1] * solved + [0] * (30 - solved)
    for first in (right, [1] * 20 + [0] * 10):
        found = ratio_per_solved((amounts, first), (amounts * 2, right))
        assert math.isfinite(found.estimate)
        assert (found.low > 0, math.isfinite(found.high)) == (bounded, bounded)


@pytest.mark.parametrize(("n", "accuracy"), [(50, 0.05), (50, 0.7), (100, 0.3)])
def test_the_truth_is_held_about_95_times_in_100(n: int, accuracy: float) -> None:
    """Tokens of a wrong answer are twice those of a right one; the second system takes twice those of the first."""
    draw, held = np.random.default_rng(34), np.zeros(2)
    truth = 1000 * (accuracy + 2 * (1 - accuracy)) / accuracy
    for _ in range(500):
        shared = draw.random(n)
        systems = []
        for factor in (1, 2):
            right = np.where(draw.random(n) < 0.5, shared, draw.random(n)) < accuracy
            tokens = factor * 1000 * draw.lognormal(-0.125, 0.5, n) * np.where(right, 1, 2)
            systems.append((tokens, right.astype(float)))
        held += [_holds(per_solved(*systems[0]), truth), _holds(ratio_per_solved(*systems, least=1), 2.0)]
    assert (held / 500 > 0.92).all()
    assert (held / 500 < 0.99).all()


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high
