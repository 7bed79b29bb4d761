"""One question of an external agent: its key, its model, its tools, and the requests that it makes.

Requests arrive in tasks of the HTTP server. They are carried out in the task of the question (`serve`), so that they
end with it, and so that the meter and the journal see the architecture and the call site they belong to.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

import anyio

from rewoo_bench.agents.process import Tail
from rewoo_bench.call_site import call_site
from rewoo_bench.errors import LimitReached, ModelError
from rewoo_bench.metering.calls import Call
from rewoo_bench.models.hosted.dialects import COUNT_TOKENS, EMBEDDINGS, WireFacts
from rewoo_bench.notation.arguments import show_call
from rewoo_bench.runners.tool_calls import Observation, call_tool
from rewoo_bench.types import Completion, Model, Step, Tool
from rewoo_bench.wire_request import WireMessages, WireRequest

_Job = Callable[[], Coroutine[Any, Any, None]]

AGENT = "agent"
_ROLES = {EMBEDDINGS: "embedding", COUNT_TOKENS: "count"}


class SessionClosed(Exception):
    """The question has ended, or its run is ending."""


class Metered(Protocol):
    """The part of the meter that counts the second attempt of a client as one."""

    calls: list[Call]

    def count_as_attempt(self, failed: Call) -> None: ...


@dataclass(eq=False)
class AgentCall:
    """A model request, and whether the client that made it is still there."""

    request: WireRequest
    answer: asyncio.Future[Completion]
    is_client_gone: Callable[[], bool]

    @property
    def is_undelivered(self) -> bool:
        return not self.answer.done() or self.is_client_gone()


@dataclass
class AgentSession:
    """`notes` counts what a row should mention: translated calls, clients that hung up, another model's name."""

    key: str
    model: Model
    tools: Mapping[str, Tool]
    steps: list[Step] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    log: Tail = field(default_factory=lambda: Tail(4 << 10, 8 << 10))
    """The agent's standard error."""
    failure: ModelError | None = None
    limit: LimitReached | None = None

    def __post_init__(self) -> None:
        self.is_limited = anyio.Event()
        self._send, self._receive = anyio.create_memory_object_stream[_Job](math.inf)
        self._calls: dict[bytes, AgentCall] = {}
        self._failed: dict[bytes, Call] = {}

    async def serve(self) -> None:
        """Carries out the agent's requests until it is cancelled."""
        with call_site(AGENT):
            async with anyio.create_task_group() as group:
                async for job in self._receive:
                    group.start_soon(job)

    def close(self) -> None:
        self._send.close()

    async def complete(
        self, request: WireRequest, facts: WireFacts, *, is_retry: bool, is_client_gone: Callable[[], bool]
    ) -> tuple[Completion, bool]:
        """The model's answer, and whether it was streamed to this client.

        A client's own second attempt at a request gets the answer of the first one, if that is on its way or was never
        delivered: it is paid for once. Raises `ModelError`, `LimitReached` or `SessionClosed`.
        """
        digest = sha256(request.path.encode() + request.body).digest()
        earlier = self._calls.get(digest)
        if earlier and earlier.is_undelivered and (is_retry or earlier.is_client_gone()) and not _failed(earlier):
            self.notes["second_attempts"] += 1
            earlier.is_client_gone = is_client_gone
            return await asyncio.shield(earlier.answer), False
        call = AgentCall(request, asyncio.get_running_loop().create_future(), is_client_gone)
        self._calls[digest] = call
        failed = self._failed.pop(digest, None) if is_retry else None
        self._submit(call.answer, lambda: self._complete(request, facts, digest, failed))
        return await asyncio.shield(call.answer), request.on_bytes is not None

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Observation:
        """The tool's answer, or its error. Raises `KeyError`, `LimitReached` or `SessionClosed`."""
        tool = self.tools[name]
        answer: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._submit(answer, lambda: call_tool(tool, arguments))
        observation = await asyncio.shield(answer)
        number = str(len(self.steps) + 1)
        shown = show_call(arguments)
        self.steps.append(
            Step(number, tool=name, argument=shown, observation=observation.text, failed=observation.failed)
        )
        return observation

    async def _complete(self, request: WireRequest, facts: WireFacts, digest: bytes, failed: Call | None) -> Completion:
        messages = WireMessages.of(request, facts.messages)
        role = _ROLES.get(request.path, AGENT)
        meter: Any = self.model
        try:
            completion = await self.model.complete(messages, role=role, max_tokens=facts.max_tokens)
        except ModelError as error:
            self.failure = error
            if isinstance(getattr(meter, "calls", None), list):
                self._failed[digest] = meter.calls[-1]  # the meter ends a call without another await
            raise
        if failed is not None:
            meter.count_as_attempt(failed)
        if completion.wire is not None and completion.wire.translated:
            self.notes["translated"] += 1
        return completion

    def _submit(self, answer: asyncio.Future[Any], work: Callable[[], Awaitable[Any]]) -> None:
        """Hands work over to the task of the question. Raises `SessionClosed`."""
        try:
            self._send.send_nowait(lambda: self._work(answer, work))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise SessionClosed from None

    async def _work(self, answer: asyncio.Future[Any], work: Callable[[], Awaitable[Any]]) -> None:
        """Sets the answer. An error that isn't the agent's to handle is raised here, in the question's task."""
        try:
            result = await work()
        except (ModelError, LimitReached) as error:
            if isinstance(error, LimitReached):
                self.limit = self.limit or error
                self.is_limited.set()
            _fail(answer, error)
        except BaseException:
            _fail(answer, SessionClosed())
            raise
        else:
            if not answer.done():
                answer.set_result(result)


def _failed(call: AgentCall) -> bool:
    return call.answer.done() and call.answer.exception() is not None


def _fail(answer: asyncio.Future[Any], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # seen, also where the client has gone
