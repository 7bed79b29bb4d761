"""Between a question's meter and the world: calls that were made before are answered from the journal.

    meter -> recorder -> (retry -> provider | tool)

A question in the middle goes on by being run again from its start: every call that finished
gives its answer at once, in its place, and the first that didn't is made. The architecture knows
nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Unpack

from anyio import to_thread
from pydantic import BaseModel

from rewoo_bench.answers import AnswerCache, cache_key
from rewoo_bench.brake import Brake
from rewoo_bench.errors import ModelError, ToolError
from rewoo_bench.journal import Journal, JournalReader
from rewoo_bench.place import current_place
from rewoo_bench.records import (
    CallKey,
    CallRecord,
    TaskKey,
    as_bytes,
    as_completion,
    call_fields,
    numbers,
    request_hash,
    texts_of,
    with_failed,
)
from rewoo_bench.types import Asked, Completion, Message, Model, Receipt, Tool
from rewoo_bench.wrapped import WrappedTool


class Recalled(str):
    """What a tool said in an earlier session of the run; `measured_s` is how long it took then."""

    measured_s: float = 0.0


class NotRecorded(ModelError):
    """A replay was asked for something that the recorded run didn't ask."""


@dataclass
class Recorder:
    """Records the calls of a run, and answers those that were recorded.

    `journal` is the run's own. `replay` is another run's, from which alone answers come, but for those
    to `live_roles`. `cache` has answers of other runs.
    """

    journal: Journal
    replay: JournalReader | None = None
    live_roles: frozenset[str] = frozenset()
    cache: AnswerCache | None = None
    brake: Brake = field(default_factory=Brake)

    async def question(self, task: TaskKey) -> QuestionRecorder:
        """The recorder of one question. Reads what is known of it, where anything can be."""
        if self.journal.is_new and self.replay is None:
            return QuestionRecorder(self, task)
        mine = await to_thread.run_sync(self.journal.calls, task)
        others = await to_thread.run_sync(self.replay.calls, task) if self.replay else []
        return QuestionRecorder(self, task, mine, others)


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
        self.brake = recorder.brake
        self.keep = recorder.journal.add_call
        self.has_cache = recorder.cache is not None
        self._recorder = recorder
        self._asked: dict[CallKey, int] = {}
        self._done = {record.key: record for record in records if record.status == "ok"}
        self._failed: dict[CallKey, list[CallRecord]] = {}
        for record in records:
            if record.status == "error":
                self._failed.setdefault(record.key, []).append(record)
        self._replayed = {record.key: record for record in replayed}

    def model(self, model: Model) -> Model:
        """The model, recorded."""
        return _RecordedModel(self, model)

    def tools(self, tools: Mapping[str, Tool]) -> dict[str, Tool]:
        """The tools, recorded; but for those that ask a model, whose calls are recorded themselves."""
        return {
            name: tool if getattr(tool, "asks_model", False) else _RecordedTool(self, tool)
            for name, tool in tools.items()
        }

    def key(self, kind: Any, name: str, request: bytes) -> CallKey:
        """Where the calling task stands; the n-th time the same is asked there has n."""
        first = CallKey(current_place().name, kind, name, request)
        nth = self._asked[first] = self._asked.get(first, -1) + 1
        return first if nth == 0 else first._replace(nth=nth)

    def recall(self, key: CallKey) -> tuple[CallRecord, bool] | None:
        """What is recorded of a call, and whether another run paid for it."""
        if key in self._done:
            return self._done[key], False
        return (self._replayed[key], True) if key in self._replayed and not self._is_live(key) else None

    def earlier_failures(self, key: CallKey) -> list[CallRecord]:
        """Attempts that failed for good in earlier sessions."""
        return self._failed.get(key, [])

    async def cached(self, key: CallKey, identity: str) -> dict[str, Any] | None:
        """The answer of another run to the same request."""
        cache = self._recorder.cache
        assert cache is not None
        return await to_thread.run_sync(cache.get, cache_key(identity, key.request, self.task.trial, key.nth))

    async def cache(self, key: CallKey, identity: str, record: CallRecord) -> None:
        """Keeps an answer for other runs."""
        cache = self._recorder.cache
        assert cache is not None
        await to_thread.run_sync(cache.put, cache_key(identity, key.request, self.task.trial, key.nth), record.answer)

    def check_live(self, key: CallKey, prompt: Sequence[str]) -> None:
        """Raises `NotRecorded` where only recorded answers are wanted."""
        if self._recorder.replay is not None and not self._is_live(key):
            raise NotRecorded(self._difference(key, prompt))

    def _is_live(self, key: CallKey) -> bool:
        return key.kind == "model" and key.name in self._recorder.live_roles

    def _difference(self, key: CallKey, prompt: Sequence[str]) -> str:
        """What was recorded in the same place, and where this request departs from it."""
        replay = self._recorder.replay
        assert replay is not None
        same = [
            record for record in self._replayed.values() if (record.key.place, record.key.name) == (key.place, key.name)
        ]
        if not same:
            return f"nothing is recorded at {key.place!r} of this question (role {key.name!r})"
        for recorded, now in zip(replay.texts(same[0]), prompt, strict=False):
            if recorded != now:
                at = next(
                    (i for i, (a, b) in enumerate(zip(recorded, now, strict=False)) if a != b),
                    min(len(recorded), len(now)),
                )
                return (
                    f"not recorded: at {key.place!r} the prompt differs from the recorded one, which has "
                    f"{recorded[at : at + 60]!r} where this has {now[at : at + 60]!r}"
                )
        return f"not recorded: at {key.place!r} the prompt's texts are as recorded, but not its length or its form"


class _RecordedModel:
    """A model whose calls are recorded."""

    def __init__(self, recorder: QuestionRecorder, model: Model) -> None:
        self.name = getattr(model, "name", type(model).__name__)
        self._identity = getattr(model, "identity", self.name)
        self._recorder = recorder
        self._model = model

    async def complete(self, messages: Sequence[Message], **asked: Unpack[Asked]) -> Completion:
        """The recorded completion, else the model's, which is on disk before it is given back."""
        prompt = texts_of(messages, asked)
        key = self._recorder.key("model", asked["role"], request_hash(prompt, asked))
        if found := self._recorder.recall(key):
            record, replayed = found
            recalled = as_completion(record.answer, replayed or "replayed" in record.answer)
            return replace(recalled, receipt=self._with_failures(key, recalled.receipt))
        self._recorder.check_live(key, prompt)
        if self._recorder.has_cache and (cached := await self._recorder.cached(key, self._identity)):
            answer = {**cached, "replayed": True}
            await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", prompt, answer))
            return as_completion(answer, replayed=True)
        await self._recorder.brake.go()
        start = time.monotonic()
        with self._recorder.brake:
            try:
                completion = await self._model.complete(messages, **asked)
            except ModelError as error:
                receipt = error.receipt or Receipt()
                await self._recorder.keep(self._record(key, prompt, "error", {"message": str(error)}, receipt, start))
                error.receipt = self._with_failures(key, receipt)
                raise
            answer = {
                "text": completion.text,
                "usage": numbers(completion.usage),
                "finish_reason": completion.finish_reason,
                "tool_calls": [call_fields(call) for call in completion.tool_calls],
            }
            for name in ("thoughts", "discarded_tokens", "repairs"):
                if value := getattr(completion, name):
                    answer[name] = value
            record = self._record(key, prompt, "ok", answer, completion.receipt, start)
            await self._recorder.keep(record)
            if self._recorder.has_cache:
                await self._recorder.cache(key, self._identity, record)
        if self._recorder.earlier_failures(key):
            return replace(completion, receipt=self._with_failures(key, completion.receipt))
        return completion

    def _record(
        self, key: CallKey, prompt: tuple[str, ...], status: Any, answer: dict[str, Any], receipt: Receipt, start: float
    ) -> CallRecord:
        taken = {
            "attempts": receipt.attempts,
            "billed": numbers(receipt.billed),
            "cost_usd": receipt.cost_usd,
            "usage_source": receipt.usage_source,
            "latency_s": time.monotonic() - start,
        }
        answer["receipt"] = taken
        billed = receipt.billed.total_tokens
        return CallRecord(self._recorder.task, key, status, prompt, answer, billed, receipt.cost_usd)

    def _with_failures(self, key: CallKey, receipt: Receipt) -> Receipt:
        """The receipt, with what the same call took in earlier sessions, where it failed."""
        for record in self._recorder.earlier_failures(key):
            receipt = with_failed(receipt, record.answer["receipt"])
        return receipt


class _RecordedTool(WrappedTool):
    """A tool whose calls are recorded. One with state (`stateful`) is called again, and its first answer counts."""

    def __init__(self, recorder: QuestionRecorder, tool: Tool) -> None:
        super().__init__(tool)
        self._recorder = recorder

    async def __call__(self, arguments: BaseModel) -> str:
        asked = as_bytes(arguments)
        key = self._recorder.key("tool", self.name, sha256(asked).digest())
        found = self._recorder.recall(key)
        if found is None:
            return await self._call(key, asked.decode(), arguments)
        record, replayed = found
        if self.stateful and not replayed:
            with suppress(ToolError):  # what was said the first time counts, below
                await self._tool(arguments)
        if "error" in record.answer:
            raise ToolError(record.answer["error"])
        text = Recalled(record.answer["text"])
        text.measured_s = record.answer["latency_s"]
        return text

    async def _call(self, key: CallKey, asked: str, arguments: BaseModel) -> str:
        self._recorder.check_live(key, (asked,))
        await self._recorder.brake.go()
        start = time.monotonic()
        with self._recorder.brake:
            try:
                said = {"text": await self._tool(arguments)}
            except ToolError as error:
                said = {"error": str(error)}
            answer = {**said, "latency_s": time.monotonic() - start}
            await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", (asked,), answer))
        if "error" in said:
            raise ToolError(said["error"])
        return said["text"]
