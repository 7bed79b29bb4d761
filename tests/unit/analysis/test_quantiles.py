"""Quantiles: their intervals hold the truth whatever the distribution is, and there is none where n is too small."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from rewoo_bench.analysis.stats.paired import Interval, quantile_interval
from rewoo_bench.errors import DataError


def bounded(found: Interval) -> bool:
    return math.isfinite(found.low) and math.isfinite(found.high)


@pytest.mark.parametrize(("share", "fewest"), [(0.5, 6), (0.9, 36), (0.95, 72)])
def test_too_few_values_have_no_interval_of_a_quantile(share: float, fewest: int) -> None:
    values = np.arange(fewest, dtype=float)
    assert bounded(quantile_interval(values, share))
    assert not bounded(quantile_interval(values[1:], share))


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("n", [72, 100, 500])
def test_the_bounds_are_values_whose_ranks_are_binomial(n: int, share: float) -> None:
    found = quantile_interval(np.random.default_rng(n).permutation(n), share)
    law = scipy_stats.binom(n, share)
    first, last = found.low + 1, found.high + 1  # the values are 0 .. n - 1
    assert law.cdf(first - 1) <= 0.025 < law.cdf(first)
    assert law.sf(last - 1) <= 0.025 < law.sf(last - 2)
    assert found.estimate == pytest.approx(np.quantile(np.arange(n), share))


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_trials_count_as_much_as_they_are_worth(share: float) -> None:
    draw = np.random.default_rng(3)
    once = np.exp(draw.normal(size=200))
    questions = np.repeat(np.arange(200), 3)
    alone, agreeing = quantile_interval(once, share), quantile_interval(np.repeat(once, 3), share, clusters=questions)
    assert (agreeing.low, agreeing.high, agreeing.n) == (alone.low, alone.high, 200)
    free = np.exp(draw.normal(size=600))
    assert quantile_interval(free, share, clusters=questions).high <= quantile_interval(free[:200], share).high * 1.2
    rows, clustered = quantile_interval(free, share), quantile_interval(free, share, clusters=questions)
    assert clustered.low <= rows.low * 1.001
    assert clustered.high >= rows.high * 0.9


def test_trials_that_agree_make_no_interval_of_what_has_none() -> None:
    values = np.repeat(np.arange(30.0), 3)
    assert bounded(quantile_interval(values, 0.95))  # ninety different rows would have one
    assert not bounded(quantile_interval(values, 0.95, clusters=np.repeat(np.arange(30), 3)))


def test_what_is_no_quantile_is_refused() -> None:
    for share in (0.0, 1.0, 95):
        with pytest.raises(DataError, match="expected a number between 0 and 1"):
            quantile_interval([1.0], share)
    with pytest.raises(DataError, match="expected finite numbers"):
        quantile_interval([1.0, math.nan], 0.5)
