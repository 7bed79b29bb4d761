"""A recorded model: each answer is in the journal before it is used, and recalled from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

import anyio
from pydantic import BaseModel

from rewoo_bench.calls.live import LiveCall, name_of
from rewoo_bench.calls.recorder import QuestionRecorder
from rewoo_bench.config.names import is_oracle
from rewoo_bench.errors import JournalError, LimitReached, ModelError, NotRecorded, ToolError
from rewoo_bench.events import AGENT_PLACE, current_notes
from rewoo_bench.runs.journal.records import (
    SECOND_ATTEMPT,
    CallKey,
    CallRecord,
    RecordedPrompt,
    as_bytes,
    as_completion,
    call_fields,
    numbers,
    recorded_prompt,
    request_hash,
)
from rewoo_bench.runs.rows import DIFFERS
from rewoo_bench.text.openai_format import prefix_ends
from rewoo_bench.text.redaction import without_in
from rewoo_bench.types import CallCost, Completion, ErrorResponse, Model, Request, Tool, Usage, WrappedTool


class RecordedFailure(ModelError):
    """A call that failed in the recorded run, and so fails in its replay."""

    is_second_attempt: bool = False
    """Whether the call that failed was an earlier one, and this one only asks once more."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that is sent when the caps leave room. `start` is in seconds of the monotonic clock."""

    request: Request
    key: CallKey
    prompt: RecordedPrompt
    start: float = field(default_factory=time.monotonic)

    def receipt(self, cost: CallCost) -> dict[str, Any]:
        """What the call cost, and when: in seconds since 1970, `sent_at` is after all queueing and back-off."""
        latency_s, now = time.monotonic() - self.start, time.time()
        working_s = latency_s - sum(end - start for start, end in cost.waiting)
        receipt: dict[str, Any] = {
            "attempts": cost.attempts,
            "billed": numbers(cost.billed),
            "cost_usd": cost.cost_usd,
            "usage_source": cost.usage_source,
            "latency_s": latency_s,
            "sent_at": now - max(0.0, working_s),
            "ended_at": now,
        }
        marks = _cache_marks(self.request)
        return {**receipt, "cache_marks": marks} if marks else receipt


class RecordedModel:
    """A recorded model."""

    def __init__(self, recorder: QuestionRecorder, model: Model) -> None:
        self.name = name_of(model)
        self._cache_key_part = getattr(model, "cache_key_part", self.name)
        self._price: Callable[[Usage], float | None] | None = getattr(model, "price", None)
        self._recorder = recorder
        self._model = model

    async def complete(self, request: Request) -> Completion:
        """The recorded completion, else the model's, which is recorded before it is returned.

        The cost of a failed or cancelled call is recorded too.
        """
        key, prompt = self._key_and_prompt(request)
        try:
            if (known := await self._known(key, prompt)) is not None:
                return known
            sent = _Sent(request, key, prompt)

            async def keep(cost: CallCost) -> None:
                await self._record(sent, cost, "error", {"message": "an attempt failed, and another one followed"})

            request.bill.keeper = keep
            async with LiveCall(self._recorder.live, self._model, request) as call:
                try:
                    completion = await call.ask()
                except ModelError as error:
                    response = {} if error.response is None else {"response": asdict(error.response)}
                    cost = call.cost and request.bill.unkept_with(error.call_cost)
                    await self._record(sent, cost, "error", {"message": str(error), **response})
                    raise
                except anyio.get_cancelled_exc_class():
                    if request.bill.unkept.billed != Usage():
                        with anyio.CancelScope(shield=True), suppress(JournalError):
                            cancelled = {"message": "cancelled before it was answered", "cancelled": True}
                            await self._record(sent, request.bill.unkept, "error", cancelled)
                    raise
                cost = request.bill.unkept_with(completion.call_cost)
                recorded = await self._record(sent, cost, "ok", _answer(completion))
                await self._recorder.cache(key, self._cache_key_part, recorded)
                return completion
        finally:
            for failed in self._recorder.earlier_failures(key):
                request.bill.add(paid_for(failed))

    async def _known(self, key: CallKey, prompt: RecordedPrompt) -> Completion | None:
        """The answer of the journal, the replayed run or the cache."""
        if (recalled := self._recalled(key)) is not None:
            return recalled
        self._recorder.check_live(key, prompt)
        return await self._cached(key, prompt)

    async def _record(
        self, sent: _Sent, cost: CallCost | None, status: Literal["ok", "error"], answer: dict[str, Any]
    ) -> CallRecord:
        """The record, when it is in the journal. The wait for that is on the bill where it was no short one."""
        cost = cost or CallCost()
        if sent.request.wire is not None and sent.request.wire.secrets:
            answer = without_in(answer, sent.request.wire.secrets)  # a model may repeat what it was told
        answer["receipt"] = sent.receipt(cost)
        billed = cost.billed.total_tokens
        paid_usd = 0.0 if is_oracle(self.name) else cost.cost_usd  # for the caps; its rows have no dollars
        record = CallRecord(self._recorder.task, sent.key, status, sent.prompt, answer, billed, paid_usd)
        for interval in await self._recorder.keep(record):
            sent.request.bill.add_waiting(*interval)
        return record

    def _recalled(self, key: CallKey) -> Completion | None:
        """The recorded completion. Raises `RecordedFailure` where the call failed in the run that is replayed."""
        if (found := self._recorder.recall(key)) is None:
            return None
        record, replayed = found
        if record.status == "error":
            raise self._recorded_failure(record)
        if SECOND_ATTEMPT in record.answer:
            return self._first_attempt(key)
        return as_completion(record.answer, replayed or "replayed" in record.answer)

    def _recorded_failure(self, record: CallRecord) -> Exception:
        """The failure of a call in the run that is replayed.

        A call that the time limit of an external agent cut off ends the question in the same way.
        """
        message = record.answer["message"]
        if record.answer.get("cancelled") and record.key.place == AGENT_PLACE and self._recorder.ended_at_time_limit():
            return LimitReached("time_limit", f"it was {message} in the recorded run")
        failure = RecordedFailure(f"it failed in the recorded run: {message}", call_cost=CallCost(replayed=True))
        failure.response = ErrorResponse(**record.answer.get("response", {}))
        return failure

    def _first_attempt(self, key: CallKey) -> Completion | None:
        """The answer of the call whose client asked once more, marked as such. Raises its `RecordedFailure`."""
        for nth in reversed(range(key.nth)):
            first = key._replace(nth=nth)
            found = self._recorder.recall(first)
            if found is None or SECOND_ATTEMPT in found[0].answer:
                continue
            try:
                completion = self._recalled(first)
            except RecordedFailure as failure:
                failure.is_second_attempt = True
                raise
            if completion is not None and completion.wire is not None:
                return replace(completion, wire=replace(completion.wire, is_second_attempt=True))
        return None

    async def note_second_attempt(self, request: Request) -> None:
        """Records that a client asked once more and got the answer of its first attempt: no call of its own."""
        key, prompt = self._key_and_prompt(request)
        await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", prompt, {SECOND_ATTEMPT: True}))

    def _key_and_prompt(self, request: Request) -> tuple[CallKey, RecordedPrompt]:
        """The key, and the texts as they are recorded."""
        return self._recorder.key("model", request.role, request_hash(request)), recorded_prompt(request)

    async def _cached(self, key: CallKey, prompt: RecordedPrompt) -> Completion | None:
        """The answer of another run to the same request, which is recorded in this one too, at this run's price."""
        found = await self._recorder.cached(key, self._cache_key_part)
        if found is None:
            return None
        answer = {**found, "replayed": True}
        completion = as_completion(answer, replayed=True)
        now = time.time()  # a prefix is as old as it is in this run
        answer["receipt"] = {**answer["receipt"], "sent_at": now, "ended_at": now}
        if self._price is not None:
            cost_usd = self._price(completion.usage)
            answer["cost_usd"] = answer["receipt"]["cost_usd"] = cost_usd
            completion = replace(completion, call_cost=replace(completion.call_cost, cost_usd=cost_usd))
        await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", prompt, answer))
        return completion


def _cache_marks(request: Request) -> list[int]:
    """Positions of the messages at which a provider with explicit caching is asked to end a prefix.

    An external agent's request has its own marks, and no others.
    """
    if request.wire is not None:
        return [position for position, message in enumerate(request.messages) if message.ends_prefix]
    return list(prefix_ends(request.messages))


def _answer(completion: Completion) -> dict[str, Any]:
    """The recorded form of a completion; `cost_usd` are the dollars of the reply alone, without earlier attempts."""
    answer: dict[str, Any] = {
        "text": completion.text,
        "usage": numbers(completion.usage),
        "cost_usd": completion.call_cost.cost_usd,
        "finish_reason": completion.finish_reason,
        "tool_calls": [call_fields(call) for call in completion.tool_calls],
    }
    for name in ("thoughts", "discarded_tokens", "repairs", "answered_model"):
        if value := getattr(completion, name):
            answer[name] = value
    if completion.wire is not None:
        answer["wire"] = asdict(completion.wire)
    return answer


def paid_for(record: CallRecord) -> CallCost:
    """What an earlier session paid for a call."""
    receipt = record.answer["receipt"]
    return CallCost(receipt["attempts"], (), Usage(**receipt["billed"]), receipt["cost_usd"], receipt["usage_source"])


class RecordedText(str):
    """A tool's answer, with what its record says of the time that it took."""

    call_cost: CallCost

    @classmethod
    def of(cls, text: str, call_cost: CallCost) -> RecordedText:
        recorded = cls(text)
        recorded.call_cost = call_cost
        return recorded


class RecordedTool(WrappedTool):
    """A recorded tool. One with state (`stateful`) is called again in a resumed run, and its first answer counts.

    One of a world is called again in a replay, too.
    """

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
        if self.in_world or (self.stateful and not replayed):
            again: dict[str, Any] = {}
            try:  # the first answer counts, below
                again = {"text": await self._tool(arguments)}
            except ToolError as error:
                again = {"error": str(error)}
            notes = current_notes()
            if self.in_world and notes and again != {key: record.answer[key] for key in again if key in record.answer}:
                notes.flags.add(DIFFERS)
        elif count_recalled := getattr(self._tool, "count_recalled", None):
            count_recalled()
        if "error" in record.answer:
            raise _failure(record.answer)
        return RecordedText.of(record.answer["text"], CallCost(measured_s=record.answer["latency_s"]))

    async def _call(self, key: CallKey, request: str, arguments: BaseModel) -> str:
        prompt = RecordedPrompt(None, request)
        self._recorder.check_live(key, prompt)
        await self._recorder.live.shutdown.admit()
        start = time.monotonic()
        with self._recorder.live.shutdown:
            try:
                result: dict[str, Any] = {"text": await self._tool(arguments)}
            except ToolError as error:
                result = {"error": str(error)}
                if isinstance(error, NotRecorded):
                    result["not_recorded"] = True
            answer = {**result, "latency_s": time.monotonic() - start}
            if self.changes_state and not self.in_world:
                answer["changes_state"] = True  # it can't be taken back, so it is on disk before anything else
            waited = await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", prompt, answer))
        if "error" in result:
            raise _failure(result)
        return RecordedText.of(result["text"], CallCost(waiting=waited)) if waited else result["text"]


def _failure(answer: Mapping[str, Any]) -> ToolError:
    """The failure of a tool's call, from its record."""
    return (NotRecorded if answer.get("not_recorded") else ToolError)(answer["error"])


def recorded_tools(recorder: QuestionRecorder, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools, recorded. Those that ask a model aren't wrapped, since their model calls are recorded."""
    return {
        name: tool if getattr(tool, "asks_model", False) else RecordedTool(recorder, tool)
        for name, tool in tools.items()
    }
