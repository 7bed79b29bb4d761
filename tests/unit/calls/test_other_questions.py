"""Prompts that hold another question of the run."""

from __future__ import annotations

import random
import time

import pytest

from rewoo_bench.calls.other_questions import PromptWatch, RunQuestions
from rewoo_bench.types import Document, Example, Message

OTHER = "Which river flows through the capital of Ukraine?"
OWN = Example("q0", "Who wrote the opera about the barber of Seville?", ("Rossini",), (Document("Kyiv", "A city."),))
QUESTIONS = RunQuestions([OTHER, OWN.question, "Short?"])


def has_other(*messages: Message, example: Example = OWN) -> bool:
    return PromptWatch(QUESTIONS, example).has_other(messages)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OWN.question, False),
        (f"Earlier: which river  flows\nthrough the Capital of Ukraine; now: {OWN.question}", True),
        ("Which river flows through the capital of France?", False),
        ("Short? Short?", False),
        ("", False),
    ],
)
def test_the_words_of_another_question_are_found(text: str, found: bool) -> None:
    assert has_other(Message("user", text)) is found


def test_what_documents_and_tools_say_is_no_memory() -> None:
    page = Example("q0", OWN.question, ("Rossini",), (Document("Quiz", f"A quiz: {OTHER}"),))
    assert not has_other(Message("user", OTHER), example=page)
    assert not has_other(Message("tool", OTHER), Message("user", f"It says {OTHER}"))
    watch = PromptWatch(QUESTIONS, OWN)
    watch.add_result(f"found: {OTHER}")
    assert not watch.has_other([Message("user", OTHER)])


def test_time_grows_with_the_prompt_and_not_with_the_questions() -> None:
    words = [f"word{number}" for number in range(500)]
    draw = random.Random(0)
    many = RunQuestions(" ".join(draw.choices(words, k=12)) for _ in range(10_000))
    few = RunQuestions([OTHER])
    prompt = " ".join(draw.choices(words, k=20_000))

    def seconds(questions: RunQuestions) -> float:
        start = time.process_time()
        questions.found_in(prompt)
        return time.process_time() - start

    assert min(seconds(many) for _ in range(3)) < 10 * min(seconds(few) for _ in range(3))
