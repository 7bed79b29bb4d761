"""The journal's thread: all rows, in order, once; news when they are written; failures to whom they concern."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from rewoo_bench.writer import Row, Writer, open_writer

pytestmark = pytest.mark.anyio


class Disk:
    """What was written, batch by batch; a batch waits until it is `free`."""

    def __init__(self) -> None:
        self.batches: list[list[Row]] = []
        self.started = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def commit(self, rows: list[Row]) -> None:
        self.started.set()
        assert self.free.wait(10)
        self.batches.append(rows)

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]


async def write(writer: Writer, number: int, then: Callable[[], None] = lambda: None) -> None:
    writer.add((number,))
    await writer.written()
    then()


async def wait_for(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, 10)


async def test_every_row_is_written_once_and_in_its_order() -> None:
    disk = Disk()
    async with open_writer(disk.commit) as writer, anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(write, writer, number)
    assert disk.rows == [(number,) for number in range(300)]
    assert len(disk.batches) < 30  # those of one turn of the event loop together


async def test_what_comes_during_a_write_makes_the_next_one() -> None:
    disk = Disk()
    disk.free.clear()
    async with open_writer(disk.commit) as writer, anyio.create_task_group() as group:
        group.start_soon(write, writer, 0)
        await wait_for(disk.started)
        for number in range(1, 10):
            group.start_soon(write, writer, number)
        await anyio.wait_all_tasks_blocked()
        assert disk.batches == []
        disk.free.set()
    assert [len(batch) for batch in disk.batches if batch] == [1, 9]


async def test_a_row_that_nobody_waits_for_goes_with_the_next_or_at_the_end() -> None:
    disk = Disk()
    async with open_writer(disk.commit) as writer:
        writer.add((1,))
        await write(writer, 2)
        assert disk.rows == [(1,), (2,)]
        writer.add((3,))
    assert disk.rows == [(1,), (2,), (3,)]


async def test_who_is_cancelled_goes_on_when_it_is_written() -> None:
    disk = Disk()
    disk.free.clear()
    written: list[int] = []
    async with open_writer(disk.commit) as writer, anyio.create_task_group() as group:
        group.start_soon(write, writer, 1, lambda: written.append(len(disk.rows)))
        await wait_for(disk.started)
        group.cancel_scope.cancel()
        disk.free.set()
    assert written == [1]


async def test_a_failure_reaches_all_who_wait_and_ends_the_writing() -> None:
    calls = 0
    started, free = threading.Event(), threading.Event()

    def fail(rows: list[Row]) -> None:
        nonlocal calls
        calls += 1
        started.set()
        assert free.wait(10)
        raise OSError("no space left")

    seen: list[str] = []
    async with open_writer(fail) as writer, anyio.create_task_group() as group:
        group.start_soon(write, writer, 1, lambda: seen.append(str(writer.failure)))
        await wait_for(started)
        group.start_soon(write, writer, 2, lambda: seen.append(str(writer.failure)))
        await anyio.wait_all_tasks_blocked()
        free.set()
    assert seen == ["no space left"] * 2
    assert calls == 1


async def test_an_error_of_the_block_leaves_nothing_unwritten() -> None:
    disk = Disk()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is the subject
        async with open_writer(disk.commit) as writer:
            writer.add((1,))
            raise ZeroDivisionError
    assert disk.rows == [(1,)]
