"""An external agent as a runner.

evaluator -> AgentRunner -> process or function -> gateway -> meter -> provider
                                                gateway -> metered tools
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from rewoo_bench.agents.function import answer_with
from rewoo_bench.agents.program import AgentFailed, Program, Worker, check_program
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.agents.settings import AgentSettings, command_in_environment
from rewoo_bench.calls.live import RequestRefused
from rewoo_bench.config.specs import import_object
from rewoo_bench.errors import ModelError, UsageError
from rewoo_bench.models.open import OpenModel
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.system.processes import ProcessGroups
from rewoo_bench.text.redaction import redact
from rewoo_bench.types import Model, StopReason, Tool, Trajectory

if TYPE_CHECKING:
    from rewoo_bench.agents.gateway import Gateway


# The tokens that an agent counts itself, to lay beside the meter's: a line of JSON on its standard error.
#
# {"own_count": {"input": 812, "output": 40, "calls": 3}}
# {"id": "q-…", "own_count": …}       of a worker, whose standard error is that of several questions


_NAME = "own_count"


def read_own_count(log: str, key: str) -> Mapping[str, Any] | None:
    """The last count in a log; where it names a question, of the question with this key."""
    for line in reversed(log.splitlines()):
        if _NAME not in line:
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(document, dict) or document.get("id", key) != key:
            continue
        count = document.get(_NAME)
        if isinstance(count, dict):
            return count
    return None


_OWN_FAULTS = frozenset({400, 404, 405, 413, 415, 422})  # of a request that the agent wrote
_AFTER_LIMIT_S = 5.0  # for an agent to end by itself after a limit of its question


@dataclass(frozen=True)
class _Connected:
    """The parts of a runner that belong to a run."""

    gateway: Gateway
    ask: Callable[[str, AgentSession], Awaitable[str | None]]


class AgentRunner:
    """Runs an external agent on a question. `connect` makes it ready for a run."""

    Settings = AgentSettings

    def __init__(self, prompts: Prompts, settings: AgentSettings) -> None:
        self.prompts = prompts
        self.settings = settings
        self._function = import_object(settings.callable, "agent: callable") if settings.callable else None
        self._connected: _Connected | None = None
        self._places = anyio.Semaphore(settings.concurrency) if settings.concurrency else None

    async def connect(self, gateway: Gateway, groups: ProcessGroups, stack: AsyncExitStack) -> None:
        """Makes the agent ready: its environment is installed, and its worker ends with `stack`."""
        if self._function is not None:
            self._connected = _Connected(gateway, self._ask_function)
            return
        command = await command_in_environment(self.settings)
        check_program(command[0], self.settings)  # before any other architecture is paid for
        agent: Program | Worker
        if self.settings.protocol == "worker":
            agent = Worker(self.settings, command, groups)
            stack.push_async_callback(agent.aclose)
        else:
            agent = Program(self.settings, command, groups)

        async def ask(question: str, session: AgentSession) -> str | None:
            return await agent.answer(question, session, gateway.environment(session))

        self._connected = _Connected(gateway, ask)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """The agent's answer. Raises the provider's `ModelError` where the agent failed because of it."""
        if self._places is None:
            return await self._run(question, model, tools)
        async with self._places:
            return await self._run(question, model, tools)

    async def _run(self, question: str, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        connected = self._connected
        assert connected is not None, "an agent needs `connect` first"
        with connected.gateway.open_session(model, tools) as session:
            attempt = _Attempt(session, self.settings)
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(session.serve)
                    await attempt.run(lambda: connected.ask(question, session))
                    group.cancel_scope.cancel()
            finally:
                session.row_notes.so_far = attempt.so_far()
        return attempt.trajectory()

    async def _ask_function(self, question: str, session: AgentSession) -> str | None:
        assert self._connected is not None
        gateway, function = self._connected.gateway, self._function
        assert function is not None
        base_url = f"{gateway.address(session)}/v1"
        return await answer_with(function, question, session, base_url=base_url, model=gateway.model_name)


class _Attempt:
    """One question: its answer, or the reason for none."""

    def __init__(self, session: AgentSession, settings: AgentSettings) -> None:
        self._session = session
        self._timeout_s = settings.timeout_s
        self._secrets = settings.secrets
        self._answer: str | None = None
        self._error: AgentFailed | None = None
        self._is_late = False

    async def run(self, ask: Callable[[], Awaitable[str | None]]) -> None:
        """Asks the agent, within its time, and for a moment after a limit of its question was reached."""
        with anyio.move_on_after(self._timeout_s) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._end_after_limit, group.cancel_scope)
                try:
                    self._answer = await ask()
                except AgentFailed as error:
                    self._error = error
                await self._session.finished()
                group.cancel_scope.cancel()
        self._is_late = scope.cancelled_caught and self._answer is None and self._error is None

    async def _end_after_limit(self, scope: anyio.CancelScope) -> None:
        await self._session.is_limited.wait()
        await anyio.sleep(_AFTER_LIMIT_S)
        scope.cancel()

    def trajectory(self) -> Trajectory:
        """Raises the limit that was reached, and the provider's own failure that left the agent without an answer."""
        session, reason = self._session, self._stop_reason()
        if session.limit is not None:
            raise session.limit
        if session.failure is not None and reason != "answered" and not self._is_own_fault(session.failure):
            raise session.failure
        so_far = self.so_far()
        if reason != "answered":
            return replace(so_far, stop_reason=reason, notes={**so_far.notes, "error": self._message(reason)})
        if not session.has_answer:
            session.row_notes.flags.add("unmetered")
        notes = {name: value for name, value in so_far.notes.items() if name != "stderr"}
        return replace(so_far, answer=self._answer, stop_reason=reason, notes=notes)

    def _is_own_fault(self, failure: ModelError) -> bool:
        """Whether the provider refused what the agent wrote. A model that answered nothing yet may be unknown to it."""
        missing = isinstance(failure, RequestRefused) and not (failure.is_accepted or self._session.has_answer)
        return failure.status in _OWN_FAULTS and not missing

    def so_far(self) -> Trajectory:
        """Steps and notes, however the question ends."""
        session = self._session
        notes: dict[str, Any] = {"gateway": dict(session.notes)} if session.notes else {}
        if own_count := read_own_count(session.log.text, session.key):
            notes["own_count"] = own_count
        if session.log.size:
            notes["stderr"] = redact(session.log.text, self._secrets)
        if session.connections:
            notes["connections"] = sorted(session.connections)
        return Trajectory(None, "error", tuple(session.steps), notes=notes)

    def _stop_reason(self) -> StopReason:
        if self._error is not None:
            return "agent_failed"
        if self._is_late:
            return "time_limit"
        return "answered" if self._answer and self._answer.strip() else "empty_answer"

    def _message(self, reason: StopReason) -> str:
        session = self._session
        if self._error is not None:
            refused = f"; the provider's answer to its request: {session.failure}" if session.failure else ""
            return redact(f"{self._error}{refused}", self._secrets)
        return f"no answer within {self._timeout_s:g} s" if reason == "time_limit" else "the agent gave no answer"


# Make the external agents of a run ready: the gateway, their processes, their environments.


async def connect_agents(
    architectures: Sequence[Architecture], opened: OpenModel, embeddings: OpenModel | None, stack: AsyncExitStack
) -> Gateway | None:
    """The gateway, where one of the architectures is an external agent; all ends with `stack`. Raises `UsageError`.

    `embeddings` is the model of `--embedding-model`.
    """
    agents = [architecture for architecture in architectures if isinstance(architecture.runner, AgentRunner)]
    if not agents:
        if embeddings is not None:
            raise UsageError("--embedding-model: no architecture of this run is an external agent; leave it out")
        return None
    if opened.wire_name is None:
        raise UsageError(
            f"{agents[0].name!r} is an external agent and needs a model over HTTP; {opened.name!r} has no endpoint: "
            "name a provider's model, or local/NAME"
        )
    from rewoo_bench.agents.gateway import Gateway  # its dialects take 15 ms, and few runs have an agent

    embedding_name = opened.embedding_name if embeddings is None else embeddings.wire_name
    gateway = await stack.enter_async_context(Gateway(opened.wire_name, embedding_name))
    groups = await stack.enter_async_context(ProcessGroups())
    for agent in agents:
        assert isinstance(agent.runner, AgentRunner)
        await agent.runner.connect(gateway, groups, stack)
    return gateway
