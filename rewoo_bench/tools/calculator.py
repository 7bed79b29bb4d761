"""Arithmetic on one line, read with `ast` and worked out node by node; nothing is ever executed.

Calculator[(1,250 + 750) x 2^3 / 7]  ->  2285.71428571

It is first brought from the notation of people and models into Python's:

1,250 × 3                 1250 * 3
$48 / 2 =                 48 / 2               a sign of money, and an equals sign at the end, are left out
15% of 80                 15["%"] * 80         a percentage; `7 % 4` stays a remainder
2.5 million people / 5    (2.5*1000000) / 5    a unit is left out
3 kg + 200 g              refused: without its units it would be a wrong sum
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ToolError
from rewoo_bench.text.numbers import without_gaps
from rewoo_bench.text.words import index_terms

PERCENT = "%"
"""The index that marks a percentage: `15["%"]`. An expression has no brackets of its own."""

_SIGNS = str.maketrans(
    {**dict.fromkeys("×·⋅∗✕", "*"), **dict.fromkeys("÷⁄∕", "/"), **dict.fromkeys("−–—", "-"), "^": "**"}
)
_EQUALS_AT_END = re.compile(r"\s*=\s*\??\s*$")
_MONEY = re.compile(r"[$€£¥](?=\s*[-\d.(])|(?<=\d)\s*[$€£¥](?!\s*[\w.(])")
_TIMES = re.compile(
    r"(?:(?<=[\d.)%])\s*|(?<=\bpi )|(?<=\be ))x(?=\s*[\d.(]|\s+[-+][\d.(]|\s*[a-z]+\(|\s+(?:pi|e)\b)"
)  # as in 2 x 3, not in 2x + 3
_OF = re.compile(r"(?<=[\d)%])\s*\bof (?=[-\d.(])")
_PERCENT_IN_WORDS = re.compile(r"(?<=[\d)])\s*per ?cent\b")
_PERCENT_SIGN = re.compile(r"\s*%(?=\s*(?:$|[-+*/%),]))")
_LARGE = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_LARGE_NUMBER = re.compile(rf"(?<![\w.,])(\.?\d[\d.,]*)\s*({'|'.join(_LARGE)})s?\b")
_UNIT = re.compile(r"(?<=[\d)])\s*([a-z]{2,}(?:\s+[a-z]{2,})*)(?![\w(]|\s*\(|\s+[\d.])")
_CHANGES_THE_NUMBER = re.compile(r"squared|cubed|factorial|half|halves|(?:third|quarter|tenth|hundredth)s?")
_FOREIGN = re.compile(r"[^\w\s.,()+*/%-]|[^\x00-\x7f]")
_NUMBER_THEN_WORD = re.compile(r"(?<![a-z_0-9.])\.?\d[\d.]*\s*(?!e[+-]?\d)[a-z]")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PARENTHESIS = re.compile(r"[a-z_]\w*\s*\(|\(|\)")


def as_python(expression: str) -> str:
    """The expression in Python's notation, one line, with nothing in it that isn't arithmetic. Raises `ToolError`."""
    text = " ".join(without_gaps(expression).lower().translate(_SIGNS).split())
    text = _EQUALS_AT_END.sub("", text)
    text = _PERCENT_IN_WORDS.sub("%", _TIMES.sub("*", text))
    text = _LARGE_NUMBER.sub(lambda large: f"({large[1]}*{_LARGE[large[2]]})", _OF.sub("*", text))

    # Units and signs of money go, unless different ones are added or subtracted.
    words = [match[1] for match in _UNIT.finditer(text)]
    every = [word for unit in words for word in unit.split()]
    if word := next(filter(_CHANGES_THE_NUMBER.fullmatch, every), None):
        raise ToolError(f"unexpected {word!r} in {expression!r}; write it with numbers and operators")
    words = [unit for unit in words if not set(unit.split()) & _NAMES]
    money = {match[0].strip() for match in _MONEY.finditer(text)}
    text = _MONEY.sub("", _UNIT.sub(lambda match: "" if match[1] in words else match[0], text))
    units = {tuple(index_terms(unit)): unit for unit in words}
    named = sorted({*units.values(), *money})
    if len(named) > 1 and re.search(r"[\d.)%]\s*[-+]", text):
        shown = ", ".join(named)
        raise ToolError(f"{expression!r} adds or subtracts different units ({shown}); convert them to one unit")
    if foreign := _FOREIGN.search(text):
        raise ToolError(f"unexpected {foreign[0]!r} in {expression!r}; expected numbers, operators and parentheses")
    if unit := _NUMBER_THEN_WORD.search(text):  # Python would warn about some of these, not refuse them
        raise ToolError(f"unexpected letter after a number in {expression!r} (at {unit[0]!r}); expected no units")

    # 1,250 becomes 1250, except in the arguments of a function: there a comma separates two numbers.
    arguments: set[int] = set()
    stack: list[tuple[int, bool]] = []
    for match in _PARENTHESIS.finditer(text):
        if match[0] != ")":
            stack.append((match.start(), len(match[0]) > 1))
        elif stack:
            start, is_call = stack.pop()
            arguments |= {*range(start, match.end())} if is_call else set()
    text = _GROUPED.sub(lambda number: number[0] if number.start() in arguments else number[0].replace(",", ""), text)
    return _PERCENT_SIGN.sub(f'["{PERCENT}"]', text)


LONGEST_EXPRESSION = 250  # characters
LARGEST = 10**300  # of any result on the way, so that floats can hold it and 9**9**9 is refused
MOST_DIGITS = 100  # that round() may keep
SIGNIFICANT_DIGITS = 12  # of a printed result that isn't whole

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, tuple[Callable[..., float], int, int]] = {  # with the fewest and most arguments
    "sqrt": (math.sqrt, 1, 1),
    "abs": (abs, 1, 1),
    "round": (round, 1, 2),
    "min": (min, 2, 100),
    "max": (max, 2, 100),
    "floor": (math.floor, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "log": (math.log, 1, 2),
    "exp": (math.exp, 1, 1),
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_NAMES = frozenset({*_FUNCTIONS, *_CONSTANTS})


class CalculatorArguments(BaseModel):
    """What to work out."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    described_by_tool: ClassVar[bool] = True

    expression: str = Field(min_length=1, description="an arithmetic expression")


class Calculator:
    """Works out an arithmetic expression. Raises `ToolError` where it can't be read or has no value."""

    name = "Calculator"
    description = (
        "works out arithmetic, such as (1250 + 750) * 2^3 / 7. It knows + - * / // % ^, parentheses, "
        "sqrt, abs, round, min, max, floor, ceil, log, exp, pi and e, and 15% of 80; 15% is 0.15. Give numbers only."
    )
    arguments: type[BaseModel] = CalculatorArguments

    async def __call__(self, arguments: CalculatorArguments) -> str:
        return show_number(calculate(arguments.expression))


def calculate(expression: str) -> float:
    """The value of an expression. Raises `ToolError`, always at once, however big the numbers are."""
    if len(expression) > LONGEST_EXPRESSION:
        raise ToolError(f"{len(expression)} characters; expected an expression of at most {LONGEST_EXPRESSION}")
    try:
        return _value(ast.parse(as_python(expression), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ToolError(f"can't read {expression!r}; expected arithmetic such as (2 + 3) * 4") from None
    except ZeroDivisionError:
        raise ToolError(f"{expression!r} divides by zero") from None
    except OverflowError:
        raise ToolError(f"{expression!r} gets too big; expected results below 1e300") from None
    except (ValueError, TypeError) as error:
        raise ToolError(f"{expression!r} has no value: {error}") from None


def show_number(value: float) -> str:
    """Whole numbers plain, others with up to 12 significant digits."""
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 2**53):
        return f"{value:.{SIGNIFICANT_DIGITS}g}"
    return str(int(value))


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Subscript(value=part, slice=ast.Constant(value=mark)) if mark == PERCENT:
            return _value(part) / 100
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(_power(_value(left), _value(right)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            arguments = [_value(argument) for argument in given]
            function, fewest, most = _FUNCTIONS[name]
            if not fewest <= len(arguments) <= most:
                expected = f"{fewest} to {most}" if most > fewest else str(fewest)
                count = f"{name} got {len(arguments)} numbers"
                raise ToolError(f"{count}; expected {expected} (inside it a comma parts numbers)")
            if name == "round" and len(arguments) == 2 and abs(arguments[1]) > MOST_DIGITS:
                raise ToolError(f"round to {arguments[1]} digits; expected at most {MOST_DIGITS}")
            return _bounded(function(*arguments))
    raise ToolError(
        f"can't work out {ast.unparse(node)!r}; expected numbers, + - * / // % ^ and {', '.join(_FUNCTIONS)}"
    )


def _bounded(value: float) -> float:
    if not abs(value) < LARGEST:  # also true of nan
        raise OverflowError
    return value


def _power(base: float, exponent: float) -> float:
    """Refused before it is worked out where it would be too big: 9**9**9 has 369 million digits."""
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        if exponent > LARGEST.bit_length():
            raise OverflowError
        if exponent < -LARGEST.bit_length():
            return 0.0
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("a root of a negative number")
    return float(result) if isinstance(result, float) else int(result)
