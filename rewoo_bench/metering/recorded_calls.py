"""A model and a tool whose calls are recorded: in the journal before their answers are used, and recalled from there.

meter -> recorded model -> live call -> retry -> provider
meter -> recorded tool -> deadline -> tool
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, Unpack

import anyio
from pydantic import BaseModel

from rewoo_bench.errors import JournalError, ModelError, ToolError
from rewoo_bench.journal.records import (
    CallKey,
    CallRecord,
    as_bytes,
    as_completion,
    call_fields,
    numbers,
    request_hash,
    texts_of,
    with_failed,
)
from rewoo_bench.metering.live_calls import LiveCall
from rewoo_bench.metering.recorder import QuestionRecorder
from rewoo_bench.models.call_cost import attach, call_cost_of, is_sensible
from rewoo_bench.tools.wrapper import WrappedTool
from rewoo_bench.types import CallCost, Completion, CompletionOptions, Message, Model, Tool, Usage


class RecalledText(str):
    """What a tool said in an earlier session of the run; `measured_s` is how long it took then."""

    measured_s: float = 0.0


class UnreadableRecord(ModelError):
    """A recorded answer that was paid for and can't be read any more."""


class RecordedFailure(ModelError):
    """A call that failed in the recorded run, and so fails in its replay."""


class RecordedModel:
    """A model whose calls are recorded."""

    def __init__(self, recorder: QuestionRecorder, model: Model) -> None:
        self.name = getattr(model, "name", type(model).__name__)
        self._identity = getattr(model, "identity", self.name)
        self._recorder = recorder
        self._model = model

    async def complete(self, messages: Sequence[Message], **asked: Unpack[CompletionOptions]) -> Completion:
        """The recorded completion, else the model's, which is on disk before it is given back."""
        prompt = texts_of(messages, asked)
        key = self._recorder.key("model", asked["role"], request_hash(prompt, asked))
        if (recalled := self._recalled(key)) is not None:
            return replace(recalled, call_cost=self._with_failures(key, recalled.call_cost))
        self._recorder.check_live(key, prompt)
        if self._recorder.has_cache and (cached := await self._cached(key, prompt)) is not None:
            return cached
        async with LiveCall(self._recorder.live, self._model, messages, asked) as call:
            completion = await self._ask(call, key, prompt)
        if self._recorder.earlier_failures(key):
            return replace(completion, call_cost=self._with_failures(key, completion.call_cost))
        return completion

    def _recalled(self, key: CallKey) -> Completion | None:
        """The recorded completion. One that can't be read counts as not recorded, where it cost nothing.

        Raises `RecordedFailure` where the call failed in the run that is replayed.
        """
        if (found := self._recorder.recall(key)) is None:
            return None
        record, replayed = found
        if record.status == "error":
            said = record.answer.get("message") or "its error can't be read"
            raise RecordedFailure(f"it failed in the recorded run: {said}", call_cost=CallCost(replayed=True))
        try:
            return _read_completion(record.answer, replayed or "replayed" in record.answer)
        except ValueError as error:
            if not record.billed_tokens:
                return None
            call_cost = CallCost(billed=Usage(input_tokens=record.billed_tokens), cost_usd=record.cost_usd)
            raise UnreadableRecord(
                f"the answer recorded at {key.call_site!r} can't be read: {error}", call_cost=call_cost
            ) from None

    async def _cached(self, key: CallKey, prompt: tuple[str, ...]) -> Completion | None:
        """The answer of another run to the same request, which is recorded in this one too."""
        found = await self._recorder.cached(key, self._identity)
        if found is None:
            return None
        answer = {**found, "replayed": True}
        try:
            completion = _read_completion(answer, replayed=True)
        except ValueError:
            return None
        await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", prompt, answer))
        return completion

    async def _ask(self, call: LiveCall, key: CallKey, prompt: tuple[str, ...]) -> Completion:
        """The model's completion, once it is recorded. What a failed or cancelled call cost is recorded too."""
        start = time.monotonic()
        try:
            completion = await call.ask()
        except ModelError as error:
            call_cost = error.call_cost or CallCost()
            await self._recorder.keep(self._record(key, prompt, "error", {"message": str(error)}, call_cost, start))
            error.call_cost = self._with_failures(key, call_cost)
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if (paid := call_cost_of(cancelled)) is not None:
                record = self._record(
                    key, prompt, "error", {"message": "cancelled before it was answered"}, paid, start
                )
                with anyio.CancelScope(shield=True), suppress(JournalError):
                    await self._recorder.keep(record)
                attach(cancelled, self._with_failures(key, paid))
            raise
        record = self._record(key, prompt, "ok", _answer(completion), completion.call_cost, start)
        try:
            await self._recorder.keep(record)
        except (TypeError, ValueError, RecursionError) as error:  # no JSON, but it was paid for
            said = {"message": f"the answer can't be recorded: {error}"}
            await self._recorder.keep(self._record(key, prompt, "error", said, completion.call_cost, start))
            raise
        if self._recorder.has_cache:
            await self._recorder.cache(key, self._identity, record)
        return completion

    def _record(
        self,
        key: CallKey,
        prompt: tuple[str, ...],
        status: Any,
        answer: dict[str, Any],
        call_cost: CallCost,
        start: float,
    ) -> CallRecord:
        taken = {
            "attempts": call_cost.attempts,
            "billed": numbers(call_cost.billed),
            "cost_usd": call_cost.cost_usd,
            "usage_source": call_cost.usage_source,
            "latency_s": time.monotonic() - start,
        }
        answer["receipt"] = taken
        billed = call_cost.billed.total_tokens
        return CallRecord(self._recorder.task, key, status, prompt, answer, billed, call_cost.cost_usd)

    def _with_failures(self, key: CallKey, call_cost: CallCost) -> CallCost:
        """The receipt, with what the same call took in earlier sessions, where it failed."""
        for record in self._recorder.earlier_failures(key):
            failed = record.answer.get("receipt") or _call_cost_of(record)
            call_cost = with_failed(call_cost, failed)
        return call_cost


def _read_completion(answer: Mapping[str, Any], replayed: bool) -> Completion:
    """The completion that an answer was recorded of. Raises `ValueError` where it can't be read."""
    try:
        completion = as_completion(answer, replayed)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not is_sensible(completion):
        raise ValueError("its text or its counts aren't what they should be")
    return completion


def _answer(completion: Completion) -> dict[str, Any]:
    """A completion as it is recorded, but for its receipt."""
    answer: dict[str, Any] = {
        "text": completion.text,
        "usage": numbers(completion.usage),
        "finish_reason": completion.finish_reason,
        "tool_calls": [call_fields(call) for call in completion.tool_calls],
    }
    for name in ("thoughts", "discarded_tokens", "repairs"):
        if value := getattr(completion, name):
            answer[name] = value
    return answer


def _call_cost_of(record: CallRecord) -> dict[str, Any]:
    """What a record says of its cost where its answer can't be read."""
    return {"attempts": 1, "billed": {"input_tokens": record.billed_tokens}, "cost_usd": record.cost_usd}


class RecordedTool(WrappedTool):
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
        text = RecalledText(record.answer["text"])
        text.measured_s = record.answer["latency_s"]
        return text

    async def _call(self, key: CallKey, asked: str, arguments: BaseModel) -> str:
        self._recorder.check_live(key, (asked,))
        await self._recorder.shutdown.admit()
        start = time.monotonic()
        with self._recorder.shutdown:
            try:
                said = {"text": await self._tool(arguments)}
            except ToolError as error:
                said = {"error": str(error)}
            answer = {**said, "latency_s": time.monotonic() - start}
            await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", (asked,), answer))
        if "error" in said:
            raise ToolError(said["error"])
        return said["text"]


def recorded_tools(recorder: QuestionRecorder, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools, recorded; but for those that ask a model, whose calls are recorded themselves."""
    return {
        name: tool if getattr(tool, "asks_model", False) else RecordedTool(recorder, tool)
        for name, tool in tools.items()
    }
