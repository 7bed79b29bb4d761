"""Rows of this project's own format as examples; for the bundled sample and for sets of your own.

    {"id": "s1", "type": "bridge", "question": "…", "answers": ["Oslo"],
     "chain": [{"title": "Page A", "ask": "Who …?", "value": "Ann"},
               {"title": "Page B", "ask": "Where was Ann …?", "value": "Oslo", "needs": [1]}]}

`needs` counts hops from 1 in the file and from 0 in `Hop`. A hop may be a calculation in the place of a page; `{1}` in
it stands for the value of hop 1. Its own `value` and `needs` may be left out, and are checked where they are given:

    {"calculate": "{1} / 2", "ask": "half of the pages", "value": "24", "needs": [1]}

`answer`, one text, may take the place of
`answers`. `id` (the row's number without it), `type`, `level`, `chain` and `documents`
(`[{"title", "text"}]`) may be left out; without documents the search tool needs a corpus.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from rewoo_bench.errors import ToolError
from rewoo_bench.loaders.row_fields import HIDDEN, Row, RowError, answers, identifier, pairs, plain_answer, text
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.types import Document, Example, Hop

_PLACE = re.compile(r"\{(\d{1,3})\}")


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
        answers((plain_answer(gold, key) for gold in golds), key),
        tuple(Document(str(title), str(page)) for title, page in pairs(row.get("documents"), "title", "text")),
        str(row.get("type") or ""),
        _hops(chain),
        str(row.get("level") or ""),
    )


def _hops(chain: Sequence[object]) -> tuple[Hop, ...]:
    hops: list[Hop] = []
    for hop in chain:
        hops.append(_hop(hop, hops))
    return tuple(hops)


def _hop(hop: object, before: Sequence[Hop]) -> Hop:
    """The hop after those `before`; it may need only them."""
    number = len(before) + 1
    if not isinstance(hop, dict):
        raise RowError(f"hop {number} is {hop!r}, expected an object with title or calculate, ask, value and needs")
    needs = hop.get("needs") or []
    if not isinstance(needs, list) or not all(isinstance(need, int) and 1 <= need < number for need in needs):
        raise RowError(f"hop {number} needs {needs!r}, expected numbers of earlier hops, counted from 1")
    needed = tuple(need - 1 for need in needs)
    if "calculate" in hop:
        return _calculation(hop, needed, before)
    return Hop(text(hop, "title"), str(hop.get("value") or ""), str(hop.get("ask") or ""), needed)


def _calculation(hop: Row, needs: tuple[int, ...], before: Sequence[Hop]) -> Hop:
    """A hop of the calculator. Raises `RowError` where its expression can't be worked out, or not to its value."""
    where, written = f"hop {len(before) + 1}", text(hop, "calculate")
    named = {int(place) for place in _PLACE.findall(written)}
    if "title" in hop:
        raise RowError(f"{where} has a 'title' and 'calculate', expected one of them")
    if wrong := [place for place in sorted(named) if not 1 <= place <= len(before)]:
        raise RowError(f"{where} is {written!r} and names hop {wrong[0]}, expected earlier hops, counted from 1")
    filled = _PLACE.sub(lambda place: f"({before[int(place[1]) - 1].value})", written)
    try:
        result = show_number(calculate(filled))
        value = result if hop.get("value") is None else str(hop["value"])
        if not math.isclose(calculate(value), calculate(result), rel_tol=1e-9):
            raise RowError(f"{where}: {filled!r} is {result}, but its value is {value!r}")
    except ToolError as error:
        raise RowError(f"{where}: {written!r} can't be worked out: {error}") from None
    needed = tuple(sorted({*needs, *(place - 1 for place in named)}))
    expression = _PLACE.sub(lambda place: f"{{{int(place[1]) - 1}}}", written)
    return Hop(expression, value, str(hop.get("ask") or ""), needed, tool="Calculator")
