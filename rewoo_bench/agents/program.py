"""The three forms of an agent: a process for each question (`Program`), one that answers many, several at once
(`WorkerProcess`), and a function in this process (`Function`).

A program has the question on its standard input and in REWOO_BENCH_QUESTION. Its answer is the last line of its
standard output, or `{"answer": …}`. A worker reads and prints lines of JSON; any other line on its standard output is
an error, since logs belong on standard error:

    in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "q-…",
           "anthropic_base_url": "…", "tools_url": "…", "mcp_url": "…"}
    out:  {"id": "q-…", "answer": "…"}      or      {"id": "q-…", "error": "…"}
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AsyncExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio.abc import ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from rewoo_bench.agents.session import AgentSession, SessionClosed
from rewoo_bench.agents.settings import AgentSettings
from rewoo_bench.errors import LimitReached, UsageError
from rewoo_bench.system.processes import ProcessGroups, Tail, read_into
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.redaction import plain_environment

# Beginnings of variables that an agent gets from its question alone.
_LEFT_OUT = ("OPENAI_", "ANTHROPIC_", "AZURE_", "GEMINI_", "GOOGLE_", "OLLAMA_", "REWOO_BENCH_")


def agent_environment(own: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent: this process's without credentials, then the agent's own, then the session's."""
    plain = {name: value for name, value in plain_environment().items() if not name.upper().startswith(_LEFT_OUT)}
    hosts = ",".join(filter(None, (os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), "127.0.0.1,localhost")))
    local = {"NO_PROXY": hosts, "no_proxy": hosts}  # to the gateway without a proxy
    return {**plain, **local, **{name: os.path.expandvars(value) for name, value in own.items()}, **session}


QUESTION = "REWOO_BENCH_QUESTION"
_LONGEST_OUTPUT = 1 << 20  # bytes that are kept of its end
_LONGEST_END_S = 10.0  # of a process after its answer; the rest is work
_LONGEST_VARIABLE = 100_000  # bytes; Linux allows 128 KiB


class AgentFailed(Exception):
    """An agent that gave no answer."""


@dataclass(frozen=True, slots=True)
class Program:
    """Starts the command for each question."""

    settings: AgentSettings
    command: tuple[str, ...]
    groups: ProcessGroups

    async def answer(self, question: str, session: AgentSession, variables: Mapping[str, str]) -> str | None:
        """The answer. `variables` are the gateway's. Raises `AgentFailed`.

        The time until its first request is no latency, nor is that from its answer to its own end, some seconds at
        most. Where it made no request, nothing shows when it had started.
        """
        start, output, log = time.monotonic(), Tail(0, _LONGEST_OUTPUT), session.log
        data = question.encode("utf-8", "replace")
        env = agent_environment(self.settings.env, variables)
        if len(data) < _LONGEST_VARIABLE:
            env[QUESTION] = question

        async def send(stdin: ByteSendStream) -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
                await stdin.send(data)
                await stdin.aclose()

        try:
            started = self.groups.start(self.command, cwd=self.settings.working_folder, env=env)
            async with started as process, anyio.create_task_group() as group:
                assert process.stdin is not None
                group.start_soon(read_into, process.stdout, output)
                group.start_soon(read_into, process.stderr, log)
                group.start_soon(send, process.stdin)
                code = await process.wait()
                # A moment for the rest of the output; a child that keeps the pipes open isn't waited for.
                group.cancel_scope.deadline = anyio.current_time() + 1.0
            if code:
                ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                raise AgentFailed(f"the agent {ended}{error_line(log)}")
            answer = answer_in_output(output.text)
        finally:
            if session.first_request.done():
                session.row_notes.add_startup(start, session.first_request.result())
        if session.first_request.done() and output.size:
            end = time.monotonic()
            session.row_notes.add_startup(max(output.ended_at, session.last_active, end - _LONGEST_END_S), end)
        return answer


def check_program(command: str, settings: AgentSettings) -> None:
    """Raises `UsageError` where there is no such program: before any question is paid for."""
    path = settings.env.get("PATH") or os.environ.get("PATH")
    program = str(settings.working_folder / command) if os.sep in command else command
    if shutil.which(program, path=path) is None:
        raise UsageError(f"agent: can't start {command!r}: no such program; expected a name on PATH, or a path")


def answer_in_output(output: str) -> str | None:
    """The answer in an output: `{"answer": …}` as the whole or as the last line, else the last line with a text."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]  # an answer may hold other separators
    for text in (output, *lines[-1:]):
        try:
            document = load_json(text)
        except ValueError:
            continue
        if isinstance(document, dict) and "answer" in document:
            return as_answer(document["answer"])
    return lines[-1] if lines else None


def as_answer(value: Any) -> str | None:
    """A JSON value as an answer: a text as it is, another value as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def error_line(log: Tail) -> str:
    """The last line of a log, as a message's end: a Python program's error."""
    lines = [line.strip() for line in log.text.splitlines() if line.strip()]
    return f": {lines[-1][:300]}" if lines else ""


_LONGEST_LINE = 1 << 20  # bytes
# The fields of a question's line, and the variables that a program has them in.
_FIELDS = {
    "model": "REWOO_BENCH_MODEL",
    "base_url": "OPENAI_BASE_URL",
    "api_key": "OPENAI_API_KEY",
    "anthropic_base_url": "ANTHROPIC_BASE_URL",
    "tools_url": "REWOO_BENCH_TOOLS_URL",
    "mcp_url": "REWOO_BENCH_MCP_URL",
}


class WorkerProcess:
    """The process, started with the first question and again after it has ended. A context manager."""

    def __init__(self, settings: AgentSettings, command: tuple[str, ...], groups: ProcessGroups) -> None:
        self._settings = settings
        self._command = command
        self._groups = groups
        self._open: dict[str, asyncio.Future[str | None]] = {}
        self._log = Tail()
        self._starting = anyio.Lock()
        self._has_started = False
        self._first_request: float | None = None
        """When the process made its first request; None where it printed a line before."""
        self._input: ByteSendStream | None = None
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
        fields = {name: variables[variable] for name, variable in _FIELDS.items()}
        key = fields["api_key"]
        line = json.dumps({"id": key, "question": question, **fields}) + "\n"
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._open[key] = future
        session.first_request.add_done_callback(self._take_first_request)
        try:
            async with self._starting:
                if self._input is None:
                    self._log, self._has_started, self._first_request = Tail(), False, None
                    started: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
                    self._task = asyncio.create_task(self._run(started))
                    with anyio.CancelScope(shield=True):  # cut off, the process would be nobody's
                        process = await started  # raises what `ProcessGroups.start` raises
                    self._input = process.stdin
                assert self._input is not None
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # its end fails the question
                    await self._input.send(line.encode())
            answer = await future
            for _ in range(5):  # a moment for standard error, another pipe than that of the answer
                before = self._log.size
                await anyio.sleep(0.01)
                if self._log.size == before:
                    break
            return answer
        finally:
            self._open.pop(key, None)
            session.log.add(self._log.text.encode())
            session.first_request.remove_done_callback(self._take_first_request)
            if was_starting and self._first_request is not None:
                session.row_notes.add_startup(start, max(start, self._first_request))

    def _take_first_request(self, request: asyncio.Future[float]) -> None:
        if not self._has_started and not request.cancelled():
            self._has_started, self._first_request = True, request.result()

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
                for future in self._open.values():
                    if not future.done():
                        future.set_exception(AgentFailed(f"{reason}{error_line(self._log)}"))

    async def _read(self, process: Process) -> str:
        """Answers questions until the process ends, or prints a line that is none of ours; the reason."""
        assert process.stdout is not None
        stream = BufferedByteReceiveStream(process.stdout)
        while True:
            try:
                line = await stream.receive_until(b"\n", _LONGEST_LINE)
            except anyio.DelimiterNotFound:
                return f"the worker printed a line of more than {_LONGEST_LINE >> 20} MB"
            except (anyio.EndOfStream, anyio.IncompleteRead):
                with anyio.move_on_after(1.0):
                    await process.wait()
                return f"the worker ended with exit code {process.returncode}"
            self._has_started = True
            shown = line.decode("utf-8", "replace").strip()
            if not shown:
                continue
            try:
                reply = load_json(shown)
            except ValueError:
                reply = None
            if not isinstance(reply, dict) or not isinstance(reply.get("id"), str):
                return f"the worker printed {shown[:80]!r} on standard output, which is for JSON lines with an id"
            future = self._open.get(reply["id"])
            if future is None or future.done():
                continue
            if reply.get("error"):
                future.set_exception(AgentFailed(f"the agent failed: {str(reply['error'])[:300]}"))
            else:
                future.set_result(as_answer(reply.get("answer")))


# An agent as a function in this process: `async def answer(question, *, base_url, api_key, model, tools) -> str`.
#
# A plain function runs in a thread of its own, so that it may use a client that blocks; a thread that never ends holds
# up neither other questions nor the end of the run. `tools` maps a name to an async function (to a plain one, for a
# plain agent) of the tool's arguments.


_END_S = 5.0  # for an agent to end after its question was cancelled


class Function:
    """Calls the function for each question."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def answer(self, question: str, session: AgentSession, variables: Mapping[str, str]) -> str | None:
        """The function's answer. `variables` are the gateway's. Raises `AgentFailed`."""
        is_async = inspect.iscoroutinefunction(self._function)
        loop = asyncio.get_running_loop()

        def as_function(name: str) -> Callable[..., Any]:
            async def call(**arguments: Any) -> str:
                return (await session.call_tool(name, arguments)).text

            def call_from_thread(**arguments: Any) -> str:
                return asyncio.run_coroutine_threadsafe(call(**arguments), loop).result()

            made: Callable[..., Any] = call if is_async else call_from_thread
            made.__name__, made.__doc__ = name, session.tools[name].description
            return made

        work = partial(
            self._function,
            question,
            base_url=variables["OPENAI_BASE_URL"],
            api_key=session.key,
            model=variables["REWOO_BENCH_MODEL"],
            tools={name: as_function(name) for name in session.tools},
        )
        try:
            answer = await _in_task(work()) if is_async else await _in_thread(work)
        except (LimitReached, SessionClosed) as error:
            raise AgentFailed(str(error)) from error
        except Exception as error:  # of the user's code: this question's failure
            raise AgentFailed(_shown(error)[:300]) from error
        if answer is not None and not isinstance(answer, str):
            raise AgentFailed(f"the agent returned {type(answer).__name__}; expected a text")
        return answer


async def _in_task(work: Coroutine[Any, Any, Any]) -> Any:
    """The work's result. A task of its own, so that an agent that cancels itself cancels nothing else."""

    async def run() -> Any:
        try:
            return await work
        except (SystemExit, GeneratorExit, BaseExceptionGroup) as error:  # the end of the agent, not of the run
            if isinstance(error, Exception):
                raise
            raise RuntimeError(_shown(error)) from error

    task = asyncio.create_task(run())
    try:
        await asyncio.wait([task])
    finally:
        if not task.done():  # the question is cancelled
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task], timeout=_END_S)
    if task.cancelled():
        raise RuntimeError("the agent cancelled itself")
    return task.result()


async def _in_thread(work: Callable[[], Any]) -> Any:
    """The work's result. anyio's threads are few, shared with the journal, and waited for at the end of the process."""
    future: Future[Any] = Future()

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # a SystemExit ends the agent and not the run; no future holds a StopIteration
            is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            failure = error if is_plain else RuntimeError(_shown(error))
        with suppress(InvalidStateError):  # the question was cancelled
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True, name="agent").start()
    return await asyncio.wrap_future(future)


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error!s}".removesuffix(": ")
