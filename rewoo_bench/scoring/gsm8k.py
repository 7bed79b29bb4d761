"""An answer that is one number: GSM8K (Cobbe et al., 2021, arXiv:2110.14168) and other arithmetic.

The number of a text is the one behind `####`, as in the data set's own answers. A text without that mark has its
last number taken: the official script knows only the mark, and lm-evaluation-harness (`flexible-extract`) takes the
last number. Numbers are equal or not, with no tolerance: 1,234 = 1234.0 = $1,234. A percent sign counts as a unit, so
25% is 25. F1 is exact match: a number has no parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rewoo_bench.scoring.base import Score, all_or_nothing, best
from rewoo_bench.scoring.numbers import find_numbers
from rewoo_bench.scoring.tokens import triviaqa

MARK = "####"


def gsm8k(prediction: str, answers: Sequence[str]) -> Score:
    """Whether the numbers are equal; a gold answer without a number is compared as a text."""
    return best([_score_number(prediction, answer) for answer in answers])


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


def _score_number(prediction: str, answer: str) -> Score:
    gold = final_number(answer)
    return triviaqa(prediction, [answer]) if gold is None else all_or_nothing(final_number(prediction) == gold)
