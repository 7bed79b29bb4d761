"""One question of an external agent: its key, its model, its tools, and the requests that it makes.

Requests arrive in tasks of the HTTP server. They are carried out in the task of the question (`serve`), so that they
end with it, and so that the meter and the journal see the architecture and the place they belong to.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import anyio

from rewoo_bench.agents.wire_calls import ToolUse, by_ids_of_replies, is_same_call, read_reply, read_results
from rewoo_bench.calls.meter import Call, Meter, content_of
from rewoo_bench.calls.recorded import RecordedFailure
from rewoo_bench.errors import LimitReached, ModelError
from rewoo_bench.events import AGENT_PLACE, RowNotes, at_place, current_notes, flag
from rewoo_bench.models.hosted.dialects import COUNT_TOKENS, EMBEDDINGS, WireFacts
from rewoo_bench.runners.notation.arguments import show_call
from rewoo_bench.runners.notation.tools import Observation, call_tool
from rewoo_bench.system.processes import Tail
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.prompts import Prompts
from rewoo_bench.types import Completion, Request, Step, Tool, WireRequest

_MOST_DROPPED = 20  # fields of a request that are noted
_MOST_WORDS = 10_000  # characters of a step's thought; an agent may go on without a tool for long
_ROLES = {EMBEDDINGS: "embedding", COUNT_TOKENS: "count"}


class SessionClosed(Exception):
    """The question has ended, or its run is ending."""


@dataclass(eq=False, slots=True)
class AgentCall:
    """A model request on its way or answered, and whether the client that made it is still there."""

    digest: bytes
    """The hash of the request: equal requests have the same."""
    answer: asyncio.Future[Completion]
    is_client_gone: Callable[[], bool]

    @property
    def has_failed(self) -> bool:
        return self.answer.done() and self.answer.exception() is not None


@dataclass
class AgentSession:
    """`notes` counts what a row should mention: translated calls, clients that hung up, another model's name."""

    key: str
    meter: Meter
    tools: Mapping[str, Tool]
    steps: list[Step] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    log: Tail = field(default_factory=Tail)
    """The agent's standard error."""
    failure: ModelError | None = None
    """The provider's last failure, where no call that began after it was answered."""
    limit: LimitReached | None = None
    has_answer: bool = False
    """Whether a call of the model was answered: a refused or broken one meters nothing."""
    conversations: Prompts[Any] = field(default_factory=Prompts, repr=False)
    """The turns of the agent's requests."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What this process knows as a secret, and what the agent's own variables and flags hold."""

    def __post_init__(self) -> None:
        self.is_limited = anyio.Event()
        self.row_notes = current_notes() or RowNotes()
        """Of the question: requests arrive in tasks of the server, which belong to none."""
        self.first_request: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        """When the agent made its first request of any kind, in seconds of the monotonic clock."""
        self.last_active = 0.0
        """When a request came or was answered last, by the same clock."""
        self._send, self._receive = anyio.create_memory_object_stream[Callable[[], Coroutine[Any, Any, None]]](math.inf)
        self._undelivered: dict[bytes, list[AgentCall]] = {}  # by digest; a delivered answer isn't kept
        self._failed: dict[bytes, Call] = {}  # by digest: a client's retry is one more attempt at it
        self._open: set[asyncio.Future[Any]] = set()
        self._words = ""  # of the model since the last step
        self._uses: dict[str, tuple[ToolUse, float]] = {}  # calls without a result, and when they were asked for
        # Calls of metered tools that no request has shown yet, and when they ended.
        self._metered: list[tuple[str, dict[str, Any], float]] = []

    def has_requested(self) -> None:
        """Notes a request of any kind: the agent has started."""
        self.last_active = time.monotonic()
        if not self.first_request.done():
            self.first_request.set_result(self.last_active)

    async def finished(self) -> None:
        """Waits for the agent's open calls: the provider charges them, although their client is gone.

        Calls that the end of the run holds back never end, so that the question is asked again by a later session.
        """
        while self._open:
            await asyncio.wait(set(self._open))

    async def serve(self) -> None:
        """Carries out the agent's requests until it is cancelled."""
        with at_place(AGENT_PLACE):
            async with self._receive, anyio.create_task_group() as group:
                async for job in self._receive:
                    group.start_soon(job)

    def close(self) -> None:
        self._send.close()
        self._receive.close()  # also where it was never served

    async def complete(
        self, request: WireRequest, facts: WireFacts, *, is_retry: bool, is_client_gone: Callable[[], bool]
    ) -> AgentCall:
        """The call with the model's answer, which may be that of an earlier request.

        A client's own second attempt at a request gets the answer of the first one, if that is on its way or was never
        delivered: it is paid for once. Equal requests that aren't such an attempt are calls of their own. Raises
        `ModelError`, `LimitReached` or `SessionClosed`.
        """
        digest = sha256(json.dumps(request.identity).encode()).digest()
        asked = Request(
            facts.messages, role=_ROLES.get(request.path, AGENT_PLACE), max_tokens=facts.max_tokens, wire=request
        )
        # The attempt is at a call whose client has gone without the answer, or, of a client's retry, at any.
        equal = [call for call in self._undelivered.get(digest, ()) if not call.has_failed]
        attempted = [call for call in equal if call.is_client_gone()] or (equal if is_retry else [])
        if attempted:
            call = attempted[0]
            call.is_client_gone = is_client_gone
        else:
            failed = self._failed.pop(digest, None) if is_retry else None
            answer = self._submit(lambda: self._complete(asked, request, digest, failed))
            call = AgentCall(digest, answer, is_client_gone)
            self._undelivered.setdefault(digest, []).append(call)
        await asyncio.wait([call.answer])
        self.last_active = time.monotonic()
        if call.has_failed:
            self.forget(call)
        if attempted:
            self.notes["second_attempts"] += 1
            # Recorded in the question's task: a replay or a resumed run doesn't take it for another sample.
            with suppress(SessionClosed):
                await asyncio.shield(self._submit(lambda: self.meter.note_second_attempt(asked)))
        call.answer.result()
        return call

    def forget(self, call: AgentCall) -> None:
        """Lets go of a call that failed or whose client has the whole answer: an equal request is a call of its own."""
        equal = self._undelivered.get(call.digest, [])
        if call in equal:
            equal.remove(call)
        if not equal:
            self._undelivered.pop(call.digest, None)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Observation:
        """The tool's answer, or its error. Raises `KeyError`, `LimitReached` or `SessionClosed`."""
        tool = self.tools[name]
        try:
            observation: Observation = await asyncio.shield(self._submit(lambda: call_tool(tool, arguments)))
        finally:  # a call that a limit refuses is none of the agent's own tools, whose results it may send on
            self._metered.append((name, arguments, time.monotonic()))
        self._add_step(name, show_call(arguments), observation)
        return observation

    def _add_step(self, tool: str, argument: str, observation: Observation) -> None:
        """Adds a tool call; the words that the model wrote since the last step are its thought."""
        words, self._words = self._words, ""
        number = str(len(self.steps) + 1)
        self.steps.append(Step(number, words, tool, argument, observation.text, observation.failed))

    def _read_request(self, request: WireRequest) -> None:
        """Takes the results of the agent's own tools; a call of a metered tool is counted already."""
        if not self._uses:
            return
        of_any = request.is_translated  # its replies' ids are others
        results = read_results(request.path, request.document, None if of_any else self._uses.keys())
        if of_any:
            results = by_ids_of_replies(request.document, results, {name: use for name, (use, _) in self._uses.items()})
        asked = {name: self._uses.pop(name) for name in results if name in self._uses}
        for is_exact in (True, False):  # an agent may have changed the arguments; a call with the same goes first
            for name, (use, asked_at) in list(asked.items()):
                for call, arguments, made_at in self._metered:
                    if (is_exact or made_at >= asked_at) and is_same_call(use, call, arguments if is_exact else None):
                        self._metered.remove((call, arguments, made_at))
                        del asked[name]
                        break
        for name, (use, asked_at) in asked.items():
            result = results[name]
            status = "error" if result.failed else "ok" if result.text.strip() else "empty"
            self.meter.add_tool_use(use.name, status, asked_at, content_of(use.arguments, result.text))
            shown = use.arguments  # as the steps of a metered tool have them
            with suppress(ValueError):
                read = load_json(shown)
                shown = show_call(read) if isinstance(read, dict) else shown
            self._add_step(use.name, shown, result)

    async def _complete(self, asked: Request, request: WireRequest, digest: bytes, failed: Call | None) -> Completion:
        """The meter's answer. `failed` is the call that this one is a client's next attempt at."""
        meter, is_agents, failed_before = self.meter, asked.role == AGENT_PLACE, self.failure
        if is_agents:
            self._read_request(request)
        try:
            completion = await meter.complete(asked)
        except ModelError as error:
            self.failure = error
            if isinstance(error, RecordedFailure) and error.is_second_attempt:
                self.notes["second_attempts"] += 1
                meter.uncount_second_attempt()
                raise
            if failed is not None:
                meter.count_as_attempt(failed)
            self._failed[digest] = meter.calls[-1]  # the meter ends a call without another await
            raise
        if self.failure is failed_before:  # the provider answers again: what comes now is the agent's own failure
            self.failure = None
        if failed is not None:
            meter.count_as_attempt(failed)
        self.has_answer |= is_agents
        wire = completion.wire
        if wire is None:
            return completion
        if wire.is_second_attempt:
            self.notes["second_attempts"] += 1
            meter.uncount_second_attempt()
            return completion
        if wire.translated or request.is_translated:
            self.notes["translated"] += 1
            dropped = (*request.dropped, *wire.dropped)
            for name in dropped[:_MOST_DROPPED]:
                self.notes[f"dropped the field {name[:80]}"] += 1
            if {*dropped} - {"metadata"}:  # which changes no answer
                flag("dropped_fields")
        if is_agents:  # the model's words, and the calls that it asks for
            text, uses = read_reply(request.path, wire.body)
            if text:
                self._words = f"{self._words}\n{text}".strip()[-_MOST_WORDS:]
            self._uses |= {use.id: (use, time.monotonic()) for use in uses}
        return completion

    def _submit(self, work: Callable[[], Awaitable[Any]]) -> asyncio.Future[Any]:
        """Hands work over to the task of the question: its answer. Raises `SessionClosed`."""
        answer = asyncio.get_running_loop().create_future()

        def fail(error: Exception) -> None:
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # seen, also where the client has gone

        async def carry_out() -> None:
            try:
                result = await work()
            except (ModelError, LimitReached) as error:
                if isinstance(error, LimitReached):
                    self.limit = self.limit or error
                    self.is_limited.set()
                fail(error)
                if isinstance(error, ModelError) and (error.unreachable or error.refuses_key):
                    raise  # without a provider the agent could only answer by guessing
            except BaseException:  # it isn't the agent's to handle
                fail(SessionClosed())
                raise
            else:
                if not answer.done():
                    answer.set_result(result)

        self._open.add(answer)
        answer.add_done_callback(self._open.discard)
        try:
            self._send.send_nowait(carry_out)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise SessionClosed from None
        return answer
