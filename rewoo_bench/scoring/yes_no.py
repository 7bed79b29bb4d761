"""An answer that is yes or no: StrategyQA, sports understanding.

    "Yes, because it is older."   yes        "No."                       no
    "It is true."                 yes        "That is not plausible."    no
    "Perhaps", "It is older."     neither, which is wrong

The first of the words decides. A denial among the four words before turns true and plausible round: not, never, cannot,
hardly, isn't.  `true` and `plausible` mean yes, `false` and `implausible` mean no, on both sides.
F1 is exact match, as HotpotQA's official script has it for yes and no.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewoo_bench.scoring.base import Score, all_or_nothing, best
from rewoo_bench.scoring.tokens import triviaqa

_WORD = re.compile(r"[^\W_](?:[^\W_]|['’-](?=\w))*")  # no-one is a word, and isn't "no"
_SAYS = {"yes": True, "no": False, "true": True, "false": False, "untrue": False}
_SAYS |= {"plausible": True, "implausible": False}
_DENIALS = frozenset({"not", "never", "cannot", "hardly", "neither", "nor"})
_DENIED_WITHIN = 4  # words
_NEGATED = frozenset(_SAYS) - {"yes", "no"}  # by a denial among the words before: "not at all plausible"


def yes_no(prediction: str, answers: Sequence[str]) -> Score:
    """Whether both say yes or both say no; a gold answer that says neither is compared as a text."""
    return best([_score_yes_no(prediction, answer) for answer in answers])


def says_yes(text: str) -> bool | None:
    """Whether a text says yes or no; None where it says neither."""
    words = [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
    for at, word in enumerate(words):
        if word in _SAYS:
            denied = word in _NEGATED and any(_denies(before) for before in words[max(0, at - _DENIED_WITHIN) : at])
            return _SAYS[word] != denied
    return None


def yes_or_no(text: str) -> str | None:
    """`yes`, `no`, or None where a text says neither."""
    says = says_yes(text)
    return None if says is None else ("yes" if says else "no")


def _denies(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't")


def _score_yes_no(prediction: str, answer: str) -> Score:
    gold = says_yes(answer)
    return triviaqa(prediction, [answer]) if gold is None else all_or_nothing(says_yes(prediction) is gold)
