"""Exact match and token F1 of texts, as the official scripts of HotpotQA and TriviaQA compute them.

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

from rewoo_bench.scoring.base import Score

ARTICLES = re.compile(r"\b(a|an|the)\b")
DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
SPACE_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


def hotpotqa(prediction: str, answers: Sequence[str]) -> Score:
    """HotpotQA's metrics."""
    return _best(prediction, answers, normalize_hotpotqa, _closed_f1)


def triviaqa(prediction: str, answers: Sequence[str]) -> Score:
    """TriviaQA's metrics."""
    return _best(prediction, answers, normalize_triviaqa, token_f1)


def normalize_hotpotqa(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(DELETE_PUNCTUATION)).split())


def normalize_triviaqa(text: str) -> str:
    """Lower case, punctuation and typographic quotes as spaces, no English articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.replace("_", " ").lower().translate(SPACE_PUNCTUATION)).split())


NORMALIZE: dict[str, Callable[[str], str]] = {"hotpotqa": normalize_hotpotqa, "triviaqa": normalize_triviaqa}


def _best(
    prediction: str, answers: Sequence[str], normalize: Callable[[str], str], f1: Callable[[str, str], float]
) -> Score:
    """The best exact match and the best F1 over the answers."""
    predicted = normalize(prediction)
    golds = [normalize(answer) for answer in answers]
    return Score(predicted in golds, max(f1(predicted, gold) for gold in golds))


def _closed_f1(predicted: str, gold: str) -> float:
    """Token F1, but 0 where one side is yes, no or noanswer and the other differs."""
    if predicted != gold and (predicted in CLOSED_ANSWERS or gold in CLOSED_ANSWERS):
        return 0.0
    return token_f1(predicted, gold)


def token_f1(predicted: str, gold: str) -> float:
    """Harmonic mean of token precision and recall of two normalised texts."""
    predicted_tokens, gold_tokens = predicted.split(), gold.split()
    shared = sum((Counter(predicted_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)
