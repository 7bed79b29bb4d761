"""The calculator: agrees with Python where it answers, and refuses the rest at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.errors import ToolError
from rewoo_bench.tools import Calculator, CalculatorArguments
from rewoo_bench.tools.calculator import LONGEST_EXPRESSION, calculate, show_number


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("(2 + 3) × 4 ÷ 2", "10"),
        ("0.1 + 0.2", "0.3"),
        ("7 % 4", "3"),
        ("3X4 x (1 + 1)", "24"),
        ("1,250 + 1,000,000.5", "1001250.5"),
        ("sqrt(16) + Abs(-2)", "6"),
        ("round(2.567, 1)", "2.6"),
        ("-0.0", "0"),
        ("2^100", "1267650600228229401496703205376"),
        ("2 x sqrt(9) x pi", "18.8495559215"),
        ("15% of 80", "12"),
        ("7% % 4", "0.07"),
        ("$1,250.50 + $49.50", "1300"),
        ("3 * €5 - 2 €", "13"),
        ("60 miles per hour * 2 hours", "120"),
    ],
)
async def test_it_works_out(expression: str, answer: str) -> None:
    assert await Calculator()(CalculatorArguments(expression=expression)) == answer


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9**9**9", "too big"),
        ("1 / 0", "divides by zero"),
        ("(-8) ^ 0.5", "has no value"),
        ("sqrt(1,000)", "sqrt got 2 numbers; expected 1"),
        ("3 +", "can't read"),
        ("3 km + 200 metres", r"different units \(km, metres\)"),
        ("48 / 2 = 24", "unexpected '='"),
        ("population / 2", "can't work out 'population'"),
        ("1, 2", "can't work out"),
        ("1+" * LONGEST_EXPRESSION + "1", "at most"),
    ],
)
def test_it_refuses_and_says_why(expression: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        calculate(expression)


@given(st.text(alphabet="0123456789.,+-*/%^()xe× \n'_abs", max_size=40) | st.text(max_size=LONGEST_EXPRESSION + 5))
def test_whatever_is_typed_it_answers_or_raises_a_tool_error(expression: str) -> None:
    try:
        value = calculate(expression)
    except ToolError:
        return
    assert math.isfinite(value)
    assert show_number(value)


numbers = st.integers(0, 999).map(str) | st.floats(0, 1e6, allow_nan=False).map(lambda value: f"{value:.3f}")
trees = st.recursive(
    numbers,
    lambda parts: st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*", "/", "//", "%"]), parts).map(
            lambda tree: f"({' '.join(tree)})"
        ),
        parts.map(lambda part: f"(-{part})"),
        parts.map(lambda part: f"abs({part})"),
    ),
    max_leaves=8,
)


@given(trees)
def test_it_agrees_with_python(expression: str) -> None:
    try:
        expected = eval(expression, {"abs": abs})
    except ZeroDivisionError:
        with pytest.raises(ToolError, match="divides by zero"):
            calculate(expression)
        return
    if len(expression) <= LONGEST_EXPRESSION:
        assert calculate(expression) == expected
