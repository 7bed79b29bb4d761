"""An external agent as a runner.

evaluator -> AgentRunner -> process or function -> gateway -> meter -> provider
                                                gateway -> metered tools
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from rewoo_bench.agents.program import AgentFailed, Function, Program, WorkerProcess, check_program
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.agents.settings import AgentSettings, command_in_environment
from rewoo_bench.calls.meter import Meter
from rewoo_bench.config.specs import import_object
from rewoo_bench.errors import UsageError
from rewoo_bench.models.open import OpenModel
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.system.processes import ProcessGroups
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.redaction import of_environment, without_in
from rewoo_bench.types import Model, Step, StopReason, Tool, Trajectory

if TYPE_CHECKING:
    from rewoo_bench.agents.gateway import Gateway

_OWN_FAULTS = frozenset({400, 404, 405, 413, 415, 422})  # of a request that the agent wrote
_AFTER_LIMIT_S = 5.0  # for an agent to end by itself after a limit of its question


class AgentRunner:
    """Runs an external agent on a question. It asks `gateway`, and its processes are among `groups`."""

    Settings = AgentSettings

    def __init__(self, prompts: Prompts, settings: AgentSettings) -> None:
        self.prompts = prompts
        self.settings = settings
        self._agent: Function | Program | WorkerProcess | None = None
        if settings.callable:
            self._agent = Function(import_object(settings.callable, "agent: callable"))
        self.gateway: Gateway | None = None
        self.groups: ProcessGroups | None = None
        places = settings.concurrency
        self.question_places: AbstractAsyncContextManager[Any] = anyio.Semaphore(places) if places else nullcontext()

    async def connect(self, stack: AsyncExitStack) -> None:
        """Makes the agent ready: its environment is installed, and its worker ends with `stack`."""
        if self.settings.callable:
            return
        assert self.groups is not None
        command = await to_thread.run_sync(command_in_environment, self.settings)
        check_program(command[0], self.settings)  # before any other architecture is paid for
        if self.settings.protocol == "worker":
            self._agent = WorkerProcess(self.settings, command, self.groups)
            stack.push_async_callback(self._agent.aclose)
        else:
            self._agent = Program(self.settings, command, self.groups)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """The agent's answer. Raises the provider's `ModelError` where the agent failed because of it."""
        gateway, agent = self.gateway, self._agent
        assert gateway is not None, "an agent needs its gateway first"
        assert agent is not None
        assert isinstance(model, Meter)
        answer: str | None = None
        failed: AgentFailed | None = None
        with gateway.open_session(model, tools, self.settings.secrets | of_environment()) as session:

            async def end_after_limit(scope: anyio.CancelScope) -> None:
                await session.is_limited.wait()
                await anyio.sleep(_AFTER_LIMIT_S)
                scope.cancel()

            try:
                async with anyio.create_task_group() as serving:
                    serving.start_soon(session.serve)
                    with anyio.move_on_after(self.settings.timeout_s) as timer:
                        async with anyio.create_task_group() as asking:
                            asking.start_soon(end_after_limit, asking.cancel_scope)
                            try:
                                answer = await agent.answer(question, session, gateway.environment(session))
                            except AgentFailed as error:
                                failed = error
                            await session.finished()
                            asking.cancel_scope.cancel()
                    serving.cancel_scope.cancel()
            finally:
                session.row_notes.so_far = self._so_far(session)
        is_late = timer.cancelled_caught and answer is None and failed is None
        return self._trajectory(session, answer, failed, is_late=is_late)

    def _trajectory(
        self, session: AgentSession, answer: str | None, failed: AgentFailed | None, *, is_late: bool
    ) -> Trajectory:
        """Raises the limit that was reached, and the provider's own failure that left the agent without an answer."""
        failure = session.failure
        if session.limit is not None:
            raise session.limit
        is_answered = failed is None and bool(answer and answer.strip())
        if failure is not None and not is_answered:
            # The provider refused what the agent wrote, unless it doesn't know the model, which answered nothing yet.
            is_unknown = failure.refused_by and not (failure.accepts_others or session.has_answer)
            is_agents = failure.status in _OWN_FAULTS or failure.unread_reply
            if is_unknown or not is_agents:
                raise failure
        so_far = self._so_far(session)
        if answer and is_answered:
            if not session.has_answer:
                session.row_notes.flags.add("unmetered")
            notes = {name: value for name, value in so_far.notes.items() if name != "stderr"}
            return replace(so_far, answer=without_in(answer, session.secrets), stop_reason="answered", notes=notes)
        reason: StopReason
        if failed is not None:
            refused = f"; the provider's answer to its request: {failure}" if failure else ""
            reason, message = "agent_failed", without_in(f"{failed}{refused}", session.secrets)
        elif is_late:
            reason, message = "time_limit", f"no answer within {self.settings.timeout_s:g} s"
        else:
            reason, message = "empty_answer", "the agent gave no answer"
        return replace(so_far, stop_reason=reason, notes={**so_far.notes, "error": message})

    def _so_far(self, session: AgentSession) -> Trajectory:
        """Steps and notes, however the question ends, without the secrets that the agent may have read here."""
        shown = partial(without_in, secrets=session.secrets)
        notes: dict[str, Any] = {"gateway": dict(session.notes)} if session.notes else {}
        if own_count := read_own_count(session.log.text, session.key):
            notes["own_count"] = shown(own_count)
        if session.log.size:
            notes["stderr"] = shown(session.log.text)
        steps = tuple(Step(**shown(asdict(step))) for step in session.steps)
        return Trajectory(None, "error", steps, notes=notes)


def read_own_count(log: str, key: str) -> Mapping[str, Any] | None:
    """The tokens that an agent counts itself, to compare with the meter's: the last such line on its standard error.

    A worker's standard error is that of several questions: there a line names its question by this key.

        {"own_count": {"input": 812, "output": 40, "calls": 3}}
        {"id": "q-…", "own_count": …}
    """
    for line in reversed(log.splitlines()):
        if "own_count" not in line:
            continue
        try:
            document = load_json(line)
        except ValueError:
            continue
        if isinstance(document, dict) and document.get("id", key) == key:
            count = document.get("own_count")
            if isinstance(count, dict):
                return count
    return None


async def open_gateway(
    architectures: Sequence[Architecture],
    opened: OpenModel,
    embeddings: OpenModel | None,
    programs: int | None,
    stack: AsyncExitStack,
) -> Gateway | None:
    """The gateway, where one of the architectures is an external agent; all ends with `stack`. Raises `UsageError`.

    `embeddings` is the model of `--embedding-model`, `programs` the most that run at the same time.
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
    places = anyio.Semaphore(programs) if programs else nullcontext()
    for agent in agents:
        assert isinstance(agent.runner, AgentRunner)
        agent.runner.gateway, agent.runner.groups = gateway, groups
        if agent.runner.settings.shares_cores:
            agent.runner.question_places = places
    return gateway
