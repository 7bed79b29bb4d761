"""Rows of this project's own format as examples; for the bundled sample and for sets of your own.

    {"id": "s1", "type": "bridge", "question": "…", "answers": ["Oslo"],
     "chain": [{"title": "Page A", "ask": "Who …?", "value": "Ann"},
               {"title": "Page B", "ask": "Where was Ann …?", "value": "Oslo", "needs": [1]}]}

`needs` counts hops from 1 in the file and from 0 in `Hop`. `answer`, one text, may take the place of
`answers`. `id` (the row's number without it), `type`, `level`, `chain` and `documents`
(`[{"title", "text"}]`) may be left out; without documents the search tool needs a corpus.
"""

from __future__ import annotations

from rewoo_bench.loaders.row_fields import HIDDEN, Row, RowError, answers, identifier, pairs, text
from rewoo_bench.types import Document, Example, Hop


def sample_example(row: Row) -> Example:
    """A row as an example with its gold chain. Raises `RowError`."""
    key = next((key for key in ("answers", "answer") if key in row), None)
    if key is None:
        raise RowError(f"no answer under 'answers' or 'answer'; it has {', '.join(sorted(map(str, row)))}; {HIDDEN}")
    golds = [row.get(key)] if key == "answer" else row[key]
    if not isinstance(golds, list):
        raise RowError(f"{key!r} is {golds!r:.80}, expected a list of texts")
    chain = row.get("chain") or []
    if not isinstance(chain, list):
        raise RowError(f"'chain' is {chain!r:.80}, expected a list of hops")
    return Example(
        identifier(row, "id"),
        text(row, "question"),
        answers((str(gold) if type(gold) is int else gold for gold in golds), key),
        tuple(Document(str(title), str(page)) for title, page in pairs(row.get("documents"), "title", "text")),
        str(row.get("type") or ""),
        tuple(_hop(hop, number) for number, hop in enumerate(chain, start=1)),
        str(row.get("level") or ""),
    )


def _hop(hop: object, number: int) -> Hop:
    """Hop `number`, counted from 1; it may need only hops before it."""
    if not isinstance(hop, dict):
        raise RowError(f"hop {number} is {hop!r}, expected an object with title, ask, value and needs")
    needs = hop.get("needs") or []
    if not isinstance(needs, list) or not all(isinstance(need, int) and 1 <= need < number for need in needs):
        raise RowError(f"hop {number} needs {needs!r}, expected numbers of earlier hops, counted from 1")
    return Hop(
        text(hop, "title"), str(hop.get("value") or ""), str(hop.get("ask") or ""), tuple(need - 1 for need in needs)
    )
