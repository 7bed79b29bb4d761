"""A metered call, the limits of a question, and the search for other questions in its prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from rewoo_bench.events import Place, TimeSpan, union_s
from rewoo_bench.text.tokens import PromptParts
from rewoo_bench.types import CallCost, Example, Message, Usage

_NO_PARTS = PromptParts()


def content_of(*parts: object) -> bytes:
    """The `content` of a call."""
    return sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()[:16]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one question; None is no limit. `cost_usd` needs a known price."""

    tokens: int | None = None
    time_s: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A model or tool call. `start` and `end` are seconds of the monotonic clock.

    `usage` is logical (needed by the architecture); `call_cost.billed` is what was paid.
    """

    index: int
    kind: str
    name: str
    role: str
    place: Place
    status: str
    start: float
    end: float
    started_at: datetime
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    call_cost: CallCost = field(default_factory=CallCost)
    prompt_parts: PromptParts = _NO_PARTS
    thoughts: str = ""
    discarded_tokens: int = 0
    repairs: tuple[str, ...] = ()
    content: bytes = b""
    """A hash of what the call did: a reply with the calls that it asks for, or a tool's arguments and result."""
    not_recorded: bool = False
    """Whether a tool that answers from a recording didn't find the call there."""
    startups: tuple[TimeSpan, ...] = ()
    """When the call waited for something to start (events.py)."""

    @property
    def latency_s(self) -> float:
        """Seconds of the call, without those in which it waited for something to start."""
        return self.end - self.start - union_s(self.startups)

    @property
    def waiting_s(self) -> float:
        """Seconds spent queueing and backing off."""
        return sum(end - start for start, end in self.call_cost.waiting)


SHORTEST = 30
"""Characters of a question that is looked for: a shorter one may stand in a prompt by chance."""
_FIRST_WORDS = 4
_WORD = re.compile(r"\w+")
_TOOL_RESULT = '"tool_result"'  # in a user's turn of Anthropic's messages


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
        self._seen: set[int] = set()

    def add_result(self, text: str) -> None:
        """Adds the result of a tool: what it says isn't the agent's memory."""
        self._own.append(text)

    def has_other(self, messages: Sequence[Message]) -> bool:
        """Whether one of the messages that weren't sent before holds another question."""
        found: set[tuple[str, ...]] = set()
        for message in messages:
            if hash(message.content) in self._seen:
                continue
            self._seen.add(hash(message.content))
            if message.role == "tool" or _TOOL_RESULT in message.content:
                self.add_result(message.content)
            else:
                found |= self._questions.found_in(message.content)
        return bool(found) and bool(found - self._questions.found_in("\n".join(self._own)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
