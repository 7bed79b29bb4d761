"""Search and Lookup: find a page, then read on in it; and the pages that they find.

state = PageState()     # of one question
await Search(DocumentPages(example.documents), state)(SearchArguments(query="shirley temple"))
# "Shirley Temple: Shirley Temple Black was an American actress, …"
await Lookup(state)(LookupArguments(keyword="ambassador"))
# "(Result 1 / 2) She was named United States ambassador to Ghana …"

`Pages` is the protocol of a store of pages; `DocumentPages`, here, and `Corpus` in corpus.py have it.

pages = DocumentPages(example.documents)    # that come with a question
pages.find("shirley temple")                # the page of that title, or None
pages.search("child actress 1930s", 3)      # [Hit(document=Document(...), score=4.2), ...]
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ToolError
from rewoo_bench.text.words import (
    bm25,
    clean_title,
    fold,
    index_terms,
    split_sentences,
    title_key,
    with_titles,
    without_disambiguation,
)
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

    A document without a title is a page of its own, named by its first words.

    Made for every question and architecture, so nothing is tokenised before the first `search`.
    The ranking is the corpus's, BM25 as in Lucene.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        paragraphs: dict[str, list[str]] = {}
        values = set[str]()
        for document in with_titles([*documents]):
            title = clean_title(document.title)
            paragraphs.setdefault(title, []).append(document.text.strip())
            values |= {title} if document.is_value else set()
        self._documents = [
            Document(title, "\n".join(filter(None, texts)), title in values) for title, texts in paragraphs.items()
        ]
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


# The two tools.


LONGEST_QUERY = 500  # characters; a longer query holds evidence, and its beginning has the topic
SIMILAR = 4  # other titles shown with a page that the query doesn't name
_SHOWN = 80  # characters of a query that an observation repeats


@dataclass(slots=True)
class PageState:
    """What Lookup reads on in: the page found last, and how far it has been read for a keyword."""

    page: Document | None = None
    keyword: str | None = None
    results: list[str] = field(default_factory=list)
    position: int = 0

    def show(self, page: Document) -> None:
        """Makes this the page found last; the next Lookup starts at its beginning."""
        self.page, self.keyword = page, None


class SearchArguments(BaseModel):
    """What to search for."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    described_by_tool: ClassVar[bool] = True

    query: str = Field(min_length=1, description="a page's title, or a few keywords")


class LookupArguments(BaseModel):
    """What to look for on the page found last."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    described_by_tool: ClassVar[bool] = True

    keyword: str = Field(min_length=1, description="a word or phrase")


class Search:
    """Shows the first paragraph of the page that fits a query best.

    - The page of exactly that title, if there is one: `Title: first paragraph`.
    - Else the best by BM25, with a last line `Similar: A; B` that names the next best.
    - Where that page's title and the query have no term in common the match counts as poor, and a
      line `No page titled 'query'. Nearest: Title` comes first. The page is shown all the same,
      since an agent that planned ahead can't search again.
    - `No results for 'query'.` where no page shares a term with it.

    Of a query only the first 500 characters count. Raises `ToolError` for a blank one.
    """

    name = "Search"
    description = (
        "searches an encyclopedia and shows the first paragraph of the page with that title, "
        "else of the best match. Give the exact title of a page, or a few keywords."
    )
    arguments: type[BaseModel] = SearchArguments
    stateful = True  # Lookup goes on from the page found last

    def __init__(self, pages: Pages, state: PageState | None = None) -> None:
        self._pages = pages
        self._state = state or PageState()

    async def __call__(self, arguments: SearchArguments) -> str:
        query = trim_query(arguments.query)
        if page := self._pages.find(query):
            self._state.show(page)
            return show_page(page)
        hits = self._pages.search(query, 1 + SIMILAR)
        if not hits:
            return show_match(query, None, self._pages.similar(query, SIMILAR))
        best, *others = (hit.document for hit in hits)
        self._state.show(best)
        return show_match(query, best, [other.title for other in others])


class Lookup:
    """Shows the next sentence with a keyword on the page that was found last.

    The same keyword again gives the next sentence; another keyword or page starts anew. Case and
    accents don't count. Raises `ToolError` where nothing was found yet, or for a blank keyword.
    """

    name = "Lookup"
    description = (
        "shows the next sentence that holds a keyword on the page found last by a search. "
        "Give one word or a short phrase; give it again for the next sentence."
    )
    arguments: type[BaseModel] = LookupArguments
    stateful = True

    def __init__(self, state: PageState) -> None:
        self._state = state

    async def __call__(self, arguments: LookupArguments) -> str:
        state, keyword = self._state, " ".join(arguments.keyword.split())
        if state.page is None:
            raise ToolError("no page to look in: find one by a search first")
        if not keyword:
            raise ToolError(f"nothing to look for in {arguments.keyword!r}; expected a word or phrase")
        if fold(keyword) != state.keyword:
            state.keyword, state.position = fold(keyword), 0
            state.results = [text for text in split_sentences(state.page.text) if state.keyword in fold(text)]
        if not state.results:
            return f"No results for {shorten(keyword)!r} on the page {state.page.title!r}."
        if state.position == len(state.results):
            return "No more results."
        state.position += 1
        return f"(Result {state.position} / {len(state.results)}) {state.results[state.position - 1]}"


def trim_query(query: str) -> str:
    """A query on one line, cut to its first 500 characters. Raises `ToolError` where nothing is left."""
    trimmed = " ".join(query[: 2 * LONGEST_QUERY].split())[:LONGEST_QUERY]
    if not trimmed:
        raise ToolError(f"nothing to search for in {query[:_SHOWN]!r}; expected a title or keywords")
    return trimmed


def show_page(page: Document) -> str:
    """A page as an observation: its title and first paragraph, or its value alone."""
    return page.text if page.is_value else f"{page.title}: {page.text.partition(chr(10))[0]}"


def show_match(query: str, page: Document | None, similar: Sequence[str]) -> str:
    """The observation for a query that is no page's title: the best page, if any, and titles near it."""
    lines = []
    if page is None:
        lines.append(f"No results for {shorten(query)!r}.")
    elif not set(index_terms(query)) & set(index_terms(page.title)):
        lines.append(f"No page titled {shorten(query)!r}. Nearest: {page.title}")
    if page is not None:
        lines.append(show_page(page))
    if similar:
        lines.append(f"Similar: {'; '.join(similar)}")
    return "\n".join(lines)


def shorten(query: str) -> str:
    """A query short enough to be repeated in an observation."""
    return query if len(query) <= _SHOWN else query[: _SHOWN - 1].rstrip() + "…"
