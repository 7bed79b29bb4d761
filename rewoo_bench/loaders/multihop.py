"""Rows of HotpotQA, 2WikiMultihopQA and MuSiQue as examples, with their gold chains.

HotpotQA (Yang et al., 2018, arXiv:1809.09600); a comment before each of the others has its form:

    {"_id": "5a8b", "question": "…", "answer": "Delhi", "type": "bridge", "level": "hard",
     "supporting_facts": [["Page A", 0], ["Page B", 2]],
     "context": [["Page A", ["First sentence.", " Second sentence."]], …]}

Official files and Hugging Face rows (`id`, columns as `{"title": […], "sentences": […]}`) are
read by the same function.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rewoo_bench.loaders.row_fields import (
    RawRow,
    answers,
    gold,
    identifier,
    paired_fields,
    text_field,
)
from rewoo_bench.text.words import fold, split_sentences, title_key, without_disambiguation
from rewoo_bench.types import Document, Example, Hop


def hotpotqa_example(row: RawRow) -> Example:
    """A row as an example with its paragraphs, kind (`bridge`, `comparison`) and gold chain.

    In the fullwiki setting the paragraphs are the results of a retriever, often without the gold
    pages. Raises `RowError`.
    """
    id_, question = identifier(row, "_id" if "_id" in row else "id"), text_field(row, "question")
    answer, kind = str(gold(row, "answer")).strip(), str(row.get("type") or "")
    # Every sentence after the first brings its own leading space.
    paragraphs = paired_fields(row.get("context"), "title", "sentences")
    documents = [Document(str(title), "".join(map(str, sentences))) for title, sentences in paragraphs]
    pages = {page.title: page.text for page in documents}
    chain = _named_chain(_supporting(row), pages, answer, kind)
    return Example(id_, question, (answer,), tuple(documents), kind, chain, str(row.get("level") or ""))


def _supporting(row: RawRow) -> list[str]:
    titles = (str(title) for title, _ in paired_fields(row.get("supporting_facts"), "title", "sent_id"))
    return list(dict.fromkeys(titles))


def _named_chain(titles: list[str], pages: Mapping[str, str], answer: str, kind: str) -> tuple[Hop, ...]:
    """The supporting pages as hops: independent for a comparison, one after the other for a bridge.

    The data set says which pages are needed, not in which order. A bridge ends on a page that holds
    the answer, and comes from one that names it (without its disambiguation): that name, as it is spelt there, is the
    value of its hop. Where no page names the other, the two look-ups are independent.
    """
    if kind != "bridge":
        return tuple(Hop(title, "") for title in titles)
    ends = sorted(titles, key=lambda title: answer in pages.get(title, ""))
    for last in reversed([title for title in ends if answer in pages.get(title, "")]):
        plain = re.sub(r" \(.*\)$", "", last)
        name = re.compile(rf"\b{re.escape(plain)}\b", re.IGNORECASE)
        for first in titles:
            if first != last and (match := name.search(pages.get(first, ""))) and match[0]:
                others = (Hop(title, "") for title in titles if title not in (first, last))
                return (Hop(first, match[0]), Hop(last, answer, needs=(0,)), *others)
    return tuple(Hop(title, answer if title == ends[-1] and answer in pages.get(title, "") else "") for title in ends)


# Rows of 2WikiMultihopQA (Ho et al., 2020, arXiv:2011.01060) as examples, and their gold chains.
#
#     {"_id": "8a3", "type": "compositional", "question": "Where did the author of Tide Songs live?", "answer": "Lund",
#      "context": [["Tide Songs", ["Tide Songs is a book by Ann Ek."]], ["Ann Ek", ["She lived in Lund."]], …],
#      "supporting_facts": [["Tide Songs", 0], ["Ann Ek", 0]],
#      "evidences": [["Tide Songs", "author", "Ann Ek"], ["Ann Ek", "residence", "Lund"]]}
#
# Rows of the hub have `id` for `_id` and columns for lists, or hold a column as JSON text; `evidences` may be
# `{"fact": […], "relation": […], "entity": […]}`.


_COLUMNS = ("fact", "relation", "entity")


class _Triple(NamedTuple):
    """A piece of evidence: the director of `Tide Songs` is `Ann Ek`."""

    subject: str
    relation: str
    value: str


def wikimultihop_example(row: RawRow) -> Example:
    """A row as an example with its paragraphs, its type and the chain of its evidence. Raises `RowError`."""
    tables = {name: row.get(name) for name in ("context", "supporting_facts", "evidences")}
    read = {**row, **{name: json.loads(each) if isinstance(each, str) else each for name, each in tables.items()}}
    if isinstance(read["context"], Mapping) and "sentences" not in read["context"]:
        read["context"] = {**read["context"], "sentences": read["context"].get("content")}
    example = hotpotqa_example(read)
    evidences = read["evidences"] or []
    if isinstance(evidences, Mapping):
        evidences = list(zip(*(evidences[column] for column in _COLUMNS), strict=True))
    cells = [[each[name] for name in _COLUMNS] if isinstance(each, Mapping) else each for each in evidences]
    triples = [_Triple(*(" ".join(cell.split()) for cell in each)) for each in cells]
    return replace(example, chain=_chain_of_triples(triples, _supporting(read), example))


def _chain_of_triples(triples: Sequence[_Triple], titles: Sequence[str], example: Example) -> tuple[Hop, ...]:
    """A hop for each subject of the evidence; none if a subject has no supporting page.

    The triples of one subject (a birth and a death) are one look-up. Its value is what its page shows of them, and a
    hop with no such value leads nowhere: nothing can be read from that page.
    """
    facts: dict[str, list[_Triple]] = {}
    for triple in triples:
        facts.setdefault(triple.subject, []).append(triple)
    page_of = _page_of_each(list(facts), titles)
    texts = {page.title: fold(page.text) for page in example.documents}
    hops: list[Hop] = []
    for subject, title in page_of.items():
        shown = [fact.value for fact in facts[subject] if not texts or fold(fact.value) in texts.get(title, "")]
        ask = " and ".join(dict.fromkeys(fact.relation for fact in facts[subject]))
        names, earlier = {_key(subject), _key(title)}, list(page_of)[: len(hops)]
        # The earlier hops with a fact that names this page.
        needs = tuple(at for at, each in enumerate(earlier) if any(_key(fact.value) in names for fact in facts[each]))
        if not needs and example.kind in ("compositional", "inference"):
            needs = (len(hops) - 1,) if hops else ()
        elif not needs and example.kind == "bridge_comparison" and len(page_of) == 4 and len(hops) >= 2:
            needs = (len(hops) - 2,)  # two strands of two hops
        hops.append(Hop(title, shown[0] if shown else "", ask, tuple(need for need in needs if hops[need].value)))
    return tuple(hops)


def _page_of_each(subjects: Sequence[str], titles: Sequence[str]) -> dict[str, str]:
    """The supporting page of each subject: of the same name, else the others in their order. Empty if one has none."""
    page_of: dict[str, str] = {}
    for subject in subjects:
        free = [title for title in titles if title not in page_of.values()]
        same = [title for title in free if title_key(title) == title_key(subject)]
        alike = same or [title for title in free if _key(title) == _key(subject)]
        if alike:
            page_of[subject] = alike[0]
    left = [title for title in titles if title not in page_of.values()]
    lacking = [subject for subject in subjects if subject not in page_of]
    if len(left) != len(lacking):
        return {}
    page_of |= dict(zip(lacking, left, strict=True))
    return {subject: page_of[subject] for subject in subjects}


def _key(name: str) -> str:
    return title_key(without_disambiguation(name))


# Rows of MuSiQue (Trivedi et al., 2022, arXiv:2108.00573) as examples, and their gold chains.
#
#     {"id": "2hop__1_2", "question": "…", "answer": "Lund", "answer_aliases": ["Lund, Sweden"], "answerable": true,
#      "paragraphs": [{"idx": 0, "title": "Tide Songs", "paragraph_text": "…", "is_supporting": true}, …],
#      "question_decomposition": [
#         {"id": 1, "question": "Tide Songs >> author", "answer": "Ann Ek", "paragraph_support_idx": 0},
#         {"id": 2, "question": "Where did #1 live?", "answer": "Lund", "paragraph_support_idx": 7}]}
#
# Official files and Hugging Face rows are the same. `#1` in a sub-question is the answer of the first one.


LONGEST_PART = 120  # words; with its title a part fits into the 200 tokens that ReWOO and ReAct show of a page

_KIND = re.compile(r"\dhop\d?(?=_)")
_REFERENCE = re.compile(r"#(\d+)")


def musique_example(row: RawRow) -> Example | None:
    """A row as an example with its paragraphs, its kind (`2hop`, `3hop1`, …) and its gold chain.

    None for a row that can't be answered from its paragraphs, of which MuSiQue-Full has one for each that can.
    Raises `RowError`.
    """
    if row.get("answerable") is False:
        return None
    id_, question = identifier(row, "id"), text_field(row, "question")
    golds = answers((gold(row, "answer"), *(row.get("answer_aliases") or ())), "answer")
    paragraphs = _paragraphs(row.get("paragraphs") or ())
    chain = _chain_of_steps(row.get("question_decomposition") or (), paragraphs)
    documents = tuple(part for parts in paragraphs.values() for part in parts)
    kind = _KIND.match(id_)
    return Example(id_, question, golds, documents, kind[0] if kind else "", chain)


def _paragraphs(rows: Sequence[RawRow]) -> dict[int, list[Document]]:
    """The paragraphs by their `idx`, as pages that all have a title of their own: one, or several for a long one.

    A paragraph is parted where a sentence ends. Paragraphs of the same title, and parts of one, are numbered from the
    second on: `Lund`, `Lund (2)`. No numbered title is that of another paragraph.
    """
    seen: Counter[str] = Counter()
    taken = {title_key(text_field(row, "title")) for row in rows}
    paragraphs: dict[int, list[Document]] = {}
    for position, row in enumerate(rows):
        title, content = text_field(row, "title"), str(row.get("paragraph_text") or "").strip()
        parts: list[str] = []
        for sentence in split_sentences(content) if len(content.split()) > LONGEST_PART else [content]:
            longer = f"{parts[-1]} {sentence}" if parts else sentence
            if parts and len(longer.split()) <= LONGEST_PART:
                parts[-1] = longer
            else:
                parts.append(sentence)
        index, key = row.get("idx"), title_key(title)
        pages = paragraphs[index if isinstance(index, int) else position] = []
        for part in parts:
            seen[key] += 1
            while seen[key] > 1 and title_key(f"{title} ({seen[key]})") in taken:
                seen[key] += 1
            pages.append(Document(title if seen[key] == 1 else f"{title} ({seen[key]})", part))
    return paragraphs


def _chain_of_steps(steps: Sequence[RawRow], paragraphs: Mapping[int, list[Document]]) -> tuple[Hop, ...]:
    """The sub-questions as hops; none if one of them has no paragraph, or refers to none before it."""
    hops: list[Hop] = []
    for step in steps:
        pages = paragraphs.get(step.get("paragraph_support_idx", -1))
        if pages is None:
            return ()
        asked, value = text_field(step, "question"), str(step.get("answer") or "").strip()
        showing = next((page for page in pages if value and fold(value) in fold(page.text)), None)
        needs = sorted({int(number) - 1 for number in _REFERENCE.findall(asked)})
        if any(not 0 <= need < len(hops) for need in needs):
            return ()  # "a #1 hit" is no reference
        readable = tuple(need for need in needs if hops[need].value)  # nothing can be read from the others
        # Without references: `author of Tide Songs` for `Tide Songs >> author`.
        subject, arrow, relation = asked.rpartition(">>")
        plain = f"{relation.strip()} of {subject.strip()}" if arrow else asked
        plain = " ".join(_REFERENCE.sub("that", plain).split())
        ask = re.sub(r"\s+(?=[,.?!'])", "", plain).rstrip(" ?")
        hops.append(Hop((showing or pages[0]).title, value if showing else "", ask, readable))
    return tuple(hops)
