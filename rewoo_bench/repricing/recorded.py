"""The recorded model calls of a run in the order in which they were sent, read from its journal without holding it.

    with recorded_calls(folder, places, starts) as calls:
        calls.other["planner"]              # tokens of failed and repeated attempts, for each row
        for call in calls.among(chosen):    # one at a time
            call.row, call.prompt, call.input_tokens

A first pass over the journal keeps some numbers of each call; then calls are read again in the order of their times.

A judge's calls are in no question's cost, as in the column `cost_usd`; nor are those that generate nothing, which
have prices of their own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from struct import unpack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import DataError
from rewoo_bench.journal.database import JournalFile, connect_to_read, is_sound
from rewoo_bench.journal.records import SECOND_ATTEMPT, read_answer
from rewoo_bench.journal.store import JOURNAL

UNPRICED_ROLES = frozenset({"judge", "count", "embedding"})
RECORDED_CACHE = "with --recorded-cache the cached tokens that the provider reported are priced instead"
_CALLS_AT_ONCE = 200
_TEXTS_KNOWN = 2_000
_KEPT = np.dtype(
    [("number", "i8"), ("row", "i4"), ("role", "i2"), ("start", "f8"), ("end", "f8"), ("input", "i4"),
     ("output", "i4"), ("cached", "i4")]
)  # fmt: skip


class Prompt(NamedTuple):
    """The texts of a request in the order in which a provider reads them, tools first.

    `ids` are the same for the same text. `marks` are positions of texts at which a cacheable prefix ends.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    marks: tuple[int, ...] = ()

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts))


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """An answered model call. `row` is a position in the run's rows; times are in seconds since 1970."""

    row: int
    start: float
    end: float
    input_tokens: int
    output_tokens: int
    prompt: Prompt
    answer: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """The calls of a run's journal. `kept` has numbers of each answered call, in the order of their starts."""

    kept: NDArray[Any]
    roles: tuple[str, ...]
    """Names of the roles in `kept`."""
    other: Mapping[str, NDArray[np.int64]]
    """By role, input and output tokens of failed and repeated attempts: a line for each row of the run."""
    untimed: int
    """Calls of an older version, recorded without times and marks: they are taken to follow each other."""
    _database: JournalFile
    _texts: _Texts

    def among(self, chosen: NDArray[np.bool_]) -> Iterator[RecordedCall]:
        """The calls of a mask over `kept`, with their prompts."""
        kept = self.kept[chosen]
        for first in range(0, len(kept), _CALLS_AT_ONCE):
            some = kept[first : first + _CALLS_AT_ONCE]
            rows = self._database.numbered_rows("calls", some["number"].tolist())
            for numbers, row in zip(some.tolist(), rows, strict=True):
                _, place, role, start, end, input_tokens, output_tokens, _ = numbers
                answer = read_answer(row[8])
                marks = (answer.get("receipt") or {}).get("cache_marks") or ()
                prompt = self._texts.prompt(row[7], marks)
                text = str(answer.get("text") or "")
                yield RecordedCall(place, start, end, input_tokens, output_tokens, prompt, text, self.roles[role])


@contextmanager
def recorded_calls(folder: Path, places: Mapping[str, int], starts: Sequence[float]) -> Iterator[RecordedCalls]:
    """The calls of a run. `places` has the row of each task's name, `starts` the time at which each row began.

    Raises `DataError` with what to do where the journal is gone, or has no call of these rows.
    """
    path = folder / JOURNAL
    if not path.is_file():
        raise DataError(f"{str(folder)!r} has no {JOURNAL}, and so no prompts; {RECORDED_CACHE}")
    with closing(connect_to_read(path)) as database:
        calls = _collect(database, places, starts)
        if not len(calls.kept):
            cause = "as the journal of a replay: reprice the run that it replays"
            raise DataError(f"{path}: has no model call, {cause}; {RECORDED_CACHE}")
        yield calls


def _collect(database: JournalFile, places: Mapping[str, int], starts: Sequence[float]) -> RecordedCalls:
    """The first pass."""
    roles: dict[str, int] = {}
    other: dict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros((len(starts), 2), dtype=np.int64))
    clock = list(starts)
    parts, some = [], []
    untimed = 0
    for number, record in database.numbered("calls"):
        task, _, kind, role, _, _, status, _, text, *_ = record
        place = places.get(task)
        if place is None or not is_sound(record) or role in UNPRICED_ROLES:
            continue
        answer = read_answer(text)
        if kind == "tool":
            clock[place] += float(answer.get("latency_s") or 0.0)
            continue
        usage, billed = _tokens(answer.get("usage")), _tokens((answer.get("receipt") or {}).get("billed"))
        other[role][place] += [max(0, paid - used) for paid, used in zip(billed[:2], usage[:2], strict=True)]
        if status != "ok" or SECOND_ATTEMPT in answer:
            continue
        start, end, is_timed = _times(answer.get("receipt") or {}, clock[place])
        clock[place] = end
        untimed += not is_timed
        some.append((number, place, roles.setdefault(role, len(roles)), start, end, usage[0], usage[1], usage[2]))
        if len(some) >= 10_000:
            parts.append(np.array(some, dtype=_KEPT))
            some.clear()
    kept = np.concatenate([*parts, np.array(some, dtype=_KEPT)])
    kept = kept[np.argsort(kept["start"], kind="stable")]
    return RecordedCalls(kept, tuple(roles), other, untimed, database, _Texts(database))


def _tokens(usage: Mapping[str, Any] | None) -> tuple[int, int, int]:
    """Input, output and cached input."""
    found = usage or {}
    names = ("input_tokens", "output_tokens", "cached_input_tokens")
    first, second, third = (int(found.get(name) or 0) for name in names)
    return first, second, third


def _times(receipt: Mapping[str, Any], now: float) -> tuple[float, float, bool]:
    """Start and end of a call, and whether they were recorded: older journals have durations only."""
    if "sent_at" in receipt and "ended_at" in receipt:
        return float(receipt["sent_at"]), float(receipt["ended_at"]), True
    return now, now + float(receipt.get("latency_s") or 0.0), False


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
            raise DataError(f"{self._database.path}: texts of its prompts are missing or damaged; {RECORDED_CACHE}")
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
