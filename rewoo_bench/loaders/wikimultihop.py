"""Rows of 2WikiMultihopQA (Ho et al., 2020, arXiv:2011.01060) as examples, and their gold chains.

    {"_id": "8a3", "type": "compositional", "question": "Where did the author of Tide Songs live?", "answer": "Lund",
     "context": [["Tide Songs", ["Tide Songs is a book by Ann Ek."]], ["Ann Ek", ["She lived in Lund."]], …],
     "supporting_facts": [["Tide Songs", 0], ["Ann Ek", 0]],
     "evidences": [["Tide Songs", "author", "Ann Ek"], ["Ann Ek", "residence", "Lund"]]}

Rows of the hub have `id` for `_id` and columns for lists, or hold a column as JSON text; `evidences` may be
`{"fact": […], "relation": […], "entity": […]}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewoo_bench.loaders.hotpotqa import hotpotqa_example
from rewoo_bench.loaders.row_fields import Row, RowError, pairs
from rewoo_bench.text.words import fold, title_key, without_disambiguation
from rewoo_bench.types import Example, Hop

_TABLES = ("context", "supporting_facts", "evidences")
_COLUMNS = ("fact", "relation", "entity")
_STRANDS = "bridge_comparison"
_SEQUENCES = ("compositional", "inference")


class _Triple(NamedTuple):
    """A piece of evidence: the director of `Tide Songs` is `Ann Ek`."""

    subject: str
    relation: str
    value: str


def wikimultihop_example(row: Row) -> Example:
    """A row as an example with its paragraphs, its type and the chain of its evidence. Raises `RowError`."""
    read = {**row, **{name: _table(row, name) for name in _TABLES}}
    if isinstance(read["context"], Mapping) and "sentences" not in read["context"]:
        read["context"] = {**read["context"], "sentences": read["context"].get("content")}
    read["answer"] = row.get("answer") or None  # blank in the test split
    example = hotpotqa_example(read)
    titles = dict.fromkeys(str(title) for title, _ in pairs(read["supporting_facts"], "title", "sent_id"))
    chain = _chain_of_triples(_triples(read["evidences"]), list(titles), example)
    return replace(example, chain=chain)


def _table(row: Row, name: str) -> Any:
    """A column that may be JSON text."""
    value = row.get(name)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise RowError(f"{name!r} is {value!r:.80}, expected a table or its JSON text") from None


def _triples(evidences: object) -> list[_Triple]:
    if not evidences:
        return []
    if isinstance(evidences, Mapping):
        columns = [evidences.get(column) or [] for column in _COLUMNS]
        evidences = [list(cells) for cells in zip(*columns, strict=False)]
    if not isinstance(evidences, list):
        raise RowError(f"'evidences' is {evidences!r:.80}, expected a list of triples")
    return [_triple(each) for each in evidences]


def _triple(cells: object) -> _Triple:
    if isinstance(cells, Mapping):
        cells = [cells.get(column) for column in _COLUMNS]
    if not isinstance(cells, Sequence) or len(cells) != 3 or not all(isinstance(cell, str) for cell in cells):
        raise RowError(f"a piece of 'evidences' is {cells!r:.80}, expected a subject, a relation and an object")
    return _Triple(*(" ".join(cell.split()) for cell in cells))


def _chain_of_triples(triples: Sequence[_Triple], titles: Sequence[str], example: Example) -> tuple[Hop, ...]:
    """A hop for each subject of the evidence; none if a subject has no supporting page.

    The triples of one subject (a birth and a death) are one look-up. Its value is what its page shows of them, and a
    hop with no such value leads nowhere: nothing can be read from that page.
    """
    facts: dict[str, list[_Triple]] = {}
    for triple in triples:
        facts.setdefault(triple.subject, []).append(triple)
    page_of = _pages(list(facts), titles)
    texts = {page.title: fold(page.text) for page in example.documents}
    hops: list[Hop] = []
    for subject, title in page_of.items():
        shown = [fact.value for fact in facts[subject] if not texts or fold(fact.value) in texts.get(title, "")]
        ask = " and ".join(dict.fromkeys(fact.relation for fact in facts[subject]))
        needs = _leading_to((subject, title), [facts[earlier] for earlier in list(page_of)[: len(hops)]])
        needs = needs or _usual(example.kind, len(hops), len(page_of))
        hops.append(Hop(title, shown[0] if shown else "", ask, tuple(need for need in needs if hops[need].value)))
    return tuple(hops)


def _pages(subjects: Sequence[str], titles: Sequence[str]) -> dict[str, str]:
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


def _leading_to(names: Sequence[str], earlier: Sequence[Sequence[_Triple]]) -> tuple[int, ...]:
    """The earlier hops with a fact that names this page."""
    keys = {_key(name) for name in names}
    return tuple(number for number, facts in enumerate(earlier) if any(_key(fact.value) in keys for fact in facts))


def _usual(kind: str, number: int, hops: int) -> tuple[int, ...]:
    """What hop `number` needs in questions of this type, where no fact names its page."""
    if kind in _SEQUENCES:
        return (number - 1,) if number else ()
    return (number - hops // 2,) if kind == _STRANDS and hops == 4 and number >= 2 else ()


def _key(name: str) -> str:
    return title_key(without_disambiguation(name))
