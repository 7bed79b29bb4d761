"""An answer that is a number with a unit: the physics questions of the ReWOO paper (arXiv:2305.18323).

    gold "7187 m": right are "About 7,187 metres", "7.187 km" and "7.2 x 10^3 m"; wrong is "7187 km"

- A value is right within 2% of the gold one.
- Units of one kind are converted, km to m. Where a unit is missing, unknown or of another kind the values alone are
  compared, since the file's own units are sometimes too short: metres for a speed.
- For a gold answer with one number, the prediction's last number of that kind of unit counts, else its last number.
- A gold answer with several numbers is a set: exact match takes all of them and no other, F1 is that of the sets.
- A gold answer without a number is compared as a text, as TriviaQA's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewoo_bench.scoring.base import Score, all_or_nothing, best
from rewoo_bench.scoring.numbers import find_numbers
from rewoo_bench.scoring.tokens import triviaqa
from rewoo_bench.scoring.units import Unit, read_unit

TOLERANCE = Fraction(2, 100)  # of the gold value


@dataclass(frozen=True, slots=True)
class _Quantity:
    value: Fraction
    unit: Unit | None


def physics(prediction: str, answers: Sequence[str]) -> Score:
    """The best score over the gold answers."""
    quantities = _quantities(prediction)
    return best([_score_quantity(prediction, quantities, answer) for answer in answers])


def _score_quantity(prediction: str, quantities: list[_Quantity], answer: str) -> Score:
    golds = _quantities(answer)
    if not golds:
        return triviaqa(prediction, [answer])
    if len(golds) == 1:
        final = _final(quantities, golds[0])
        return all_or_nothing(final is not None and _is_right(final, golds[0]))
    return _score_of_sets(quantities, golds)


def _quantities(text: str) -> list[_Quantity]:
    """The numbers of a text with their units, each once."""
    found = (_Quantity(number.value, read_unit(number.behind)) for number in find_numbers(text))
    return list(dict.fromkeys(found))


def _final(quantities: Sequence[_Quantity], gold: _Quantity) -> _Quantity | None:
    """The quantity that answers: the last of the gold one's kind, else the last."""
    candidates = [each for each in quantities if _same_kind(each, gold)] or quantities
    return candidates[-1] if candidates else None


def _score_of_sets(quantities: Sequence[_Quantity], golds: Sequence[_Quantity]) -> Score:
    left = list(quantities)
    for gold in golds:
        if (right := next((each for each in left if _is_right(each, gold)), None)) is not None:
            left.remove(right)
    shared = len(quantities) - len(left)
    f1 = 2 * shared / (len(quantities) + len(golds))
    return Score(shared == len(golds) == len(quantities), f1)


def _is_right(quantity: _Quantity, gold: _Quantity) -> bool:
    value, expected = quantity.value, gold.value
    if quantity.unit and gold.unit and _same_kind(quantity, gold):
        value, expected = value * quantity.unit.factor, expected * gold.unit.factor
    return abs(value - expected) <= TOLERANCE * abs(expected)


def _same_kind(quantity: _Quantity, gold: _Quantity) -> bool:
    return bool(quantity.unit and gold.unit and quantity.unit.powers == gold.unit.powers)
