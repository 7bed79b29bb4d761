"""Scorers of answers in words: exact match and token F1, as the official scripts of the data sets compute them.

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

from rewoo_bench.text.scoring.base import Score, all_or_nothing, best

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SPACE_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})

_WORD = re.compile(r"[^\W_](?:[^\W_]|['’-](?=\w))*")  # no-one is a word, and isn't "no"
_SAYS = {"yes": True, "no": False, "true": True, "false": False, "untrue": False}
_SAYS |= {"plausible": True, "implausible": False}
_DENIALS = frozenset({"not", "never", "cannot", "hardly", "neither", "nor"})
_DENIED_WITHIN = 4  # words
_NEGATED = frozenset(_SAYS) - {"yes", "no"}  # by a denial among the words before: "not at all plausible"


def hotpotqa(prediction: str, answers: Sequence[str]) -> Score:
    """HotpotQA's metrics: F1 is 0 where one side is yes, no or noanswer and the other differs."""

    def closed_f1(predicted: str, gold: str) -> float:
        is_closed = predicted in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS
        return 0.0 if is_closed and predicted != gold else token_f1(predicted, gold)

    return _best(prediction, answers, normalize_hotpotqa, closed_f1)


def triviaqa(prediction: str, answers: Sequence[str]) -> Score:
    """TriviaQA's metrics."""
    return _best(prediction, answers, normalize_triviaqa, token_f1)


def musique(prediction: str, answers: Sequence[str]) -> Score:
    """MuSiQue's metrics of an answer, as its official script (metrics/answer.py) computes them.

        musique("the Stanley Hall", ["G. Stanley Hall", "Stanley Hall"])   -> Score(exact_match=True, f1=1.0)

    The texts are normalised as in SQuAD: lower case, no punctuation, no articles. Exact match and F1 are each the best
    over the answer and its aliases. Yes and no are words like any other. Two texts that normalise to nothing are equal,
    with an F1 of 1. Source: github.com/StonyBrookNLP/musique
    """

    def f1(predicted: str, gold: str) -> float:
        return token_f1(predicted, gold) if predicted and gold else float(predicted == gold)

    return _best(prediction, answers, normalize_hotpotqa, f1)


def _best(
    prediction: str, answers: Sequence[str], normalize: Callable[[str], str], f1: Callable[[str, str], float]
) -> Score:
    """The best exact match and the best F1 over the answers."""
    predicted = normalize(prediction)
    golds = [normalize(answer) for answer in answers]
    return Score(predicted in golds, max(f1(predicted, gold) for gold in golds))


def normalize_hotpotqa(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())


def normalize_triviaqa(text: str) -> str:
    """Lower case, punctuation and typographic quotes as spaces, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.replace("_", " ").lower().translate(_SPACE_PUNCTUATION)).split())


NORMALIZE: dict[str, Callable[[str], str]] = {"hotpotqa": normalize_hotpotqa, "triviaqa": normalize_triviaqa}


def token_f1(predicted: str, gold: str) -> float:
    """Harmonic mean of token precision and recall of two normalised texts."""
    predicted_tokens, gold_tokens = predicted.split(), gold.split()
    shared = sum((Counter(predicted_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def yes_no(prediction: str, answers: Sequence[str]) -> Score:
    """Whether both say yes or both say no; a gold answer that says neither is compared as a text.

    F1 is exact match, as HotpotQA's official script has it for yes and no.
    """
    scores, said = [], says_yes(prediction)
    for answer in answers:
        gold = says_yes(answer)
        scores.append(triviaqa(prediction, [answer]) if gold is None else all_or_nothing(said is gold))
    return best(scores)


def says_yes(text: str) -> bool | None:
    """Whether a text says yes or no; None where it says neither.

        "Yes, because it is older."   yes        "No."                       no
        "It is true."                 yes        "That is not plausible."    no
        "Perhaps", "It is older."     neither

    The first of the words decides. A denial among the four words before turns true and plausible round: not, never,
    cannot, hardly, isn't. `true` and `plausible` mean yes, `false` and `implausible` mean no, on both sides.
    """
    words = [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
    for at, word in enumerate(words):
        if word in _SAYS:
            before = words[max(0, at - _DENIED_WITHIN) : at]
            has_denial = any(each in _DENIALS or each.endswith("n't") for each in before)
            return _SAYS[word] != (word in _NEGATED and has_denial)
    return None


def yes_or_no(text: str) -> str | None:
    """`yes`, `no`, or None where a text says neither."""
    says = says_yes(text)
    return None if says is None else ("yes" if says else "no")
