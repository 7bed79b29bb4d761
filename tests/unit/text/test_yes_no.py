"""Yes and no: what a text says, in several wordings."""

from __future__ import annotations

import pytest
from timing import processor_time

from rewoo_bench.text.scoring import Score, says_yes, score


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", True),
        ("The answer is: yes", True),
        ("The statement is plausible.", True),
        ("No, yes would be wrong.", False),
        ("Implausible", False),
        ("It is not true.", False),
        ("No doubt: yes.", True),
        ("There is no evidence against it, so yes.", True),
        ("No bird is that strong, but an ostrich might try. Answer: **yes**", True),
        ("It is true that a swan is strong, but no.", False),
        ("Yes. No swan was ever seen to fail; some say no.", True),
        ("The answer is yes. It is false that it sank.", True),
        ("So the answer is no because yes would need proof", False),
        ("Is it yes or no? I would say no, since it isn't true.", False),
        ("No evidence was found. So the answer is no.", False),
        ("No information is available, but it is plausible.", True),
        ("Options:\n1. Yes\n2. No\n\nThe answer is 2. No", False),
        ("Some say yes, others no.", None),
        ("The answer may be no at first sight. Hence it is yes. Nobody says no.", True),
        ("Nobody knows; no-one said it", None),
        ("Yesterday", None),
    ],
)
def test_what_a_text_says(text: str, expected: bool | None) -> None:
    assert says_yes(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "No information is available.",
        "There is no evidence that it is true.",
        "No relevant results were found in Wikipedia",
        "The passages have no mention of it; no sources, no proof and no records.",
    ],
)
def test_a_no_that_says_what_is_missing_is_no_answer(text: str) -> None:
    wrong = Score(exact_match=False, f1=0.0)
    assert score(text, ["no"], "yes_no") == score(text, ["yes"], "yes_no") == wrong


@pytest.mark.parametrize(
    "piece", ["no evidence ", "yes no ", "no ", "no\t", "so ", "yes or ", "is it ", "_", "the answer is "]
)
def test_a_long_text_is_read_in_linear_time(piece: str) -> None:
    with processor_time(5):
        says_yes(piece * (400_000 // len(piece)))


def test_a_gold_answer_that_says_neither_is_compared_as_a_text() -> None:
    assert score("Unknown.", ["unknown"], "yes_no") == Score(exact_match=True, f1=1.0)
