"""Fits a learned router, and predicts each question by a router that was fitted without it.

    router = fit_router(outcomes, threshold=0.5)            # a RouterFile, for router.json
    choices = out_of_fold(outcomes, threshold=0.5)          # 0 or 1 for each question

The logistic regression is of "the dearer parent alone is right" against "the cheaper one alone is right". A question
that both or neither have right says nothing about which one to choose, so it has no weight; with several trials the
weight is the difference of exact match. The vocabulary, the cheaper parent and the weights of a fold come from the
other folds alone. All trials of a question are in one fold.

scikit-learn fits the weights. Choosing needs none of it (config/router.py).
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from importlib.metadata import version

import numpy as np

from rewoo_bench.analysis.routing.outcomes import Integers, Outcomes
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.router import NUMBERS, ROUTER_VERSION, RouterFile, TrainingData, features_of
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.text.words import counted

FOLDS = 10
FEWEST_QUESTIONS = 2  # of the fit, that have a word; a word of one question alone says nothing about others
STRENGTH = 1.0  # scikit-learn's C, its default; it isn't tuned


def fit_router(outcomes: Outcomes, threshold: float = 0.5) -> RouterFile:
    """A router of all questions. Raises `DataError` where it would have nothing to learn from."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise UsageError("fitting a router needs scikit-learn: pip install 'rewoo-bench[route]'") from None
    _check_both_win(outcomes)
    decided = np.flatnonzero(outcomes.gain)
    features = [features_of(outcomes.texts[place]) for place in decided]
    counts = Counter(name for each in features for name in each)
    vocabulary = sorted(name for name, count in counts.items() if count >= FEWEST_QUESTIONS or name in NUMBERS)
    table = np.array([[each.get(name, 0.0) for name in vocabulary] for each in features])
    of_dearer = outcomes.gain[decided] * (1 if outcomes.cheaper == 0 else -1)
    model = LogisticRegression(C=STRENGTH, max_iter=1000)
    model.fit(table, of_dearer > 0, sample_weight=np.abs(of_dearer))
    return RouterFile(
        version=ROUTER_VERSION,
        rewoo_bench=version("rewoo-bench"),
        scikit_learn=version("scikit-learn"),
        parents=outcomes.parents,
        cheaper=outcomes.parents[outcomes.cheaper],
        threshold=threshold,
        data=TrainingData(
            datasets=outcomes.datasets,
            models=outcomes.models,
            questions=outcomes.questions,
            decided=len(decided),
            ids_sha256=outcomes.ids_sha256,
        ),
        intercept=float(model.intercept_[0]),
        weights=dict(zip(vocabulary, model.coef_[0].tolist(), strict=True)),
    )


def out_of_fold(outcomes: Outcomes, threshold: float = 0.5, folds: int = FOLDS) -> Integers:
    """The parent for each question, 0 or 1, by a router that was fitted on the other folds.

    Where the other folds have questions of one winner only, that one is chosen. Raises `DataError` as `fit_router`.
    """
    _check_both_win(outcomes)
    choice = np.full(outcomes.questions, outcomes.cheaper, dtype=np.int64)
    of = fold_of(outcomes, folds)
    for fold in np.unique(of):
        held_out = np.flatnonzero(of == fold)
        others = outcomes.only(of != fold)
        winners = _winners(others)
        if winners == {-1, 1}:
            router = fit_router(others, threshold)
            names = [router.choose(outcomes.texts[place]) for place in held_out]
            choice[held_out] = [outcomes.parents.index(name) for name in names]
        else:
            choice[held_out] = int(1 in winners) if winners else others.cheaper
    return choice


def fold_of(outcomes: Outcomes, folds: int) -> Integers:
    """The fold of each question, with questions of each winner spread evenly. The hash of its id decides, no seed."""
    drawn = [sha256(name.encode()).hexdigest() for name in outcomes.ids]
    order = sorted(range(outcomes.questions), key=lambda place: (np.sign(outcomes.gain[place]), drawn[place]))
    of = np.empty(outcomes.questions, dtype=np.int64)
    of[order] = np.arange(outcomes.questions) % folds
    return of


def _winners(outcomes: Outcomes) -> set[int]:
    """The signs of the differences: -1 where the first parent alone is right somewhere, 1 for the second."""
    return set(map(int, np.sign(outcomes.gain[outcomes.gain != 0])))


def _check_both_win(outcomes: Outcomes) -> None:
    winners = _winners(outcomes)
    of = f"on {counted(outcomes.questions, 'question')}"
    first, second = outcomes.parents
    if not winners:
        raise DataError(f"nothing to learn: {first!r} and {second!r} have the same exact match {of}, one by one")
    if len(winners) == 1:
        best, other = (second, first) if winners == {1} else (first, second)
        raise DataError(f"nothing to learn: {other!r} alone is right nowhere {of}, so {best!r} is the choice for all")


# What the best choice of a parent could buy: for each question, across trials, and by the questions' type.
#
# Choosing the better parent of each question by its outcome, and scoring that choice on the same outcome, is biased
# upward: an outcome is partly chance, and the choice takes the lucky one of two. Two copies of one architecture that is
# right half of the time, by chance, would "gain" 25 points in this way, and nothing could be gained. So:
#
# best_by_question    that naive bound, labelled as biased
# across_trials       chooses by the other trials of a question, scores on this one: no trial decides about itself. It
#                     says what knowing each question from that many trials would buy. Needs two trials or more
# by_type             with one trial the outcome of a question can't be parted from its luck. What is left is a group of
#                     questions: the better parent of each type by the other folds' questions, scored on this fold's
#
# Each returns a parent, 0 or 1, for each row.


def best_by_question(outcomes: Outcomes) -> Integers:
    """The better parent of each question by its own outcome; the cheaper one of two that are equal."""
    return _by_sign(outcomes.gain, outcomes)[outcomes.question]


def across_trials(outcomes: Outcomes) -> Integers | None:
    """The better parent by the other trials of the question; None where no question has two trials."""
    if outcomes.rows == outcomes.questions:
        return None
    first, second = outcomes.measures["exact_match"]
    gain = second - first
    sums = np.bincount(outcomes.question, weights=gain, minlength=outcomes.questions)
    return _by_sign(sums[outcomes.question] - gain, outcomes)


def by_type(outcomes: Outcomes, folds: int = FOLDS) -> Integers | None:
    """The better parent of the question's type by the other folds; None where all have one type."""
    types = np.array(outcomes.types, dtype=object)
    if len(set(outcomes.types)) < 2:
        return None
    of = fold_of(outcomes, folds)
    choice = np.empty(outcomes.questions, dtype=np.int64)
    for place, (fold, kind) in enumerate(zip(of, types, strict=True)):
        gains = outcomes.gain[(of != fold) & (types == kind)]
        choice[place] = _by_sign(np.array([gains.sum()]), outcomes)[0]
    return choice[outcomes.question]


def _by_sign(gain: Floats, outcomes: Outcomes) -> Integers:
    return np.where(gain == 0, outcomes.cheaper, gain > 0).astype(np.int64)
