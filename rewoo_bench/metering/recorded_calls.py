"""A recorded model: each answer is in the journal before it is used, and recalled from there.

meter -> recorded model -> live call -> retry -> provider
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Unpack

import anyio

from rewoo_bench.call_site import AGENT
from rewoo_bench.errors import JournalError, LimitReached, ModelError
from rewoo_bench.journal.records import (
    SECOND_ATTEMPT,
    CallKey,
    CallRecord,
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
from rewoo_bench.types import CallCost, Completion, CompletionOptions, Message, Model, Usage
from rewoo_bench.wire_request import ErrorResponse, WireMessages


class UnreadableRecord(ModelError):
    """A recorded answer that was paid for and is damaged."""


class RecordedFailure(ModelError):
    """A call that failed in the recorded run, and so fails in its replay."""

    is_second_attempt: bool = False
    """Whether the call that failed was an earlier one, and this one only asks once more."""


_CANCELLED = "cancelled before it was answered"


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
            raise self._recorded_failure(record)
        if SECOND_ATTEMPT in record.answer:
            return self._first_attempt(key)
        try:
            return _read_completion(record.answer, replayed or "replayed" in record.answer)
        except ValueError as error:
            if not record.billed_tokens:
                return None
            call_cost = CallCost(billed=Usage(input_tokens=record.billed_tokens), cost_usd=record.cost_usd)
            raise UnreadableRecord(
                f"the answer recorded at {key.call_site!r} can't be read: {error}", call_cost=call_cost
            ) from None

    def _recorded_failure(self, record: CallRecord) -> Exception:
        """The failure of a call in the run that is replayed.

        A call that the time limit of an external agent cut off ends the question in the same way.
        """
        message = record.answer.get("message") or "its error can't be read"
        if message == _CANCELLED and record.key.call_site == AGENT and self._recorder.ended_at_time_limit():
            return LimitReached("time_limit", f"it was {message} in the recorded run")
        failure = RecordedFailure(f"it failed in the recorded run: {message}", call_cost=CallCost(replayed=True))
        with suppress(TypeError):  # of a record that is damaged
            failure.response = ErrorResponse(**record.answer.get("response") or {})
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

    async def note_second_attempt(self, messages: Sequence[Message], **options: Unpack[CompletionOptions]) -> None:
        """Records that a client asked once more and got the answer of its first attempt: no call of its own."""
        prompt = texts_of(messages, options)
        key = self._recorder.key("model", options["role"], request_hash(prompt, options))
        await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", prompt, {SECOND_ATTEMPT: True}))

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
            failure: dict[str, Any] = {"message": str(error)}
            if error.response is not None:
                failure["response"] = asdict(error.response)
            await self._recorder.keep(self._record(request, "error", failure, call_cost))
            error.call_cost = self._with_failures(key, call_cost)
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if (paid := call_cost_of(cancelled)) is not None:
                record = self._record(request, "error", {"message": _CANCELLED}, paid)
                with anyio.CancelScope(shield=True), suppress(JournalError):
                    await self._recorder.keep(record)
                attach(cancelled, self._with_failures(key, paid))
            raise
        call_cost = completion.call_cost
        record = self._record(request, "ok", _answer(completion), call_cost)
        try:
            waited = await self._recorder.keep(record)
        except (TypeError, ValueError, RecursionError) as error:  # no JSON, but it was paid for
            failure = {"message": f"the answer can't be recorded: {error}"}
            await self._recorder.keep(self._record(request, "error", failure, call_cost))
            raise
        if self._recorder.has_cache:
            await self._recorder.cache(key, self._identity, record)
        if not waited:
            return completion
        return replace(completion, call_cost=replace(call_cost, waiting=(*call_cost.waiting, *waited)))

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
