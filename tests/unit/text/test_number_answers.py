"""Numbers are found in the spellings of people and models, and compared exactly or within 2%."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.text.numbers import find_numbers
from rewoo_bench.text.scoring import Score, score

RIGHT, WRONG = Score(exact_match=True, f1=1.0), Score(exact_match=False, f1=0.0)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234 = 1234 = 1234.0 = 1234.", [1234] * 4),
        ("$1,234.50, £3, €-4, -$5, US$6 and ¥ 7", [Fraction(2469, 2), 3, -4, -5, 6, 7]),
        ("1,234,567.5", [Fraction("1234567.5")]),
        ("1\u202f234\u202f567.5, 1\u00a0234, 12\u2009000 and 1\u2007234", [Fraction("1234567.5"), 1234, 12_000, 1234]),
        ("CHF 1'234'567.50, 1’234", [Fraction("1234567.5"), 1234]),
        ("1 234", [1, 234]),
        (".5 -.5 −7 +8", [Fraction(1, 2), Fraction(-1, 2), -7, 8]),
        ("10-5 = 5, 3–4, covid-19, (-3)", [10, 5, 5, 3, 4, 19, -3]),
        ("1e3 3.0E+8 2e-2 2e", [1000, 300_000_000, Fraction(1, 50), 2]),
        ("3 x 10^8, 3.0×10⁸, 3*10**8, 3·10^(8)", [300_000_000] * 4),
        (r"3 \times 10^{8} and 3 \cdot 10^{-2}", [300_000_000, Fraction(3, 100)]),
        ("10⁻³ m, 10^3", [Fraction(1, 1000), 1000]),
        ("3/4, 1 1/2, ½, 2½", [Fraction(3, 4), Fraction(3, 2), Fraction(1, 2), Fraction(5, 2)]),
        (r"\frac{3}{4} of \boxed{1{,}000} is \$750", [Fraction(3, 4), 1000, 750]),
        ("m/s^2, s^-2, m/s², H2O, E1", []),
        ("1/0, 1e999, " + "9" * 400, []),
    ],
)
def test_numbers_of_a_text(text: str, values: list[Fraction | int]) -> None:
    assert [number.value for number in find_numbers(text)] == values


@given(st.integers(-(10**12), 10**12))
def test_any_whole_number_is_read_with_and_without_separators(number: int) -> None:
    grouped = [f"{number:,}".replace(",", separator) for separator in "\u202f\u00a0\u2009'"]
    for text in (str(number), f"{number:,}", f"{number}.0", f"It is {number:,}.", *grouped):
        assert [each.value for each in find_numbers(text)] == [number]


@pytest.mark.parametrize("dataset", ["gsm8k", "physics", "parallelqa"])
@pytest.mark.parametrize("separator", ["\u202f", "\u00a0", "\u2009", "’"])
def test_a_number_is_right_whatever_separates_its_thousands(dataset: str, separator: str) -> None:
    written = f"12{separator}345"
    assert score(f"It is {written}.", ["12345"], dataset) == score("12345", [written], dataset) == RIGHT
    assert score(f"It is {written}.", ["345"], dataset) == WRONG


@pytest.mark.parametrize("text", ["1\u202f111" * 20_000, "9" * 100_000, "10^" * 30_000])
def test_long_texts_are_read_in_linear_time(text: str) -> None:
    start = time.thread_time()
    find_numbers(text)
    assert time.thread_time() - start < 5


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("18", "18"),
        ("She makes $18.00 every day.", "She sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\n#### 18"),
        ("1,234.", "1234"),
        ("25%", "25"),
        ("5 dollars less, so -5", "-5"),
        ("First 9 * 2, then\n#### 18\nThat is 9 eggs at 2 dollars.", "18"),
        ("1/2", "0.5"),
    ],
)
def test_the_same_number_in_another_spelling_is_right(prediction: str, gold: str) -> None:
    assert score(prediction, [gold], "gsm8k") == RIGHT


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("18.5", "18"),
        ("18 eggs, 2 each", "18"),  # the last number counts
        ("-5", "5"),
        ("0.25", "25"),
    ],
)
def test_another_number_is_wrong(prediction: str, gold: str) -> None:
    assert score(prediction, [gold], "gsm8k") == WRONG


@pytest.mark.parametrize("name", ["gsm8k", "physics"])
def test_a_gold_answer_without_a_number_is_compared_as_a_text(name: str) -> None:
    assert score("The Moon.", ["moon"], name) == RIGHT
    assert score("full moon", ["moon"], name) == Score(exact_match=False, f1=2 / 3)


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("About 7,100 metres.", "7187 m"),
        ("7.187 km", "7187 m"),
        ("7.2 x 10^3 m", "7187 m"),
        ("Ken ran 7187 m in 20 minutes.", "7187 m"),
        ("9.8 * 0.25 = 2.45, so the force is 2.45 N.", "2.45 N"),
        ("1.31 m/s²", "1.31 m/s/s"),
        ("1.3 meters per second squared", "1.31 m/s/s"),
        ("540,000 N*s", "540000 kg*m/s"),
        ("90.6 m/s", "326 km/hr"),
        ("0.9 m/s", "0.9 m"),  # a file's unit may be too short
        ("12 apples", "12 N"),  # an unknown unit
    ],
)
def test_a_value_within_two_percent_in_any_unit_of_its_kind_is_right(prediction: str, gold: str) -> None:
    assert score(prediction, [gold], "physics") == RIGHT


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("7000 m", "7187 m"),
        ("7187 km", "7187 m"),
        ("-0.5 m/s", "0.5 m/s"),
    ],
)
def test_another_value_or_another_size_of_unit_is_wrong(prediction: str, gold: str) -> None:
    assert score(prediction, [gold], "physics") == WRONG


def test_a_list_is_a_set_of_numbers() -> None:
    assert score("t = 3 s; x = 5 m", ["5 m, 3 s"], "physics") == RIGHT
    assert score("3 s", ["5 m, 3 s"], "physics") == Score(exact_match=False, f1=2 / 3)
    assert score("3 s, 5 m, 7 kg", ["5 m, 3 s"], "physics") == Score(exact_match=False, f1=0.8)


@pytest.mark.parametrize("text", ["The answer is **18**.", "6 + 12 = **18**", "#### **18**", "**18 pens**", "__18__"])
def test_bold_type_is_no_power(text: str) -> None:
    assert score(text, ["18"], "gsm8k").exact_match
    assert score(text.replace("6 + 12 = ", ""), ["18"], "parallelqa").exact_match
    assert score(text, ["18"], "physics").exact_match
