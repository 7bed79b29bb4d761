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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rewoo_bench.argument_checks import check_kind
from rewoo_bench.errors import DataError, RewooBenchError, UsageError, unknown

Scoring = Literal["hotpotqa", "triviaqa"]

ARTICLES = re.compile(r"\b(a|an|the)\b")
DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
SPACE_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, slots=True)
class Score:
    """How well a prediction fits: `f1` is between 0 and 1."""

    exact_match: bool
    f1: float


ScoreFunction = Callable[[str, Sequence[str]], Score]
"""Prediction and gold answers to a score; neither is blank or empty."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A metric with the name that manifests have."""

    name: str
    function: ScoreFunction

    def __call__(self, prediction: str | None, answers: Sequence[str] | str) -> Score:
        """The score of a prediction; None and a blank one score nothing.

        Raises `DataError` where there are no answers, and `ScorerFault` where the function raises or
        returns no `Score`.
        """
        golds = (answers,) if isinstance(answers, str) else tuple(answers)
        if not golds:
            raise DataError("a score needs at least one gold answer, got none")
        if prediction is None or not prediction.strip():
            return Score(exact_match=False, f1=0.0)
        try:
            result: object = self.function(prediction, golds)
        except Exception as error:  # of somebody's own function
            raise ScorerFault(f"the scorer {self.name!r} raised {type(error).__name__}: {error}") from error
        if not isinstance(result, Score) or not 0 <= result.f1 <= 1:
            expected = "expected rewoo_bench.Score(exact_match, f1) with f1 from 0 to 1"
            raise ScorerFault(f"the scorer {self.name!r} returned {result!r:.80}, {expected}")
        return Score(exact_match=bool(result.exact_match), f1=float(result.f1))


class ScorerFault(RewooBenchError):
    """A scorer that can't score a prediction."""


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
    check_kind("prediction", prediction, (str, type(None)), "a text or None")
    check_kind("answers", answers, (Iterable,), "the gold answers")
    if dataset not in BUNDLED:
        raise UsageError(unknown("scoring", dataset, BUNDLED))
    return BUNDLED[dataset](prediction, answers)


def _hotpotqa(prediction: str, answers: Sequence[str]) -> Score:
    return _best(prediction, answers, normalize_hotpotqa, _closed_f1)


def _triviaqa(prediction: str, answers: Sequence[str]) -> Score:
    return _best(prediction, answers, normalize_triviaqa, _f1)


def _best(
    prediction: str, answers: Sequence[str], normalize: Callable[[str], str], f1: Callable[[str, str], float]
) -> Score:
    """The best exact match and the best F1 over the answers."""
    predicted = normalize(prediction)
    golds = [normalize(answer) for answer in answers]
    return Score(predicted in golds, max(f1(predicted, gold) for gold in golds))


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


BUNDLED: Mapping[str, Scorer] = {"hotpotqa": Scorer("hotpotqa", _hotpotqa), "triviaqa": Scorer("triviaqa", _triviaqa)}
