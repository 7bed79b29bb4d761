"""Live Wikipedia through its MediaWiki API, in the manner of Search.

    wikipedia = Wikipedia(session, contact="me@example.org")    # one aiohttp session for a whole run
    await wikipedia(SearchArguments(query="Shirley Temple"))

Reference: https://www.mediawiki.org/wiki/API:Etiquette (one User-Agent with a contact, maxlag,
Retry-After) and https://www.mediawiki.org/wiki/Extension:TextExtracts.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
from pydantic import BaseModel

from rewoo_bench.errors import ToolError
from rewoo_bench.system.http_session import open_session, retry_after_s
from rewoo_bench.text.words import clean_title
from rewoo_bench.tools.search import (
    SIMILAR,
    PageState,
    SearchArguments,
    shorten,
    show_match,
    show_page,
    trim_query,
)
from rewoo_bench.types import Document

if TYPE_CHECKING:
    import aiohttp


WIKIPEDIA = "https://en.wikipedia.org/w/api.php"
_LONGEST_TITLE = 255  # bytes, MediaWiki's limit
_LONGEST_SEARCH = 300  # characters, CirrusSearch's limit
_LONGEST_WAIT_S = 60.0  # a server that asks for more is taken to be out
_OPTIONS = 10  # titles shown of a disambiguation page
_PASSING = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error"})  # API errors worth another try
_EXTRACTS = {"prop": "extracts|pageprops", "ppprop": "disambiguation", "exintro": "1", "explaintext": "1"}


@dataclass(eq=False)
class Wikipedia:
    """Shows the introduction of the page that fits a query best, its redirects followed.

    Says what Search says, and a disambiguation page is never the answer: its options are named in
    a first line `'query' may refer to: A; B`, and the best match of a search comes after it.

    `client` stays the caller's to close; without one each call opens its own. `contact` goes into
    the User-Agent, as Wikimedia asks ($REWOO_BENCH_CONTACT by default). `timeout_s` is for one
    request, `backoff_s` the first of the growing pauses between `max_retries` new attempts, and
    `maxlag_s` the database lag from which on the servers may turn the request away.

    Raises `ToolError` where the API can't be had or understood.
    """

    name = "Wikipedia"
    description = (
        "searches Wikipedia and shows the introduction of the page with that title, "
        "else of the best match. Give the exact title of a page, or a few keywords."
    )
    arguments: ClassVar[type[BaseModel]] = SearchArguments
    stateful = True  # Lookup goes on from the page found last

    client: aiohttp.ClientSession | None = None
    base_url: str = WIKIPEDIA
    _: KW_ONLY
    state: PageState = field(default_factory=PageState)
    contact: str | None = None
    timeout_s: float = 10.0
    max_retries: int = 3
    backoff_s: float = 1.0
    maxlag_s: int = 5

    async def __call__(self, arguments: SearchArguments) -> str:
        query, options = trim_query(arguments.query), list[str]()
        async with open_session(self.base_url) if self.client is None else nullcontext(self.client) as client:
            if len(query.encode("utf-8", "replace")) <= _LONGEST_TITLE:
                title = query.replace("|", " ")  # parts titles in this API
                for exact in (await self._texts(client, {"titles": title, "redirects": "1"}))[:1]:
                    if not _is_disambiguation(exact):
                        return show_page(self._show(exact))
                    links = {"prop": "links", "titles": exact["title"], "plnamespace": "0", "pllimit": str(_OPTIONS)}
                    pages = await self._pages(client, links)
                    options = [link["title"] for page in pages for link in page.get("links", [])]
            # The best pages by full-text search, introductions included, in one request.
            search = {"generator": "search", "gsrsearch": query[:_LONGEST_SEARCH], "gsrlimit": str(2 + SIMILAR)}
            texts = await self._texts(client, {**search, "exlimit": "max"})
        found = [page for page in sorted(texts, key=lambda page: page.get("index", 0)) if not _is_disambiguation(page)]
        lines = [f"{shorten(query)!r} may refer to: {'; '.join(options)}"] if options else []
        best = self._show(found[0]) if found else None
        return "\n".join([*lines, show_match(query, best, [page["title"] for page in found[1 : 1 + SIMILAR]])])

    def _show(self, page: Mapping[str, Any]) -> Document:
        document = Document(clean_title(page["title"]), page["extract"].strip())
        self.state.show(document)
        return document

    async def _texts(self, client: aiohttp.ClientSession, parameters: Mapping[str, str]) -> list[Mapping[str, Any]]:
        """The pages of an answer that exist and have a text, with its introduction."""
        pages = await self._pages(client, {**_EXTRACTS, **parameters})
        return [page for page in pages if page.get("extract", "").strip() or _is_disambiguation(page)]

    async def _pages(self, client: aiohttp.ClientSession, parameters: Mapping[str, str]) -> list[Mapping[str, Any]]:
        """The pages of the API's answer, which is asked for again where the fault may pass."""
        import aiohttp

        contact = self.contact or os.environ.get("REWOO_BENCH_CONTACT") or "no contact set"
        asked: dict[str, Any] = {
            "params": {"action": "query", "format": "json", "formatversion": "2", "maxlag": str(self.maxlag_s)}
            | {**parameters},
            "headers": {"User-Agent": f"rewoo-bench/{version('rewoo-bench')} ({contact})"},
            "timeout": aiohttp.ClientTimeout(total=None, sock_connect=self.timeout_s, sock_read=self.timeout_s),
        }
        for attempt in range(self.max_retries + 1):
            wait_s = None
            try:
                async with client.get(self.base_url, allow_redirects=False, **asked) as response:
                    body = await response.read()
                wait_s = retry_after_s(response.headers.get("Retry-After"))
                if response.status == 200:
                    reply = json.loads(body)
                    error = reply.get("error", {})
                    if not error:
                        pages: list[Mapping[str, Any]] = reply.get("query", {}).get("pages", [])
                        return pages
                    fault = f"API error {error.get('code')!r}"
                    if error.get("code") not in _PASSING:
                        raise ToolError(f"Wikipedia refused: {error.get('code')}: {error.get('info', '')}")
                else:
                    fault = f"HTTP {response.status}"
                    if response.status != 429 and response.status < 500:
                        raise ToolError(f"Wikipedia refused: {fault} from {self.base_url}")
            except (aiohttp.ClientError, TimeoutError) as failure:
                fault = f"{type(failure).__name__} {failure}".strip()
            except (ValueError, AttributeError):
                fault = f"no JSON object but {body[:40].decode('utf-8', 'replace')!r}"
            if wait_s is None:
                wait_s = self.backoff_s * 2**attempt * random.uniform(0.5, 1.0)
            if wait_s > _LONGEST_WAIT_S or attempt == self.max_retries:
                break
            await anyio.sleep(wait_s)
        raise ToolError(f"Wikipedia gave no answer after {attempt + 1} attempts: {fault}")


def _is_disambiguation(page: Mapping[str, Any]) -> bool:
    return "disambiguation" in page.get("pageprops", {})
