"""The scorers of MuSiQue and ParallelQA agree with the official scripts; expected values are worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.text.scoring import Score, score

RIGHT, WRONG = Score(exact_match=True, f1=1.0), Score(exact_match=False, f1=0.0)


@pytest.mark.parametrize(
    ("prediction", "answers", "exact_match", "f1"),
    [
        ("Stanley Hall", ["G. Stanley Hall", "Stanley Hall"], True, 1.0),
        ("the G Stanley Hall!", ["G. Stanley Hall"], True, 1.0),
        ("Stanley Hall", ["G. Stanley Hall"], False, 0.8),
        # exact match and F1 may be those of different answers
        ("Lund town", ["Lund", "Lund town hall"], False, 0.8),
        # yes and no are words like any other
        ("yes indeed", ["yes"], False, 2 / 3),
        # nothing is left of either: equal, with an F1 of 1; of one of them: nothing
        ("The", ["a"], True, 1.0),
        ("Lund", ["The"], False, 0.0),
        ("273282", ["273,282"], True, 1.0),
    ],
)
def test_musique_takes_the_best_over_the_answer_and_its_aliases(
    prediction: str, answers: list[str], exact_match: bool, f1: float
) -> None:
    found = score(prediction, answers, "musique")
    assert found.exact_match == exact_match
    assert found.f1 == pytest.approx(f1)


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("3307", "3307"), ("3,307", "3307"), ("3307.0", "3,307"), ("about 3,300 metres", "3307"), ("~3307m", "3307"),
        ("The mountain is 3307 m high.", "3307"), ("2977", "3307"), ("3637", "3307"), ("7.6", "7.61"),
        ("228.75 million", "228.75"), ("228.75 million", "228750000"), ("1.2 Billion people", "1,200,000,000"),
        ("-5", "-5"), ("-5.4", "-5"), ("0", "0"), ("0.0", "0"), ("3.1e3", "3100"), ("507.2 metres", "507.2"),
    ],
)  # fmt: skip
def test_a_number_within_ten_percent_is_right(prediction: str, gold: str) -> None:
    assert score(prediction, [gold], "parallelqa") == RIGHT


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("2976.3", "3307"), ("3637.7", "3307"),  # exactly 10% away
        ("2900", "3307"), ("3307 or 3400", "3307"), ("3000, 3100, 3307", "3307"), ("[3307, 12]", "3307"),
        ("8848 - 5541 = 3307", "3307"), ("unknown", "3307"), ("K2", "2"), ("5", "-5"), ("-5", "5"), ("0.001", "0"),
        ("3307 million", "3,307,000"), ("three thousand", "3000"), ("Aconcagua", "3307"),
    ],
)  # fmt: skip
def test_a_number_further_away_or_one_of_several_is_wrong(prediction: str, gold: str) -> None:
    assert score(prediction, [gold], "parallelqa") == WRONG


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("The Cheetah.", "cheetah", RIGHT), ("K2", "k2", RIGHT), ("no", "No", RIGHT), ("yes", "no", WRONG),
        ("Mount Everest", "Everest", Score(False, 2 / 3)), ("Oslo", "cheetah", WRONG), ("12", "cheetah", WRONG),
    ],
)  # fmt: skip
def test_a_name_is_compared_as_a_text(prediction: str, gold: str, expected: Score) -> None:
    found = score(prediction, [gold], "parallelqa")
    assert found.exact_match == expected.exact_match
    assert found.f1 == pytest.approx(expected.f1)


@given(st.decimals(min_value=1, max_value=10**9, places=2), st.floats(0.902, 1.098))
def test_any_number_inside_the_margin_is_right_however_it_is_written(gold: object, factor: float) -> None:
    near = float(str(gold)) * factor
    for written in (f"{near:.6f}", f"{near:,.6f} metres", f"It is {near:.6f}."):
        assert score(written, [str(gold)], "parallelqa") == RIGHT
