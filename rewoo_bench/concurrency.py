"""Something that goes on beside a block of code and ends with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def beside(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs `work` beside the body, and cancels it at the body's end.

    What the body raises is raised as it is, where a task group would wrap it into a group.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        try:
            yield
        except Exception as error:  # nothing is swallowed: it is raised below
            raised = error
        finally:
            group.cancel_scope.cancel()
    if raised is not None:
        raise raised
