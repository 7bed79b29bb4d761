"""The append-only log of a run, and the process that writes its records into the journal.

    log = JournalLog(folder / "journal.sqlite")
    log.append(b'["question", ...]\\t{...}\\t{...}\\n')    # from here on it survives this process
    log.settle()                                          # all appended records are in the journal
    log.close()

An append hands some kilobytes to the operating system and takes some microseconds; a commit would have to wait
for two processes. Nothing of it stays in memory. `is_behind`: the writer process can't keep up.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from rewoo_bench.errors import JournalError
from rewoo_bench.journal import writer_process
from rewoo_bench.journal.writer_process import absorb, absorbed, connect, piece_of, pieces

VERSION = 3
_WITHOUT_CHECKSUMS = 2
_TABLES = ("texts", "calls", "questions", "absorbed")
_log = logging.getLogger(__name__)

_BYTES_A_PIECE = 1 << 20
_PIECES_AHEAD = 16
_SECONDS_UNSEEN = 0.2  # between checks of the process, each of which takes as long as everything else here


class JournalLog:
    """The log of an existing journal. Call `settle` and `close` in a thread: they wait for the process.

    After a failure nothing is appended any more. `is_behind`: many records are not in the journal yet.
    """

    def __init__(self, journal: Path) -> None:
        """First writes the logs of killed sessions into the journal.

        Raises `sqlite3.Error`, `OSError`, and `ValueError` for a damaged log.
        """
        self._journal = str(journal.absolute())
        self.is_behind = False
        self._failure: str | None = None
        self._exchange = threading.Lock()
        self._look_again = 0.0
        self._number = _tidied(self._journal)
        self._piece, self._size = _new_piece(self._journal, self._number), 0
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", writer_process.__file__, self._journal],
            bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def append(self, lines: bytes) -> None:
        """Writes whole lines. Raises `JournalError`."""
        if time.monotonic() > self._look_again:
            self._look_after()
        try:
            self._write(lines)
        except OSError as error:
            self._fail(error.strerror or str(error))
            self._raise_failure()

    def settle(self) -> None:
        """Returns when all appended records are in the journal, or can't be written."""
        with self._exchange:
            answer = self._ask()
            if answer != b".":
                self._fail(self._end_reason(answer))
                with suppress(sqlite3.Error, OSError):
                    absorb_all(self._journal)
        self.is_behind = False

    def close(self) -> None:
        """Ends the process once all is in the journal, and removes the log; after a failure it stays."""
        self.settle()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()
        os.close(self._piece)
        if self._failure is None:
            piece_of(self._journal, self._number).unlink(missing_ok=True)

    def _write(self, lines: bytes) -> None:
        written = os.write(self._piece, lines)
        while written < len(lines):  # as on a full disk, where the next try fails
            written += os.write(self._piece, lines[written:])
        self._size += written
        if self._size >= _BYTES_A_PIECE:
            next_piece = _new_piece(self._journal, self._number + 1)
            os.close(self._piece)
            self._piece, self._number, self._size = next_piece, self._number + 1, 0
            self.is_behind = piece_of(self._journal, self._number - _PIECES_AHEAD).exists()

    def _look_after(self) -> None:
        """Checks that the process is alive. Raises `JournalError`; after a failure at every call."""
        if self._process.poll() is not None:
            with self._exchange:
                self._fail(self._end_reason())
        self._raise_failure()
        self._look_again = time.monotonic() + _SECONDS_UNSEEN

    def _ask(self) -> bytes:
        """Waits for the process; empty where it has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(b"?")
            return stdout.read(1)
        except OSError:
            return b""

    def _end_reason(self, first: bytes = b"") -> str:
        """The reason why the process has ended."""
        assert self._process.stdout is not None
        output = first + self._process.stdout.read()
        return output.lstrip(b".").removeprefix(b"!").decode() or "the process that writes it was ended"

    def _fail(self, why: str) -> None:
        self._failure = self._failure or why
        self._look_again = 0.0

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise JournalError(f"can't write {self._journal!r}: {self._failure}; what was finished before is in it")


def absorb_all(journal: Path | str) -> int:
    """Writes all logged records into a journal; returns the number of the log's last piece."""
    connection = connect(str(journal))
    try:
        upgrade(connection)
        absorb(connection, str(journal))
        piece, _ = absorbed(connection)
        return piece
    finally:
        connection.close()


def upgrade(connection: sqlite3.Connection) -> None:
    """Adds columns of checksums to the tables of an older version; they are empty in its rows."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == _WITHOUT_CHECKSUMS:
        added = "".join(f"ALTER TABLE {table} ADD COLUMN crc INTEGER; " for table in _TABLES)
        connection.executescript(f"BEGIN IMMEDIATE; {added} PRAGMA user_version = {VERSION}; COMMIT;")


def _tidied(journal: str) -> int:
    """The number of the next piece. All others are written into the journal and removed."""
    last = absorb_all(journal)
    for number in pieces(journal):
        _remove_taken(journal, number)
    return last + 1


def _remove_taken(journal: str, number: int) -> None:
    """Removes a piece that is in the journal; warns where its last line was only half written."""
    piece = piece_of(journal, number)
    with suppress(FileNotFoundError):
        if not _ends_a_line(piece):
            _log.warning("%s: its last record was only half written; that call is made again", piece)
        piece.unlink()


def _ends_a_line(piece: Path) -> bool:
    with piece.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 1))
        return log.read(1) in (b"", b"\n")


def _new_piece(journal: str, number: int) -> int:
    return os.open(piece_of(journal, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
