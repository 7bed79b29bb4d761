"""Arithmetic as people and models write it, in Python's notation for `ast`.

1,250 × 3                 1250 * 3
$48 / 2 =                 48 / 2               a sign of money, and an equals sign at the end, are left out
15% of 80                 15["%"] * 80         a percentage; `7 % 4` stays a remainder
2.5 million people / 5    (2.5*1000000) / 5    a unit is left out
3 kg + 200 g              refused: without its units it would be a wrong sum
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rewoo_bench.errors import ToolError
from rewoo_bench.text.words import terms

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


def as_python(expression: str, names: Collection[str]) -> str:
    """The expression in Python's notation, one line, with nothing in it that isn't arithmetic.

    `names` are the functions and constants, which no unit is called like. Raises `ToolError`.
    """
    text = " ".join(expression.lower().translate(_SIGNS).split())
    text = _EQUALS_AT_END.sub("", text)
    text = _PERCENT_IN_WORDS.sub("%", _TIMES.sub("*", text))
    text = _LARGE_NUMBER.sub(lambda large: f"({large[1]}*{_LARGE[large[2]]})", _OF.sub("*", text))
    text = _without_units(text, expression, names)
    if foreign := _FOREIGN.search(text):
        raise ToolError(f"unexpected {foreign[0]!r} in {expression!r}; expected numbers, operators and parentheses")
    if unit := _NUMBER_THEN_WORD.search(text):  # Python would warn about some of these, not refuse them
        raise ToolError(f"unexpected letter after a number in {expression!r} (at {unit[0]!r}); expected no units")
    return _PERCENT_SIGN.sub(f'["{PERCENT}"]', _without_group_commas(text))


def _without_units(text: str, expression: str, names: Collection[str]) -> str:
    """The text without units and signs of money. Raises `ToolError` where different ones are added or subtracted."""
    words = [match[1] for match in _UNIT.finditer(text)]
    every = [word for unit in words for word in unit.split()]
    if word := next(filter(_CHANGES_THE_NUMBER.fullmatch, every), None):
        raise ToolError(f"unexpected {word!r} in {expression!r}; write it with numbers and operators")
    words = [unit for unit in words if not set(unit.split()) & set(names)]
    money = {match[0].strip() for match in _MONEY.finditer(text)}
    text = _MONEY.sub("", _UNIT.sub(lambda match: "" if match[1] in words else match[0], text))
    units = {tuple(terms(unit)): unit for unit in words}
    named = sorted({*units.values(), *money})
    if len(named) > 1 and re.search(r"[\d.)%]\s*[-+]", text):
        raise ToolError(
            f"{expression!r} adds or subtracts different units ({', '.join(named)}); convert them to one unit"
        )
    return text


def _without_group_commas(text: str) -> str:
    """1,250 becomes 1250, except in the arguments of a function: there a comma separates two numbers."""
    calls: list[tuple[int, int]] = []
    stack: list[tuple[int, bool]] = []
    for match in _PARENTHESIS.finditer(text):
        if match[0] != ")":
            stack.append((match.start(), len(match[0]) > 1))
        elif stack:
            start, call = stack.pop()
            calls += [(start, match.end())] if call else []
    inside = [any(start <= at < end for start, end in calls) for at in range(len(text))]
    return _GROUPED.sub(lambda number: number[0] if inside[number.start()] else number[0].replace(",", ""), text)
