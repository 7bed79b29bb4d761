"""Search and Lookup: find a page, then read on in it.

state = PageState()     # of one question
await Search(DocumentPages(example.documents), state)(SearchArguments(query="shirley temple"))
# "Shirley Temple: Shirley Temple Black was an American actress, …"
await Lookup(state)(LookupArguments(keyword="ambassador"))
# "(Result 1 / 2) She was named United States ambassador to Ghana …"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ToolError
from rewoo_bench.text.words import fold, index_terms, split_sentences
from rewoo_bench.tools.documents import Pages
from rewoo_bench.types import Document

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
    """A page as an observation: its title and first paragraph."""
    return f"{page.title}: {page.text.partition(chr(10))[0]}"


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
