"""The event loop's side of the process that writes the journal.

    async with open_writer(path) as writer:
        writer.add(("question", task, failed, rows))
        await writer.written()                     # until all that was added is written

Rows go out as soon as `_WAITING_AT_ONCE` wait for them, or at the end of a turn of the loop: while the
process commits those of some tasks, the loop works on the others.
"""

from __future__ import annotations

import asyncio
import marshal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import CancelScope

Row = tuple[Any, ...]
_WAITING_AT_ONCE = 8
# Those that are told in one turn of the loop all do their next piece of work in the next turn. Before
# Python 3.12 a request goes out a turn after it is made, so all of theirs would go at the end of it,
# and come back together: 64 questions in step waited for each other.
_TOLD_AT_ONCE = 4 if sys.version_info < (3, 12) else _WAITING_AT_ONCE
_STDIN = 0


class Writer(asyncio.SubprocessProtocol):
    """Sends batches and hears of them. After a failure nothing is written any more: `failure` says why."""

    def __init__(self) -> None:
        self.failure: str | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        self._rows: list[Row] = []  # for the next batch; as many as there are calls at once, and their tools'
        self._waiting: list[asyncio.Future[None]] = []  # for the next batch
        self._sent: deque[list[asyncio.Future[None]]] = deque()  # who waits for those on their way
        self._due = False
        self._said = bytearray()
        self._ended: asyncio.Future[None] = self._loop.create_future()

    def add(self, row: Row) -> None:
        """Puts a row into the next batch, which goes once somebody waits for it."""
        if self.failure is None:
            self._rows.append(row)

    async def written(self) -> None:
        """Waits until what was added is written, whatever ends the caller. Look at `failure` then."""
        if self.failure is not None:
            return
        news: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(news)
        if len(self._waiting) == _WAITING_AT_ONCE:
            self._send()
        elif not self._due:
            self._due = True
            self._loop.call_soon(self._send_rest)  # with what others add in this turn of the loop
        with CancelScope(shield=True):
            await news

    def _send_rest(self) -> None:
        self._due = False
        if self._waiting:
            self._send()

    def _send(self) -> None:
        packed = marshal.dumps(self._rows)
        self._sent.append(self._waiting)
        self._rows, self._waiting = [], []
        self._pipe().write(len(packed).to_bytes(8, "little") + packed)

    async def close(self) -> None:
        """Writes what nobody has waited for, and ends the process."""
        assert self._transport is not None
        with CancelScope(shield=True):
            await self.written()
            self._pipe().close()
            await self._ended
            self._transport.close()

    def _pipe(self) -> asyncio.WriteTransport:
        assert self._transport is not None
        pipe = self._transport.get_pipe_transport(_STDIN)
        assert isinstance(pipe, asyncio.WriteTransport)
        return pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """A `.` for each batch that is written; a `!`, and why the next one isn't."""
        if self._said:
            self._said += data
            return
        written, failed, why = data.partition(b"!")
        self._said += failed + why
        for _ in written:
            self._tell(self._sent.popleft())

    def _tell(self, waiting: list[asyncio.Future[None]]) -> None:
        """A few in each turn of the loop."""
        for news in waiting[:_TOLD_AT_ONCE]:
            if not news.done():  # cancelled by who doesn't heed scopes
                news.set_result(None)
        if later := waiting[_TOLD_AT_ONCE:]:
            self._loop.call_soon(self._tell, later)

    def connection_lost(self, error: Exception | None) -> None:
        """The process has ended: by itself only after a failure, or killed."""
        self.failure = self._said[1:].decode() or "the process that writes it was ended"
        self._rows.clear()
        for waiting in (*self._sent, self._waiting):
            self._tell(waiting)
        self._ended.set_result(None)


@asynccontextmanager
async def open_writer(path: Path) -> AsyncIterator[Writer]:
    """A writer of a journal that is there already; it has written everything at the block's end."""
    child = Path(__file__).with_name("journal_child.py")
    _, writer = await asyncio.get_running_loop().subprocess_exec(
        Writer, sys.executable, "-I", "-S", str(child), str(path),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None,
    )  # fmt: skip
    try:
        yield writer
    finally:
        await writer.close()
