"""Exact match and F1 of a prediction, by the rules of a data set.

    score("The Eiffel Tower!", ["Eiffel tower"])                  -> Score(exact_match=True, f1=1.0)
    score("yes, it is", ["yes"])                                  -> Score(exact_match=False, f1=0.0)
    score("yes, it is", ["yes"], dataset="yes_no")                -> Score(exact_match=True, f1=1.0)
    score("She pays $1,234.00.", ["1234"], dataset="gsm8k")       -> Score(exact_match=True, f1=1.0)

| scorer | for | what is compared |
|---|---|---|
| `hotpotqa` | HotpotQA and other short answers | normalised texts, official script |
| `triviaqa` | TriviaQA, SOTU QA | normalised texts, official script |
| `musique` | MuSiQue | normalised texts and aliases, official script |
| `yes_no` | StrategyQA, sports understanding | the first yes or no |
| `gsm8k` | a number | the last number, exactly |
| `physics` | numbers with units | the values, within 2% |
| `parallelqa` | ParallelQA | a number within 10%, or normalised texts, official script |

A new scorer is a function (prediction, answers) -> Score, a line in `BUNDLED`, and its name in config/names.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.text.argument_checks import check_kind
from rewoo_bench.text.scoring.base import Score, ScoreFunction, Scorer, ScorerFault
from rewoo_bench.text.scoring.number_answers import final_number_text, gsm8k, parallelqa, physics
from rewoo_bench.text.scoring.text_answers import (
    NORMALIZE,
    hotpotqa,
    musique,
    normalize_hotpotqa,
    normalize_triviaqa,
    triviaqa,
    yes_no,
    yes_or_no,
)

__all__ = [
    "BUNDLED",
    "NORMALIZE",
    "Score",
    "ScoreFunction",
    "Scorer",
    "ScorerFault",
    "normalize_hotpotqa",
    "normalize_triviaqa",
    "score",
]

BUNDLED: Mapping[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer("hotpotqa", hotpotqa, normalize_hotpotqa),
        Scorer("triviaqa", triviaqa, normalize_triviaqa),
        Scorer("gsm8k", gsm8k, final_number_text),
        Scorer("yes_no", yes_no, yes_or_no),
        Scorer("physics", physics),
        Scorer("musique", musique, normalize_hotpotqa),
        Scorer("parallelqa", parallelqa),
    )
}


def score(prediction: str | None, answers: Sequence[str] | str, dataset: str = "hotpotqa") -> Score:
    """`prediction` against the gold `answers`, by the bundled scorer `dataset`.

    With several answers each metric is its best over them. That is TriviaQA's own rule (its
    gold answers are the aliases); official HotpotQA rows have one answer, and other sets that
    are scored its way get the same maximum.

    None and blank predictions score nothing. A prediction that only normalises to nothing
    ("The") still equals a gold answer that does ("The The"), as in the scripts, with an F1 of 0.

    Raises `UsageError` for another `dataset` and `DataError` where there are no answers.
    """
    check_kind("prediction", prediction, (str, type(None)), "a text or None")
    check_kind("answers", answers, (Iterable,), "the gold answers")
    if dataset not in BUNDLED:
        raise UsageError(unknown("scoring", dataset, BUNDLED))
    return BUNDLED[dataset](prediction, answers)
