"""Which gold pages an agent was shown."""

from __future__ import annotations

import anyio
import pytest

from rewoo_bench.runs.columns import gold_pages_found
from rewoo_bench.tools import DocumentPages
from rewoo_bench.tools.search import Search, SearchArguments
from rewoo_bench.types import Document, Hop, Step

PAGES = [
    Document("Ann Ek", "Ann Ek was a writer."),
    Document("Émile: A Life", "A biography."),
    Document("Ann Ek (film)", "A film of 1990."),
]


def searched(*queries: str) -> list[Step]:
    """What the search tool really shows for each query."""
    search = Search(DocumentPages(PAGES))

    async def ask() -> list[Step]:
        return [
            Step(f"E{i}", observation=await search(SearchArguments(query=query))) for i, query in enumerate(queries)
        ]

    return anyio.run(ask)


@pytest.mark.parametrize(
    ("gold", "queries", "share"),
    [
        (["Ann Ek"], ["ann ek"], 1.0),
        (["Ann Ek", "Émile: A Life"], ["Ann Ek"], 0.5),
        (["Ann Ek", "Émile: A Life"], ["emile a life", "Ann Ek"], 1.0),
        (["Ann Ek", "Ann Ek"], ["Ann Ek"], 1.0),  # one page, needed twice
        (["Ann Ek"], ["Ann Ek (film)"], 0.0),  # another page, whose title begins alike
        (["Ann Ek"], ["biography"], 0.0),
        (["Ann Ek"], [], 0.0),
    ],
)
def test_a_gold_page_counts_once_it_was_shown(gold: list[str], queries: list[str], share: float) -> None:
    assert gold_pages_found([Hop(title, "") for title in gold], searched(*queries)) == share


def test_a_title_among_similar_ones_or_in_a_text_is_not_the_page() -> None:
    seen = [Step("1", observation="Similar: Ann Ek; Bo Ek"), Step("2", observation="She is Ann Ek: a writer.")]
    assert gold_pages_found([Hop("Ann Ek", "")], seen) == 0.0


def test_without_gold_pages_nothing_is_known() -> None:
    assert gold_pages_found([], searched("Ann Ek")) is None
