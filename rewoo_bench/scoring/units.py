"""Units of measurement behind a number, as a factor and powers of metre, kilogram and second.

    read_unit("km/hr")        # Unit(factor=5/18, powers=(1, 0, -1))
    read_unit("m/s^2, so")    # Unit(factor=1, powers=(1, 0, -2))
    read_unit("apples")       # None

Only the units of school mechanics are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

Powers = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Unit:
    """How many SI units one of it is, and of which kind: the powers of metre, kilogram and second."""

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
    """The unit that a text begins with; None where it begins with none that is known."""
    found, sign = None, 1
    at = 0
    while (word := _WORD.match(text, at)) and (unit := _known(word[1])) is not None:
        at = word.end()
        power = int(word[2]) if word[2] else 1
        if squared := _SQUARED.match(text, at):
            at, power = squared.end(), 2 if squared[1] == "squared" else 3
        found = _times(found, unit, sign * power)
        between = _BETWEEN.match(text, at)
        if between is None:
            break
        sign = -1 if between[1] in ("/", "per") else 1
        at = between.end()
    return found


def _known(name: str) -> Unit | None:
    return _UNITS.get(name) or _UNITS.get(name.lower() if len(name) > 2 else name)


def _times(unit: Unit | None, other: Unit, power: int) -> Unit:
    factor, powers = (unit.factor, unit.powers) if unit else (Fraction(1), (0, 0, 0))
    length, mass, time = (old + power * new for old, new in zip(powers, other.powers, strict=True))
    return Unit(factor * other.factor**power, (length, mass, time))
