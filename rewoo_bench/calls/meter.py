"""Counts all calls of one question, outside of the architecture.

No runner counts anything: it gets `meter` as its model and `meter.wrap(tools)` as its tools,
and the LLM tool's own model calls go through the same meter. Each call becomes a `Call`, and a row
of questions.parquet is a sum over them, so the two tables always agree. The meter keeps the question's limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import anyio
from pydantic import BaseModel

from rewoo_bench.calls.caps import CallEstimate
from rewoo_bench.calls.live import name_of
from rewoo_bench.calls.recorded import RecordedModel, RecordedText, paid_for
from rewoo_bench.config.names import is_oracle
from rewoo_bench.errors import LimitReached, ModelError, NotRecorded, UsageError
from rewoo_bench.events import Place, RowNotes, TimeSpan, current_place, noting, union_s
from rewoo_bench.runs.journal.records import CallRecord
from rewoo_bench.text.model_output import check_reply
from rewoo_bench.text.prompts import Prompts
from rewoo_bench.text.tokens import PromptParts, prompt_parts_of
from rewoo_bench.types import Bill, CallCost, Completion, Injection, Message, Model, Request, Tool, Usage, WrappedTool

_NO_PARTS = PromptParts()


def content_of(*parts: object) -> bytes:
    """The `content` of a call."""
    return sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()[:16]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one question; None is no limit. `cost_usd` needs a known price."""

    tokens: int | None = None
    time_s: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A model or tool call. `start` and `end` are seconds of the monotonic clock.

    `usage` is logical (needed by the architecture); `call_cost.billed` is what was paid.
    """

    index: int
    kind: str
    name: str
    role: str
    place: Place
    status: str
    start: float
    end: float
    started_at: datetime
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    call_cost: CallCost = field(default_factory=CallCost)
    prompt_parts: PromptParts = _NO_PARTS
    thoughts: str = ""
    discarded_tokens: int = 0
    repairs: tuple[str, ...] = ()
    content: bytes = b""
    """A hash of what the call did: a reply with the calls that it asks for, or a tool's arguments and result."""
    answered_model: str = ""
    """The model that has answered, as the provider says."""
    not_recorded: bool = False
    """Whether a tool that answers from a recording didn't find the call there."""
    changes_state: bool = False
    """Whether the called tool changes state."""
    startups: tuple[TimeSpan, ...] = ()
    """When the call waited for something to start (events.py)."""

    @property
    def latency_s(self) -> float:
        """Seconds of the call, without those in which it waited for something to start."""
        return self.end - self.start - union_s(self.startups)

    @property
    def waiting_s(self) -> float:
        """Seconds spent queueing and backing off."""
        return sum(end - start for start, end in self.call_cost.waiting)


ABANDONED = "abandoned"  # one of NO_LLM_ROLES (runs/columns.py)
"""Role of a call that an earlier session paid for and the last one didn't make."""
WIRE = "wire"
"""Role of a call of an external agent's own tool, read from its requests."""


class Meter:
    """The model and the tools of one question, metered. `calls` is in the order of their ends.

    `models` maps a role to its model; the key `""` is every other role. `question` is searched for in prompts, to
    count their parts. `trial` is the question's.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        question: str = "",
        trial: int = 0,
        injection: Injection | None = None,
    ) -> None:
        self.models = models
        self.limits = limits or Limits()
        self.clock = clock
        self.question = question
        self._prompts = Prompts[Message]()
        self._trial = trial
        self.calls: list[Call] = []
        self._tokens = 0  # of the calls that have ended
        self._dollars: float | None = 0.0  # of the same, without an oracle's; None where the price of any isn't known
        self.notes = RowNotes()
        self.start = clock()
        self._injection = injection
        self.exposed: bool | None = None if injection is None else False
        """Whether a prompt showed the injection; None where there is none."""
        self._begun = 0
        self._in_flight = 0
        self._reserved = 0  # tokens that the calls in flight may take
        self._next = anyio.Lock(fast_acquire=True)  # of the calls that wait for room one looks for it, the first
        self._freed = anyio.Event()

    async def complete(self, request: Request) -> Completion:
        """The completion of the role's model, counted.

        Raises `LimitReached` before a call beyond the limits, and where the reply was cut while the model was
        thinking: it has no visible text.
        """
        messages = self._prompts.of(request.messages)
        request = replace(request, messages=messages, bill=Bill(), trial=self._trial)
        if self._injection is not None and not self.exposed:
            self.exposed = any(self._injection.is_in(message.content) for message in messages)
        model = self.models.get(request.role) or self.models[""]
        reserved = await self._reserve(model, request)
        parts = prompt_parts_of(messages, self.question, request.tools)
        begun = self._begin("model", name_of(model), request.role, parts)
        outcome: dict[str, Any] = {}
        notes = self.notes.of_call()
        try:
            with noting(notes):
                completion = check_reply(await model.complete(request))
            outcome = {
                "status": "ok",
                "usage": completion.usage,
                "finish_reason": completion.finish_reason,
                "call_cost": request.bill.with_outcome(completion.call_cost),
                "thoughts": completion.thoughts,
                "discarded_tokens": completion.discarded_tokens,
                "repairs": completion.repairs,
                "answered_model": completion.answered_model,
                "content": content_of(completion.text, [(call.name, call.arguments) for call in completion.tool_calls]),
            }
        except ModelError as error:
            outcome = {"status": "error", "call_cost": request.bill.with_outcome(error.call_cost)}
            raise
        except anyio.get_cancelled_exc_class():
            cost = request.bill.total
            outcome = {"status": "cancelled", "call_cost": cost if cost.attempts else CallCost()}
            raise
        finally:
            self._end(begun, startups=tuple(notes.startups), **outcome)
            self._release(reserved)
        if completion.finish_reason == "reasoning_truncated":
            raise LimitReached("reasoning_truncated", "the output budget ended while the model was still thinking")
        return completion

    def wrap(self, tools: Mapping[str, Tool]) -> dict[str, Tool]:
        """The tools, counted."""
        return {name: _MeteredTool(tool, self) for name, tool in tools.items()}

    async def call_tool(self, tool: Tool, arguments: BaseModel) -> str:
        """The tool's answer, counted. Raises the tool's errors, and `LimitReached`."""
        self._check_limits()
        begun = self._begin("tool", tool.name, "tool")
        outcome: dict[str, Any] = {"content": content_of(arguments)}
        outcome["changes_state"] = bool(getattr(tool, "changes_state", False))
        notes = self.notes.of_call()
        try:
            with noting(notes):
                text = await tool(arguments)
            call_cost = text.call_cost if isinstance(text, RecordedText) else CallCost()
            did = content_of(arguments, str(text))
            outcome |= {"status": "ok" if text.strip() else "empty", "call_cost": call_cost, "content": did}
        except NotRecorded:
            outcome["not_recorded"] = True
            raise
        except anyio.get_cancelled_exc_class():
            outcome["status"] = "cancelled"
            raise
        finally:
            self._end(begun, startups=tuple(notes.startups), **outcome)
        return text

    def count_as_attempt(self, failed: Call) -> None:
        """Counts a failed call, which its caller made once more, as an attempt of the last call."""
        last = self.calls.pop()
        self.calls.remove(failed)
        call_cost = last.call_cost.after(failed.call_cost)
        same = {"index": failed.index, "start": failed.start, "started_at": failed.started_at}
        same["startups"] = (*failed.startups, *last.startups)
        self.calls.append(replace(last, call_cost=call_cost, **same))  # type: ignore[arg-type]  # of three types

    async def note_second_attempt(self, request: Request) -> None:
        """Records that a client asked once more and got the answer of its first attempt."""
        request = replace(request, messages=self._prompts.of(request.messages))
        model = self.models.get(request.role) or self.models[""]
        if isinstance(model, RecordedModel):
            await model.note_second_attempt(request)

    def uncount_second_attempt(self) -> None:
        """Takes back the last call, which was answered as a second attempt at an earlier one."""
        self._tokens -= self.calls.pop().usage.total_tokens

    def add_tool_use(self, name: str, status: str, start: float, content: bytes) -> None:
        """Adds a call that an external agent made of a tool of its own, from `start` until now."""
        started_at = datetime.now(UTC) - timedelta(seconds=self.clock() - start)
        begun = partial(self._begin("tool", name, WIRE), start=start, started_at=started_at)
        self._end(begun, status, content=content)

    def add_abandoned(self, records: Sequence[CallRecord]) -> None:
        """Adds calls that earlier sessions paid for and this one didn't make: they are billed, and no logical usage."""
        for record in records:
            begun = self._begin("model", getattr(self.models[""], "name", ""), ABANDONED)
            self._end(begun, "cancelled", call_cost=replace(paid_for(record), measured_s=0.0))

    @property
    def cost_usd(self) -> float | None:
        """Dollars so far; None where the price of any call isn't known."""
        return _dollars(self.calls)

    async def _reserve(self, model: Model, request: Request) -> int:
        """Waits while the calls in flight may use up the rest, so that only one call can exceed a limit.

        Returns the reserved tokens: the prompt, and the longest answer. The cost of a call isn't known before it
        ends, so with a cost limit a question's calls are made one at a time.
        """
        self._check_limits()
        size = 0
        if self.limits.tokens is not None:
            estimate = CallEstimate.of(model, request)
            size = estimate.prompt + estimate.answer
        async with self._next:
            while self._in_flight and self._crowded():
                self._freed = anyio.Event()
                await self._freed.wait()
                self._check_limits()
        self._in_flight += 1
        self._reserved += size
        return size

    def _crowded(self) -> bool:
        if self.limits.cost_usd is not None:
            return True
        return self.limits.tokens is not None and self._tokens + self._reserved >= self.limits.tokens

    def _release(self, reserved: int) -> None:
        self._in_flight -= 1
        self._reserved -= reserved
        self._freed.set()

    def _check_limits(self) -> None:
        limits = self.limits
        if limits.tokens is not None and self._tokens >= limits.tokens:
            raise LimitReached("token_limit", f"used {self._tokens} of {limits.tokens} tokens")
        if limits.time_s is not None and (spent := self.clock() - self.start) >= limits.time_s:
            raise LimitReached("time_limit", f"took {spent:.1f} of {limits.time_s} s")
        if limits.cost_usd is None:
            return
        if self._dollars is None:
            raise UsageError("--question-cost: the price of the model isn't known, so it can't be kept")
        if self._dollars >= limits.cost_usd:
            raise LimitReached("cost_limit", f"cost {self._dollars:.4f} of {limits.cost_usd} USD")

    def _begin(self, kind: str, name: str, role: str, parts: PromptParts = _NO_PARTS) -> Callable[..., Call]:
        """A call without its end and its result."""
        index, now = self._begun, datetime.now(UTC)
        self._begun += 1
        return partial(
            Call, index, kind, name, role, current_place(), start=self.clock(), started_at=now, prompt_parts=parts
        )

    def _end(self, begun: Callable[..., Call], status: str = "error", **outcome: Any) -> None:
        """Records a call; as failed if it has no result."""
        call = begun(status=status, end=self.clock(), **outcome)
        self.calls.append(call)
        self._tokens += call.usage.total_tokens
        if self._dollars is not None and not is_oracle(call.name):
            cost = _dollars([call])
            self._dollars = None if cost is None else self._dollars + cost


def _dollars(calls: Iterable[Call]) -> float | None:
    """US dollars of calls; None where the price of any isn't known."""
    total = 0.0
    for call in calls:
        if call.kind == "model" and (call.status == "ok" or call.call_cost.billed != Usage()):
            if call.call_cost.cost_usd is None:
                return None
            total += call.call_cost.cost_usd
    return total


class _MeteredTool(WrappedTool):
    """A metered tool."""

    def __init__(self, tool: Tool, meter: Meter) -> None:
        super().__init__(tool)
        self._meter = meter

    async def __call__(self, arguments: BaseModel) -> str:
        return await self._meter.call_tool(self._tool, arguments)


class NotWorking(NamedTuple):
    """Seconds of a question in which no call of it worked."""

    idle_s: float
    """Seconds in which at least one call was waiting, and none was working."""
    startup_s: float
    """Seconds in which something was starting, and no call was working: they are no latency."""


def not_working(calls: Sequence[Call], startups: Sequence[TimeSpan] = ()) -> NotWorking:
    """The seconds of a question in which it waited, or something that it needs was starting.

    Calls may overlap, so they are lengths of unions of intervals, without the time in which another call worked.
    `startups` are those of the question, those of its calls included.
    """
    events: list[tuple[float, str, int]] = []

    def add(what: str, spans: Iterable[TimeSpan]) -> None:
        for start, end in spans:
            events.extend([(start, what, 1), (end, what, -1)])

    add("starting outside", set(startups).difference(*(call.startups for call in calls)))
    inside_tools = {call.place for call in calls if call.kind == "model" and call.role == "tool"}
    for call in calls:
        if call.kind == "tool" and call.place in inside_tools:
            continue  # an LLM tool's work is that of the model call inside it
        add("active", [(call.start, call.end)])
        add("waiting", call.call_cost.waiting)
        add("starting", call.startups)
    idle = startup = before = 0.0
    number = dict.fromkeys(("active", "waiting", "starting", "starting outside"), 0)
    for moment, what, change in sorted(events):
        if number["waiting"] + number["starting"] >= number["active"]:
            if number["starting"] or number["starting outside"]:
                startup += moment - before
            elif number["waiting"]:
                idle += moment - before
        number[what] += change
        before = moment
    return NotWorking(idle, startup)
