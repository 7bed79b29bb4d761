"""One thread that writes batches, one after the other, and says when each is written.

    async with open_writer(commit) as writer:      # commit(rows) is called in the thread
        writer.add(row)
        await writer.written()                     # until all that was added is written

What is added while a batch is being written makes the next one. Between a row and its news there
are as few turns of the event loop as can be: with many questions at once a turn takes milliseconds.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Any

from anyio import CancelScope, to_thread

Row = tuple[Any, ...]
# Those that are told in one turn of the loop all do their next piece of work in the next turn. Before
# Python 3.12 a request goes out a turn after it is made, so all of theirs would go at the end of it,
# and come back together: 64 questions in step waited for each other half of the time.
_TOLD_AT_ONCE = 4 if sys.version_info < (3, 12) else 1000


class Writer:
    """The event loop's side of the thread. After a failure nothing is written any more: `failure` says why."""

    def __init__(self, commit: Callable[[list[Row]], None]) -> None:
        self.failure: Exception | None = None
        self._commit = commit
        self._loop = asyncio.get_running_loop()
        self._batches: SimpleQueue[list[Row] | None] = SimpleQueue()
        self._rows: list[Row] = []  # for the next batch; as many as there are calls at once, and their tools'
        self._waiting: deque[asyncio.Future[None]] = deque()  # for the next batch
        self._told: deque[asyncio.Future[None]] = deque()  # for the one on its way
        self._busy = False
        self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)

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
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._hand_over)  # with what others add in this turn of the loop
        with CancelScope(shield=True):
            await news

    def _hand_over(self) -> None:
        rows, self._rows = self._rows, []
        self._told, self._waiting = self._waiting, deque()
        self._batches.put(rows)

    def _came_back(self, failure: Exception | None) -> None:
        if failure is not None:
            self.failure = failure
            self._rows.clear()
            self._told += self._waiting
            self._waiting.clear()
        self._tell(self._told)
        if self._waiting:
            self._hand_over()
        else:
            self._busy = False

    def _tell(self, waiting: deque[asyncio.Future[None]]) -> None:
        """A few in each turn of the loop."""
        for _ in range(min(_TOLD_AT_ONCE, len(waiting))):
            news = waiting.popleft()
            if not news.done():  # cancelled by who doesn't heed scopes
                news.set_result(None)
        if waiting:
            self._loop.call_soon(self._tell, waiting)

    def _write_all(self) -> None:
        """In the thread."""
        while (batch := self._batches.get()) is not None:
            failure: Exception | None = None
            try:
                self._commit(batch)
            except Exception as error:  # the event loop raises it, where somebody waits
                failure = error
            self._loop.call_soon_threadsafe(self._came_back, failure)

    async def _close(self) -> None:
        """Writes what nobody has waited for, and ends the thread."""
        with CancelScope(shield=True):
            await self.written()
            self._batches.put(None)
            await to_thread.run_sync(self._thread.join)


@asynccontextmanager
async def open_writer(commit: Callable[[list[Row]], None]) -> AsyncIterator[Writer]:
    """A writer whose thread runs as long as the block, and has written everything at its end."""
    writer = Writer(commit)
    writer._thread.start()
    try:
        yield writer
    finally:
        await writer._close()
