"""The journal's process: all rows, in order, once; news when they are written; failures to all they concern."""

from __future__ import annotations

import marshal
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from rewoo_bench import journal_child
from rewoo_bench.journal import open_journal
from rewoo_bench.writer import Writer, open_writer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """An empty journal."""
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        return journal.path


def rows_in(path: Path) -> list[str]:
    with sqlite3.connect(path) as database:
        return [text for (text,) in database.execute("SELECT rows FROM questions ORDER BY rowid")]


def process_of(writer: Writer) -> int:
    assert writer._transport is not None
    return writer._transport.get_pid()


async def write(writer: Writer, number: int, then: Callable[[], None] = lambda: None) -> None:
    writer.add(("question", str(number), False, str(number)))
    await writer.written()
    then()


async def test_every_row_is_written_once_and_in_its_order(path: Path) -> None:
    async with open_writer(path) as writer, anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(write, writer, number)
    assert rows_in(path) == [str(number) for number in range(300)]


async def test_what_was_waited_for_is_in_the_file(path: Path) -> None:
    found: list[list[str]] = []
    async with open_writer(path) as writer:
        for number in range(3):
            await write(writer, number, lambda: found.append(rows_in(path)))
    assert found == [["0"], ["0", "1"], ["0", "1", "2"]]


async def test_a_slow_disk_stops_only_those_who_wait_for_it(path: Path) -> None:
    written: list[int] = []
    async with open_writer(path) as writer, anyio.create_task_group() as group:
        os.kill(process_of(writer), signal.SIGSTOP)
        for number in range(20):
            group.start_soon(write, writer, number, lambda: written.append(1))
        await anyio.wait_all_tasks_blocked()
        await anyio.sleep(0.05)
        assert written == []
        os.kill(process_of(writer), signal.SIGCONT)
    assert len(written) == 20


async def test_a_batch_larger_than_a_pipe_is_written_whole(path: Path) -> None:
    text = "x" * 3_000_000
    async with open_writer(path) as writer:
        writer.add(("question", "1", False, text))
        await writer.written()
    assert rows_in(path) == [text]


async def test_a_row_that_nobody_waits_for_goes_with_the_next_or_at_the_end(path: Path) -> None:
    async with open_writer(path) as writer:
        writer.add(("question", "1", False, "1"))
        await write(writer, 2)
        assert rows_in(path) == ["1", "2"]
        writer.add(("question", "3", False, "3"))
    assert rows_in(path) == ["1", "2", "3"]


async def test_who_is_cancelled_goes_on_when_it_is_written(path: Path) -> None:
    found: list[list[str]] = []
    async with open_writer(path) as writer, anyio.create_task_group() as group:
        group.start_soon(write, writer, 1, lambda: found.append(rows_in(path)))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert found == [["1"]]


async def test_a_failure_reaches_all_who_wait_and_ends_the_writing(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE questions")
    seen: list[str | None] = []
    async with open_writer(path) as writer:
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(write, writer, number, lambda: seen.append(writer.failure))
        await write(writer, 21, lambda: seen.append(writer.failure))
    assert seen == ["no such table: questions"] * 21


async def test_a_process_that_was_killed_is_a_failure(path: Path) -> None:
    seen: list[str | None] = []
    async with open_writer(path) as writer:
        await write(writer, 1)
        os.kill(process_of(writer), signal.SIGKILL)
        await write(writer, 2, lambda: seen.append(writer.failure))
    assert seen == ["the process that writes it was ended"]
    assert rows_in(path) == ["1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_all_processes_of_a_terminal_leaves_the_end_to_the_parent(
    path: Path, number: signal.Signals
) -> None:
    async with open_writer(path) as writer:
        await write(writer, 1)
        os.kill(process_of(writer), number)
        await write(writer, 2)
    assert rows_in(path) == ["1", "2"]


async def test_an_error_of_the_block_leaves_nothing_unwritten(path: Path) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is the subject
        async with open_writer(path) as writer:
            writer.add(("question", "1", False, "1"))
            raise ZeroDivisionError
    assert rows_in(path) == ["1"]


@pytest.mark.parametrize("listens", [True, False])
async def test_whole_batches_of_a_parent_that_died_are_written_and_half_of_one_is_not(
    path: Path, listens: bool
) -> None:
    batches = [marshal.dumps([("question", str(number), False, str(number))]) for number in range(3)]
    sent = b"".join(len(batch).to_bytes(8, "little") + batch for batch in batches)
    child = [sys.executable, "-I", "-S", journal_child.__file__, str(path)]
    hears, tells = os.pipe()
    if not listens:
        os.close(hears)
    done = await anyio.run_process(child, input=sent[:-5], stdout=tells)
    os.close(tells)
    if listens:
        assert os.read(hears, 10) == b".."
        os.close(hears)
    assert done.stderr == b""
    assert rows_in(path) == ["0", "1"]
