"""Records the calls of a run, and answers repeated calls of a resumed or replayed run from a journal.

An unfinished question is resumed by running it again from its start: each finished call is answered at once
from the journal, and the first unfinished one is made. The architecture doesn't notice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from os.path import commonprefix
from typing import Any

from anyio import to_thread

from rewoo_bench.calls.live import SHORTEST_WAIT_S, LiveCalls
from rewoo_bench.errors import ModelError
from rewoo_bench.events import current_place
from rewoo_bench.runs.journal.records import CallKey, CallRecord, RecordedPrompt, TaskKey
from rewoo_bench.runs.journal.response_cache import ResponseCache, cache_key
from rewoo_bench.runs.journal.store import Journal, JournalReader


@dataclass
class Recorder:
    """Records the calls of questions into the run's own `journal`, and answers recorded ones.

    With `replay`, the journal of another run, all answers come from there, except those of `live_roles`. `cache` has
    answers of other runs.
    """

    journal: Journal
    _: KW_ONLY
    replay: JournalReader | None = None
    live_roles: frozenset[str] = frozenset()
    cache: ResponseCache | None = None
    live: LiveCalls = field(default_factory=LiveCalls)

    async def question(self, task: TaskKey) -> QuestionRecorder:
        """The recorder of one question, with its recorded calls."""
        recorded = await self.recorded(task)
        replayed = await to_thread.run_sync(self.replay.calls, task) if self.replay else []
        return QuestionRecorder(self, task, recorded, replayed)

    async def recorded(self, task: TaskKey) -> list[CallRecord]:
        """The calls of a question that earlier sessions recorded."""
        return [] if self.journal.is_new else await to_thread.run_sync(self.journal.calls, task)


class QuestionRecorder:
    """The recorded calls of one question: those of earlier sessions, and a count of those of this one."""

    def __init__(
        self,
        recorder: Recorder,
        task: TaskKey,
        records: Sequence[CallRecord] = (),
        replayed: Sequence[CallRecord] = (),
    ) -> None:
        self.task = task
        self.live = recorder.live
        self._recorder = recorder
        self._counts: dict[CallKey, int] = {}
        self._done = _without_failed(records)
        self._unused = {id(record): record for record in records}
        self._failed: dict[CallKey, list[CallRecord]] = {}
        for record in records:
            if record.status == "error":
                self._failed.setdefault(record.key, []).append(record)
        # An attempt that failed counts where none succeeded later.
        failed_first = sorted(replayed, key=lambda record: record.status == "ok")
        self._replayed = {record.key: record for record in failed_first}

    @property
    def has_records(self) -> bool:
        """Whether calls of the question are recorded, in this run or in the one that is replayed."""
        return bool(self._done or self._replayed)

    def key(self, kind: Any, name: str, request: bytes) -> CallKey:
        """The key of the current call; `nth` counts equal requests at one place."""
        first = CallKey(current_place().name, kind, name, request)
        nth = self._counts[first] = self._counts.get(first, -1) + 1
        return first if nth == 0 else first._replace(nth=nth)

    async def keep(self, record: CallRecord) -> tuple[tuple[float, float], ...]:
        """Returns when the record is in the run's journal: the wait for that, where it was no short one.

        On a cluster the driver confirms each record, which is no part of the call. Raises `JournalError`.
        """
        start = time.monotonic()
        await self._recorder.journal.add_call(record)
        end = time.monotonic()
        return ((start, end),) if end - start > SHORTEST_WAIT_S else ()

    def recall(self, key: CallKey) -> tuple[CallRecord, bool] | None:
        """The record of a call, and whether another run paid for it."""
        if key in self._done:
            self._unused.pop(id(self._done[key]), None)
            return self._done[key], False
        return (self._replayed[key], True) if key in self._replayed and not self._is_live(key) else None

    def earlier_failures(self, key: CallKey) -> list[CallRecord]:
        """Failed records of the call in earlier sessions."""
        failed = self._failed.get(key, [])
        for record in failed:
            self._unused.pop(id(record), None)
        return failed

    def ended_at_time_limit(self) -> bool:
        """Whether the question ended so in the run that is replayed."""
        replay = self._recorder.replay
        recorded = replay.questions([self.task]) if replay is not None else []
        return any(json.loads(rows)["question"]["stop_reason"] == "time_limit" for rows, _ in recorded)

    def abandoned(self) -> list[CallRecord]:
        """Model calls that earlier sessions paid for and this one didn't make: of an agent whose requests vary."""
        return [record for record in self._unused.values() if record.key.kind == "model" and record.billed_tokens]

    async def cached(self, key: CallKey, model_part: str) -> dict[str, Any] | None:
        """The answer of another run to the same request; None without one, or without a cache."""
        if (cache := self._recorder.cache) is None:
            return None
        return await to_thread.run_sync(cache.get, cache_key(model_part, key.request, self.task.trial, key.nth))

    async def cache(self, key: CallKey, model_part: str, record: CallRecord) -> None:
        """Stores an answer for other runs, if there is a cache."""
        if (cache := self._recorder.cache) is not None:
            name = cache_key(model_part, key.request, self.task.trial, key.nth)
            await to_thread.run_sync(cache.put, name, record.answer)

    def check_live(self, key: CallKey, prompt: RecordedPrompt) -> None:
        """Raises `ModelError` in a replay, which makes no calls: this one isn't in the recorded run."""
        if self._recorder.replay is not None and not self._is_live(key):
            raise ModelError(self._difference(key, prompt))

    def _is_live(self, key: CallKey) -> bool:
        return key.kind == "model" and key.name in self._recorder.live_roles

    def _difference(self, key: CallKey, prompt: RecordedPrompt) -> str:
        """The first difference between this request and the recorded one at the same place."""
        replay = self._recorder.replay
        assert replay is not None
        here = (
            record for record in self._replayed.values() if (record.key.place, record.key.name) == (key.place, key.name)
        )
        if (recorded := next(here, None)) is None:
            return f"nothing is recorded at {key.place!r} of this question (role {key.name!r})"
        for before, now in zip(replay.texts(recorded), prompt.texts, strict=False):
            if before != now:
                at = len(commonprefix([before, now]))  # noqa: RUF071 - of texts, character by character
                return (
                    f"not recorded: at {key.place!r} the prompt differs from the recorded one, which has "
                    f"{before[at : at + 60]!r} where this has {now[at : at + 60]!r}"
                )
        return f"not recorded: at {key.place!r} the prompt has another length or form than the recorded one"


def _without_failed(records: Sequence[CallRecord]) -> dict[CallKey, CallRecord]:
    """Finished calls by the keys under which a new session asks for them.

    An external agent may have made a failed call again: it was answered as the second of two equal requests, and the
    new session makes only one.
    """
    answered = [record for record in records if record.status == "ok"]
    failed = {record.key for record in records if record.status == "error"} - {record.key for record in answered}
    done: dict[CallKey, CallRecord] = {}
    for record in answered:
        key = record.key
        skipped = sum(key._replace(nth=nth) in failed for nth in range(key.nth))
        done[key._replace(nth=key.nth - skipped)] = record
    return done
