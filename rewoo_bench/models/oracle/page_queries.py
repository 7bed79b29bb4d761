"""How a plan asks for a page that it can't name yet: by values that earlier steps will find.

    PageQueries(example).query(1)     # "{0}": the value of hop 0 is the page's title
    PageQueries(example).query(2)     # "{1} shares border with": it isn't, and with these words the search finds it

Each query is tried on the question's documents with the gold values put in. Where no such query finds the page, it is
asked for by its title, without waiting for anything.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from rewoo_bench.models.oracle.lookup_path import fill
from rewoo_bench.text.bm25 import bm25
from rewoo_bench.text.words import fold, terms, title_key, without_disambiguation
from rewoo_bench.types import Example


@dataclass(frozen=True)
class PageQueries:
    """The queries of one question."""

    example: Example

    def query(self, number: int) -> str:
        """The query for a hop that needs others; `{0}` in it stands for the value of hop 0."""
        hop = self.example.chain[number]
        named = [need for need in hop.needs if self._is_in(need, hop.title)]
        if not self.example.documents:  # the pages of a corpus aren't at hand
            return f"{{{(named or list(hop.needs))[0]}}}"
        values = " ".join(f"{{{need}}}" for need in hop.needs)
        queries = [*(f"{{{need}}}" for need in named), f"{values} {hop.ask}".strip(), f"{values} {hop.title}"]
        return next((query for query in queries if self._finds(query, hop.title)), hop.title)

    def _is_in(self, need: int, title: str) -> bool:
        value = fold(self.example.chain[need].value)
        return bool(value) and value in fold(title)

    def _finds(self, query: str, title: str) -> bool:
        """Whether Search shows this page for a query, once the values are known: by its title, else by BM25."""
        words = fill(query, lambda need: self.example.chain[need].value)
        key, pages = title_key(words), self.example.documents
        named = [page for page in pages if title_key(page.title) == key]
        alike = named or [page for page in pages if title_key(without_disambiguation(page.title)) == key]
        if named or len(alike) == 1:
            return alike[0].title == title
        scores = bm25(terms(words), self._counts)
        return pages[max(range(len(pages)), key=lambda page: scores[page])].title == title

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return [Counter(terms(f"{page.title}\n{page.text}")) for page in self.example.documents]
