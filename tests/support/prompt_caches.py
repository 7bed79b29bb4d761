"""A provider's prompt cache, played on the prompts of a journal in the order in which they were sent.

It looks at the prompts themselves, so it is what the columns of calls.parquet are held against.

    cached, written = replayed(folder, rule)            # of each row of questions.parquet
    AutomaticCache(rule).send(call, prompt)             # of one call

A prefix can be found from the end of the call that sent it on: calls at the same time don't find each other's.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.config.price_sheets import CacheRule
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.journal.beginnings import Beginnings
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.prefixes import recorded_calls
from rewoo_bench.runs.journal.records import form_of
from rewoo_bench.runs.journal.sent import SentCall
from rewoo_bench.text.tokens import TOKENS_BEFORE_ANSWER, TOKENS_PER_MESSAGE, count_tokens

CHUNK = 128  # characters between two places at which a common prefix may end; so may it after each text


class Found(NamedTuple):
    """Input tokens of a call that came from the cache, and that were written to it."""

    cached: int
    written: int


class PrefixTimes:
    """When each prefix was last sent. `lifetime_s` None keeps all of them. A prefix is known by a hash of its texts."""

    def __init__(self, lifetime_s: float | None) -> None:
        self._lifetime_s = math.inf if lifetime_s is None else lifetime_s
        self._used: dict[int, float] = {}
        self._pending: list[tuple[float, int, Sequence[int]]] = []
        self._sent = 0

    def settle(self, now: float) -> None:
        """Adds the prefixes of the calls that have ended."""
        while self._pending and self._pending[0][0] <= now:
            end, _, prefixes = heapq.heappop(self._pending)
            self.hit(prefixes, end)

    def has(self, prefix: int, now: float) -> bool:
        used = self._used.get(prefix)
        return used is not None and now - used <= self._lifetime_s

    def hit(self, prefixes: Sequence[int], now: float) -> None:
        """Begins the lifetime of used prefixes anew."""
        self._used.update(dict.fromkeys(prefixes, now))

    def add(self, prefixes: Sequence[int], end: float) -> None:
        """Prefixes of a call that ends then."""
        self._sent += 1
        heapq.heappush(self._pending, (end, self._sent, prefixes))


class Prompt(NamedTuple):
    """The texts of a request in the order in which a provider reads them, and where prefixes are marked."""

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    sizes: tuple[int, ...]
    """Tokens of the texts."""
    marks: tuple[int, ...]


def prompt_of(beginnings: Beginnings, call: SentCall) -> Prompt:
    texts = [call.form.tools] if call.form.tools else []
    sizes = [count_tokens(text) for text in texts]
    marks = tuple(mark + len(texts) for mark in call.marks)
    for part in beginnings.parts(call.last):
        _, (calls, answers) = form_of(part.form)
        texts.append(beginnings.text(part.text) + (json.dumps(calls) if calls or answers else ""))
        sizes.append(count_tokens(texts[-1]) + TOKENS_PER_MESSAGE)
    return Prompt(tuple(map(hash, texts)), tuple(texts), tuple(sizes), marks)


class AutomaticCache:
    """Finds the longest prefix of earlier prompts."""

    def __init__(self, rule: CacheRule) -> None:
        self._rule = rule
        self._times = PrefixTimes(rule.lifetime_s)
        self._tokens: dict[int, int] = {}  # of whole prompts

    def send(self, call: SentCall, prompt: Prompt) -> Found:
        self._times.settle(call.start)
        prefixes, ends = _prefixes(prompt)
        whole = ends[-1] + TOKENS_BEFORE_ANSWER
        known = 0
        while known < len(prefixes) and self._times.has(prefixes[known], call.start):
            known += 1
        self._times.hit(prefixes[:known], call.start)
        self._times.add(prefixes, call.end)
        share = ends[known - 1] / whole if known else 0.0
        if known and prefixes[known - 1] in self._tokens:
            share = self._tokens[prefixes[known - 1]] / call.input_tokens
        if prefixes:
            self._tokens[prefixes[-1]] = call.input_tokens
        return _whole_blocks(self._rule, call.input_tokens, share)


class ExplicitCache:
    """Finds prefixes that end at a mark of an earlier request."""

    def __init__(self, rule: CacheRule) -> None:
        self._rule = rule
        self._times = PrefixTimes(rule.lifetime_s)
        self._tokens: dict[int, int] = {}  # of whole prompts
        self._largest: dict[tuple[int, int], int] = {}  # tokens of a question's prompts that begin with a prefix

    def send(self, call: SentCall, prompt: Prompt) -> Found:
        self._times.settle(call.start)
        least = self._rule.minimum_prefix_tokens or 0
        ends = list(accumulate(prompt.sizes))
        sizes = [round(call.input_tokens * end / (ends[-1] + TOKENS_BEFORE_ANSWER)) for end in ends]
        sizes[-1:] = [call.input_tokens] if sizes else []
        prefixes = list(accumulate(prompt.ids, lambda before, id_: hash((before, id_)), initial=0))[1:]
        marks = [mark for mark in prompt.marks if mark < len(sizes) and sizes[mark] >= least]
        found = max((self._longest(prefixes, mark, call.start) for mark in marks), default=-1)
        cached = sizes[found] if found >= 0 else 0
        if found >= 0 and prefixes[found] in self._tokens:
            cached = self._tokens[prefixes[found]]
        if found >= 0:  # no beginning of a prompt has more tokens than the prompt
            cached = min(cached, self._largest.get((call.task, prefixes[found]), cached))
        if prefixes:
            self._tokens[prefixes[-1]] = call.input_tokens
        for prefix in prefixes:
            key = call.task, prefix
            self._largest[key] = max(call.input_tokens, self._largest.get(key, 0))
        self._times.hit(prefixes[found : found + 1] if found >= 0 else (), call.start)
        self._times.add([prefixes[mark] for mark in marks], call.end)
        return Found(cached, max(0, sizes[marks[-1]] - cached) if marks else 0)

    def _longest(self, prefixes: Sequence[int], mark: int, now: float) -> int:
        """The position of the last text of the longest known prefix up to a mark; -1 where there is none."""
        return next((position for position in range(mark, -1, -1) if self._times.has(prefixes[position], now)), -1)


def replayed(folder: Path, rule: CacheRule) -> NDArray[np.int64]:
    """Cached and written tokens of each row of a run whose roles all have one model."""
    rows = load(folder)
    keys = zip(rows["architecture"], rows["example_id"], rows["trial"], strict=True)
    places = {json.dumps([name, id_, trial]): place for place, (name, id_, trial) in enumerate(keys)}
    found = np.zeros((len(rows), 2), dtype=np.int64)
    caches: dict[object, AutomaticCache | ExplicitCache] = {}
    with closing(connect_to_read(folder / "journal.sqlite")) as database:
        beginnings = Beginnings(database)
        for recorded in recorded_calls(database, beginnings):
            new = AutomaticCache if rule.kind == "automatic" else ExplicitCache
            cache = caches.setdefault(recorded.group, new(rule))
            found[places[recorded.key[0]]] += cache.send(recorded.sent, prompt_of(beginnings, recorded.sent))
    return found


@lru_cache(maxsize=2_000)
def _chunks(text: str) -> tuple[tuple[int, int], ...]:
    """Hash and length of each piece of a text."""
    pieces = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
    return tuple((hash(piece), len(piece)) for piece in pieces)


def _prefixes(prompt: Prompt) -> tuple[list[int], list[float]]:
    """The prefixes of a prompt at which a common one may end, as hashes, and their tokens."""
    prefixes: list[int] = []
    ends: list[float] = []
    before, begin = 0, 0.0
    for text, size in zip(prompt.texts, prompt.sizes, strict=True):
        read = 0
        for piece, length in _chunks(text):
            before = hash((before, piece))
            read += length
            prefixes.append(before)
            ends.append(begin + size * read / len(text))
        begin += size
    return prefixes, ends or [0.0]


def _whole_blocks(rule: CacheRule, input_tokens: int, share: float) -> Found:
    """A share of a prompt in whole blocks. The last token is always computed: it gives the first of the answer."""
    block, least = rule.block_tokens or 1, rule.minimum_prefix_tokens or 0
    if input_tokens < least:
        return Found(0, 0)
    common = min(int(input_tokens * share + 1e-9), input_tokens - 1)
    cached = common // block * block
    cached = cached if cached >= max(least, 1) else 0
    return Found(cached, input_tokens // block * block - cached)
