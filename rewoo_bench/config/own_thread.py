"""A thread of its own for code of the user's: of a world, so that SQLite is content, or of a single call."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

from rewoo_bench.errors import ToolError

T = TypeVar("T")


class OwnThread:
    """A thread, in which one call runs at a time. One that hangs keeps no run from ending."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._is_stuck = False
        threading.Thread(target=self._run, daemon=True, name="own").start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    async def call(self, function: Callable[[], T], *, waits: bool = False) -> T:
        """The function's result, or what it raises; `ToolError` while one that was given up still runs.

        With `waits` it is called when that has ended.
        """
        if self._is_stuck and not waits:
            raise ToolError("an earlier call, which took too long, is still running")
        loop, ended, context = asyncio.get_running_loop(), asyncio.Future[T](), copy_context()

        def end(result: T | None, error: BaseException | None) -> None:
            self._is_stuck = False
            if ended.done():
                return
            if error is not None:
                ended.set_exception(error)
            else:
                ended.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result: T | None = None
            raised: BaseException | None = None
            try:
                if not ended.cancelled():  # else it was given up before it began
                    result = context.run(function)
            except StopIteration as error:  # which no future can hold
                raised = RuntimeError(f"StopIteration: {error}")
            except BaseException as error:  # SystemExit included: it would end the thread
                raised = error
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, result, raised)

        self._work.put(work)
        try:
            return await ended
        except asyncio.CancelledError:
            self._is_stuck = ended.cancelled()  # else the function itself raised it
            raise

    def end(self) -> None:
        """Ends the thread, after what it is doing."""
        self._work.put(None)
