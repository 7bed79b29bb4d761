"""A scorer: a named function that compares a prediction with the gold answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from rewoo_bench.errors import DataError, RewooBenchError


@dataclass(frozen=True, slots=True)
class Score:
    """How well a prediction fits: `f1` is between 0 and 1.

    Where several questions are asked at once, exact match is that of all of them, `f1` their mean, and
    `objectives_right` the share of those that match. More answers than questions count as wrong ones.
    """

    exact_match: bool
    f1: float
    objectives_right: float | None = None


BETWEEN_ANSWERS = " | "
"""Between the answers of several questions that are asked at once."""

ScoreFunction = Callable[[str, Sequence[str]], Score]
"""Prediction and gold answers to a score; neither is blank or empty."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A metric with the name that manifests have."""

    name: str
    function: ScoreFunction
    compared: Callable[[str], str | None] | None = None
    """What exact match compares of a text, where it is whether these are equal; None for a text without it."""
    objectives: int = 1
    """Number of questions that are asked at once."""

    def of_objectives(self, objectives: int) -> Scorer:
        """The scorer of so many questions at once, each by this one: `hotpotqa?objectives=3`."""
        if objectives == 1:
            return self
        return replace(self, name=f"{self.name}?objectives={objectives}", compared=None, objectives=objectives)

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

        Of several questions at once, a prediction has the answers in order, with ` | ` between them.

        Raises `DataError` where there are no answers, and `ScorerFault` where the function raises or
        returns no `Score`.
        """
        golds = (answers,) if isinstance(answers, str) else tuple(answers)
        if not golds:
            raise DataError("a score needs at least one gold answer, got none")
        if self.objectives > 1:
            one = replace(self, objectives=1)
            given = [text.strip() for text in (prediction or "").split(BETWEEN_ANSWERS.strip())]
            while given and not given[-1]:
                given.pop()
            parts = list(zip(*(gold.split(BETWEEN_ANSWERS) for gold in golds), strict=True))
            scores = [
                # "1. FC Köln" may be a name, or the first answer with the number that a model repeats
                best([one(text, answers), one(re.sub(rf"^(?:\({number}\)|{number}[.):])\s", "", text), answers)])
                for number, (text, answers) in enumerate(zip(given, parts, strict=False), start=1)
            ]
            right, most = sum(score.exact_match for score in scores), max(len(given), len(parts))
            return Score(right == most, sum(score.f1 for score in scores) / most, right / most)
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
