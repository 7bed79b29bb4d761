"""Other people's programs (agents, MCP servers): each in a process group of its own, which ends as a whole.

A process that leaves its group (`setsid`, a daemon) is ended with it: it has the group's mark in its environment.
One that has also cleared its environment isn't found, and goes on.

async with ProcessGroups() as groups:
    async with groups.start(["python", "agent.py"], cwd=folder, env={…}) as process:
        ...
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, Process

from rewoo_bench.errors import HarnessFault, UsageError
from rewoo_bench.system import reaper

_TERM_GRACE_S = 1.0  # between the request to end and the kill


def cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessGroups:
    """Starts processes, and has a reaper end them where this process is killed."""

    def __init__(self) -> None:
        self._reaper: subprocess.Popen[str] | None = None

    async def __aenter__(self) -> ProcessGroups:
        return self

    async def __aexit__(self, *_: object) -> None:
        process, self._reaper = self._reaper, None
        if process is not None:
            with suppress(OSError):
                try:
                    process.communicate(timeout=_TERM_GRACE_S)
                except subprocess.TimeoutExpired:  # of a busy machine; no process is left for it to end
                    process.kill()
                    process.wait()

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str], what: str = "agent"
    ) -> AsyncIterator[Process]:
        """A process with pipes for its streams; all that it started ends with it.

        Raises `UsageError`, in which `what` says whose process it is.
        """
        mark = secrets.token_hex(16)
        outer = os.environ.get(reaper.MARK, "")  # of a run that is an agent itself
        marked = {**env, reaper.MARK: f"{outer} {mark}".strip()}
        try:
            with anyio.CancelScope(shield=True):  # one that is cut off would leave a process that nobody ends
                process = await anyio.open_process(command, cwd=cwd, env=marked, start_new_session=True)
        except OSError as error:
            if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
                program = str(error.filename or command[0])
                raise UsageError(f"{what}: can't start {program!r}: {error.strerror}") from None
            raise HarnessFault(f"{what}: can't start {command[0]!r}: {error}") from error
        self._tell_reaper(f"+{process.pid} {mark}")
        try:
            yield process
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
                await to_thread.run_sync(reaper.kill_marked, mark)
            self._tell_reaper(f"-{process.pid} {mark}")

    def _tell_reaper(self, line: str) -> None:
        if self._reaper is None:
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", str(Path(reaper.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        assert self._reaper.stdin is not None
        with suppress(OSError):  # of a reaper that was killed: the processes end with the run all the same
            self._reaper.stdin.write(f"{line}\n")
            self._reaper.stdin.flush()


async def _end(process: Process) -> None:
    """Ends the whole group: asked first, then killed, also where only its leader has ended.

    Windows has no groups: the process alone is ended.
    """
    if hasattr(os, "killpg"):
        _signal(process, signal.SIGTERM)
        with anyio.move_on_after(_TERM_GRACE_S):
            await process.wait()
        _signal(process, signal.SIGKILL)
    else:
        with suppress(OSError):
            process.terminate()
    await process.wait()
    await process.aclose()


def _signal(process: Process, which: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, which)


class Tail:
    """The first `head` and the last `tail` bytes of an output of any length; the defaults are those of a log."""

    def __init__(self, head: int = 4 << 10, tail: int = 8 << 10) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._longest_head, self._longest_tail = head, tail
        self.size = 0
        self.ended_at = 0.0
        """When the last piece came, in seconds of the monotonic clock."""

    def add(self, data: bytes) -> None:
        """Adds a piece of the output."""
        self.size += len(data)
        self.ended_at = time.monotonic()
        room = self._longest_head - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._longest_tail:
            del self._tail[: -self._longest_tail]

    @property
    def text(self) -> str:
        """The output as text, with a mark for what was left out."""
        tail = bytes(self._tail[-self._longest_tail :])
        left_out = self.size - len(self._head) - len(tail)
        mark = f"\n… {left_out:,} bytes left out …\n".encode() if left_out else b""
        return (bytes(self._head) + mark + tail).decode("utf-8", "replace")


async def read_into(stream: ByteReceiveStream | None, tail: Tail) -> None:
    """Reads an output to its end, so that the process never waits for a reader."""
    if stream is not None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for piece in stream:
                tail.add(piece)
