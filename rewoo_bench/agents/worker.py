"""An agent as a worker: one process that answers many questions, several at once, as lines of JSON.

    in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "q-…",
           "anthropic_base_url": "…", "tools_url": "…", "mcp_url": "…"}
    out:  {"id": "q-…", "answer": "…"}      or      {"id": "q-…", "error": "…"}

Any other line on its standard output is an error: logs belong on standard error.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from rewoo_bench.agents.connections import watch
from rewoo_bench.agents.process import agent_environment
from rewoo_bench.agents.program import AgentFailed, as_answer, error_line
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.agents.settings import AgentSettings
from rewoo_bench.concurrency import background_task
from rewoo_bench.processes import ProcessGroups, Tail, read_into

_LONGEST_LINE = 1 << 20  # bytes
_LOG_POLL_S, _LOG_POLLS = 0.01, 5
# The fields of a question's line, and the variables that a program has them in.
_FIELDS = {
    "model": "REWOO_BENCH_MODEL",
    "base_url": "OPENAI_BASE_URL",
    "api_key": "OPENAI_API_KEY",
    "anthropic_base_url": "ANTHROPIC_BASE_URL",
    "tools_url": "REWOO_BENCH_TOOLS_URL",
    "mcp_url": "REWOO_BENCH_MCP_URL",
}


class Worker:
    """The process, started with the first question and again after it has ended. A context manager."""

    def __init__(self, settings: AgentSettings, command: tuple[str, ...], groups: ProcessGroups) -> None:
        self._settings = settings
        self._command = command
        self._groups = groups
        self._open: dict[str, asyncio.Future[str | None]] = {}
        self._log = Tail()
        self._starting = anyio.Lock()
        self._pid = 0
        self._has_started = False
        self._first_request: float | None = None
        """When the process made its first request; None where it printed a line before."""
        self._input: anyio.abc.ByteSendStream | None = None
        self._task: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """Ends the process."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def answer(self, question: str, session: AgentSession, variables: Mapping[str, str]) -> str | None:
        """The answer; the worker's standard error so far goes to the session's log. Raises `AgentFailed`.

        `variables` are the gateway's. Questions wait for the worker's first request of all: that is no latency.
        """
        start, was_starting = time.monotonic(), self._input is None or not self._has_started
        session.first_request.add_done_callback(self._take_first_request)
        try:
            return await self._ask(question, session, variables)
        finally:
            session.first_request.remove_done_callback(self._take_first_request)
            if was_starting and self._first_request is not None:
                session.row_notes.add_startup(start, max(start, self._first_request))

    def _take_first_request(self, request: asyncio.Future[float]) -> None:
        if not self._has_started and not request.cancelled():
            self._has_started, self._first_request = True, request.result()

    async def _ask(self, question: str, session: AgentSession, variables: Mapping[str, str]) -> str | None:
        fields = {name: variables[variable] for name, variable in _FIELDS.items()}
        key = fields["api_key"]
        line = json.dumps({"id": key, "question": question, **fields}) + "\n"
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._open[key] = future
        try:
            async with self._starting:
                if self._input is None:
                    await self._start()
                assert self._input is not None
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # its end fails the question
                    await self._input.send(line.encode())
            async with background_task(partial(watch, self._pid, session, fields["base_url"])):
                answer = await future
            await self._log_read()
            return answer
        finally:
            self._open.pop(key, None)
            session.log.add(self._log.text.encode())

    async def _log_read(self) -> None:
        """A moment for standard error, another pipe than that of the answer: some ten milliseconds."""
        for _ in range(_LOG_POLLS):
            before = self._log.size
            await anyio.sleep(_LOG_POLL_S)
            if self._log.size == before:
                return

    async def _start(self) -> None:
        """Starts the process; raises what `ProcessGroups.start` raises."""
        started: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._log = Tail()
        self._has_started, self._first_request = False, None
        self._task = asyncio.create_task(self._run(started))
        process = await started
        self._input, self._pid = process.stdin, process.pid

    async def _run(self, started: asyncio.Future[Process]) -> None:
        """The life of a process: reads its lines, and fails the open questions at its end."""
        reason = "the worker ended"
        async with AsyncExitStack() as stack:
            try:
                starting = self._groups.start(
                    self._command, cwd=self._settings.working_folder, env=agent_environment(self._settings.env, {})
                )
                process = await stack.enter_async_context(starting)
            except Exception as error:  # it is raised where the worker was started
                started.set_exception(error)
                return
            started.set_result(process)
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(read_into, process.stderr, self._log)
                    reason = await self._read(process)
                    group.cancel_scope.deadline = anyio.current_time() + 0.5
            finally:
                self._input = None
                self._fail(reason)

    async def _read(self, process: Process) -> str:
        """Reads answers until there are no more; the reason."""
        assert process.stdout is not None
        stream = BufferedByteReceiveStream(process.stdout)
        while True:
            try:
                line = await stream.receive_until(b"\n", _LONGEST_LINE)
            except anyio.DelimiterNotFound:
                return f"the worker printed a line of more than {_LONGEST_LINE >> 20} MB"
            except (anyio.EndOfStream, anyio.IncompleteRead):
                with anyio.move_on_after(1.0):
                    code = await process.wait()
                    return f"the worker ended with exit code {code}"
                return "the worker closed its standard output"
            if fault := self._take(line):
                return fault

    def _take(self, line: bytes) -> str | None:
        """Answers the questions of a line; the fault where the line is none of ours."""
        self._has_started = True
        shown = line.decode("utf-8", "replace").strip()
        for reply in _documents(shown):
            if not isinstance(reply, dict) or not isinstance(reply.get("id"), str):
                return f"the worker printed {shown[:80]!r} on standard output, which is for JSON lines with an id"
            self._answer(reply)
        return None

    def _answer(self, reply: dict[str, Any]) -> None:
        future = self._open.get(reply["id"])
        if future is None or future.done():
            return
        if reply.get("error"):
            future.set_exception(AgentFailed(f"the agent failed: {str(reply['error'])[:300]}"))
        else:
            future.set_result(as_answer(reply.get("answer")))

    def _fail(self, reason: str) -> None:
        for future in self._open.values():
            if not future.done():
                future.set_exception(AgentFailed(f"{reason}{error_line(self._log)}"))


def _documents(line: str) -> Iterator[Any]:
    """The JSON documents of a line; None for what is no JSON. Threads that print at the same time share a line."""
    decoder, rest = json.JSONDecoder(), line
    while rest:
        try:
            document, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            yield None
            return
        yield document
        rest = rest[end:].lstrip()
