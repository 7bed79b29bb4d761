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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import UNPRICED_ROLES
from rewoo_bench.runs.journal.database import JournalFile, KnownTexts, is_sound
from rewoo_bench.runs.journal.records import SECOND_ATTEMPT, recorded_answer, unpacked

_CALLS_AT_ONCE, _NUMBERS_AT_ONCE = 200, 10_000
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


class RequestForm(NamedTuple):
    """What a recorded request has beside the contents of its messages; `calls` are the tool calls of each message."""

    roles: tuple[str, ...]
    tools: str
    schema: str
    calls: tuple[str, ...]


@lru_cache(maxsize=256)
def read_form(text: str) -> RequestForm:
    """The form of a request from its recorded text. Tools and calls are text, too: a provider reads them as such."""
    decoder, position, facts = json.JSONDecoder(), 0, dict[str, Any]()
    while position < len(text):
        part, position = decoder.raw_decode(text, position)
        facts |= part if isinstance(part, dict) else {}
    tools, schema = (json.dumps(facts[name]) if facts.get(name) else "" for name in ("tools", "schema"))
    calls = tuple(json.dumps(calls) if calls or id_ else "" for calls, id_ in facts.get("calls", ()))
    return RequestForm(tuple(str(facts.get("roles", "")).split()), tools, schema, calls)


def text_reader(database: JournalFile) -> Callable[[int], str | None]:
    """Reads a text of a journal by its id, None where it is missing or damaged.

    Some texts are remembered: prompts share most of theirs.
    """
    known = KnownTexts[int, str | None]()

    def read(id_: int) -> str | None:
        if id_ in known:
            return known[id_]
        rows = database.rows("texts", "WHERE id = ?", (id_,))
        text = str(rows[0][1]) if rows else None
        return known.keep(id_, text, len(text or ""))

    return read


def answered_calls(database: JournalFile) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Number and record of each answered model call that counts in a question's cost, damaged ones left out."""
    for number, record in database.numbered("calls"):
        _, _, kind, role, _, _, status, *_ = record
        if kind == "model" and status == "ok" and role not in UNPRICED_ROLES and is_sound(record):
            yield number, record


@dataclass(frozen=True, slots=True)
class RecordedPrompts:
    """The calls of a run's journal. `kept` has numbers of each answered call, in the order of their starts."""

    kept: NDArray[Any]
    tasks: tuple[str, ...]
    roles: tuple[str, ...]
    places: tuple[str, ...]
    """The names that `task`, `role` and `place` of `kept` are positions in."""
    _database: JournalFile
    _text: Callable[[int], str | None]

    def numbers(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """These fields of each call of `kept`."""
        for first in range(0, len(self.kept), _NUMBERS_AT_ONCE):
            yield from self.kept[list(names)][first : first + _NUMBERS_AT_ONCE].tolist()

    def among(self, chosen: NDArray[np.bool_]) -> Iterator[SentCall]:
        """The calls of a mask over `kept`, with their prompts. Raises `DataError` where texts are missing."""
        positions = np.flatnonzero(chosen)
        for first in range(0, len(positions), _CALLS_AT_ONCE):
            some = positions[first : first + _CALLS_AT_ONCE]
            rows = self._database.numbered_rows("calls", self.kept["number"][some].tolist())
            fields = self.kept[["task", "start", "end", "input"]][some].tolist()
            for number, (task, start, end, input_tokens), row in zip(some.tolist(), fields, rows, strict=True):
                marks = (recorded_answer(row[8]).get("receipt") or {}).get("cache_marks") or []
                yield SentCall(number, task, start, end, input_tokens, self._prompt(unpacked(row[7]), marks))

    def _prompt(self, ids: list[int], marks: list[int]) -> Prompt:
        found = [self._text(id_) for id_ in ids]
        texts = [text for text in found if text is not None]
        if len(texts) < len(found):
            raise DataError(f"{self._database.path}: texts of its prompts are missing or damaged")
        form = read_form(texts.pop())
        ids.pop()
        for position, calls in enumerate(form.calls[: len(texts)]):
            if calls:
                texts[position] += calls
                ids[position] = hash((ids[position], calls))
        if tools := form.tools:  # a schema that constrains the reply is in no count of tokens
            texts, ids = [tools, *texts], [hash(tools), *ids]
        return Prompt(tuple(ids), tuple(texts), tuple(mark + bool(tools) for mark in marks))


def recorded_prompts(database: JournalFile) -> RecordedPrompts:
    """The answered model calls of a journal that count in a question's cost."""
    tasks: dict[str, int] = {}
    roles: dict[str, int] = {}
    places: dict[str, int] = {}

    def numbers() -> Iterator[tuple[float, ...]]:
        for number, (task, place, _, role, _, _, _, _, text, *_) in answered_calls(database):
            answer = recorded_answer(text)
            if SECOND_ATTEMPT in answer:
                continue
            receipt, usage = answer.get("receipt") or {}, answer.get("usage") or {}
            times = (float(receipt.get(name, 0.0)) for name in ("sent_at", "ended_at"))
            sizes = (int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens"))
            named = (each.setdefault(name, len(each)) for each, name in ((tasks, task), (roles, role), (places, place)))
            yield (number, *named, *times, *sizes)

    kept = np.fromiter(numbers(), dtype=_KEPT)
    kept = kept[np.argsort(kept["start"], kind="stable")]
    return RecordedPrompts(kept, tuple(tasks), tuple(roles), tuple(places), database, text_reader(database))
