r"""Numbers in a text, in the many spellings of people and models.

    find_numbers("$1,234.50 or 3.0 x 10^8")     # values 2469/2 and 300000000

| spelling | read as |
|---|---|
| `1,234` `1234.0` `+1234.` `$1,234` `£1,234` `-$5` `€-5` | the number; signs of currencies are left out |
| `1 234` `12 345 678` `1'234` | one number, its thousands parted by a narrow, thin or no-break space or an apostrophe |
| `3e8` `3.0 x 10^8` `3·10⁸` `3*10**8` `3 \times 10^{8}` `10^8` | powers of ten |
| `3/4` `1 1/2` `½` `\frac{3}{4}` | fractions |
| `10-5` `covid-19` | 10 and 5; 19: a minus sign has nothing before it |
| `m/s^2` `H2O` | none |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

LONGEST = 300  # characters of a number, and the largest power of ten: no answer has more, and Fraction has no limit

_SUPERSCRIPTS = re.compile(r"[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_AS_DIGITS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_MINUS = str.maketrans("−–", "--")
# Markdown's bold type, which is no power: `**18**` and `= **18** pens`, but not `2**3` or `2 ** 3`.
_BOLD = re.compile(r"__|(?<![\d)\]} ])\*\*|(?<=[\d)\]}])\*\*(?![-+({\d])|(?<= )\*\*(?! )")
_VULGAR = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅕": "1/5", "⅛": "1/8"}
_LATEX = (
    (re.compile(r"\\[dt]?frac\s*\{(-?\d+)\}\s*\{(\d+)\}"), r"\1/\2"),
    (re.compile(r"\{,\}|\\,(?=\d)|\\!"), ","),
    (re.compile(r"\\(?:times|cdot)(?![a-z])"), "*"),
    (re.compile(r"\\(?:text|mathrm|boxed)\s*(?=\{)"), ""),
    (re.compile(r"\\(?=[$%])"), ""),
)
_APART = re.compile(r"(?<![\d.,])\d{1,3}([\u00a0\u2007\u2009\u202f'’])\d{3}(?:\1\d{3})*+(?!\d)")
"""A number with its thousands apart, as in French, by the SI and in Switzerland. A plain space may part two numbers."""
_PLAIN = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_TO_THE = r"10\s?(?:\^|\*\*)\s?[({]?\s?"
_NUMBER = re.compile(
    rf"""
    (?<![\w^.]) (?<!\^[-{{(]) (?<!\^[{{(]-) (?<!\*\*) (?<!\*\*[-(])   # no part of a word, a number or an exponent
    (?P<sign> (?<![\w)\]%}}] ) [-+] (?=[$£€¥₹.\d]) )?
    (?:US)?[$£€¥₹]?\s?
    (?P<minus>-(?=\.?\d))?
    (?: {_TO_THE}(?P<ten>[+-]?\d+)[)}}]?
      | (?P<whole>\d+)\ (?P<above>\d+)/(?P<below>\d+)(?![\d/])
      | (?P<number>{_PLAIN})
        (?: \s?[*x×·⋅]\s?{_TO_THE}(?P<power>[+-]?\d+)[)}}]?
          | [eE](?P<exponent>[+-]?\d+)(?!\w)
          | /(?P<divisor>{_PLAIN})(?![\d/])
        )?
    )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """A number, and the text behind it up to the next number."""

    value: Fraction
    behind: str = ""


def without_gaps(text: str) -> str:
    """A text whose numbers have no spaces or apostrophes between their thousands."""
    return _APART.sub(lambda number: number[0].replace(number[1], ""), text)


def find_numbers(text: str) -> list[FoundNumber]:
    """The numbers of a text, in order. Numbers of more than 300 characters are left out."""
    text = without_gaps(text)
    for sign, fraction in _VULGAR.items():
        text = re.sub(rf"(?<=\d)\s?{sign}", f" {fraction}", text).replace(sign, fraction)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = _SUPERSCRIPTS.sub(lambda match: "^" + match[0].translate(_AS_DIGITS), text)  # 10⁻⁸ becomes 10^-8
    text = _BOLD.sub("", text.translate(_MINUS))
    found = [(match, value) for match in _NUMBER.finditer(text) if (value := _value(match)) is not None]
    starts = [*(match.start() for match, _ in found), len(text)]
    return [FoundNumber(value, text[match.end() : end]) for (match, value), end in zip(found, starts[1:], strict=True)]


def _value(match: re.Match[str]) -> Fraction | None:
    """The value of a match; None where it has too many digits, or divides by zero."""
    if match.end() - match.start() > LONGEST:
        return None
    value = Fraction((match["above"] or match["number"] or "1").replace(",", ""))
    if below := match["below"] or match["divisor"]:
        divisor = Fraction(below.replace(",", ""))
        if not divisor:
            return None
        value /= divisor
    if power := int(match["ten"] or match["power"] or match["exponent"] or 0):
        if abs(power) > LONGEST:
            return None
        value *= Fraction(10) ** power
    if match["whole"]:
        value += int(match["whole"])
    return -value if (match["sign"] == "-") != (match["minus"] is not None) else value


Powers = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of school mechanics: how many SI units it is, and the powers of metre, kilogram and second in it."""

    factor: Fraction
    powers: Powers


_LENGTH, _MASS, _TIME, _SPEED = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, -1)
_FORCE, _ENERGY, _POWER = (1, 1, -2), (2, 1, -2), (2, 1, -3)
_KINDS: tuple[tuple[Powers, dict[str, str]], ...] = (
    (_LENGTH, {"1": "m meter meters metre metres", "1000": "km KM kilometer kilometers kilometre kilometres"}),
    (_LENGTH, {"0.01": "cm centimeter centimeters centimetre centimetres"}),
    (_LENGTH, {"0.001": "mm millimeter millimeters millimetre millimetres", "0.9144": "yd yard yards"}),
    (_LENGTH, {"1609.344": "mi mile miles", "0.3048": "ft foot feet", "0.0254": "inch inches"}),
    (_MASS, {"1": "kg kilogram kilograms", "0.001": "g gram grams", "0.45359237": "lb lbs pound pounds"}),
    (_TIME, {"1": "s sec secs second seconds", "60": "min mins minute minutes"}),
    (_TIME, {"0.001": "ms millisecond milliseconds", "3600": "h hr hrs hour hours", "86400": "day days"}),
    (_SPEED, {"0.44704": "mph"}),
    (_FORCE, {"1": "N newton newtons", "1000": "kN kilonewton kilonewtons"}),
    (_ENERGY, {"1": "J joule joules", "1000": "kJ KJ kilojoule kilojoules", "1000000": "MJ megajoule megajoules"}),
    (_POWER, {"1": "W watt watts", "1000": "kW kilowatt kilowatts"}),
)
_UNITS = {
    name: Unit(Fraction(factor), powers)
    for powers, names in _KINDS
    for factor, spellings in names.items()
    for name in spellings.split()
}
_WORD = re.compile(r"\s*([A-Za-z]+)(?:\s?(?:\^|\*\*)?\s?[{(]?(-?\d)[)}]?(?!\d))?")
_SQUARED = re.compile(r"\s*(squared|cubed)\b")
_BETWEEN = re.compile(r"\s*([*·⋅/-]|per\b|)\s*(?=[A-Za-z])")


def read_unit(text: str) -> Unit | None:
    """The unit that a text begins with; None where it begins with none that is known.

    read_unit("km/hr")        # Unit(factor=5/18, powers=(1, 0, -1))
    read_unit("m/s^2, so")    # Unit(factor=1, powers=(1, 0, -2))
    read_unit("apples")       # None
    """
    factor, powers = Fraction(1), (0, 0, 0)
    at, sign = 0, 1
    while word := _WORD.match(text, at):
        name = word[1]
        unit = _UNITS.get(name) or _UNITS.get(name.lower() if len(name) > 2 else name)
        if unit is None:
            break
        at = word.end()
        power = sign * int(word[2] or 1)
        if squared := _SQUARED.match(text, at):
            at, power = squared.end(), sign * (2 if squared[1] == "squared" else 3)
        length, mass, time = (old + power * new for old, new in zip(powers, unit.powers, strict=True))
        factor, powers = factor * unit.factor**power, (length, mass, time)
        between = _BETWEEN.match(text, at)
        if between is None:
            break
        sign = -1 if between[1] in ("/", "per") else 1
        at = between.end()
    return Unit(factor, powers) if at else None
