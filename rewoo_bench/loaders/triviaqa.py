"""Rows of TriviaQA (Joshi et al., 2017, arXiv:1705.03551) as examples.

    {"question_id": "tc_1", "question": "…", "answer": {"value": "Mars", "aliases": ["Mars", "Red Planet"]},
     "entity_pages": {"title": ["Mars"], "wiki_context": ["Mars is …"]},
     "search_results": {"title": […], "search_context": […]}}

Official files spell it `QuestionId`, `Answer`, `Aliases`, and keep the text of their pages in
other files, so their examples have no documents; nor have those of the `.nocontext` rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from rewoo_bench.loaders.row_fields import HIDDEN, Row, RowError, answers, identifier, pairs, text
from rewoo_bench.types import Document, Example

UNKNOWN = "<unk>"
"""The value in Hugging Face rows of the test split."""


def triviaqa_example(row: Row) -> Example:
    """A Hugging Face row as an example. Raises `RowError`."""
    id_, question = identifier(row, "question_id"), text(row, "question")
    documents = (
        *_documents(row.get("entity_pages"), "title", "wiki_context"),
        *_documents(row.get("search_results"), "title", "search_context"),
    )
    return Example(id_, question, _answers(row, "answer"), documents, "trivia")


def official_triviaqa_example(row: Row) -> Example:
    """A row of an official file's `Data` as an example. Raises `RowError`."""
    return Example(identifier(row, "QuestionId"), text(row, "Question"), _answers(row, "Answer"), (), "trivia")


def _answers(row: Row, key: str) -> tuple[str, ...]:
    """Value, aliases and human answers: all that the official script accepts, in their own spelling.

    The script compares with the normalised aliases and the human answers; every alias
    normalises to one of the former.
    """
    answer = row.get(key)
    if answer is None:
        raise RowError(f"no answer under {key!r}; {HIDDEN}")
    if not isinstance(answer, Mapping):
        raise RowError(f"{key!r} is {answer!r:.80}, expected an object with a value and aliases")
    fields = {name.replace("_", "").lower(): value for name, value in answer.items()}
    aliases = _texts(fields, "aliases") or _texts(fields, "normalizedaliases")
    return answers((_value(fields), *aliases, *_texts(fields, "humananswers")), key)


def _value(fields: Mapping[str, object]) -> object:
    value = fields.get("value")
    return None if value == UNKNOWN else value


def _texts(fields: Mapping[str, object], name: str) -> list[object]:
    values = fields.get(name) or []
    if not isinstance(values, list):
        raise RowError(f"{name} is {values!r:.80}, expected a list of texts")
    return values


def _documents(table: object, title: str, content: str) -> list[Document]:
    """The pages that come with their text; a web page may lack a title."""
    return [
        Document(str(name or "untitled"), page.strip())
        for name, page in pairs(table, title, content)
        if isinstance(page, str) and page.strip()
    ]
