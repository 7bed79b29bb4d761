"""An answer that is one number: GSM8K (Cobbe et al., 2021, arXiv:2110.14168) and other arithmetic.

The number of a text is the one behind `####`, as in the data set's own answers. A text without that mark has its
last number taken: the official script knows only the mark, and lm-evaluation-harness (`flexible-extract`) takes the
last number. Numbers are equal or not, with no tolerance: 1,234 = 1234.0 = $1,234. A percent sign counts as a unit, so
25% is 25. F1 is exact match: a number has no parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewoo_bench.text.scoring.base import Score, all_or_nothing, best
from rewoo_bench.text.scoring.numbers import Unit, find_numbers, read_unit
from rewoo_bench.text.scoring.text_answers import hotpotqa, says_yes, triviaqa, yes_no

MARK = "####"


def gsm8k(prediction: str, answers: Sequence[str]) -> Score:
    """Whether the numbers are equal; a gold answer without a number is compared as a text."""
    scores, found = [], final_number(prediction)
    for answer in answers:
        gold = final_number(answer)
        scores.append(triviaqa(prediction, [answer]) if gold is None else all_or_nothing(found == gold))
    return best(scores)


def final_number(text: str) -> Fraction | None:
    """The number that a text ends on, or None."""
    _, mark, behind = text.rpartition(MARK)
    if mark and (marked := find_numbers(behind)):
        return marked[0].value
    numbers = find_numbers(text)
    return numbers[-1].value if numbers else None


def number_text(text: str) -> str | None:
    """The number that a text ends on, as a whole number or a fraction in lowest terms: `1234`, `3/4`."""
    number = final_number(text)
    return None if number is None else str(number)


# An answer that is a number with a unit: the physics questions of the ReWOO paper (arXiv:2305.18323).
#
#     gold "7187 m": right are "About 7,187 metres", "7.187 km" and "7.2 x 10^3 m"; wrong is "7187 km"
#
# - A value is right within 2% of the gold one.
# - Units of one kind are converted, km to m. Where a unit is missing, unknown or of another kind the values alone are
#   compared, since the file's own units are sometimes too short: metres for a speed.
# - For a gold answer with one number, the prediction's last number of that kind of unit counts, else its last number.
# - A gold answer with several numbers is a set: exact match takes all of them and no other, F1 is that of the sets.
# - A gold answer without a number is compared as a text, as TriviaQA's.


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


# ParallelQA's metric: a number within 10% of the gold one, or a name with the same normalised text.
#
#     parallelqa("about 3,300 metres", ["3307"])     -> Score(exact_match=True, f1=1.0)
#     parallelqa("the cheetah", ["cheetah"])         -> Score(exact_match=True, f1=1.0)
#
# The margin and the texts are those of LLMCompiler's script (compare_answer): a number has to be less than 10% away
# from the gold one. 10% is much: a ratio of 1.07 matches 1.16. Three things are wider here, since models seldom write
# a bare number: thousands separators, words around the number, and "million" and its like. A prediction of several
# numbers is wrong, whichever it has. A negative gold number has the same margin (in the script nothing matches one),
# and only 0 matches 0. A gold yes or no is compared as one. F1 of a number is exact match; a name has HotpotQA's F1.


MARGIN = Fraction(1, 10)

_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALE_WORD = re.compile(rf"\s*({'|'.join(_SCALE)})s?\b", re.IGNORECASE)


def parallelqa(prediction: str, answers: Sequence[str]) -> Score:
    """Whether the number is near enough to a gold one, or the name is the same."""
    return best([_score_item(prediction, answer) for answer in answers])


def _score_item(prediction: str, answer: str) -> Score:
    gold = _number(answer)
    if says_yes(answer) is not None:
        return yes_no(prediction, [answer])
    if gold is None:
        return hotpotqa(prediction, [answer])
    found = find_numbers(prediction)
    if len(found) != 1:
        return all_or_nothing(False)
    readings = [found[0].value]
    if word := _SCALE_WORD.match(found[0].behind):  # questions may ask for millions
        readings.append(found[0].value * _SCALE[word[1].lower()])
    return all_or_nothing(any(value == gold or abs(value - gold) < MARGIN * abs(gold) for value in readings))


def _number(answer: str) -> Fraction | None:
    """The value of a gold answer that is a bare number."""
    try:
        return Fraction(answer.strip().replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return None
