"""A scorer: a named function that compares a prediction with the gold answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from rewoo_bench.errors import DataError, RewooBenchError


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
    compared: Callable[[str], str | None] | None = None
    """What exact match compares of a text, where it is whether these are equal; None for a text without it."""

    def answers_sha256(self, answers: Sequence[str]) -> list[str] | None:
        """SHA-256 of what exact match compares of each gold answer; None where exact match is no equality."""
        texts = [self.compared(answer) if self.compared else None for answer in answers]
        hashes = [sha256(text.encode(errors="surrogatepass")).hexdigest() for text in texts if text is not None]
        return list(dict.fromkeys(hashes)) if len(hashes) == len(texts) else None

    def is_exact_match(self, prediction: str | None, answers_sha256: Sequence[str]) -> bool:
        """Exact match of a prediction, from the hashes of the gold answers."""
        if prediction is None or not prediction.strip():
            return False
        return any(each in answers_sha256 for each in self.answers_sha256([prediction]) or ())

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


def best(scores: Sequence[Score]) -> Score:
    """Each metric at its best over several scores."""
    return Score(any(each.exact_match for each in scores), max(each.f1 for each in scores))


def all_or_nothing(is_right: bool) -> Score:
    """The score of an answer without parts, such as a number or a yes: F1 is 1 or 0."""
    return Score(is_right, float(is_right))
