"""The journal's log: a line outlives who wrote it, and is taken in once, by whom and whenever that is."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from rewoo_bench.errors import JournalError
from rewoo_bench.journal import writer_process
from rewoo_bench.journal.log import JournalLog, absorb_all
from rewoo_bench.journal.store import open_journal
from rewoo_bench.journal.writer_process import piece_of, pieces


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty journal."""

    async def make() -> None:
        async with open_journal(tmp_path / "journal.sqlite"):
            pass

    anyio.run(make)
    return tmp_path / "journal.sqlite"


@contextmanager
def logging(path: Path) -> Iterator[JournalLog]:
    with closing(JournalLog(path)) as log:
        yield log


def question(number: int, rows: str = "null") -> bytes:
    return f'["question", "{number}", false]\t{rows}\tnull\n'.encode()


def tasks_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [task for (task,) in database.execute("SELECT task FROM questions ORDER BY rowid")]


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def process_of(log: JournalLog) -> int:
    return log._process.pid


def left(path: Path, *contents: bytes) -> None:
    """Pieces of the log, as a run leaves them that was killed with its process."""
    last = absorb_all(path)
    for number, content in enumerate(contents, last + 1):
        piece_of(str(path), number).write_bytes(content)


def test_every_line_is_taken_in_once_and_in_its_order(path: Path) -> None:
    with logging(path) as log:
        for number in range(300):
            log.append(question(number))
    assert tasks_in(path) == numbers(300)
    assert pieces(str(path)) == []


def test_what_was_appended_is_in_the_journal_once_it_is_settled(path: Path) -> None:
    with logging(path) as log:
        for number in range(3):
            log.append(question(number))
            log.settle()
            assert tasks_in(path) == numbers(number + 1)


def test_nobody_has_to_ask_for_it(path: Path) -> None:
    with logging(path) as log:
        log.append(question(0))
        deadline = time.monotonic() + 30
        while not tasks_in(path):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_slow_process_stops_only_who_waits_for_it(path: Path) -> None:
    with logging(path) as log:
        os.kill(process_of(log), signal.SIGSTOP)
        for number in range(20):
            log.append(question(number))
        waits = threading.Thread(target=log.settle)
        waits.start()
        log.append(question(20))
        waits.join(0.1)
        assert waits.is_alive()
        os.kill(process_of(log), signal.SIGCONT)
        waits.join()
        log.settle()
        assert tasks_in(path) == numbers(21)


def test_whoever_is_far_ahead_of_the_process_is_told(path: Path) -> None:
    with logging(path) as log:
        os.kill(process_of(log), signal.SIGSTOP)
        for number in range(15):
            log.append(question(number, '"' + "x" * (1 << 20) + '"'))
        assert not log.is_behind
        for number in range(15, 25):
            log.append(question(number, '"' + "x" * (1 << 20) + '"'))
        assert log.is_behind
        os.kill(process_of(log), signal.SIGCONT)
        log.settle()
        assert not log.is_behind
        assert tasks_in(path) == numbers(25)


def test_pieces_are_removed_as_they_are_taken_in(path: Path) -> None:
    with logging(path) as log:
        for number in range(10):
            log.append(question(number, '"' + "x" * (1 << 20) + '"'))
        log.settle()
        assert len(pieces(str(path))) == 1
    assert tasks_in(path) == numbers(10)


def test_a_failure_of_the_file_reaches_who_appends_and_keeps_the_log(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE questions RENAME TO gone")
    with logging(path) as log:
        log.append(question(0))
        log.settle()
        for _ in range(2):
            with pytest.raises(JournalError, match=r"can't write '.*journal\.sqlite': no such table: questions"):
                log.append(question(1))
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE gone RENAME TO questions")
    with logging(path):
        assert tasks_in(path) == ["0"]


def test_a_process_that_was_killed_is_a_failure_and_nothing_is_lost(path: Path) -> None:
    with logging(path) as log:
        os.kill(process_of(log), signal.SIGSTOP)
        log.append(question(0))
        os.kill(process_of(log), signal.SIGKILL)
        log.settle()
        assert tasks_in(path) == ["0"]
        with pytest.raises(JournalError, match="the process that writes it was ended"):
            log.append(question(1))


def test_a_process_that_was_killed_is_noticed_while_lines_are_appended(path: Path) -> None:
    with logging(path) as log:
        os.kill(process_of(log), signal.SIGKILL)
        deadline = time.monotonic() + 30
        with pytest.raises(JournalError, match="the process that writes it was ended"):  # noqa: PT012 - one of them
            while time.monotonic() < deadline:
                log.append(question(0))
                time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_of_a_terminal_leaves_the_end_to_the_run(path: Path, number: signal.Signals) -> None:
    with logging(path) as log:
        log.append(question(0))
        log.settle()
        os.kill(process_of(log), number)
        log.append(question(1))
    assert tasks_in(path) == ["0", "1"]


def test_what_a_killed_run_has_left_is_taken_in_but_for_half_a_line(path: Path) -> None:
    left(path, question(0) + question(1), question(2) + question(3)[:-1])
    with logging(path) as log:
        assert tasks_in(path) == ["0", "1", "2"]
        log.append(question(4))
    assert tasks_in(path) == ["0", "1", "2", "4"]
    assert pieces(str(path)) == []


def test_a_piece_of_which_some_was_taken_in_goes_on_where_it_stood(path: Path) -> None:
    left(path, question(0) + question(1)[:10])
    absorb_all(path)
    (number,) = pieces(str(path))
    with piece_of(str(path), number).open("ab") as piece:
        piece.write(question(1)[10:])
    absorb_all(path)
    absorb_all(path)
    assert tasks_in(path) == ["0", "1"]


def test_lines_are_taken_in_once_whoever_does_it(path: Path) -> None:
    call = '["call", "{}", "E1", "model", "agent", "00", 0, "ok", [], 1, null]\tnull\n'
    left(path, *(b"".join(call.format(10 * piece + line).encode() for line in range(10)) for piece in range(40)))
    takers = [threading.Thread(target=absorb_all, args=(path,)) for _ in range(4)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    with closing(sqlite3.connect(path)) as database:
        found = [int(task) for (task,) in database.execute("SELECT task FROM calls ORDER BY rowid")]
    assert found == list(range(400))


@pytest.mark.parametrize("listens", [True, False])
def test_a_run_that_was_killed_leaves_a_process_that_finishes(path: Path, listens: bool) -> None:
    left(path, question(0), question(1) + question(2)[:5])
    child = [sys.executable, "-I", "-S", writer_process.__file__, str(path)]
    hears, tells = os.pipe()
    if not listens:
        os.close(hears)
    done = subprocess.run(child, input=b"?", stdout=tells, stderr=subprocess.PIPE, check=True, timeout=60)
    os.close(tells)
    if listens:
        assert os.read(hears, 10) == b"."
        os.close(hears)
    assert done.stderr == b""
    assert tasks_in(path) == ["0", "1"]
