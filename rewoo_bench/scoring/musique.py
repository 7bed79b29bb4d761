"""MuSiQue's metrics of an answer, as its official script (metrics/answer.py) computes them.

    musique("the Stanley Hall", ["G. Stanley Hall", "Stanley Hall"])   -> Score(exact_match=True, f1=1.0)

The texts are normalised as in SQuAD: lower case, no punctuation, no articles. Exact match and F1 are each the best over
the answer and its aliases. Yes and no are words like any other. Two texts that normalise to nothing are equal, with
an F1 of 1. Source: github.com/StonyBrookNLP/musique
"""

from __future__ import annotations

from collections.abc import Sequence

from rewoo_bench.scoring.base import Score, best
from rewoo_bench.scoring.tokens import normalize_hotpotqa, token_f1


def musique(prediction: str, answers: Sequence[str]) -> Score:
    """The best exact match and the best F1 over the answer and its aliases."""
    predicted = normalize_hotpotqa(prediction)  # SQuAD's normalisation
    return best([_score_musique(predicted, normalize_hotpotqa(answer)) for answer in answers])


def _score_musique(predicted: str, gold: str) -> Score:
    both = predicted and gold
    return Score(predicted == gold, token_f1(predicted, gold) if both else float(predicted == gold))
