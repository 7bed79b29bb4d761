"""An agent as a process for each question: the question on its standard input, the answer on its standard output.

The answer is the last line of the output, or `{"answer": …}`. The question also stands in REWOO_BENCH_QUESTION.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import Process

from rewoo_bench.agents.connections import watch
from rewoo_bench.agents.process import agent_environment
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.agents.settings import AgentSettings
from rewoo_bench.concurrency import background_task
from rewoo_bench.errors import UsageError
from rewoo_bench.processes import ProcessGroups, Tail, read_into

QUESTION = "REWOO_BENCH_QUESTION"
_LONGEST_OUTPUT = 1 << 20  # bytes that are kept of its end
_LONGEST_END_S = 10.0  # of a process after its answer; the rest is work
_LONGEST_VARIABLE = 100_000  # bytes; Linux allows 128 KiB


class AgentFailed(Exception):
    """An agent that gave no answer."""


class Program:
    """Starts the command for each question."""

    def __init__(self, settings: AgentSettings, command: tuple[str, ...], groups: ProcessGroups) -> None:
        self._settings = settings
        self._command = command
        self._groups = groups

    async def answer(self, question: str, session: AgentSession, variables: Mapping[str, str]) -> str | None:
        """The answer. `variables` are the gateway's. Raises `AgentFailed`.

        The time until its first request is no latency, nor is that from its answer to its own end, some seconds at
        most. Where it made no request, nothing shows when it had started.
        """
        start, output = time.monotonic(), Tail(0, _LONGEST_OUTPUT)
        try:
            answer = await self._answer(question, session, output, variables)
        finally:
            if session.first_request.done():
                session.row_notes.add_startup(start, session.first_request.result())
        if session.first_request.done() and output.size:
            end = time.monotonic()
            session.row_notes.add_startup(max(output.ended_at, session.last_active, end - _LONGEST_END_S), end)
        return answer

    async def _answer(
        self, question: str, session: AgentSession, output: Tail, variables: Mapping[str, str]
    ) -> str | None:
        log = session.log
        env = agent_environment(self._settings.env, variables)
        if len(question.encode("utf-8", "replace")) < _LONGEST_VARIABLE and "\0" not in question:
            env[QUESTION] = question
        started = self._groups.start(self._command, cwd=self._settings.working_folder, env=env)
        async with started as process, anyio.create_task_group() as group:
            group.start_soon(read_into, process.stdout, output)
            group.start_soon(read_into, process.stderr, log)
            group.start_soon(_write, process, question)
            async with background_task(partial(watch, process.pid, session, variables["OPENAI_BASE_URL"])):
                code = await process.wait()
            # A moment for the rest of the output; a child that keeps the pipes open isn't waited for.
            group.cancel_scope.deadline = anyio.current_time() + 1.0
        if is_one_cut_line(output):
            raise AgentFailed(f"the agent's answer has more than {_LONGEST_OUTPUT >> 20} MB")
        if code:
            ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise AgentFailed(f"the agent {ended}{error_line(log)}")
        return read_answer(output.text)


def is_one_cut_line(output: Tail) -> bool:
    """Whether the beginning of the last line isn't kept: an answer that is too long."""
    if output.size <= _LONGEST_OUTPUT:
        return False
    return "\n" not in output.text.rstrip().partition("bytes left out …\n")[2]


def check_program(command: str, settings: AgentSettings) -> None:
    """Raises `UsageError` where there is no such program: before any question is paid for."""
    path = settings.env.get("PATH") or os.environ.get("PATH")
    program = str(settings.working_folder / command) if os.sep in command else command
    if shutil.which(program, path=path) is None:
        raise UsageError(f"agent: can't start {command!r}: no such program; expected a name on PATH, or a path")


async def _write(process: Process, question: str) -> None:
    if process.stdin is not None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            await process.stdin.send(question.encode("utf-8", "replace"))
            await process.stdin.aclose()


def read_answer(output: str) -> str | None:
    """The answer in an output: `{"answer": …}` as the whole or as the last line, else the last line with a text."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]  # an answer may hold other separators
    for text in (output, *lines[-1:]):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and "answer" in document:
            return as_answer(document["answer"])
    return lines[-1] if lines else None


def as_answer(value: Any) -> str | None:
    """A JSON value as an answer: a text as it is, another value as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


_NODE = re.compile(r"(?:Uncaught )?(?:[\w.]*(?:Error|Exception)\b(?: \[\w+\])?)(?::.*)?")
_TRACEBACK = "Traceback (most recent call last):"


def error_line(log: Tail) -> str:
    """The line of a log that names the error, else its last one, as the end of a message."""
    lines = [line.rstrip() for line in log.text.splitlines() if line.strip()]
    return f": {_named_error(lines).strip()[:300]}" if lines else ""


def _named_error(lines: Sequence[str]) -> str:
    """The line of Python, Node, Rust or Java that names the error."""
    for position in reversed(range(len(lines))):
        line = lines[position]
        if line.strip() == _TRACEBACK:
            return next((each for each in lines[position + 1 :] if not each[0].isspace()), lines[-1])
        if line.startswith("thread '") and "panicked at" in line:
            return f"{line} {lines[position + 1].strip()}" if line.endswith(":") and lines[position + 1 :] else line
        if line.startswith("Exception in thread"):
            return line
    if lines[-1].startswith("Node.js v"):
        return next((line for line in reversed(lines) if _NODE.fullmatch(line)), lines[-1])
    return lines[-1]
