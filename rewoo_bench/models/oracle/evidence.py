"""What a prompt shows of a question's gold chain: the text of pages, and the numbers that tools worked out.

Observation: Kyiv: Kyiv is a city on the Dnieper.     a page: its text is searched for a hop's value
Observation: 24                                       a number: the whole observation
Evidence: the same as #E1                             in a solver's prompt: the number of step E1 once more
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewoo_bench.types import Message

_NUMBER = re.compile(r"[$€£]?\s*([-−]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)\s*%?\.?", re.IGNORECASE)
_SHOWN = re.compile(r"(?m)^(?:Observation|Evidence|Result): (.*)$|^(?:#E|(?=\d+\. \w+\())(\d+)(?: = |\. )")
_THE_SAME = re.compile(r"the same as (?:#E|\$)(\d+)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a prompt. With `calculator` that tool has to work out each number, else the oracle does."""

    text: str
    numbers: tuple[str, ...] = ()
    calculator: bool = False

    def count(self, value: str) -> int:
        """How many observations are the number `value`."""
        return sum(same_number(number, value) for number in self.numbers)


def read_number(text: str) -> float | None:
    """The number that a text is, with or without separators of thousands: 1234.0 for "1,234"; None for other text."""
    match = _NUMBER.fullmatch(text.strip())
    return float(match[1].replace(",", "").replace("−", "-")) if match else None


def same_number(shown: str, gold: str) -> bool:
    """Whether two texts are the same number. A gold value with decimals may be rounded: 33.33 is 33.3333333333."""
    one, other = read_number(shown), read_number(gold)
    if one is None or other is None:
        return shown.strip() == gold.strip()
    decimals = len(gold.partition(".")[2].rstrip("%"))
    rounding = 0.5 * 10**-decimals if decimals else 0.0
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=rounding + 1e-9)


def shown_numbers(messages: Iterable[Message]) -> tuple[str, ...]:
    """Every number that is a whole observation, or the evidence of a step, in order."""
    found: list[str] = []
    for message in messages:
        if message.role == "tool":
            found += message.content.splitlines()
        elif message.role == "user":
            found += _observations(message.content)
    return tuple(text for text in found if read_number(text) is not None)


def _observations(content: str) -> Sequence[str]:
    """The first line of each observation in a user's message; a solver's prompt has a step's number before each."""
    step, shown = "", dict[str, str]()
    for match in _SHOWN.finditer(content):
        if match[2]:
            step = match[2]
            continue
        same = _THE_SAME.fullmatch(match[1])
        shown[step] = shown.get(same[1], "") if same else match[1]
    return list(shown.values())
