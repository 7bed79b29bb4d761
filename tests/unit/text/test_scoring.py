"""Exact match and F1 agree with both official scripts; expected values are worked out by hand."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.config.names import SCORERS
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.text.scoring import BUNDLED, Score, normalize_hotpotqa, normalize_triviaqa, score

SCORINGS: list[Literal["hotpotqa", "triviaqa"]] = ["hotpotqa", "triviaqa"]

# prediction, gold, (exact match, F1) by HotpotQA's script, the same by TriviaQA's
GOLDEN = [
    ("The Eiffel Tower!", "Eiffel tower", (True, 1.0), (True, 1.0)),
    ("  an apple\ta  day", "Apple, the day", (True, 1.0), (True, 1.0)),
    ("Delhi, India", "Delhi", (False, 2 / 3), (False, 2 / 3)),
    ("new new york", "New York", (False, 0.8), (False, 0.8)),
    # punctuation: deleted, or a space
    ("well-known", "well known", (False, 0.0), (True, 1.0)),
    ("U.S.", "US", (True, 1.0), (False, 0.0)),
    ("O'Neill", "o neill", (False, 0.0), (True, 1.0)),
    ("1,000 men", "1000 men", (True, 1.0), (False, 0.4)),
    # typographic quotes: kept, or a space
    ("rock ‘n’ roll", "rock n roll", (False, 2 / 3), (True, 1.0)),
    ("Xi´an", "Xi an", (False, 0.0), (True, 1.0)),
    # yes, no and noanswer: all or nothing, or like any word
    ("yes, it is", "yes", (False, 0.0), (False, 0.5)),
    ("no", "no it is not", (False, 0.0), (False, 0.4)),
    ("noanswer", "noanswer given", (False, 0.0), (False, 2 / 3)),
    ("Yes.", "yes", (True, 1.0), (True, 1.0)),
    # both normalise to nothing: equal, without a token in common
    ("The", "The The", (True, 0.0), (True, 0.0)),
    ("The", "Oslo", (False, 0.0), (False, 0.0)),
]


@pytest.mark.parametrize(("prediction", "gold", "hotpotqa", "triviaqa"), GOLDEN)
def test_scores_are_those_of_the_official_scripts(
    prediction: str, gold: str, hotpotqa: tuple[bool, float], triviaqa: tuple[bool, float]
) -> None:
    for dataset, (exact_match, f1) in zip(SCORINGS, (hotpotqa, triviaqa), strict=True):
        found = score(prediction, [gold], dataset)
        assert found.exact_match == exact_match, dataset
        assert found.f1 == pytest.approx(f1), dataset


@pytest.mark.parametrize("dataset", SCORINGS)
@pytest.mark.parametrize("prediction", [None, "", " \n"])
def test_no_prediction_scores_nothing(prediction: str | None, dataset: Literal["hotpotqa", "triviaqa"]) -> None:
    assert score(prediction, ["The", "Oslo"], dataset) == Score(exact_match=False, f1=0.0)


def test_without_gold_answers_there_is_no_score() -> None:
    with pytest.raises(DataError, match="at least one gold answer"):
        score("Oslo", [])


def test_an_unknown_scoring_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="'hotpot', did you mean 'hotpotqa'"):
        score("Oslo", "Oslo", dataset="hotpot")


def test_every_bundled_scorer_has_its_name_where_packages_look_for_it() -> None:
    assert {name: scorer.name for name, scorer in BUNDLED.items()} == {name: name for name in SCORERS}


@pytest.mark.parametrize("name", SCORERS)
@given(prediction=st.text("0123456789.,/$-+^*x eyson¼²µ{}", max_size=40), gold=st.text("19,./-e yesno", max_size=8))
def test_no_prediction_breaks_a_bundled_scorer(name: str, prediction: str, gold: str) -> None:
    found = score(prediction, [gold, "7"], name)
    assert 0 <= found.f1 <= 1
    assert score(None, [gold], name) == score(" ", [gold], name) == Score(exact_match=False, f1=0.0)


@pytest.mark.parametrize("dataset", SCORINGS)
@given(first=st.text("aAbnoyes thE.'’_-", max_size=20), second=st.text("aAbnoyes thE.'’_-", max_size=20))
def test_f1_is_symmetric_bounded_and_whole_for_an_exact_match(
    dataset: Literal["hotpotqa", "triviaqa"], first: str, second: str
) -> None:
    if not first.strip() or not second.strip():
        return
    found = score(first, [second], dataset)
    assert 0.0 <= found.f1 <= 1.0
    assert found == score(second, [first], dataset)
    normalize = {"hotpotqa": normalize_hotpotqa, "triviaqa": normalize_triviaqa}[dataset]
    if found.exact_match and normalize(first):
        assert found.f1 == 1.0
