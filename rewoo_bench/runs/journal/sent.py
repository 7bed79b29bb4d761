"""Which beginnings of a prompt earlier calls had sent, and when: in a tree of pieces of text a prompt is a place.

    sent, prompts = Sent(), Prompts(beginnings, sent)
    place = prompts.place(call)
    sent.longest(place, call)           # the longest beginning that earlier calls had, and how long ago
    sent.send(place, 0, call)

A branch has the pieces of one prompt after another that begin with all before it; a prompt that departs from it is a
branch of its own. Times and senders are kept for the beginnings of a branch by their lengths. So a call takes time for
what is new in its prompt and for the branches on its way, not for the whole prompt.
"""

from __future__ import annotations

import heapq
import json
import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.beginnings import Beginning, Beginnings
from rewoo_bench.runs.journal.records import form_of

_CHUNK = 128  # characters between two places at which a common prefix may end; so may it after each text
_MOST = 500_000  # prefixes that are remembered; the branches not sent for longest are forgotten
_FINISHED = -1
_FIRST_TIME = 1.0  # in seconds since 1970; earlier ones are missing, or made up for an order


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
    """What a recorded request has beside the contents of its messages; `calls` are the tool calls of each message."""

    roles: tuple[str, ...]
    tools: str
    schema: str
    calls: tuple[str, ...]


class _Branch:
    """Pieces of text from a length on, by which prompts go on that have the same pieces before.

    Lengths are numbers of pieces from the prompt's beginning. `depths` and `times` say when beginnings were sent last:
    those of up to `-depths[n]` pieces at `times[n]`, if not later. `of` has the longest one that each question's
    finished calls had; `first` and `second` are the two longest of different questions, begun calls included.
    """

    __slots__ = (
        *("branches", "depths", "ends", "first", "first_task", "of", "parent", "pieces"),
        *("second", "start", "times", "tokens"),
    )

    def __init__(self, parent: _Branch | None, start: int) -> None:
        self.parent = parent
        self.start = start
        self.pieces = array("q")  # their hashes
        self.ends = array("q")  # in characters from the prompt's beginning
        self.branches: dict[tuple[int, int], _Branch] = {}
        self.depths: list[int] = []
        self.times: list[float] = []
        self.of: dict[int, int] | None = None  # while questions that have sent it go on
        self.first_task, self.first, self.second = _FINISHED - 1, start, start
        self.tokens: dict[int, int] = {}
        """Input tokens of the prompts that were sent, by their lengths."""

    def note(self, depth: int, task: int, now: float) -> None:
        while self.depths and -self.depths[-1] <= depth:
            self.depths.pop()
            self.times.pop()
        self.depths.append(-depth)
        self.times.append(now)
        if task == self.first_task:
            self.first = max(self.first, depth)
        elif depth > self.first:
            self.first_task, self.first, self.second = task, depth, self.first
        else:
            self.second = max(self.second, depth)

    def by_others(self, task: int) -> int:
        """The longest beginning that other questions have sent."""
        return self.second if task == self.first_task else self.first

    def time_of(self, depth: int) -> float:
        return self.times[bisect_right(self.depths, -depth) - 1]


class Text:
    """The end of a message on the way to a prompt's end; `key` is the same for the same messages up to there."""

    __slots__ = ("branch", "characters", "depth", "key")

    def __init__(self, branch: _Branch, depth: int, characters: int, key: int) -> None:
        self.branch = branch
        self.depth = depth
        self.characters = characters
        self.key = key


class Place:
    """A prompt's end in the tree, and the ends of its messages on the way there, tools first."""

    __slots__ = ("_length", "_texts")

    def __init__(self, texts: list[Text], length: int) -> None:
        self._texts = texts  # there may be more, of the prompts that go on with this one
        self._length = length

    def __len__(self) -> int:
        return self._length

    def text(self, position: int) -> Text:
        return self._texts[position]

    @property
    def depth(self) -> int:
        """The length of the prompt in pieces."""
        return self._texts[self._length - 1].depth if self._length else 0

    @property
    def characters(self) -> int:
        return self._texts[self._length - 1].characters if self._length else 0

    def branches(self) -> Iterator[tuple[_Branch, int]]:
        """The branches on the way, from the last one on, and how long the prompt is up to where it leaves each."""
        if not self._length:
            return
        branch: _Branch | None = self._texts[self._length - 1].branch
        depth = self._texts[self._length - 1].depth
        while branch is not None:
            yield branch, depth
            depth = branch.start
            branch = branch.parent

    def branch_of(self, depth: int) -> _Branch:
        return next(branch for branch, _ in self.branches() if branch.start < depth)

    def characters_of(self, depth: int) -> int:
        branch = self.branch_of(depth)
        return branch.ends[depth - branch.start - 1]

    def tokens_of(self, depth: int, otherwise: int) -> int:
        """Those of the whole prompt that this beginning was."""
        return self.branch_of(depth).tokens.get(depth, otherwise)

    def extended(self, end: Text) -> Place:
        """The place of the prompt with a further text."""
        texts = self._texts
        if len(texts) > self._length:
            texts = texts[: self._length]
        texts.append(end)
        return Place(texts, self._length + 1)


class Sent:
    """When each beginning was last sent, and by which question.

    A call sends its prompt when it ends; what it finds of it, it sends when it begins, too: a hit begins a lifetime
    anew.
    """

    def __init__(self) -> None:
        self.root = _Branch(None, 0)
        self._size = 0
        self._branches: dict[_Branch, None] = {}  # the one not sent for longest first
        self._of_task: defaultdict[int, set[_Branch]] = defaultdict(set)
        self._pending: list[tuple[float, int, int, Place, int]] = []
        self.longest_of: dict[int, int] = {}
        """Input tokens of the longest prompt that each question sent."""

    def grown(self, branch: _Branch, depth: int, pieces: Sequence[str]) -> tuple[_Branch, int]:
        """Where a text ends that begins at a place in the tree."""
        for text in pieces:
            piece = hash(text)
            at = depth - branch.start
            if at < len(branch.pieces) and branch.pieces[at] == piece:
                depth += 1
                continue
            if (next_ := branch.branches.get((depth, piece))) is None:
                before = branch.ends[at - 1] if at else self._characters(branch)
                next_ = branch
                if at < len(branch.pieces):
                    next_ = branch.branches[depth, piece] = _Branch(branch, depth)
                next_.pieces.append(piece)
                next_.ends.append(before + len(text))
                self._size += next_ in self._branches
            branch, depth = next_, depth + 1
        return branch, depth

    def _characters(self, branch: _Branch) -> int:
        """Those before a branch."""
        parent = branch.parent
        return 0 if parent is None or not branch.start else parent.ends[branch.start - parent.start - 1]

    def longest(self, place: Place, call: SentCall) -> tuple[int, float, int, float]:
        """Of the beginnings that earlier calls of the question had, the length of the longest, and its age.

        And the same of those that calls of other questions had; 0 and NaN where there is none.
        """
        while self._pending and self._pending[0][0] <= call.start:
            end, _, task, sent, tokens = heapq.heappop(self._pending)
            self._use(sent, sent.depth, task, end)
            for branch, depth in sent.branches() if task != _FINISHED else ():
                branch.of = branch.of or {}
                branch.of[task] = max(depth, branch.of.get(task, 0))
                self._of_task[task].add(branch)
            if task != _FINISHED:
                self.longest_of[task] = max(tokens, self.longest_of.get(task, 0))
            if tokens:
                last = sent.text(len(sent) - 1)
                last.branch.tokens[last.depth] = tokens
        own = others = 0
        ages = [math.nan, math.nan]
        for branch, depth in place.branches():
            found = min(depth, branch.of.get(call.task, 0)) if branch.of else 0
            if not own and found > branch.start:
                own, ages[0] = found, self._age(branch, found, call.start)
            found = min(depth, branch.by_others(call.task))
            if not others and found > branch.start:
                others, ages[1] = found, self._age(branch, found, call.start)
        return own, ages[0], others, ages[1]

    def _age(self, branch: _Branch, depth: int, now: float) -> float:
        time = branch.time_of(depth)
        return now - time if min(time, now) >= _FIRST_TIME else math.nan

    def send(self, place: Place, found: int, call: SentCall) -> None:
        """`found` is the length of what earlier calls had of the prompt."""
        self._use(place, found, call.task, call.start)
        tokens = call.input_tokens if place.depth else 0
        heapq.heappush(self._pending, (call.end, call.number, call.task, place, tokens))

    def forget(self, task: int) -> None:
        """Forgets which beginnings were those of a question: its last call was sent."""
        for branch in self._of_task.pop(task, ()):
            if branch.of and branch.of.pop(task) and not branch.of:
                branch.of = None
        self.longest_of.pop(task, None)
        self._pending = [
            (end, number, _FINISHED if of == task else of, place, tokens)
            for end, number, of, place, tokens in self._pending
        ]

    def _use(self, place: Place, length: int, task: int, now: float) -> None:
        for branch, depth in place.branches():
            if length > branch.start:
                branch.note(min(depth, length), task, now)
                if branch in self._branches:
                    del self._branches[branch]
                else:
                    self._size += len(branch.pieces)
                self._branches[branch] = None
        while self._size > _MOST and len(self._branches) > 1:  # the root is the last one: all prompts go through it
            oldest = next(iter(self._branches))
            del self._branches[oldest]
            self._size -= len(oldest.pieces)
            if oldest.parent is not None:
                oldest.parent.branches.pop((oldest.start, oldest.pieces[0]), None)


class Prompts:
    """The places of recorded prompts. Those of a question are remembered until it is forgotten."""

    def __init__(self, beginnings: Beginnings, sent: Sent) -> None:
        self._beginnings = beginnings
        self._sent = sent
        self._places: defaultdict[int, dict[tuple[str, int], Place]] = defaultdict(dict)

    def place(self, call: SentCall) -> Place:
        """Raises `DataError` where texts are missing."""
        known, tools = self._places[call.task], call.form.tools
        rest: list[Beginning] = []
        last = call.last
        while last and (tools, last) not in known:
            rest.append(self._beginnings.part(last))
            last = rest[-1].before
        if last:
            place = known[tools, last]
        else:
            place = Place([], 0)
            if tools:  # a schema that constrains the reply is in no count of tokens
                place = self._with_text(place, tools, hash(tools))
        for part in reversed(rest):
            place = known[tools, part.id] = self._with_text(place, *self._text(part))
        return place

    def forget(self, task: int) -> None:
        self._places.pop(task, None)

    def _with_text(self, place: Place, text: str, id_: int) -> Place:
        before = place.text(len(place) - 1) if len(place) else Text(self._sent.root, 0, 0, 0)
        pieces = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
        branch, depth = self._sent.grown(before.branch, before.depth, pieces)
        return place.extended(Text(branch, depth, before.characters + len(text), hash((before.key, id_))))

    def _text(self, part: Beginning) -> tuple[str, int]:
        """The content of a message with its tool calls, which a provider reads as text, too; and its id."""
        content = self._beginnings.text(part.text)
        if content is None:
            raise DataError("texts of its prompts are missing or damaged")
        _, (calls, answers) = form_of(part.form)
        if not calls and answers is None:
            return content, part.text
        return content + json.dumps(calls), hash((part.text, json.dumps(calls)))


class Marked:
    """When beginnings that end at a mark of a request were sent."""

    def __init__(self) -> None:
        self._sent: dict[int, None] = {}  # by the key of their last text, the one not sent for longest first
        self._pending: list[tuple[float, int, list[int], int]] = []
        self.tokens_of: dict[int, int] = {}
        """Input tokens of the prompts that ended at a mark."""

    def longest(self, place: Place, marks: Sequence[int], call: SentCall) -> int | None:
        """The last text of the longest beginning, up to the last mark, that an earlier call has marked."""
        while self._pending and self._pending[0][0] <= call.start:
            _, _, keys, tokens = heapq.heappop(self._pending)
            self._use(keys)
            if tokens:
                self.tokens_of[keys[-1]] = tokens
        positions = range(marks[-1], -1, -1) if marks else ()
        return next((position for position in positions if place.text(position).key in self._sent), None)

    def send(self, place: Place, marks: Sequence[int], found: int | None, call: SentCall) -> None:
        if found is not None:
            self._use([place.text(found).key])
        keys = [place.text(mark).key for mark in marks]
        tokens = call.input_tokens if marks and marks[-1] == len(place) - 1 else 0
        heapq.heappush(self._pending, (call.end, call.number, keys, tokens))

    def _use(self, keys: Sequence[int]) -> None:
        for key in keys:
            self._sent.pop(key, None)
            self._sent[key] = None
        while len(self._sent) > _MOST:
            oldest = next(iter(self._sent))
            del self._sent[oldest]
            self.tokens_of.pop(oldest, None)
