"""Search and Lookup over a question's own documents, and the text handling below them."""

from __future__ import annotations

import pytest

from rewoo_bench.errors import ToolError
from rewoo_bench.text.words import clean_title, index_terms, split_sentences
from rewoo_bench.tools import DocumentPages, Lookup, LookupArguments, PageState, Search, SearchArguments
from rewoo_bench.types import Document, Tool

DOCUMENTS = (
    Document(
        "Ada Quill", "Ada Quill was a harbour pilot. She wrote The Tide Book.\nIn 1911 she met Dr. Orme. She sailed."
    ),
    Document("The Tide Book", "The Tide Book is a handbook of currents. It was printed in Bergen."),
    Document("Mercury (planet)", "Mercury is the planet nearest to the Sun."),
    Document("&amp;TV", "&TV is a television channel."),
    Document("Élan (yacht)", "Élan is a yacht of 1911."),
    Document("Bergen", "Bergen is a city with a harbour."),
)


@pytest.fixture
def pages() -> DocumentPages:
    return DocumentPages(DOCUMENTS)


@pytest.fixture
def tools(pages: DocumentPages) -> dict[str, Tool]:
    state = PageState()
    return {"Search": Search(pages, state), "Lookup": Lookup(state)}


async def search(tools: dict[str, Tool], query: str) -> str:
    return await tools["Search"](SearchArguments(query=query))


async def lookup(tools: dict[str, Tool], keyword: str) -> str:
    return await tools["Lookup"](LookupArguments(keyword=keyword))


@pytest.mark.anyio
async def test_documents_without_a_title_are_found_one_by_one_and_read_on() -> None:
    ferry = "The ferry from Oban to Mull takes 46 minutes. It sails daily."
    state, pages = PageState(), DocumentPages([Document("", "A bank pays interest."), Document("  ", ferry)])
    assert await Search(pages, state)(SearchArguments(query="ferry Mull")) == f"The ferry from Oban to Mull…: {ferry}"
    assert await Lookup(state)(LookupArguments(keyword="daily")) == "(Result 1 / 1) It sails daily."
    assert pages.find("The ferry from Oban to Mull…") == Document("The ferry from Oban to Mull…", ferry)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("Ada Quill", "Ada Quill"),
        ("  ada\nquill ", "Ada Quill"),
        ('"Ada-Quill."', "Ada Quill"),
        ("&amp;tv", "&TV"),
        ("elan", "Élan (yacht)"),
        ("Mercury", "Mercury (planet)"),
    ],
)
def test_a_title_is_found_however_it_is_spelt(pages: DocumentPages, asked: str, title: str) -> None:
    found = pages.find(asked)
    assert found is not None
    assert found.title == title


def test_a_title_without_its_disambiguation_is_only_found_where_one_page_matches() -> None:
    pages = DocumentPages([Document("Io (moon)", "A moon."), Document("Io (myth)", "A priestess.")])
    assert pages.find("Io") is None
    assert DocumentPages([*DOCUMENTS, Document("Mercury", "A metal.")]).find("Mercury") == Document(
        "Mercury", "A metal."
    )


def test_documents_of_the_same_title_become_one_page() -> None:
    pages = DocumentPages([Document("Fjord", "First."), Document("Sea", "Other."), Document(" Fjord", "Second.")])
    assert pages.find("Fjord") == Document("Fjord", "First.\nSecond.")
    assert len(pages) == 2


def test_the_ranking_is_that_of_bm25s(pages: DocumentPages) -> None:
    import bm25s

    bm25 = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    texts = (f"{clean_title(document.title)} {document.text}" for document in DOCUMENTS)
    bm25.index(list(map(index_terms, texts)), show_progress=False)
    expected = bm25.get_scores(index_terms("harbour pilot of the city Bergen"))
    found = {hit.document.title: hit.score for hit in pages.search("harbour pilot of the city Bergen", 9)}
    assert found == pytest.approx({"Ada Quill": expected[0], "Bergen": expected[5], "The Tide Book": expected[1]})
    assert list(found) == sorted(found, key=lambda title: -found[title])


@pytest.mark.anyio
async def test_an_exact_title_gives_the_first_paragraph_alone(tools: dict[str, Tool]) -> None:
    assert await search(tools, "ada quill") == "Ada Quill: Ada Quill was a harbour pilot. She wrote The Tide Book."


@pytest.mark.anyio
async def test_another_query_gives_the_best_page_and_names_the_next(tools: dict[str, Tool]) -> None:
    assert await search(tools, "quill harbour") == (
        "Ada Quill: Ada Quill was a harbour pilot. She wrote The Tide Book.\nSimilar: Bergen"
    )


@pytest.mark.anyio
async def test_a_page_whose_title_shares_no_term_is_shown_as_a_poor_match(tools: dict[str, Tool]) -> None:
    first, second = (await search(tools, "nearest world to the sun")).split("\n")
    assert first == "No page titled 'nearest world to the sun'. Nearest: Mercury (planet)"
    assert second == "Mercury (planet): Mercury is the planet nearest to the Sun."


@pytest.mark.anyio
async def test_no_shared_term_gives_titles_spelt_alike(tools: dict[str, Tool]) -> None:
    assert await search(tools, "Zeppelin") == "No results for 'Zeppelin'."
    assert await search(tools, "Bergenn") == "No results for 'Bergenn'.\nSimilar: Bergen"


@pytest.mark.anyio
async def test_a_blank_query_or_keyword_is_a_tool_error(tools: dict[str, Tool]) -> None:
    with pytest.raises(ToolError, match="nothing to search for"):
        await search(tools, " \n ")
    await search(tools, "Bergen")
    with pytest.raises(ToolError, match="nothing to look for"):
        await lookup(tools, "  ")


@pytest.mark.anyio
async def test_lookup_steps_through_the_sentences_with_a_keyword(tools: dict[str, Tool]) -> None:
    await search(tools, "Ada Quill")
    assert await lookup(tools, "SHE") == "(Result 1 / 3) She wrote The Tide Book."
    assert await lookup(tools, "she") == "(Result 2 / 3) In 1911 she met Dr. Orme."
    assert await lookup(tools, "she ") == "(Result 3 / 3) She sailed."
    assert await lookup(tools, "she") == "No more results."
    assert await lookup(tools, "1911") == "(Result 1 / 1) In 1911 she met Dr. Orme."
    assert await lookup(tools, "zeppelin") == "No results for 'zeppelin' on the page 'Ada Quill'."


@pytest.mark.anyio
async def test_lookup_before_any_page_was_found_asks_for_a_search() -> None:
    with pytest.raises(ToolError, match="search first"):
        await Lookup(PageState())(LookupArguments(keyword="tide"))


@pytest.mark.parametrize(
    "text",
    [
        "J. K. Rowling wrote it.",
        "He met Mr. Orme and Dr. Quill of St. Ives in the U.S. Navy.",
        "It cost 3.5 million, i.e. Less than before.",
        "Sammy Davis Jr. Sang in No. 5 of Vol. 2.",
        "She asked 'why?' and left.",
        "Ada Quill (b. Bergen) stayed.",
    ],
)
def test_initials_and_abbreviations_do_not_end_a_sentence(text: str) -> None:
    assert split_sentences(text) == [text]


def test_sentences_end_at_stops_quotes_and_line_ends() -> None:
    text = 'He said "No." Then? Yes!  The score was 3.5. In 1911 it rose… The end\nA new paragraph'
    assert split_sentences(text) == [
        *('He said "No."', "Then?", "Yes!", "The score was 3.5."),
        *("In 1911 it rose…", "The end", "A new paragraph"),
    ]
