"""Additions to anyio: background tasks, a limiter without a detour, a graph of tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import copy_context
from graphlib import TopologicalSorter
from typing import Any, Literal, Protocol, TypeVar

import anyio

T = TypeVar("T")
Schedule = Literal["ready", "levels", "sequential"]


class TaskStarter(Protocol):
    """Starts `work(argument)` in the background."""

    def __call__(self, work: Callable[[T], Awaitable[None]], argument: T) -> None: ...


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskStarter]:
    """Tasks that the body starts, and that end with it at the latest.

    The first exception, of a task or of the body, ends all the others and is raised as it is, Ctrl-C included. Tasks
    have the context variables of this place, wherever they are started.
    """
    failures: list[Exception | KeyboardInterrupt] = []
    context = copy_context()
    running = 0
    async with anyio.create_task_group() as group:

        async def run(work: Callable[[T], Awaitable[None]], argument: T) -> None:
            nonlocal running
            try:
                await work(argument)
            except (Exception, KeyboardInterrupt) as error:  # nothing is swallowed: it is raised below
                failures.append(error)
                group.cancel_scope.cancel()
            finally:
                running -= 1

        def start(work: Callable[[T], Awaitable[None]], argument: T) -> None:
            nonlocal running
            running += 1
            context.run(group.start_soon, run, work, argument)

        try:
            yield start
        except (Exception, KeyboardInterrupt) as error:  # as above
            failures.append(error)
        finally:
            if running:  # to cancel nothing takes 30 µs
                group.cancel_scope.cancel()
    if failures:
        raise failures[0]


@asynccontextmanager
async def background_task(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs `work` in the background of the body, and cancels it at its end; exceptions are raised as they are."""
    async with background_tasks() as start:
        start(lambda _: work(), None)
        yield


async def take(limiter: anyio.CapacityLimiter) -> bool:
    """Acquires at once where a place is free; `acquire` would let every other task run first.

    Returns whether it had to wait.
    """
    try:
        limiter.acquire_nowait()
    except anyio.WouldBlock:
        await limiter.acquire()
        return True
    return False


async def in_order(
    dependencies: Mapping[str, set[str]], work: Callable[[str], Awaitable[None]], schedule: Schedule
) -> None:
    """Does the work of every node once, after the work of all its dependencies.

    The first exception ends the others and is raised as it is, not in an exception group.
    """
    sorter = TopologicalSorter(dependencies)
    sorter.prepare()
    send, receive = anyio.create_memory_object_stream[str](len(dependencies))

    async def run(node: str) -> None:
        await work(node)
        send.send_nowait(node)

    width = 1 if schedule == "sequential" else len(dependencies)
    waiting: deque[str] = deque()
    running = 0
    with send, receive:
        async with background_tasks() as start:
            while sorter.is_active():
                if schedule != "levels" or not running:
                    waiting.extend(sorter.get_ready())
                if not running and (width == 1 or len(waiting) == 1):  # alone: no task of its own is needed
                    node = waiting.popleft()
                    await work(node)
                    sorter.done(node)
                    continue
                while waiting and running < width:
                    start(run, waiting.popleft())
                    running += 1
                sorter.done(await receive.receive())
                running -= 1
