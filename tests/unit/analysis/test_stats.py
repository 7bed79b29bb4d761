"""Intervals and tests: against scipy, published values, brute force, and simulated truth."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from scipy import stats as scipy_stats

from rewoo_bench.analysis.stats.bootstrap import ratio_by_bootstrap
from rewoo_bench.analysis.stats.paired import (
    Interval,
    difference_and_p,
    difference_of_means,
    difference_of_proportions,
    discordant,
    mean_of,
    proportion,
    ratio_and_p,
    ratio_of_means,
)
from rewoo_bench.analysis.stats.solved import per_solved
from rewoo_bench.analysis.stats.tests import (
    holm,
    mcnemar_exact,
    mcnemar_power,
    minimum_detectable_difference,
)
from rewoo_bench.errors import DataError

ROOT = Path(__file__).parents[3]
DRAW = np.random.default_rng(7)
TOKENS = np.exp(DRAW.normal(8, 0.6, 200)).round()
FEWER = (TOKENS * 0.5 * np.exp(DRAW.normal(0, 0.3, 200))).round()


class PairedInterval(Protocol):
    """A function that compares two systems question by question."""

    def __call__(self, a: ArrayLike, b: ArrayLike, *, clusters: ArrayLike | None = None) -> Interval: ...


def pairs(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[int], list[int]]:
    a = [1] * both + [1] * only_a + [0] * only_b + [0] * neither
    return a, [1] * both + [0] * only_a + [1] * only_b + [0] * neither


def of_right(right: int, n: int) -> Interval:
    return proportion([1] * right + [0] * (n - right))


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0.1, 1.0), st.booleans()), min_size=2).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    )
)
def test_no_mean_depends_on_the_order_of_rows(orders: tuple[list[tuple[int, float, bool]], ...]) -> None:
    found = []
    for rows in orders:
        questions, scores, right = zip(*rows, strict=True)
        means = [mean_of(scores), mean_of(scores, clusters=questions), proportion(right, clusters=questions)]
        means += [ratio_of_means(scores, right, clusters=questions), per_solved(scores, right, clusters=questions)]
        found.append([each.estimate for each in means])
    assert found[0] == found[1]


# Newcombe 1998, Statistics in Medicine 17, table I, method 3
@pytest.mark.parametrize(("correct", "n", "low", "high"), [(81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611)])
def test_a_share_has_wilsons_interval(correct: int, n: int, low: float, high: float) -> None:
    assert bounds(of_right(correct, n)) == pytest.approx((low, high), abs=5e-5)


def test_a_difference_of_shares_has_tangos_interval() -> None:
    # Fagerland, Lydersen and Laake 2014, Statistics in Medicine 33: airway reactivity, 1 / 1 / 7 / 12
    b, a = pairs(1, 1, 7, 12)
    found = difference_of_proportions(a, b)
    assert found.estimate == pytest.approx(-6 / 21)
    assert found.n == 21
    assert bounds(found) == pytest.approx((-0.517, -0.026), abs=5e-4)


@pytest.mark.parametrize(("only_a", "only_b", "n"), [(3, 9, 40), (0, 1, 44), (0, 6, 50), (30, 10, 100)])
def test_tangos_bounds_are_where_the_score_test_turns(only_a: int, only_b: int, n: int) -> None:
    found = difference_of_proportions(*pairs(n - only_a - only_b, only_a, only_b, 0))
    for bound in bounds(found):

        def unlikely(share: float, bound: float = bound) -> float:  # the likelihood by itself, without Tango's formula
            cells = np.array([share + bound, share, 1 - 2 * share - bound])
            return -float(np.log(np.maximum(cells, 1e-300)) @ [only_b, only_a, n - only_a - only_b])

        lowest, highest = max(0.0, -bound), (1 - bound) / 2
        share = optimize.minimize_scalar(unlikely, bounds=(lowest, highest), options={"xatol": 1e-12}).x
        score = (only_b - only_a - n * bound) / math.sqrt(n * (2 * share + bound - bound**2))
        assert abs(score) == pytest.approx(1.959964, abs=1e-3)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_an_interval_of_shares_holds_its_estimate_and_turns_round_with_the_pair(rows: list[tuple[bool, bool]]) -> None:
    a, b = zip(*rows, strict=True)
    there, back = difference_of_proportions(a, b), difference_of_proportions(b, a)
    assert -1 <= there.low <= there.estimate <= there.high <= 1
    assert bounds(back) == pytest.approx((-there.high, -there.low))


@pytest.mark.parametrize("n", [20, 50, 100, 300])
def test_a_shares_interval_holds_every_truth_at_least_92_times_in_100(n: int) -> None:
    """Wilson's alone holds one near 0 or 1 as seldom as 84 times."""
    low, high = np.array([bounds(of_right(right, n)) for right in range(n + 1)]).T
    for truth in np.linspace(0.0005, 0.9995, 500):
        held = scipy_stats.binom.pmf(np.arange(n + 1), n, truth)[(low <= truth) & (truth <= high)].sum()
        assert held >= 0.92, truth


@pytest.mark.parametrize("truth", [0.01, 0.02])
def test_a_rare_right_answer_with_trials_is_held_93_times_in_100(truth: float) -> None:
    draw, n, samples = np.random.default_rng(36), 50, 1_000
    held = 0
    for _ in range(samples):
        answers = np.repeat(draw.random(n) < truth, 3)
        found = proportion(answers, clusters=np.repeat(np.arange(n), 3))
        held += found.low <= truth <= found.high
    assert held >= scipy_stats.binom.ppf(0.01, samples, 0.93)


def test_a_share_with_trials_counts_the_questions_where_they_agree() -> None:
    questions = np.repeat(np.arange(20), 3)
    right = proportion(np.ones(60), clusters=questions)
    assert (right.estimate, right.high, right.n) == (1.0, 1.0, 20)
    assert right.low == pytest.approx(bounds(of_right(20, 20))[0])


def test_trials_that_agree_count_once_and_trials_that_dont_count_more() -> None:
    a, b = pairs(20, 5, 10, 15)
    questions = np.repeat(np.arange(50), 3)
    again = np.repeat(a, 3), np.repeat(b, 3)
    assert discordant(*again, questions).worth == pytest.approx(50, rel=0.03)
    free = DRAW.random((2, 3000)) < 0.4
    assert discordant(free[0], free[1], np.repeat(np.arange(1000), 3)).worth > 2500
    wide, narrow = difference_of_proportions(*again, clusters=questions), difference_of_proportions(*again)
    assert wide.high - wide.low > 1.6 * (narrow.high - narrow.low)
    assert wide.estimate == pytest.approx(0.1)
    assert wide.n == 50


def test_pairs_are_worth_the_rows_variance_over_that_of_the_questions() -> None:
    """With some weight more on a question in which all trials differ, the one that is farthest from the mean."""
    a, b = np.zeros((30, 3)), np.zeros((30, 3))
    b[:9, :1] = b[9:12] = a[12:14, :2] = 1
    of_rows, of_questions = (b - a).ravel(), (b - a).mean(axis=1)
    apart = of_questions - of_questions.mean()
    more = min(1.0, 2 * (apart**4).sum() / (apart**2).sum() ** 2)

    def sum_of_squares(values: ArrayLike, weight: float) -> float:
        weights, column = np.append(np.full(np.size(values), weight), more), np.append(values, -1.0)
        return float(weights @ (column - np.average(column, weights=weights)) ** 2)

    of_row, of_question = sum_of_squares(of_rows, 1 / 3) / (30 + more), sum_of_squares(of_questions, 1) / (29 + more)
    found = discordant(a.ravel(), b.ravel(), np.repeat(np.arange(30), 3))
    assert found.worth == pytest.approx(30 * of_row / of_question)
    assert 30 < found.worth < 90
    assert (found.only_a, found.only_b, found.questions) == pytest.approx((4 / 90, 18 / 90, 30))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30), st.integers(2, 4))
def test_trials_that_repeat_an_answer_make_no_interval_wider(rows: list[tuple[bool, bool]], trials: int) -> None:
    """Ten of ten in one trial, and thirty of thirty in three."""
    a, b = (list(column) for column in zip(*rows, strict=True))
    questions = list(range(len(rows))) * trials
    for once, again in (
        (proportion(a), proportion(a * trials, clusters=questions)),
        (difference_of_proportions(a, b), difference_of_proportions(a * trials, b * trials, clusters=questions)),
    ):
        assert (again.low, again.high) == pytest.approx((once.low, once.high))


@pytest.mark.parametrize("alike", [0.1, 0.9])
@pytest.mark.parametrize("truth", [0.05, 0.5, 0.98])
def test_the_interval_of_three_trials_holds_the_truth(truth: float, alike: float) -> None:
    """Of 20 questions whose trials correlate with 0.1 or 0.9, in 400 samples (standard error 1.1 points)."""
    draw, of = np.random.default_rng(7), 1 / alike - 1
    questions, held = np.repeat(np.arange(20), 3), []
    for _ in range(400):
        shares = draw.beta(truth * of, (1 - truth) * of, 20)
        found = proportion((draw.random((20, 3)) < shares[:, None]).ravel(), clusters=questions)
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.93


def test_mcnemar_is_scipys_binomial_test() -> None:
    for only_a, only_b in ((3, 9), (0, 6), (0, 0), (40, 61)):
        p = scipy_stats.binomtest(only_b, only_a + only_b).pvalue if only_a + only_b else 1.0
        a, b = pairs(10, only_a, only_b, 10)
        found = mcnemar_exact(a, b)
        assert (found.only_a, found.only_b) == (only_a, only_b)
        assert found.p == pytest.approx(p)
        assert mcnemar_exact(a, b, range(len(a))).p == pytest.approx(p)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 7)), min_size=1, max_size=24))
def test_mcnemar_with_trials_turns_whole_questions_round(rows: list[tuple[bool, bool, int]]) -> None:
    a, b, questions = (np.array(column) for column in zip(*rows, strict=True))
    differences = [int(b[questions == q].sum() - a[questions == q].sum()) for q in set(questions.tolist())]
    sums = [abs(sum(map(math.prod, zip(differences, signs)))) for signs in product((1, -1), repeat=len(differences))]  # noqa: B905
    expected = np.mean(np.array(sums) >= abs(sum(differences)))
    assert mcnemar_exact(a, b, questions).p == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 9])
@pytest.mark.parametrize(("share", "n"), [(0.25, 100), (0.25, 300), (0.1, 50), (0.6, 1000)])
def test_a_detectable_difference_is_shown_four_times_in_five(share: float, n: int, alpha: float) -> None:
    """By the exact McNemar test itself, at the level it is judged at, in 20,000 simulated comparisons."""
    found = minimum_detectable_difference(share, n, alpha)
    share = max(share, found)
    draw = np.random.default_rng(n)
    discordant = draw.binomial(n, share, 20_000)
    only_b = draw.binomial(discordant, (1 + found / share) / 2)
    p = 2 * scipy_stats.binom.cdf(np.minimum(only_b, discordant - only_b), discordant, 0.5)
    assert np.mean(p <= alpha) == pytest.approx(0.8, abs=0.012)


@given(st.integers(5, 60), st.floats(0.05, 1), st.floats(0, 1), st.sampled_from([0.05, 0.01]))
def test_mcnemars_power_is_that_of_every_outcome(n: int, share: float, part: float, alpha: float) -> None:
    discordant, only_b = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    chance = scipy_stats.binom.pmf(discordant, n, share) * scipy_stats.binom.pmf(only_b, discordant, (1 + part) / 2)
    p = 2 * scipy_stats.binom.cdf(np.minimum(only_b, discordant - only_b), discordant, 0.5)
    expected = chance[(p <= alpha) & (only_b <= discordant)].sum()
    assert mcnemar_power(share, part * share, n, alpha) == pytest.approx(expected, abs=1e-3)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_ratios_interval_is_the_delta_methods_where_nothing_is_skewed() -> None:
    a, b = DRAW.normal(100, 10, 400), DRAW.normal(50, 5, 400)
    error = math.sqrt((0.1**2 + 0.1**2) / 400)
    found = ratio_by_bootstrap(a, b)
    assert found.estimate == pytest.approx(b.mean() / a.mean())
    assert bounds(found) == pytest.approx((0.5 - 1.96 * 0.5 * error, 0.5 + 1.96 * 0.5 * error), abs=0.003)


@pytest.mark.parametrize("n", [10, 30])
def test_a_resampled_ratio_has_the_quantiles_of_its_distance_in_standard_errors(n: int) -> None:
    """With 40,000 other resamples, each drawn and measured by itself."""
    draw = np.random.default_rng(n)
    a, b = draw.lognormal(8, 0.5, n), draw.lognormal(8, 0.5, n)

    def log_ratio_and_error(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        means = a.mean(axis=-1, keepdims=True), b.mean(axis=-1, keepdims=True)
        error = np.std(b / means[1] - a / means[0], axis=-1, ddof=1) / math.sqrt(n)
        return np.log(means[1] / means[0])[..., 0], error

    drawn = draw.integers(n, size=(40_000, n))
    (centre, error), (logs, errors) = log_ratio_and_error(a, b), log_ratio_and_error(a[drawn], b[drawn])
    first, last = np.quantile((logs - centre) / errors, [0.025, 0.975])
    found = np.log(bounds(ratio_by_bootstrap(a, b)))
    assert found == pytest.approx([centre - last * error, centre - first * error], abs=0.015 * (last - first) * error)


@pytest.mark.parametrize(("times", "wider"), [(1, 1.05), (100, 1.001)])
def test_a_mean_has_students_interval_and_a_little_more(times: int, wider: float) -> None:
    values = np.tile(TOKENS, times)
    error = values.std(ddof=1) / math.sqrt(len(values))
    student = 2 * scipy_stats.t.ppf(0.975, len(values) - 1) * error
    for found in (mean_of(values), difference_of_means(np.zeros_like(values), values)):
        assert found.estimate == pytest.approx(values.mean())
        assert student < found.high - found.low < wider * student
        assert found.high - found.estimate > found.estimate - found.low  # more is added where the tail is


def bounds_with_more(values: ArrayLike, ends: tuple[float, float], weight: float) -> list[float]:
    """Student's lower bound of the values with some weight more at the one end, and the upper with it at the other."""
    values = np.asarray(values)
    n, found = len(values), []
    for end, sign in zip(ends, (-1, 1), strict=True):
        weights, column = np.append(np.ones(n), weight), np.append(values, end)
        mean = np.average(column, weights=weights)
        error = math.sqrt(weights @ (column - mean) ** 2 / (n + weight - 1) / (n + weight))
        found.append(mean + sign * scipy_stats.t.ppf(0.975, n - 1) * error)
    return found


@pytest.mark.parametrize("n", [2, 3, 19])
def test_of_few_questions_one_value_more_is_beyond_the_range(n: int) -> None:
    """By three quarters of the range; by a quarter of a mean or of a logarithm at least, by half of a ratio."""
    a, b = np.full(n, 1000.0), np.arange(n) * 300.0 + 600.0

    def expected(values: ArrayLike, least: float) -> list[float]:
        reach = max(0.75 * float(np.ptp(values)), least)
        return bounds_with_more(values, (np.min(values) - reach, np.max(values) + reach), 1.0)

    cases = [
        (difference_of_means(a, b), expected(b - 1000, 0.25 * max(1000, b.mean()))),
        (difference_of_means(b, a), expected(1000 - b, 0.25 * max(1000, b.mean()))),
        (ratio_of_means(a, b), b.mean() / 1000 * np.exp(expected(b / b.mean() - 1, 0.5))),
        (mean_of(b - 1000), expected(b - 1000, 0.25 * abs(b.mean() - 1000))),
        (mean_of(b / 10_000, ends=(0.0, 1.0)), np.clip(bounds_with_more(b / 10_000, (0.0, 1.0), 1.0), 0, 1)),
    ]
    for found, those in cases:
        assert bounds(found) == pytest.approx(those)
        assert (found.n, found.rare) == (n, True)


@pytest.mark.parametrize("n", [20, 200])
def test_of_more_questions_the_farthest_have_a_weight_of_two_over_those_that_make_the_spread(n: int) -> None:
    values = TOKENS[:n]
    apart = values - values.mean()
    makers = (apart**2).sum() ** 2 / (apart**4).sum()
    expected = bounds_with_more(values, (values.min(), values.max()), min(1.0, 2 / makers))
    for found in (mean_of(values), difference_of_means(np.zeros(n), values)):
        assert bounds(found) == pytest.approx(expected)
        assert not found.rare


@pytest.mark.parametrize("n", [20, 50, 100])
def test_what_no_question_showed_may_be_so_of_three_in_n(n: int) -> None:
    """The rule of three: an event that n questions didn't show has a share of up to 3 / n."""
    none, all_ = mean_of([0.0] * n, ends=(0.0, 1.0)), mean_of([1.0] * n, ends=(0.0, 1.0))
    assert none.low == 0.0
    assert none.high == pytest.approx(3 / n, rel=0.1)
    assert all_.low == pytest.approx(1 - 3 / n, rel=0.1)
    assert all_.high == 1.0
    same = difference_of_means([0.4] * n, [0.4] * n, ends=(0.0, 1.0))
    assert bounds(same) == pytest.approx((-3 / n, 3 / n), rel=0.1)


def test_amounts_are_never_negative_and_all_zero_leaves_everything_open() -> None:
    assert mean_of([0.0, 0.0, 900.0]).low == 0.0
    assert mean_of([-5.0, 0.0, 5.0]).low < -5.0
    assert bounds(mean_of([0.0] * 9)) == (0.0, math.inf)
    assert bounds(difference_of_means([0.0] * 9, [0.0] * 9)) == (-math.inf, math.inf)


@pytest.mark.parametrize(("events", "rare"), [(0, False), (1, True), (2, True), (3, False), (10, False)])
def test_a_rare_event_may_be_missing_where_fewer_than_three_questions_make_the_spread(events: int, rare: bool) -> None:
    """Ten times the tokens in some of 100 questions. Where none has them, nothing in the sample tells."""
    a = np.linspace(1000.0, 1500.0, 100)
    b = a * np.where(np.arange(100) < events, 10.0, np.linspace(1.5, 1.6, 100)[::-1])
    assert ratio_of_means(a, b).rare is rare


def test_the_interval_beside_a_rare_event_allows_for_more_of_it() -> None:
    a, b = np.full(100, 1000.0), np.where(np.arange(100) < 1, 10_000.0, 1000.0)
    assert ratio_of_means(a, b).high > 1 + 9 * 4 / 100  # four of them where one was expected


ROWS = st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=2, max_size=40)


@given(ROWS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_p_beside_a_ratio_is_small_exactly_where_its_interval_leaves_out_one(
    rows: list[tuple[float, float]], level: float
) -> None:
    a, b = zip(*rows, strict=True)
    found, p = ratio_and_p(a, b, None, level)
    if abs(p - (1 - level)) > 1e-9:
        assert (p < 1 - level) == (not found.low <= 1 <= found.high)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=40))
def test_the_p_beside_a_difference_is_small_exactly_where_its_interval_leaves_out_zero(
    rows: list[tuple[float, float]],
) -> None:
    a, b = zip(*rows, strict=True)
    found, p = difference_and_p(a, b, (0.0, 1.0), None)
    if abs(p - 0.05) > 1e-9:
        assert (p < 0.05) == (not found.low <= 0 <= found.high)


def test_a_ratio_turned_round_has_its_bounds_turned_round() -> None:
    there, back = ratio_of_means(TOKENS, FEWER), ratio_of_means(FEWER, TOKENS)
    assert bounds(back) == pytest.approx((1 / there.high, 1 / there.low))


@pytest.mark.parametrize("function", [ratio_of_means, difference_of_means])
def test_trials_of_a_question_are_one_observation(function: PairedInterval) -> None:
    questions = np.repeat(np.arange(200), 4)
    found = function(np.repeat(TOKENS, 4), np.repeat(FEWER, 4), clusters=questions)
    assert found.n == 200
    assert bounds(found) == pytest.approx(bounds(function(TOKENS, FEWER)))


def test_what_never_varied_is_no_certainty() -> None:
    """In one question more two systems may differ by a half: 50 equal pairs leave 3% of doubt, 200 less than 1%."""
    assert bounds(ratio_of_means([10.0] * 50, [5.0] * 50)) == pytest.approx((0.485, 0.515), abs=1e-3)
    assert bounds(ratio_of_means(TOKENS, TOKENS)) == pytest.approx((1, 1), abs=0.01)
    assert bounds(difference_of_means([100.0] * 50, [100.0] * 50)) == pytest.approx((-1.5, 1.5), abs=0.1)
    found = ratio_of_means(TOKENS, TOKENS)
    assert found.low < 1 < found.high


def test_a_single_question_that_differs_is_no_certainty() -> None:
    """Resamples without it have no spread at all; the bounds are Student's then, and finite."""
    one = [1000.0] * 49 + [2000.0]
    for function, widest in ((ratio_by_bootstrap, 1.07), (ratio_of_means, 1.15)):
        found = function([1000.0] * 50, one)
        assert 0.95 < found.low < 1.0 < found.high < widest


@pytest.mark.parametrize(
    ("a", "b", "estimate"),
    [
        ([0, 0], [1, 2], math.inf),
        ([1, 2], [0, 0], 0.0),
        ([4], [2], 0.5),
        ([0, 0], [0, 0], math.nan),
        ([], [], math.nan),
    ],
)
def test_a_ratio_that_cant_be_known_has_no_bounds(a: list[float], b: list[float], estimate: float) -> None:
    found = ratio_of_means(a, b)
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert (bounds(found), found.n) == ((0.0, math.inf), len(a))


def test_one_question_bounds_no_mean() -> None:
    assert difference_and_p([1], [2], None, None)[1] == difference_and_p([1], [2], (0.0, 2.0), None)[1] == 1.0
    assert bounds(difference_of_means([1], [2], ends=(0.0, 2.0))) == (-2.0, 2.0)
    assert bounds(mean_of([1])) == (0.0, math.inf)
    assert bounds(mean_of([-1])) == (-math.inf, math.inf)
    assert bounds(difference_of_means([1], [2])) == (-math.inf, math.inf)
    assert difference_of_means([], []).n == 0
    assert bounds(of_right(0, 0)) == (0.0, 1.0)


def test_a_missing_value_is_refused_rather_than_averaged() -> None:
    with pytest.raises(DataError, match=r"b\[1\] is nan: expected finite numbers"):
        ratio_of_means([1, 2], [1, math.nan])
    with pytest.raises(DataError, match="differ in length: 2 and 1"):
        ratio_of_means([1, 2], [1])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=40))
def test_an_interval_of_means_holds_its_estimate_and_has_a_width(rows: list[tuple[float, float, int]]) -> None:
    a, b, questions = zip(*rows, strict=True)
    scores = [
        mean_of(a, ends=(0.0, 1.0), clusters=questions),
        difference_of_means(a, b, ends=(0.0, 1.0), clusters=questions),
    ]
    amounts = [mean_of(a, clusters=questions), difference_of_means(a, b), ratio_of_means(np.add(a, 1), np.add(b, 1))]
    for found in scores + amounts:
        assert found.low <= found.estimate <= found.high
        assert found.low < found.high
    assert all(-1 <= found.low <= found.high <= 1 for found in scores)
