"""The search for other questions of a run in the prompts of one: an external agent may remember what it was asked.

watch = PromptWatch(RunQuestions(["Which river flows through Kyiv?", ...]), example)
watch.has_other(messages)       # whether they hold another question, which no document and no tool has told
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rewoo_bench.text.prompts import folded
from rewoo_bench.types import Example, Message

SHORTEST = 30
"""Characters of a question that is looked for: a shorter one may stand in a prompt by chance."""
_FIRST_WORDS = 4
_WORD = re.compile(r"\w+")
_TOOL_RESULT = '"tool_result"'  # in a user's turn of Anthropic's messages

_NO_QUESTIONS: frozenset[tuple[str, ...]] = frozenset()


class RunQuestions:
    """The questions of a run, by their first words."""

    def __init__(self, questions: Iterable[str]) -> None:
        self._by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for words in {_words(question) for question in questions}:
            if len(" ".join(words)) >= SHORTEST and len(words) >= _FIRST_WORDS:
                self._by_start.setdefault(words[:_FIRST_WORDS], set()).add(words)

    def found_in(self, text: str) -> set[tuple[str, ...]]:
        """The questions whose words stand in a text, in their order and with nothing between them."""
        words = _words(text)
        starts = zip(*(words[offset:] for offset in range(_FIRST_WORDS)), strict=False)
        return {
            question
            for position, start in enumerate(starts)
            for question in self._by_start.get(start, ())
            if words[position : position + len(question)] == question
        }


class PromptWatch:
    """Looks for other questions in the prompts of one question, apart from what its documents and tools say.

    An agent may remember what it was asked before. A message that is sent again isn't searched again.
    """

    def __init__(self, questions: RunQuestions, example: Example) -> None:
        self._questions = questions
        self._own = [example.question, *(document.text for document in example.documents)]
        self._in_own: set[tuple[str, ...]] = set()  # questions in texts that were in `_own`

    def add_result(self, text: str) -> None:
        """Adds the result of a tool: what it says isn't the agent's memory."""
        self._own.append(text)

    def has_other(self, messages: Sequence[Message]) -> bool:
        """Whether one of the messages holds another question."""
        found = folded(messages, "questions", self._with_message, _NO_QUESTIONS)
        if found - self._in_own:
            self._in_own |= self._questions.found_in("\n".join(self._own))
            self._own = []
        return bool(found - self._in_own)

    def _with_message(self, before: frozenset[tuple[str, ...]], message: Message) -> frozenset[tuple[str, ...]]:
        if message.role == "tool" or _TOOL_RESULT in message.content:
            self.add_result(message.content)
            return before
        return before | self._questions.found_in(message.content)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
