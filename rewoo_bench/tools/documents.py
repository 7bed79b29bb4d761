"""Pages that a search tool can find, and a store of the documents that come with a question.

    pages = DocumentPages(example.documents)
    pages.find("shirley temple")            # the page of that title, or None
    pages.search("child actress 1930s", 3)  # [Hit(document=Document(...), score=4.2), ...]

`Pages` is the protocol of the tools; `DocumentPages` here and `Corpus` in corpus.py have it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Protocol, runtime_checkable

from rewoo_bench.text.words import bm25, clean_title, index_terms, title_key, without_disambiguation
from rewoo_bench.types import Document

_LONGEST_TITLE = 300  # characters; Wikipedia allows 255 bytes
_SIMILARITY = 0.75  # difflib's ratio; lets through one wrong letter in four
_SAME_BEGINNING = 3  # letters that near titles of a big store must share, to have few to compare


def _group(pairs: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    groups: dict[str, tuple[int, ...]] = {}
    for key, page in pairs:
        groups[key] = (*groups.get(key, ()), page)
    return groups


class Titles:
    """Cleaned titles of pages, in the pages' order. `keys` are their `title_key`s where known already."""

    def __init__(self, titles: Sequence[str], keys: Sequence[str] | None = None) -> None:
        self._titles = titles
        keys = keys if keys is not None else [title_key(title) for title in titles]
        self._by_key = _group(zip(keys, range(len(titles)), strict=True))
        disambiguated = (page for page, title in enumerate(titles) if title.endswith(")"))
        self._by_short_key = _group((title_key(without_disambiguation(titles[page])), page) for page in disambiguated)

    def find(self, title: str) -> int | None:
        """The page with the same letters and digits, the exact spelling first; or None.

        Without one, the only page that has this title with a disambiguation in parentheses.
        """
        if len(title) > _LONGEST_TITLE:
            return None
        key = title_key(title)
        pages = self._by_key.get(key, ())
        for page in pages:
            if self._titles[page] == clean_title(title):
                return page
        if pages:
            return pages[0]
        shortened = self._by_short_key.get(key, ())
        return shortened[0] if len(shortened) == 1 else None

    def similar(self, title: str, k: int) -> list[int]:
        """Up to k pages with almost the same title, nearest first."""
        key = title_key(title)
        if len(title) > _LONGEST_TITLE or not key:
            return []
        keys = self._sorted_keys
        if len(keys) > 1000:  # of a big store only those with the same beginning are compared
            beginning = key[:_SAME_BEGINNING]
            keys = keys[bisect_left(keys, beginning) : bisect_left(keys, beginning + "\U0010ffff")]
        return [self._by_key[name][0] for name in get_close_matches(key, keys, n=k, cutoff=_SIMILARITY)]

    @cached_property
    def _sorted_keys(self) -> list[str]:
        return sorted(self._by_key)


@dataclass(frozen=True, slots=True)
class Hit:
    """A page found for a query. Scores (BM25, above 0) compare hits of one query only."""

    document: Document
    score: float


@runtime_checkable
class Pages(Protocol):
    """A store of pages, one for each title. Its methods only read: any thread may call them."""

    def find(self, title: str) -> Document | None:
        """The page of this title; case, accents, punctuation and HTML entities don't count.

        `Mercury` also finds `Mercury (planet)` where no other page is named so.
        """
        ...

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best pages that share a term with the query, best first; fewer where there are fewer."""
        ...

    def similar(self, title: str, k: int) -> list[str]:
        """Up to k titles spelt almost like this one, nearest first."""
        ...


class DocumentPages:
    """The documents of one question, as pages. Documents of the same title become one page, a paragraph each.

    Made for every question and architecture, so nothing is tokenised before the first `search`.
    The ranking is the corpus's, BM25 as in Lucene.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        paragraphs: dict[str, list[str]] = {}
        for document in documents:
            paragraphs.setdefault(clean_title(document.title), []).append(document.text.strip())
        self._documents = [Document(title, "\n".join(filter(None, texts))) for title, texts in paragraphs.items()]
        self._titles = Titles([document.title for document in self._documents])

    def __len__(self) -> int:
        return len(self._documents)

    def find(self, title: str) -> Document | None:
        page = self._titles.find(title)
        return None if page is None else self._documents[page]

    def search(self, query: str, k: int) -> list[Hit]:
        scores = bm25(index_terms(query), self._counts)
        best = sorted((page for page, score in enumerate(scores) if score > 0), key=lambda page: -scores[page])
        return [Hit(self._documents[page], scores[page]) for page in best[:k]]

    def similar(self, title: str, k: int) -> list[str]:
        return [self._documents[page].title for page in self._titles.similar(title, k)]

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return [Counter(index_terms(f"{document.title}\n{document.text}")) for document in self._documents]
