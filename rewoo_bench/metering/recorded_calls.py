"""A recorded model and a recorded tool: each answer is in the journal before it is used, and recalled from there.

meter -> recorded model -> live call -> retry -> provider
meter -> recorded tool -> deadline -> tool
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
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
from rewoo_bench.models.hosted.openai_format import prefix_ends
from rewoo_bench.tools.wrapper import WrappedTool
from rewoo_bench.types import CallCost, Completion, CompletionOptions, Message, Model, Tool, Usage
from rewoo_bench.wire_request import WireMessages


class RecalledText(str):
    """A tool's answer in an earlier session of the run; `measured_s` is the time that it took then."""

    measured_s: float = 0.0


class UnreadableRecord(ModelError):
    """A recorded answer that was paid for and is damaged."""


class RecordedFailure(ModelError):
    """A call that failed in the recorded run, and so fails in its replay."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that is sent now. `marks`: the positions of the messages at which a cacheable prefix ends."""

    key: CallKey
    prompt: tuple[str, ...]
    marks: list[int]
    start: float = field(default_factory=time.monotonic)

    def receipt(self, call_cost: CallCost) -> dict[str, Any]:
        """What the call cost, and when: in seconds since 1970, `sent_at` is after all queueing and back-off."""
        latency_s, now = time.monotonic() - self.start, time.time()
        working_s = latency_s - sum(end - start for start, end in call_cost.waiting)
        receipt: dict[str, Any] = {
            "attempts": call_cost.attempts,
            "billed": numbers(call_cost.billed),
            "cost_usd": call_cost.cost_usd,
            "usage_source": call_cost.usage_source,
            "latency_s": latency_s,
            "sent_at": now - max(0.0, working_s),
            "ended_at": now,
        }
        return {**receipt, "cache_marks": self.marks} if self.marks else receipt


class RecordedModel:
    """A recorded model."""

    streams = True

    def __init__(self, recorder: QuestionRecorder, model: Model) -> None:
        self.name = getattr(model, "name", type(model).__name__)
        self._identity = getattr(model, "identity", self.name)
        self._recorder = recorder
        self._model = model

    async def complete(self, messages: Sequence[Message], **options: Unpack[CompletionOptions]) -> Completion:
        """The recorded completion, else the model's, which is recorded before it is returned."""
        prompt = texts_of(messages, options)
        key = self._recorder.key("model", options["role"], request_hash(prompt, options))
        if (recalled := self._recalled(key)) is not None:
            return replace(recalled, call_cost=self._with_failures(key, recalled.call_cost))
        self._recorder.check_live(key, prompt)
        if self._recorder.has_cache and (cached := await self._cached(key, prompt)) is not None:
            return cached
        async with LiveCall(self._recorder.live, self._model, messages, options) as call:
            completion = await self._ask(call, _Request(key, prompt, _cache_marks(messages)))
        if self._recorder.earlier_failures(key):
            return replace(completion, call_cost=self._with_failures(key, completion.call_cost))
        return completion

    def _recalled(self, key: CallKey) -> Completion | None:
        """The recorded completion. A damaged one counts as not recorded if it cost nothing.

        Raises `RecordedFailure` where the call failed in the run that is replayed.
        """
        if (found := self._recorder.recall(key)) is None:
            return None
        record, replayed = found
        if record.status == "error":
            message = record.answer.get("message") or "its error can't be read"
            raise RecordedFailure(f"it failed in the recorded run: {message}", call_cost=CallCost(replayed=True))
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

    async def _ask(self, call: LiveCall, request: _Request) -> Completion:
        """The model's completion, after it is recorded. The cost of a failed or cancelled call is recorded too."""
        key = request.key
        try:
            completion = await call.ask()
        except ModelError as error:
            call_cost = error.call_cost or CallCost()
            await self._recorder.keep(self._record(request, "error", {"message": str(error)}, call_cost))
            error.call_cost = self._with_failures(key, call_cost)
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if (paid := call_cost_of(cancelled)) is not None:
                record = self._record(request, "error", {"message": "cancelled before it was answered"}, paid)
                with anyio.CancelScope(shield=True), suppress(JournalError):
                    await self._recorder.keep(record)
                attach(cancelled, self._with_failures(key, paid))
            raise
        record = self._record(request, "ok", _answer(completion), completion.call_cost)
        try:
            await self._recorder.keep(record)
        except (TypeError, ValueError, RecursionError) as error:  # no JSON, but it was paid for
            failure = {"message": f"the answer can't be recorded: {error}"}
            await self._recorder.keep(self._record(request, "error", failure, completion.call_cost))
            raise
        if self._recorder.has_cache:
            await self._recorder.cache(key, self._identity, record)
        return completion

    def _record(self, request: _Request, status: Any, answer: dict[str, Any], call_cost: CallCost) -> CallRecord:
        answer["receipt"] = request.receipt(call_cost)
        billed = call_cost.billed.total_tokens
        return CallRecord(self._recorder.task, request.key, status, request.prompt, answer, billed, call_cost.cost_usd)

    def _with_failures(self, key: CallKey, call_cost: CallCost) -> CallCost:
        """The cost, with that of the same call's failures in earlier sessions."""
        for record in self._recorder.earlier_failures(key):
            failed = record.answer.get("receipt") or _call_cost_of(record)
            call_cost = with_failed(call_cost, failed)
        return call_cost


def _cache_marks(messages: Sequence[Message]) -> list[int]:
    """Positions of the messages at which a provider with explicit caching is asked to end a prefix.

    An external agent's request has its own marks, and no others.
    """
    if isinstance(messages, WireMessages):
        return [position for position, message in enumerate(messages) if message.ends_prefix]
    return list(prefix_ends(messages))


def _read_completion(answer: Mapping[str, Any], replayed: bool) -> Completion:
    """The completion of a recorded answer. Raises `ValueError` where it can't be read."""
    try:
        completion = as_completion(answer, replayed)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not is_sensible(completion):
        raise ValueError("its text or its counts are invalid")
    return completion


def _answer(completion: Completion) -> dict[str, Any]:
    """The recorded form of a completion, without its cost."""
    answer: dict[str, Any] = {
        "text": completion.text,
        "usage": numbers(completion.usage),
        "finish_reason": completion.finish_reason,
        "tool_calls": [call_fields(call) for call in completion.tool_calls],
    }
    for name in ("thoughts", "discarded_tokens", "repairs"):
        if value := getattr(completion, name):
            answer[name] = value
    if completion.wire is not None:
        answer["wire"] = asdict(completion.wire)
    return answer


def _call_cost_of(record: CallRecord) -> dict[str, Any]:
    """The cost in a record whose answer can't be read."""
    return {"attempts": 1, "billed": {"input_tokens": record.billed_tokens}, "cost_usd": record.cost_usd}


class RecordedTool(WrappedTool):
    """A recorded tool. One with state (`stateful`) is called again in a resumed run, and its first answer counts."""

    def __init__(self, recorder: QuestionRecorder, tool: Tool) -> None:
        super().__init__(tool)
        self._recorder = recorder

    async def __call__(self, arguments: BaseModel) -> str:
        request = as_bytes(arguments)
        key = self._recorder.key("tool", self.name, sha256(request).digest())
        recalled = self._recorder.recall(key)
        if recalled is None:
            return await self._call(key, request.decode(), arguments)
        record, replayed = recalled
        if self.stateful and not replayed:
            with suppress(ToolError):  # the first answer counts, below
                await self._tool(arguments)
        if "error" in record.answer:
            raise ToolError(record.answer["error"])
        text = RecalledText(record.answer["text"])
        text.measured_s = record.answer["latency_s"]
        return text

    async def _call(self, key: CallKey, request: str, arguments: BaseModel) -> str:
        self._recorder.check_live(key, (request,))
        await self._recorder.shutdown.admit()
        start = time.monotonic()
        with self._recorder.shutdown:
            try:
                result = {"text": await self._tool(arguments)}
            except ToolError as error:
                result = {"error": str(error)}
            answer = {**result, "latency_s": time.monotonic() - start}
            await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", (request,), answer))
        if "error" in result:
            raise ToolError(result["error"])
        return result["text"]


def recorded_tools(recorder: QuestionRecorder, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools, recorded. Those that ask a model aren't wrapped, since their model calls are recorded."""
    return {
        name: tool if getattr(tool, "asks_model", False) else RecordedTool(recorder, tool)
        for name, tool in tools.items()
    }
