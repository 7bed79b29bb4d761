"""Rows of HotpotQA (Yang et al., 2018, arXiv:1809.09600) as examples.

    {"_id": "5a8b", "question": "…", "answer": "Delhi", "type": "bridge", "level": "hard",
     "supporting_facts": [["Page A", 0], ["Page B", 2]],
     "context": [["Page A", ["First sentence.", " Second sentence."]], …]}

Official files and Hugging Face rows (`id`, columns as `{"title": […], "sentences": […]}`) are
read by the same function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rewoo_bench.loaders.row_fields import HIDDEN, Row, RowError, identifier, pairs, text
from rewoo_bench.types import Document, Example, Hop


def hotpotqa_example(row: Row) -> Example:
    """A row as an example with its paragraphs, kind (`bridge`, `comparison`) and gold chain.

    In the fullwiki setting the paragraphs are the results of a retriever, often without the gold
    pages. Raises `RowError`.
    """
    id_, question = identifier(row, "_id" if "_id" in row else "id"), text(row, "question")
    if row.get("answer", "") is None or "answer" not in row:
        raise RowError(f"no answer under 'answer'; {HIDDEN}")
    answer, kind = text(row, "answer"), str(row.get("type") or "")
    documents = tuple(_document(title, parts) for title, parts in pairs(row.get("context"), "title", "sentences"))
    titles = dict.fromkeys(str(title) for title, _ in pairs(row.get("supporting_facts"), "title", "sent_id"))
    chain = _named_chain(list(titles), {page.title: page.text for page in documents}, answer, kind)
    return Example(id_, question, (answer,), documents, kind, chain, str(row.get("level") or ""))


def _document(title: object, sentences: object) -> Document:
    """A paragraph; every sentence after the first brings its own leading space."""
    if not isinstance(title, str) or not isinstance(sentences, Sequence) or isinstance(sentences, str):
        raise RowError(f"a paragraph of 'context' is ({title!r}, {sentences!r:.80}), expected a title and sentences")
    return Document(title, "".join(map(str, sentences)))


def _named_chain(titles: list[str], pages: Mapping[str, str], answer: str, kind: str) -> tuple[Hop, ...]:
    """The supporting pages as hops: independent for a comparison, one after the other for a bridge.

    The data set says which pages are needed, not in which order. A bridge ends on a page that holds
    the answer, and comes from one that names it: that name is the value of its hop. Where no page
    names the other, the two look-ups are independent.
    """
    if kind != "bridge":
        return tuple(Hop(title, "") for title in titles)
    ends = sorted(titles, key=lambda title: answer in pages.get(title, ""))
    for last in reversed([title for title in ends if answer in pages.get(title, "")]):
        for first in titles:
            if first != last and (name := _named(last, pages.get(first, ""))):
                others = (Hop(title, "") for title in titles if title not in (first, last))
                return (Hop(first, name), Hop(last, answer, needs=(0,)), *others)
    return tuple(Hop(title, answer if title == ends[-1] and answer in pages.get(title, "") else "") for title in ends)


def _named(title: str, text: str) -> str:
    """A page's title as another page's text spells it, without its disambiguation; empty where it isn't there."""
    name = re.sub(r" \(.*\)$", "", title)
    match = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
    return match[0] if match else ""
