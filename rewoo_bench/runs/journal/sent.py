"""Which beginnings of a prompt earlier calls had sent, and when.

    sent = Sent(beginnings)
    prompt = sent.prompt(call)
    sent.longest(prompt, call)          # the longest beginning that earlier calls had, and how long ago
    sent.send(prompt, 0, call)

A prompt is cut into pieces, and each piece with all before it is a beginning, which has a number. What is known of
beginnings is in arrays by these numbers, so a call reads and writes all of its prompt's at once.
"""

from __future__ import annotations

import heapq
import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.runs.journal.beginnings import Beginning, Beginnings
from rewoo_bench.runs.journal.records import form_of
from rewoo_bench.text.tokens import TOKENS_BEFORE_ANSWER, TOKENS_PER_MESSAGE, count_tokens

_CHUNK = 128  # characters between two places at which a common prefix may end; so may it after each text
_MOST = 500_000  # beginnings that are remembered; the half that wasn't sent for longest is forgotten
_RECENT = 8  # prompts of a question that a further one is looked for in
_FIRST_TIME = 1.0  # in seconds since 1970; earlier ones are missing, or made up for an order
_NOBODY = -1
_UNKNOWN = np.array(
    (0, 0.0, _NOBODY, False, 0, 0),
    dtype=[
        ("size", "f8"),
        ("time", "f8"),  # when it was last sent
        ("task", "i4"),  # the first question that sent it
        ("by_several", "?"),
        ("tokens", "i4"),  # input tokens of the prompt that was this beginning
        ("used", "i8"),  # number of the last call with it
    ],
)


@dataclass(frozen=True, slots=True)
class SentCall:
    """An answered model call. `number` is its position in `kept`; times are in seconds since 1970.

    `last` is the id of its last message, and `marks` are positions of messages at which a cacheable prefix ends.
    """

    number: int
    task: int
    start: float
    end: float
    input_tokens: int
    last: int
    form: RequestForm
    marks: tuple[int, ...] = ()


class RequestForm(NamedTuple):
    """What a recorded request has beside the contents of its messages, as far as a provider counts it."""

    roles: tuple[str, ...]
    tools: str


class Text(NamedTuple):
    """The end of a message in a prompt: its size up to there, and hashes of the pieces and of the messages.

    Sizes are tokens of the pinned tokenizer, those of a message's beginning in proportion to its characters.
    """

    size: float = 0.0
    beginning: int = 0
    key: int = 0


class Prompt(NamedTuple):
    """The numbers of its beginnings, the shortest first, and the ends of its messages, tools first."""

    pieces: NDArray[np.int64]
    texts: tuple[Text, ...]

    @property
    def size(self) -> float:
        return self.texts[-1].size + TOKENS_BEFORE_ANSWER if self.texts else 0.0


class Sent:
    """When each beginning was last sent, and by which questions.

    A call sends its prompt when it ends; what it finds of it, it sends when it begins, too: a hit begins a lifetime
    anew.
    """

    def __init__(self, beginnings: Beginnings) -> None:
        self._beginnings = beginnings
        self._numbers: dict[int, int] = {}  # by the hash of a beginning
        self._known = np.full(1024, _UNKNOWN)
        self._pending: list[tuple[float, int, SentCall, Prompt]] = []
        self._own: dict[int, set[int]] = {}  # the beginnings that each question's finished calls had
        self._recent: dict[int, dict[tuple[str, int], Prompt]] = {}  # prompts of each question
        self._marked: dict[int, int | None] = {}  # by the key of a marked text, the tokens of a prompt that it ends
        self.longest_of: dict[int, int] = {}
        """Input tokens of the longest prompt that each question sent."""

    def prompt(self, call: SentCall) -> Prompt:
        """The prompt of a call, with numbers for beginnings that are new."""
        if len(self._numbers) > _MOST:
            self._forget_oldest()
        recent, tools = self._recent.setdefault(call.task, {}), call.form.tools
        rest: list[Beginning] = []
        last = call.last
        while last and (tools, last) not in recent:
            rest.append(self._beginnings.part(last))
            last = rest[-1].before
        before = recent[tools, last] if last else Prompt(np.empty(0, dtype=np.int64), ())
        new = [*map(self._text, reversed(rest))]
        if tools and not last:  # a schema that constrains the reply is in no count of tokens
            new.insert(0, (tools, hash(tools)))
        pieces, texts, end = list[int](), [*before.texts], before.texts[-1] if before.texts else Text()
        for text, id_ in new:
            begin, tokens = end.size, count_tokens(text) + (0 if text is tools else TOKENS_PER_MESSAGE)
            for start in range(0, len(text), _CHUNK):
                piece = text[start : start + _CHUNK]
                size = begin + tokens * (start + len(piece)) / len(text)
                end = Text(size, hash((end.beginning, piece)), end.key)
                pieces.append(self._number(end))
            end = end._replace(size=begin + tokens, key=hash((end.key, id_)))
            texts.append(end)
        prompt = Prompt(np.concatenate([before.pieces, np.array(pieces, dtype=np.int64)]), tuple(texts))
        recent[tools, call.last] = prompt
        if len(recent) > _RECENT:
            del recent[next(iter(recent))]
        return prompt

    def longest(self, prompt: Prompt, call: SentCall) -> tuple[int, float, int, float]:
        """Of the beginnings that earlier calls of the question had, the length of the longest, and its age.

        And the same of those that calls of other questions had; 0 and NaN where there is none.
        """
        while self._pending and self._pending[0][0] <= call.start:
            self._settle(*heapq.heappop(self._pending)[2:])
        known, own = self._known[prompt.pieces], _length_among(prompt, self._own.get(call.task, set()))
        by_others = (known["task"] != call.task) & (known["task"] != _NOBODY) | known["by_several"]
        others = int(by_others.sum())

        def age(length: int) -> float:
            time = known["time"][length - 1] if length else 0.0
            return call.start - time if min(time, call.start) >= _FIRST_TIME else math.nan

        return own, age(own), others, age(others)

    def longest_marked(self, prompt: Prompt, marks: Sequence[int]) -> int | None:
        """The last text of the longest beginning, up to the last mark, that an earlier call has marked."""
        positions = range(marks[-1], -1, -1) if marks else ()
        return next((position for position in positions if prompt.texts[position].key in self._marked), None)

    def tokens_at(self, text: Text, otherwise: int) -> int:
        """Those of a whole prompt that a marked text ended."""
        tokens = self._marked.get(text.key)
        return otherwise if tokens is None else tokens

    def send(self, prompt: Prompt, found: int, call: SentCall) -> None:
        """`found` is the length of what earlier calls had of the prompt."""
        self._known["used"][prompt.pieces] = call.number
        self._use(prompt.pieces[:found], call.task, call.start)
        self._own.setdefault(call.task, set())
        heapq.heappush(self._pending, (call.end, call.number, call, prompt))

    def forget(self, task: int) -> None:
        """Forgets which beginnings were those of a question: its last call was sent."""
        for of_task in (self._own, self._recent, self.longest_of):
            of_task.pop(task, None)

    def size(self, prompt: Prompt, length: int) -> float:
        """That of its first pieces."""
        return float(self._known["size"][prompt.pieces[length - 1]])

    def tokens(self, prompt: Prompt, length: int, otherwise: int) -> int:
        """Those of the whole prompt that this beginning was."""
        return int(self._known["tokens"][prompt.pieces[length - 1]]) or otherwise

    def _settle(self, call: SentCall, prompt: Prompt) -> None:
        """Adds what a call sent that has ended. Where its text or its tokens weren't recorded, it bounds no others."""
        self._use(prompt.pieces, call.task, call.end)
        tokens = call.input_tokens if len(prompt.pieces) else 0
        if (own := self._own.get(call.task)) is not None:
            own.update(prompt.pieces[_length_among(prompt, own) :].tolist())
            self.longest_of[call.task] = max(tokens, self.longest_of.get(call.task, 0))
        if tokens:
            self._known["tokens"][prompt.pieces[-1]] = tokens
        for mark in marks_of(call, prompt):
            key = prompt.texts[mark].key
            is_whole = mark == len(prompt.texts) - 1 and tokens
            self._marked[key] = tokens if is_whole else self._marked.get(key)

    def _use(self, pieces: NDArray[np.int64], task: int, now: float) -> None:
        self._known["time"][pieces] = now
        first = self._known["task"][pieces]
        self._known["by_several"][pieces] |= (first != task) & (first != _NOBODY)
        self._known["task"][pieces[first == _NOBODY]] = task

    def _number(self, end: Text) -> int:
        number = self._numbers.setdefault(end.beginning, len(self._numbers))
        if number == len(self._known):
            self._known = np.concatenate([self._known, np.full(number, _UNKNOWN)])
        self._known["size"][number] = end.size
        return number

    def _text(self, part: Beginning) -> tuple[str, int]:
        """The content of a message with its tool calls, which a provider reads as text, too; and its id."""
        content = self._beginnings.text(part.text)
        _, (calls, answers) = form_of(part.form)
        if not calls and answers is None:
            return content, part.text
        return content + json.dumps(calls), hash((part.text, json.dumps(calls)))

    def _forget_oldest(self) -> None:
        known = self._known[: len(self._numbers)]
        kept = known["used"] > np.median(known["used"])
        new = np.where(kept, np.cumsum(kept) - 1, _NOBODY)
        self._numbers = {beginning: int(new[old]) for beginning, old in self._numbers.items() if kept[old]}
        self._known = np.concatenate([known[kept], np.full(len(known), _UNKNOWN)])
        self._own = {task: {int(new[old]) for old in own if kept[old]} for task, own in self._own.items()}
        self._recent.clear()
        self._pending = [
            (end, number, call, prompt._replace(pieces=new[prompt.pieces[kept[prompt.pieces]]]))
            for end, number, call, prompt in self._pending
        ]


def _length_among(prompt: Prompt, beginnings: set[int]) -> int:
    """How many of its beginnings are among these: with one all shorter ones are."""
    return bisect_left(prompt.pieces, True, key=lambda number: number not in beginnings)


def marks_of(call: SentCall, prompt: Prompt) -> list[int]:
    """The texts of the prompt that cacheable prefixes end at: tools come before the messages."""
    return [at for mark in call.marks if (at := mark + bool(call.form.tools)) < len(prompt.texts)]
