"""Exact match and F1 of a prediction, as each data set's official script computes them.

    score("The Eiffel Tower!", ["Eiffel tower"])                  -> Score(exact_match=True, f1=1.0)
    score("yes, it is", ["yes"])                                  -> Score(exact_match=False, f1=0.0)
    score("yes, it is", ["yes"], dataset="triviaqa")              -> Score(exact_match=False, f1=0.5)

The two scripts differ in three ways:

| | HotpotQA, hotpot_evaluate_v1.py | TriviaQA, triviaqa_evaluation.py |
|---|---|---|
| punctuation | deleted: `well-known` -> `wellknown` | becomes a space: `well known` |
| typographic ‘ ’ ´ | kept | become a space |
| yes, no, noanswer | F1 is 0 unless both sides are the same | nothing special |

Sources: github.com/hotpotqa/hotpot and github.com/mandarjoshi90/triviaqa (evaluation/).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rewoo_bench.errors import DataError, UsageError, unknown

Scoring = Literal["hotpotqa", "triviaqa"]

ARTICLES = re.compile(r"\b(a|an|the)\b")
DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
SPACE_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, slots=True)
class Score:
    """How well a prediction fits: `f1` lies between 0 and 1."""

    exact_match: bool
    f1: float


def normalize_hotpotqa(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(DELETE_PUNCTUATION)).split())


def normalize_triviaqa(text: str) -> str:
    """Lower case, punctuation and typographic quotes as spaces, no English articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.replace("_", " ").lower().translate(SPACE_PUNCTUATION)).split())


def score(
    prediction: str | None,
    answers: Sequence[str] | str,
    dataset: Scoring = "hotpotqa",
) -> Score:
    """`prediction` against the gold `answers`, with the normalisation and rules of `dataset`.

    With several answers each metric is its best over them. That is TriviaQA's own rule (its
    gold answers are the aliases); official HotpotQA rows have one answer, and other sets that
    are scored its way get the same maximum.

    None and blank predictions score nothing. A prediction that only normalises to nothing
    ("The") still equals a gold answer that does ("The The"), as in the scripts, with an F1 of 0.

    Raises `UsageError` for another `dataset` and `DataError` where there are no answers.
    """
    if dataset not in NORMALIZE:
        raise UsageError(unknown("scoring", dataset, NORMALIZE))
    golds = (answers,) if isinstance(answers, str) else tuple(answers)
    if not golds:
        raise DataError("a score needs at least one gold answer, got none")
    if prediction is None or not prediction.strip():
        return Score(exact_match=False, f1=0.0)
    normalize = NORMALIZE[dataset]
    predicted = normalize(prediction)
    normal_golds = [normalize(gold) for gold in golds]
    f1 = _closed_f1 if dataset == "hotpotqa" else _f1
    return Score(predicted in normal_golds, max(f1(predicted, gold) for gold in normal_golds))


NORMALIZE: dict[str, Callable[[str], str]] = {"hotpotqa": normalize_hotpotqa, "triviaqa": normalize_triviaqa}


def _closed_f1(predicted: str, gold: str) -> float:
    """Token F1, but 0 where one side is yes, no or noanswer and the other differs."""
    if predicted != gold and (predicted in CLOSED_ANSWERS or gold in CLOSED_ANSWERS):
        return 0.0
    return _f1(predicted, gold)


def _f1(predicted: str, gold: str) -> float:
    """Harmonic mean of token precision and recall of two normalised texts."""
    predicted_tokens, gold_tokens = predicted.split(), gold.split()
    shared = sum((Counter(predicted_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)
