"""Routing between two architectures: what both did on the same questions, and a router that is learned from it.

    outcomes, _ = read_outcomes(rows, ("rewoo", "react"), texts={})
    outcomes.measures["exact_match"]     # shape (2, rows): a row for each question and trial
    outcomes.gain                        # by question: exact match of the second parent minus that of the first

Rows that the infrastructure failed, or nobody scored, for one of the two are left out for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.compare import aligned
from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.stats.paired import (
    Floats,
    Interval,
    difference_of_means,
    difference_of_proportions,
    mean_of,
    proportion,
    ratio_of_means,
)
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.config.router import NUMBERS, ROUTER_VERSION, RouterFile, TrainingData, features_of
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.rows import check_columns, left_out, oracle_rows
from rewoo_bench.text.words import counted

Integers = NDArray[np.int64]
OUTCOME_COLUMNS = ("exact_match", "f1", "total_tokens", "cost_usd", "latency_s")


@dataclass(frozen=True)
class Outcomes:
    """The rows of two parents, in the same order; `question` has the place of each row's question."""

    parents: tuple[str, str]
    ids: tuple[str, ...]
    """By question, sorted; with its data set in front where there are several."""
    texts: tuple[str, ...]
    types: tuple[str, ...]
    question: Integers
    measures: Mapping[str, Floats]
    """Of each a row for each parent; NaN where the value isn't known."""
    left_out: int
    """Pairs of rows, because the infrastructure failed one of the two, or nobody scored it."""
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    oracle: bool

    @property
    def questions(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> int:
        return len(self.question)

    @cached_property
    def gain(self) -> Floats:
        """By question: the mean over trials of exact match, of the second parent minus the first."""
        first, second = self.measures["exact_match"]
        return self.mean(second - first)

    @property
    def cheaper(self) -> int:
        """0 or 1: the parent with fewer tokens on these questions."""
        first, second = self.measures["total_tokens"].mean(axis=1)
        return int(second < first)

    @property
    def better(self) -> int:
        """0 or 1: the parent with the higher exact match; of two that are equal, the cheaper one."""
        first, second = self.measures["exact_match"].mean(axis=1)
        return self.cheaper if first == second else int(second > first)

    @property
    def ids_sha256(self) -> str:
        return sha256("\n".join(self.ids).encode()).hexdigest()

    def mean(self, values: Floats) -> Floats:
        """The mean of a value of rows, by question."""
        sizes = np.bincount(self.question, minlength=self.questions)
        means: Floats = np.bincount(self.question, weights=values, minlength=self.questions) / sizes
        return means

    def only(self, questions: NDArray[np.bool_]) -> Outcomes:
        """The same for the questions of a mask."""
        kept = questions[self.question]
        places = np.flatnonzero(questions)
        return replace(
            self,
            ids=tuple(self.ids[place] for place in places),
            texts=tuple(self.texts[place] for place in places),
            types=tuple(self.types[place] for place in places),
            question=np.searchsorted(places, self.question[kept]),
            measures={name: values[:, kept] for name, values in self.measures.items()},
        )

    def taken(self, choice: Integers) -> dict[str, Floats]:
        """The measures of a router that takes parent `choice` (0 or 1) for each row."""
        return {name: values[choice, np.arange(self.rows)] for name, values in self.measures.items()}


def read_outcomes(
    rows: pd.DataFrame, parents: tuple[str, str], texts: Mapping[str, str], others: Sequence[str] = ()
) -> tuple[Outcomes, dict[str, pd.DataFrame]]:
    """The outcomes of both parents, and the aligned rows of `others` (routers that ran on the same questions).

    `texts` are the questions by id, for rows without a text (published runs). Raises `UsageError` where a parent or a
    text is missing.
    """
    check_columns(rows.columns, ["architecture", "dataset", "model", "example_id", "trial", *OUTCOME_COLUMNS])
    there = [str(name) for name in rows["architecture"].unique()]
    for name in parents:
        if name not in there:
            raise UsageError(
                f"routing needs rows of both parents, and the run has none of {name!r}; "
                f"it has {', '.join(there)}: choose with --parents A,B"
            )
    wanted = rows[rows["architecture"].isin([*parents, *others])]
    datasets = tuple(sorted(map(str, wanted["dataset"].unique())))
    ids = wanted["example_id"].astype(str)
    wanted = wanted.assign(
        raw_id=ids, example_id=wanted["dataset"].astype(str) + "/" + ids if len(datasets) > 1 else ids
    )
    pairs = zip(wanted["example_id"], wanted["raw_id"], strict=True)
    known = {name: texts[raw] for name, raw in pairs if raw in texts}
    if "question" in wanted.columns:
        told = wanted[wanted["question"].notna()]
        known |= dict(zip(told["example_id"], told["question"].astype(str), strict=True))
    groups = {name: wanted[wanted["architecture"] == name] for name in (*parents, *others)}
    same, _ = aligned(groups, [], intersect=True)
    omitted = left_out(same[parents[0]]) | left_out(same[parents[1]])
    omitted |= np.isnan([column(same[parent], "exact_match") for parent in parents]).any(axis=0)
    same = {name: each[~omitted] for name, each in same.items()}
    if not len(same[parents[0]]):
        raise DataError("routing needs questions that both parents finished and have a score of, and there is none")
    first = same[parents[0]]
    names, position, question = np.unique(
        first["example_id"].to_numpy(dtype=object), return_index=True, return_inverse=True
    )
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"{counted(len(missing), 'question')} of {len(names)} have no text here, such as {missing[0]!r}: a "
            "published run has none; give the data set with --dataset"
        )
    kinds = first["question_type"].astype(str).to_numpy(dtype=object)[position] if "question_type" in first else names
    outcomes = Outcomes(
        parents=parents,
        ids=tuple(map(str, names)),
        texts=tuple(known[name] for name in names),
        types=tuple(map(str, kinds)),
        question=question.astype(np.int64),
        measures={name: np.stack([column(same[parent], name) for parent in parents]) for name in OUTCOME_COLUMNS},
        left_out=int(omitted.sum()),
        datasets=datasets,
        models=tuple(sorted({str(model) for name in parents for model in same[name]["model"].unique()})),
        oracle=bool(np.any([oracle_rows(same[name]) for name in parents])),
    )
    return outcomes, {name: same[name] for name in others}


WayKind = Literal["parent", "policy", "bound", "biased bound"]


@dataclass(frozen=True, slots=True)
class Against:
    """A way minus a parent, and its amounts as multiples of the parent's; None where they aren't known."""

    parent: str
    exact_match: Interval
    p: float
    """Exact McNemar, of no difference of exact match."""
    f1: Interval
    total_tokens: Interval | None
    cost_usd: Interval | None
    latency_s: Interval | None


@dataclass(frozen=True, slots=True)
class Way:
    """A way of choosing: always one parent, a policy, or a bound that no policy can be held to."""

    name: str
    kind: WayKind
    share: float
    """Share of the rows that go to the second parent."""
    exact_match: Interval
    f1: Interval
    total_tokens: Interval | None
    cost_usd: Interval | None
    latency_s: Interval | None
    against: tuple[Against, Against]


def way_of(name: str, kind: WayKind, share: float, taken: Mapping[str, Floats], outcomes: Outcomes) -> Way:
    """The way with these measures by row of `outcomes`. Rows that failed are left out of its estimates."""
    there = np.isfinite(taken["exact_match"])
    own = {measure: values[there] for measure, values in taken.items()}
    question = outcomes.question[there]
    clusters = question if len(np.unique(question)) < len(question) else None

    def against(place: int) -> Against:
        of = {measure: values[place, there] for measure, values in outcomes.measures.items()}
        return Against(
            outcomes.parents[place],
            difference_of_proportions(of["exact_match"], own["exact_match"], clusters=clusters),
            mcnemar_exact(of["exact_match"], own["exact_match"], clusters).p,
            difference_of_means(of["f1"], own["f1"], ends=(0.0, 1.0), clusters=clusters),
            _ratio(of["total_tokens"], own["total_tokens"], clusters),
            _ratio(of["cost_usd"], own["cost_usd"], clusters),
            None if outcomes.oracle else _ratio(of["latency_s"], own["latency_s"], clusters),
        )

    return Way(
        name,
        kind,
        share,
        proportion(own["exact_match"], clusters=clusters),
        mean_of(own["f1"], ends=(0.0, 1.0), clusters=clusters),
        _mean(own["total_tokens"], clusters),
        _mean(own["cost_usd"], clusters),
        None if outcomes.oracle else _mean(own["latency_s"], clusters),
        (against(0), against(1)),
    )


def _mean(values: Floats, clusters: Integers | None) -> Interval | None:
    """None where a value isn't known: a mean of the others would mislead."""
    return mean_of(values, clusters=clusters) if np.isfinite(values).all() else None


def _ratio(parent: Floats, own: Floats, clusters: Integers | None) -> Interval | None:
    return ratio_of_means(parent, own, clusters=clusters) if np.isfinite(parent + own).all() and parent.any() else None


# Fits a learned router, and predicts each question by a router that was fitted without it.
#
#     router = fit_router(outcomes, threshold=0.5)            # a RouterFile, for router.json
#     choices = out_of_fold(outcomes, threshold=0.5)          # 0 or 1 for each question
#
# The logistic regression is of "the dearer parent alone is right" against "the cheaper one alone is right". A question
# that both or neither have right says nothing about which one to choose, so it has no weight; with several trials the
# weight is the difference of exact match. The vocabulary, the cheaper parent and the weights of a fold come from the
# other folds alone. All trials of a question are in one fold.
#
# scikit-learn fits the weights. Choosing needs none of it (config/router.py).


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


def out_of_fold(outcomes: Outcomes, threshold: float = 0.5) -> Integers:
    """The parent for each question, 0 or 1, by a router that was fitted on the other folds.

    Where the other folds have questions of one winner only, that one is chosen. Raises `DataError` as `fit_router`.
    """
    _check_both_win(outcomes)
    choice = np.full(outcomes.questions, outcomes.cheaper, dtype=np.int64)
    of = fold_of(outcomes)
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


def fold_of(outcomes: Outcomes) -> Integers:
    """The fold of each question, with questions of each winner spread evenly. The hash of its id decides, no seed."""
    drawn = [sha256(name.encode()).hexdigest() for name in outcomes.ids]
    order = sorted(range(outcomes.questions), key=lambda place: (np.sign(outcomes.gain[place]), drawn[place]))
    of = np.empty(outcomes.questions, dtype=np.int64)
    of[order] = np.arange(outcomes.questions) % FOLDS
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


def by_type(outcomes: Outcomes) -> Integers | None:
    """The better parent of the question's type by the other folds; None where all have one type."""
    types = np.array(outcomes.types, dtype=object)
    if len(set(outcomes.types)) < 2:
        return None
    of = fold_of(outcomes)
    kinds, kind = np.unique(types, return_inverse=True)
    gains = np.zeros((len(kinds), FOLDS))
    np.add.at(gains, (kind, of), outcomes.gain)
    others = gains @ (1 - np.eye(FOLDS))  # by type, the sum of the folds beside each one
    return _by_sign(others[kind, of], outcomes)[outcomes.question]


def _by_sign(gain: Floats, outcomes: Outcomes) -> Integers:
    return np.where(gain == 0, outcomes.cheaper, gain > 0).astype(np.int64)
