"""What the best choice of a parent could buy: for each question, across trials, and by the questions' type.

Choosing the better parent of each question by its outcome, and scoring that choice on the same outcome, is biased
upward: an outcome is partly chance, and the choice takes the lucky one of two. Two copies of one architecture that is
right half of the time, by chance, would "gain" 25 points in this way, and nothing could be gained. So:

best_by_question    that naive bound, labelled as biased
across_trials       chooses by the other trials of a question, scores on this one: no trial decides about itself. It
                    says what knowing each question from that many trials would buy. Needs two trials or more
by_type             with one trial the outcome of a question can't be parted from its luck. What is left is a group of
                    questions: the better parent of each type by the other folds' questions, scored on this fold's

Each returns a parent, 0 or 1, for each row.
"""

from __future__ import annotations

import numpy as np

from rewoo_bench.routing.learned import FOLDS, fold_of
from rewoo_bench.routing.outcomes import Floats, Outcomes, Whole


def best_by_question(outcomes: Outcomes) -> Whole:
    """The better parent of each question by its own outcome; the cheaper one of two that are equal."""
    return _by_sign(outcomes.gain, outcomes)[outcomes.question]


def across_trials(outcomes: Outcomes) -> Whole | None:
    """The better parent by the other trials of the question; None where no question has two trials."""
    if outcomes.rows == outcomes.questions:
        return None
    first, second = outcomes.measures["exact_match"]
    gain = second - first
    sums = np.bincount(outcomes.question, weights=gain, minlength=outcomes.questions)
    return _by_sign(sums[outcomes.question] - gain, outcomes)


def by_type(outcomes: Outcomes, folds: int = FOLDS) -> Whole | None:
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


def _by_sign(gain: Floats, outcomes: Outcomes) -> Whole:
    return np.where(gain == 0, outcomes.cheaper, gain > 0).astype(np.int64)
