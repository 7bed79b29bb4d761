"""The way to an answer: which page is looked up next, and what of it was found.

LookupPath(example).next_queries(asked=["kyiv"], seen="Kyiv: … the Dnieper …")  ->  ["Dnieper"]

A hop is found where what was seen holds its value (or its page, for one without a value), and it can
be looked up once the hops that it needs are found. A page that doesn't show its value is asked for
once more in other words, and then left.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from rewoo_bench.text.words import fold
from rewoo_bench.types import Example, Hop

UNKNOWN = "unknown"
_MORE = ("history", "overview", "details", "facts", "sources", "background")
_WHICH = "which name leads on"


@dataclass(frozen=True)
class LookupPath:
    """The gold chain of a question, with the faults that the oracle is to make on it."""

    example: Example
    extra_steps: int = 0
    wrong_title: float = 0.0
    seed: int = 0

    @property
    def hops(self) -> tuple[Hop, ...]:
        return self.example.chain

    def next_queries(self, queried: Collection[str], seen: str) -> list[str]:
        """What may be searched for now, in the order of the chain; empty at its end. `asked` is folded."""
        queries = [self._next(number, queried) for number in range(len(self.hops)) if self._open(number, seen)]
        waiting = [query for query in queries if query]
        return waiting or [query for query in self.extras if fold(query) not in queried][:1]

    def found(self, number: int, seen: str) -> bool:
        """Whether what was seen shows what this hop is for."""
        hop = self.hops[number]
        return fold(hop.value or f"{hop.title}:") in fold(seen)

    def answer(self, seen: str) -> str:
        """The gold answer where what was seen shows all of the way to it, else `unknown`."""
        shown = all(self.found(number, seen) for number in range(len(self.hops)))
        return self.example.answers[0] if shown else UNKNOWN

    def sub_question(self, number: int) -> str:
        """What is asked about the page of a hop."""
        ask = self.hops[number].ask or _WHICH
        return f"{ask[0].upper()}{ask[1:]}?"

    def query(self, number: int) -> str:
        """What a hop's page is first looked for under."""
        return self.wrong(number) or self.hops[number].title

    def wrong(self, number: int) -> str:
        """The wrong title that a hop's page is first looked for under; empty where it is the right one."""
        place = f"{self.seed}:{self.example.id}:{number}".encode()
        drawn = int.from_bytes(sha256(place).digest()[:8], "big")
        if drawn >= self.wrong_title * 2**64:
            return ""
        gold = {hop.title for hop in self.hops}
        others = [page.title for page in self.example.documents if page.title not in gold]
        return others[drawn % len(others)] if others else self.hops[number].title[::-1]

    @cached_property
    def extras(self) -> list[str]:
        """Searches that aren't needed."""
        titles = [hop.title for hop in self.hops] or [self.example.question]
        return [f"{titles[i % len(titles)]} {_MORE[i % len(_MORE)]} {i + 1}" for i in range(self.extra_steps)]

    def _open(self, number: int, seen: str) -> bool:
        return not self.found(number, seen) and all(self.found(need, seen) for need in self.hops[number].needs)

    def _next(self, number: int, queried: Collection[str]) -> str | None:
        title = self.hops[number].title
        again = f"{title} {self.hops[number].ask}".strip()
        tries = [query for query in (self.wrong(number), title, again) if query]
        return next((query for query in tries if fold(query) not in queried), None)
