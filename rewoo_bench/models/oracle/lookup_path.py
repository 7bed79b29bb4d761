"""The lookups that lead to an answer: the next pages to search for, and the hops that are already found.

LookupPath(example).next_queries(queried=["kyiv"], seen="Kyiv: … the Dnieper …")  ->  ["Dnieper"]

A hop is found if the text seen so far has its value (or its page, if the hop has no value). It can be looked up
once the hops that it needs are found. If a page doesn't show its value, it is searched for once more in
other words, and then given up.
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
    """The gold chain of a question, with the faults that the oracle should make."""

    example: Example
    extra_steps: int = 0
    wrong_title: float = 0.0
    seed: int = 0

    @property
    def hops(self) -> tuple[Hop, ...]:
        return self.example.chain

    def next_queries(self, queried: Collection[str], seen: str) -> list[str]:
        """The queries that are possible now, in the order of the chain; empty at its end. `queried` is folded."""
        queries = [self._next(number, queried) for number in range(len(self.hops)) if self._open(number, seen)]
        waiting = [query for query in queries if query]
        return waiting or [query for query in self.extras if fold(query) not in queried][:1]

    def found(self, number: int, seen: str) -> bool:
        """Whether the text seen so far shows this hop's value."""
        hop = self.hops[number]
        return fold(hop.value or f"{hop.title}:") in fold(seen)

    def answer(self, seen: str) -> str:
        """The gold answer if the text seen so far shows every hop, else `unknown`."""
        shown = all(self.found(number, seen) for number in range(len(self.hops)))
        return self.example.answers[0] if shown else UNKNOWN

    def sub_question(self, number: int) -> str:
        """The question about the page of a hop."""
        ask = self.hops[number].ask or _WHICH
        return f"{ask[0].upper()}{ask[1:]}?"

    def query(self, number: int) -> str:
        """The first query for a hop's page."""
        return self.wrong(number) or self.hops[number].title

    def wrong(self, number: int) -> str:
        """The wrong title of the first query for a hop's page; empty where the title is right."""
        key = f"{self.seed}:{self.example.id}:{number}".encode()
        drawn = int.from_bytes(sha256(key).digest()[:8], "big")
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
