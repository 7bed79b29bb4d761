"""ParallelQA's metric: a number within 10% of the gold one, or a name with the same normalised text.

    parallelqa("about 3,300 metres", ["3307"])     -> Score(exact_match=True, f1=1.0)
    parallelqa("the cheetah", ["cheetah"])         -> Score(exact_match=True, f1=1.0)

The margin and the texts are those of LLMCompiler's script (compare_answer): a number has to be less than 10% away from
the gold one. 10% is much: a ratio of 1.07 matches 1.16. Three things are wider here, since models seldom write a bare
number: thousands separators, words around the number, and "million" and its like. A prediction of several numbers is
wrong, whichever it has. A negative gold number has the same margin (in the script nothing matches one), and only 0
matches 0. A gold yes or no is compared as one. F1 of a number is exact match; a name has HotpotQA's F1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from rewoo_bench.scoring.base import Score, all_or_nothing, best
from rewoo_bench.scoring.numbers import FoundNumber, find_numbers
from rewoo_bench.scoring.tokens import hotpotqa
from rewoo_bench.scoring.yes_no import says_yes, yes_no

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
    return all_or_nothing(len(found) == 1 and any(_near(value, gold) for value in _readings(found[0])))


def _number(answer: str) -> Fraction | None:
    """The value of a gold answer that is a bare number."""
    try:
        return Fraction(answer.strip().replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return None


def _readings(number: FoundNumber) -> tuple[Fraction, ...]:
    """The number, and the number in full where a word such as `million` follows: questions may ask for millions."""
    word = _SCALE_WORD.match(number.behind)
    return (number.value, number.value * _SCALE[word[1].lower()]) if word else (number.value,)


def _near(value: Fraction, gold: Fraction) -> bool:
    return value == gold or abs(value - gold) < MARGIN * abs(gold)
