"""Rows of MuSiQue (Trivedi et al., 2022, arXiv:2108.00573) as examples, and their gold chains.

    {"id": "2hop__1_2", "question": "…", "answer": "Lund", "answer_aliases": ["Lund, Sweden"], "answerable": true,
     "paragraphs": [{"idx": 0, "title": "Tide Songs", "paragraph_text": "…", "is_supporting": true}, …],
     "question_decomposition": [
        {"id": 1, "question": "Tide Songs >> author", "answer": "Ann Ek", "paragraph_support_idx": 0},
        {"id": 2, "question": "Where did #1 live?", "answer": "Lund", "paragraph_support_idx": 7}]}

Official files and Hugging Face rows are the same. `#1` in a sub-question is the answer of the first one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewoo_bench.loaders.row_fields import HIDDEN, Row, RowError, answers, identifier, text
from rewoo_bench.text.words import fold, sentences, title_key
from rewoo_bench.types import Document, Example, Hop

LONGEST_PART = 120  # words; with its title a part fits into the 200 tokens that ReWOO and ReAct show of a page

_KIND = re.compile(r"\dhop\d?(?=_)")
_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """The pages that hold a paragraph: one, or several if it is long."""

    parts: tuple[Document, ...]

    def part_with(self, value: str) -> Document | None:
        """The first part that shows a value."""
        return next((part for part in self.parts if value and fold(value) in fold(part.text)), None)


def musique_example(row: Row) -> Example | None:
    """A row as an example with its paragraphs, its kind (`2hop`, `3hop1`, …) and its gold chain.

    None for a row that can't be answered from its paragraphs, of which MuSiQue-Full has one for each that can.
    Raises `RowError`.
    """
    if row.get("answerable") is False:
        return None
    id_, question = identifier(row, "id"), text(row, "question")
    if not row.get("answer"):
        raise RowError(f"no answer under 'answer'; {HIDDEN}")
    aliases = row.get("answer_aliases") or []
    if not isinstance(aliases, list):
        raise RowError(f"'answer_aliases' is {aliases!r:.80}, expected a list of texts")
    golds = answers((text(row, "answer"), *aliases), "answer")
    paragraphs = _paragraphs(row.get("paragraphs"))
    steps = row.get("question_decomposition") or []
    chain = _chain_of_steps(steps, paragraphs) if isinstance(steps, list) else ()
    documents = tuple(part for paragraph in paragraphs.values() for part in paragraph.parts)
    kind = _KIND.match(id_)
    return Example(id_, question, golds, documents, kind[0] if kind else "", chain)


def _paragraphs(rows: object) -> dict[int, _Paragraph]:
    """The paragraphs by their `idx`, as pages that all have a title of their own.

    Paragraphs of the same title are numbered from the second on: `Lund`, `Lund (2)`. So are the parts of a long one.
    """
    if not isinstance(rows, list):
        raise RowError(f"'paragraphs' is {rows!r:.80}, expected a list of paragraphs")
    seen: Counter[str] = Counter()
    taken = {title_key(row["title"]) for row in rows if isinstance(row, Mapping) and isinstance(row.get("title"), str)}
    paragraphs = {}
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise RowError(f"a paragraph is {row!r:.80}, expected an object with title and paragraph_text")
        title, content = text(row, "title"), str(row.get("paragraph_text") or "").strip()
        parts = tuple(Document(_numbered(title, seen, taken), part) for part in _parts(content))
        index = row.get("idx")
        paragraphs[index if isinstance(index, int) else position] = _Paragraph(parts)
    return paragraphs


def _numbered(title: str, seen: Counter[str], taken: set[str]) -> str:
    """The title, with a number where it comes again; no number that is part of another paragraph's title."""
    key = title_key(title)
    seen[key] += 1
    while seen[key] > 1 and title_key(f"{title} ({seen[key]})") in taken:
        seen[key] += 1
    return title if seen[key] == 1 else f"{title} ({seen[key]})"


def _parts(content: str) -> list[str]:
    """The text in parts of at most `LONGEST_PART` words that end where a sentence does."""
    if len(content.split()) <= LONGEST_PART:
        return [content]
    parts: list[str] = []
    for sentence in sentences(content):
        longer = f"{parts[-1]} {sentence}" if parts else sentence
        if parts and len(longer.split()) <= LONGEST_PART:
            parts[-1] = longer
        else:
            parts.append(sentence)
    return parts


def _chain_of_steps(steps: Sequence[object], paragraphs: Mapping[int, _Paragraph]) -> tuple[Hop, ...]:
    """The sub-questions as hops; none if one of them has no paragraph, or refers to none before it."""
    hops: list[Hop] = []
    for step in steps:
        if not isinstance(step, Mapping):
            raise RowError(f"a sub-question is {step!r:.80}, expected an object with question and answer")
        paragraph = paragraphs.get(step.get("paragraph_support_idx", -1))
        if paragraph is None:
            return ()
        asked, value = text(step, "question"), str(step.get("answer") or "").strip()
        page = paragraph.part_with(value)
        needs = sorted({int(number) - 1 for number in _REFERENCE.findall(asked)})
        if any(not 0 <= need < len(hops) for need in needs):
            return ()  # "a #1 hit" is no reference
        hops.append(
            Hop((page or paragraph.parts[0]).title, value if page else "", _ask(asked), _with_value(needs, hops))
        )
    return tuple(hops)


def _with_value(needs: Sequence[int], hops: Sequence[Hop]) -> tuple[int, ...]:
    """The earlier hops with a value that their page shows; nothing can be read from the others."""
    return tuple(need for need in needs if hops[need].value)


def _ask(question: str) -> str:
    """The sub-question without references: `author of Tide Songs` for `Tide Songs >> author`."""
    subject, arrow, relation = question.rpartition(">>")
    plain = f"{relation.strip()} of {subject.strip()}" if arrow else question
    plain = " ".join(_REFERENCE.sub("that", plain).split())
    return re.sub(r"\s+(?=[,.?!'])", "", plain).rstrip(" ?")
