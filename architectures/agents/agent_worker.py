"""The worker's side of rewoo_bench's agent protocol, shared by the agents here. Only the standard library.

    in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…", …}
    out:  {"id": "q-…", "answer": "…"}        or {"id": "q-…", "error": "…"}: this question's failure

Each question is a line, and several are answered at once. Copy this file along with an agent's folder, or set
PYTHONPATH to where it is.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TextIO

INSTRUCTIONS = "You are a helpful assistant. Use the tools."
Job = dict[str, Any]


def run_worker(answer: Callable[[Job], Awaitable[str]]) -> None:
    """Answers questions until standard input ends."""
    asyncio.run(_read_jobs(answer))


def log_own_count(job: Job, *, input: int, output: int, calls: int | None = None) -> None:
    """Tells what the framework itself counted for a question: tokens, and model calls where it counts them."""
    own = {"input": input, "output": output, "calls": calls}
    _write_line({"id": job["id"], "own_count": own}, sys.stderr)


async def _read_jobs(answer: Callable[[Job], Awaitable[str]]) -> None:
    async with asyncio.TaskGroup() as group:
        while line := await asyncio.to_thread(sys.stdin.readline):
            group.create_task(_serve(answer, json.loads(line)))


async def _serve(answer: Callable[[Job], Awaitable[str]], job: Job) -> None:
    try:
        reply = {"answer": await answer(job)}
    except Exception as error:  # of the framework: the question ends as `agent_failed`, with this text
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        reply = {"error": f"{type(cause).__name__}: {cause}"}
    _write_line({"id": job["id"], **reply}, sys.stdout)


def _write_line(value: dict[str, Any], stream: TextIO) -> None:
    """A line in one piece: `print` writes its end apart, where another thread's line may come between."""
    stream.write(json.dumps(value) + "\n")
    stream.flush()
