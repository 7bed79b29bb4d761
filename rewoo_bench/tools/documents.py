"""Pages that a search tool can find, and a store of the documents that come with a question.

    pages = DocumentPages(example.documents)
    pages.find("shirley temple")            # the page of that title, or None
    pages.search("child actress 1930s", 3)  # [Hit(document=Document(...), score=4.2), ...]

`Pages` is the protocol of the tools; `DocumentPages` here and `Corpus` in corpus.py have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from rewoo_bench.text.bm25 import bm25
from rewoo_bench.text.words import clean_title, terms
from rewoo_bench.tools.titles import Titles
from rewoo_bench.types import Document


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
    """The documents of one question, as pages. Documents of the same title become one page.

    Made for every question and architecture, so nothing is tokenised before the first `search`.
    The ranking is the corpus's, BM25 as in Lucene.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = join_pages(documents)
        self._titles = Titles([document.title for document in self._documents])

    def __len__(self) -> int:
        return len(self._documents)

    def find(self, title: str) -> Document | None:
        page = self._titles.find(title)
        return None if page is None else self._documents[page]

    def search(self, query: str, k: int) -> list[Hit]:
        scores = bm25(terms(query), self._counts)
        best = sorted((page for page, score in enumerate(scores) if score > 0), key=lambda page: -scores[page])
        return [Hit(self._documents[page], scores[page]) for page in best[:k]]

    def similar(self, title: str, k: int) -> list[str]:
        return [self._documents[page].title for page in self._titles.similar(title, k)]

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return [Counter(terms(f"{document.title}\n{document.text}")) for document in self._documents]


def join_pages(documents: Iterable[Document]) -> list[Document]:
    """One document for each title, in order of first sight; paragraphs are separated by a line end."""
    paragraphs: dict[str, list[str]] = {}
    for document in documents:
        paragraphs.setdefault(clean_title(document.title), []).append(document.text.strip())
    return [Document(title, "\n".join(filter(None, texts))) for title, texts in paragraphs.items()]
