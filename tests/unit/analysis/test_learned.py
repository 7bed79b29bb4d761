"""Learned routers: what is fitted, what is written, and that no question decides about itself."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claim_runs import run_folder
from hypothesis import given
from hypothesis import strategies as st
from routing_runs import (
    PARENTS,
    comparison,
    description,
    outcomes_of,
    parent,
    where_chance_decides,
    where_text_decides,
    write_run,
)

from rewoo_bench.analysis.routing import (
    Integers,
    Outcomes,
    across_trials,
    best_by_question,
    by_type,
    fit_router,
    fold_of,
    out_of_fold,
)
from rewoo_bench.analysis.stats.paired import Interval, difference_of_proportions
from rewoo_bench.config.router import NUMBERS, RouterFile, features_of, read_router
from rewoo_bench.errors import DataError

sklearn = pytest.importorskip("sklearn")


def gain(outcomes: Outcomes, choice: Integers) -> Interval:
    """Exact match of a choice minus that of the better parent."""
    taken = outcomes.taken(choice)["exact_match"]
    clusters = outcomes.question if outcomes.rows > outcomes.questions else None
    return difference_of_proportions(outcomes.measures["exact_match"][outcomes.better], taken, clusters=clusters)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes_of(where_text_decides(tmp_path_factory.mktemp("runs") / "0001"))


@pytest.fixture(scope="module")
def written(decided: Outcomes, tmp_path_factory: pytest.TempPathFactory) -> RouterFile:
    """The router of these outcomes, as read back from its file."""
    path = tmp_path_factory.mktemp("file") / "router.json"
    path.write_text(fit_router(decided).written(), encoding="utf-8")
    return read_router(path)


@pytest.fixture(scope="module")
def alone(decided: Outcomes) -> Any:
    """The same regression in scikit-learn alone."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = [features_of(text) for text in decided.texts]
    counts = Counter(name for each in features for name in each)
    kept = [{n: v for n, v in each.items() if counts[n] > 1 or n in NUMBERS} for each in features]
    model = make_pipeline(DictVectorizer(sparse=False), LogisticRegression(C=1.0, max_iter=1000))
    return model.fit(kept, decided.gain > 0)


WORDS = [
    "which",
    "Which",
    "is",
    "older",
    "or",
    "Bridge",
    "born",
    "architect",
    "ÉCOLE",
    "it's",
    "\ud7ff",
    "?",
    "\n",
    "12",
]


@given(
    st.lists(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS)).map(" ".join)), min_size=1, max_size=8)
)
def test_a_read_file_predicts_as_scikit_learn_does(alone: Any, written: RouterFile, texts: list[str]) -> None:
    found = [written.chance(text) for text in texts]
    expected = alone.predict_proba([features_of(text) for text in texts])[:, 1].tolist()
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_file_says_where_it_comes_from(decided: Outcomes, written: RouterFile) -> None:
    assert (written.parents, written.cheaper, written.dearer) == (PARENTS, "rewoo", "react")
    assert (written.data.questions, written.data.decided, written.data.datasets) == (80, 80, ("hotpotqa",))
    assert written.data.ids_sha256 == decided.ids_sha256
    assert written.scikit_learn == sklearn.__version__
    assert set(NUMBERS) < set(written.weights)
    assert "word=older" in written.weights
    assert "word=13" not in written.weights  # in one question alone


def test_what_the_text_decides_is_found_out_of_fold(decided: Outcomes) -> None:
    found = gain(decided, out_of_fold(decided)[decided.question])
    assert found.low > 0.2
    assert found.estimate == pytest.approx(0.4, abs=0.1)  # one question in ten is the other way round


@pytest.mark.parametrize(("threshold", "share"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_threshold_goes_from_always_the_dearer_to_always_the_cheaper(
    decided: Outcomes, threshold: float, share: float
) -> None:
    assert out_of_fold(decided, threshold).mean() == share


@pytest.mark.nightly
def test_chance_teaches_nothing_though_the_best_of_both_looks_far_better(tmp_path: Path) -> None:
    """A leak between folds would show as a gain that isn't there."""
    gains, naive = [], []
    for seed in range(6):
        outcomes = outcomes_of(where_chance_decides(tmp_path / f"{seed:04}", seed))
        gains.append(gain(outcomes, out_of_fold(outcomes)[outcomes.question]))
        naive.append(gain(outcomes, best_by_question(outcomes)))
    assert sum(each.low <= 0 for each in gains) >= 5
    assert np.mean([each.estimate for each in gains]) < 0.03
    assert min(each.low for each in naive) > 0.1
    assert np.mean([each.estimate for each in naive]) == pytest.approx(0.23, abs=0.05)


def test_folds_are_by_question_and_spread_the_winners(decided: Outcomes) -> None:
    of = fold_of(decided)
    assert len(of) == decided.questions
    wins = [int((decided.gain[of == fold] > 0).sum()) for fold in range(10)]
    assert max(wins) - min(wins) <= 1
    assert sum(wins) == (decided.gain > 0).sum() > 30


def with_trials(folder: Path, seed: int, trials: int, skill: bool) -> Outcomes:
    """Two parents that are right by the toss of a coin, or (`skill`) each on its own half of the questions."""
    draw = np.random.default_rng(seed)
    texts = [comparison(i) if i % 2 else description(i) for i in range(100)]
    rows = []
    for trial in range(trials):
        for place, name in enumerate(PARENTS):
            chances = [(0.9 if i % 2 != place else 0.1) if skill else 0.5 for i in range(100)]
            rows.append(parent(name, texts, list(draw.random(100) < chances), trial=trial))
    return outcomes_of(run_folder(folder, *rows))


def test_across_trials_the_luck_of_a_trial_buys_nothing(tmp_path: Path) -> None:
    outcomes = with_trials(tmp_path / "0001", 0, 4, skill=False)
    choice = across_trials(outcomes)
    assert choice is not None
    assert gain(outcomes, best_by_question(outcomes)).low > 0.05
    assert gain(outcomes, choice).low < 0 < gain(outcomes, choice).high


def test_across_trials_skill_on_single_questions_is_found(tmp_path: Path) -> None:
    outcomes = with_trials(tmp_path / "0001", 0, 4, skill=True)
    choice = across_trials(outcomes)
    assert choice is not None
    assert gain(outcomes, choice).low > 0.25
    assert outcomes.rows == 400
    assert len(out_of_fold(outcomes)) == outcomes.questions == 100  # all trials of a question go one way


def test_one_trial_has_no_bound_across_trials(decided: Outcomes) -> None:
    assert across_trials(decided) is None
    assert by_type(decided) is None  # and here the questions have no types


def test_the_winner_of_a_type_is_that_of_the_other_folds(tmp_path: Path) -> None:
    texts = [comparison(i) if i % 2 else description(i) for i in range(60)]
    right = [i % 2 == 1 for i in range(60)]
    folder = write_run(tmp_path / "0001", texts, right, [not each for each in right])
    outcomes = outcomes_of(folder)
    typed = replace(outcomes, types=tuple("compared" if "older" in text else "told" for text in outcomes.texts))
    choice = by_type(typed)
    assert choice is not None
    assert gain(typed, choice).estimate == 0.5
    alone = by_type(replace(typed, types=typed.ids))  # a type of one question knows nothing of it
    assert alone is not None
    assert set(alone) == {typed.cheaper}


def test_the_winners_of_types_among_many_questions_take_no_time() -> None:
    count = 30_000
    match = np.random.default_rng(0).integers(0, 2, (2, count)).astype(float)
    types = tuple("ab"[place % 2] for place in range(count))
    ids = tuple(f"q{place}" for place in range(count))
    measures = {"exact_match": match, "total_tokens": match + 1}
    many = Outcomes(PARENTS, ids, ids, types, np.arange(count), measures, 0, ("d",), ("m",), oracle=False)
    start = time.process_time()
    assert by_type(many) is not None
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("1100", "1100", "nothing to learn: 'rewoo' and 'react' have the same exact match on 4 questions, one by one"),
        ("1101", "1100", "nothing to learn: 'react' alone is right nowhere on 4 questions, so 'rewoo' is the choice"),
        ("1000", "1100", "nothing to learn: 'rewoo' alone is right nowhere on 4 questions, so 'react' is the choice"),
    ],
)
def test_where_one_never_wins_there_is_nothing_to_learn(tmp_path: Path, first: str, second: str, message: str) -> None:
    texts = [comparison(i) for i in range(4)]
    folder = write_run(tmp_path / "0001", texts, [m == "1" for m in first], [m == "1" for m in second])
    for learn in (fit_router, out_of_fold):
        with pytest.raises(DataError, match=message):
            learn(outcomes_of(folder))


def test_a_winner_of_one_question_is_no_fault(tmp_path: Path) -> None:
    texts = [comparison(i) for i in range(12)]
    folder = write_run(tmp_path / "0001", texts, [i < 6 for i in range(12)], [i == 11 for i in range(12)])
    assert set(out_of_fold(outcomes_of(folder))) <= {0, 1}
