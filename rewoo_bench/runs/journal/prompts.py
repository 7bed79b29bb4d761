"""The recorded model calls of a run in the order in which they were sent, read from its journal without holding it.

    calls = recorded_prompts(journal.database)
    calls.tasks[3]                      # '["rewoo", "q1", 0]'
    for call in calls.among(chosen):    # one at a time
        call.task, call.prompt, call.input_tokens

A first pass over the journal keeps some numbers of each call; then calls are read again in the order of their times.

A judge's calls are in no question's cost, as in the column `cost_usd`; nor are those that generate nothing, which
have prices of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import unpack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.database import JournalFile, is_sound
from rewoo_bench.runs.journal.records import SECOND_ATTEMPT, read_answer

UNPRICED_ROLES = frozenset({"judge", "count", "embedding"})
_CALLS_AT_ONCE = 200
_TEXTS_KNOWN = 2_000
_KEPT = np.dtype(
    [("number", "i8"), ("task", "i4"), ("role", "i2"), ("place", "i4"), ("start", "f8"), ("end", "f8"),
     ("input", "i4"), ("output", "i4")]
)  # fmt: skip


class Prompt(NamedTuple):
    """The texts of a request in the order in which a provider reads them, tools first.

    `ids` are the same for the same text. `marks` are positions of texts at which a cacheable prefix ends.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    marks: tuple[int, ...] = ()


class SentCall(NamedTuple):
    """An answered model call. `number` is its position in `kept`; times are in seconds since 1970."""

    number: int
    task: int
    start: float
    end: float
    input_tokens: int
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class RecordedPrompts:
    """The calls of a run's journal. `kept` has numbers of each answered call, in the order of their starts."""

    kept: NDArray[Any]
    tasks: tuple[str, ...]
    roles: tuple[str, ...]
    places: tuple[str, ...]
    """The names that `task`, `role` and `place` of `kept` are positions in."""
    _database: JournalFile
    _texts: _Texts

    def among(self, chosen: NDArray[np.bool_]) -> Iterator[SentCall]:
        """The calls of a mask over `kept`, with their prompts. Raises `DataError` where texts are missing."""
        positions = np.flatnonzero(chosen)
        for first in range(0, len(positions), _CALLS_AT_ONCE):
            some = positions[first : first + _CALLS_AT_ONCE]
            rows = self._database.numbered_rows("calls", self.kept["number"][some].tolist())
            fields = self.kept[["task", "start", "end", "input"]][some].tolist()
            for number, (task, start, end, input_tokens), row in zip(some.tolist(), fields, rows, strict=True):
                answer = read_answer(row[8])
                marks = (answer.get("receipt") or {}).get("cache_marks") or ()
                prompt = self._texts.prompt(row[7], marks)
                yield SentCall(number, task, start, end, input_tokens, prompt)


def recorded_prompts(database: JournalFile) -> RecordedPrompts:
    """The answered model calls of a journal that count in a question's cost."""
    tasks: dict[str, int] = {}
    roles: dict[str, int] = {}
    places: dict[str, int] = {}
    parts, some = [], []
    for number, record in database.numbered("calls"):
        task, place, kind, role, _, _, status, _, text, *_ = record
        if kind != "model" or status != "ok" or role in UNPRICED_ROLES or not is_sound(record):
            continue
        answer = read_answer(text)
        receipt, usage = answer.get("receipt") or {}, answer.get("usage") or {}
        if SECOND_ATTEMPT in answer:
            continue
        times = (float(receipt.get(name, 0.0)) for name in ("sent_at", "ended_at"))
        sizes = (int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens"))
        named = (each.setdefault(name, len(each)) for each, name in ((tasks, task), (roles, role), (places, place)))
        some.append((number, *named, *times, *sizes))
        if len(some) >= 10_000:
            parts.append(np.array(some, dtype=_KEPT))
            some.clear()
    kept = np.concatenate([*parts, np.array(some, dtype=_KEPT)])
    kept = kept[np.argsort(kept["start"], kind="stable")]
    return RecordedPrompts(kept, tuple(tasks), tuple(roles), tuple(places), database, _Texts(database))


class _Texts:
    """The texts of a journal. The last ones read are remembered: prompts share most of theirs."""

    def __init__(self, database: JournalFile) -> None:
        self._database = database
        self._text = lru_cache(maxsize=_TEXTS_KNOWN)(self._read)

    def prompt(self, ids: bytes, marks: Sequence[int]) -> Prompt:
        *content_ids, form_id = unpack(f"{len(ids) // 8}q", ids)
        tools, calls = _read_form(self._text(form_id))
        texts = [self._text(id_) for id_ in content_ids]
        for position, call in enumerate(calls):
            if call and position < len(texts):
                texts[position] += call
                content_ids[position] = hash((content_ids[position], call))
        if tools:
            texts, content_ids = [tools, *texts], [hash(tools), *content_ids]
        return Prompt(tuple(content_ids), tuple(texts), tuple(mark + bool(tools) for mark in marks))

    def _read(self, id_: int) -> str:
        rows = self._database.rows("texts", "WHERE id = ?", (id_,))
        if not rows:
            raise DataError(f"{self._database.path}: texts of its prompts are missing or damaged")
        return str(rows[0][1])


@lru_cache(maxsize=256)
def _read_form(form: str) -> tuple[str, tuple[str, ...]]:
    """The tools of a request, and the tool calls of each message, as text: a provider reads them too."""
    decoder, position, facts = json.JSONDecoder(), 0, dict[str, Any]()
    while position < len(form):
        part, position = decoder.raw_decode(form, position)
        facts |= part
    tools = "".join(json.dumps(facts[name]) for name in ("tools", "schema") if facts.get(name))
    calls = tuple(json.dumps(calls) if calls or id_ else "" for calls, id_ in facts.get("calls", ()))
    return tools, calls
