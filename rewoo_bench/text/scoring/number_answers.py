"""Scorers of answers that are numbers, or may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewoo_bench.text.scoring.base import Score, all_or_nothing, best
from rewoo_bench.text.scoring.numbers import Unit, find_numbers, read_unit
from rewoo_bench.text.scoring.text_answers import hotpotqa, says_yes, triviaqa, yes_no

ANSWER_MARK = "####"
"""Stands before the number of an answer in GSM8K."""
_TOLERANCE = Fraction(2, 100)  # of a gold value with a unit
_MARGIN = Fraction(1, 10)  # of ParallelQA's gold value
_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALE_WORD = re.compile(rf"\s*({'|'.join(_SCALE)})s?\b", re.IGNORECASE)


def gsm8k(prediction: str, answers: Sequence[str]) -> Score:
    """Whether the numbers are equal: GSM8K (Cobbe et al., 2021, arXiv:2110.14168) and other arithmetic.

    The number of a text is the one behind `####`, as in the data set's own answers. A text without that mark has its
    last number taken: the official script knows only the mark, and lm-evaluation-harness (`flexible-extract`) takes the
    last number. Numbers are equal or not, with no tolerance: 1,234 = 1234.0 = $1,234. A percent sign counts as a unit,
    so 25% is 25. F1 is exact match: a number has no parts. A gold answer without a number is compared as a text.
    """
    scores, found = [], final_number(prediction)
    for answer in answers:
        gold = final_number(answer)
        scores.append(triviaqa(prediction, [answer]) if gold is None else all_or_nothing(found == gold))
    return best(scores)


def final_number(text: str) -> Fraction | None:
    """The number that a text ends on, or None."""
    _, mark, behind = text.rpartition(ANSWER_MARK)
    if mark and (marked := find_numbers(behind)):
        return marked[0].value
    numbers = find_numbers(text)
    return numbers[-1].value if numbers else None


def final_number_text(text: str) -> str | None:
    """The number that a text ends on, as a whole number or a fraction in lowest terms: `1234`, `3/4`."""
    number = final_number(text)
    return None if number is None else str(number)


@dataclass(frozen=True, slots=True)
class _Quantity:
    value: Fraction
    unit: Unit | None

    def is_like(self, gold: _Quantity) -> bool:
        """Whether the units are of one kind."""
        return bool(self.unit and gold.unit and self.unit.powers == gold.unit.powers)

    def is_right(self, gold: _Quantity) -> bool:
        value, expected = self.value, gold.value
        if self.unit and gold.unit and self.is_like(gold):
            value, expected = value * self.unit.factor, expected * gold.unit.factor
        return abs(value - expected) <= _TOLERANCE * abs(expected)


def _quantities(text: str) -> list[_Quantity]:
    """The numbers of a text with their units, each once."""
    found = (_Quantity(number.value, read_unit(number.behind)) for number in find_numbers(text))
    return list(dict.fromkeys(found))


def physics(prediction: str, answers: Sequence[str]) -> Score:
    """Whether a number with a unit is right within 2%: the physics questions of the ReWOO paper (arXiv:2305.18323).

    For the gold answer "7187 m", "About 7,187 metres", "7.187 km" and "7.2 x 10^3 m" are right, "7187 km" is wrong.

    - Units of one kind are converted, km to m. Where a unit is missing, unknown or of another kind the values alone are
      compared, since the file's own units are sometimes too short: metres for a speed.
    - For a gold answer with one number, the prediction's last number of that kind of unit counts, else its last number.
    - A gold answer with several numbers is a set: exact match takes all of them and no other, F1 is that of the sets.
    - A gold answer without a number is compared as a text, as TriviaQA's.
    """
    found = _quantities(prediction)
    scores = []
    for answer in answers:
        golds = _quantities(answer)
        if not golds:
            scores.append(triviaqa(prediction, [answer]))
        elif len(golds) == 1:
            candidates = [each for each in found if each.is_like(golds[0])] or found
            scores.append(all_or_nothing(bool(candidates) and candidates[-1].is_right(golds[0])))
        else:
            left = list(found)
            for gold in golds:
                if right := next((each for each in left if each.is_right(gold)), None):
                    left.remove(right)
            shared = len(found) - len(left)
            scores.append(Score(shared == len(golds) == len(found), 2 * shared / (len(found) + len(golds))))
    return best(scores)


def parallelqa(prediction: str, answers: Sequence[str]) -> Score:
    """ParallelQA's metric: a number within 10% of the gold one, or a name with the same normalised text.

        parallelqa("about 3,300 metres", ["3307"])     -> Score(exact_match=True, f1=1.0)
        parallelqa("the cheetah", ["cheetah"])         -> Score(exact_match=True, f1=1.0)

    The margin and the texts are those of LLMCompiler's script (compare_answer): a number has to be less than 10% away
    from the gold one. 10% is much: a ratio of 1.07 matches 1.16. Three things are wider here, since models seldom write
    a bare number: thousands separators, words around the number, and "million" and its like. A prediction of several
    numbers is wrong, whichever it has. A negative gold number has the same margin (in the script nothing matches one),
    and only 0 matches 0. A gold yes or no is compared as one. F1 of a number is exact match; a name has HotpotQA's F1.
    """
    found = find_numbers(prediction)
    readings = [found[0].value] if len(found) == 1 else []
    if readings and (word := _SCALE_WORD.match(found[0].behind)):  # questions may ask for millions
        readings.append(found[0].value * _SCALE[word[1].lower()])
    scores = []
    for answer in answers:
        if says_yes(answer) is not None:
            scores.append(yes_no(prediction, [answer]))
            continue
        try:
            gold = Fraction(answer.strip().replace(",", ""))
        except (ValueError, ZeroDivisionError):  # no bare number
            scores.append(hotpotqa(prediction, [answer]))
        else:
            is_near = (value == gold or abs(value - gold) < _MARGIN * abs(gold) for value in readings)
            scores.append(all_or_nothing(any(is_near)))
    return best(scores)
