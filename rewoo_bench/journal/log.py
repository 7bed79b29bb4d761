"""What a run appends to before anything else happens, and the process that takes it into the journal.

    log = JournalLog(folder / "journal.sqlite")
    log.append(b'["question", ...]\\t{...}\\t{...}\\n')    # it outlives this process now
    log.settle()                                          # all that was appended is in the journal
    log.close()

To append is to hand some kilobytes to the operating system: a question waits some microseconds for it,
where a commit takes the turns of two processes. Nothing of it stays in memory; if the process can't
keep up, `is_behind` says so.
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
_SECONDS_UNSEEN = 0.2  # to look whether a process lives takes as long as all else here


class JournalLog:
    """The log of a journal that is there. Settle and close it from a thread: they wait for the process.

    After a failure nothing is appended any more. `is_behind` says that much is still to be taken in.
    """

    def __init__(self, journal: Path) -> None:
        """Takes in what sessions that were killed have left.

        Raises `sqlite3.Error`, `OSError`, and `ValueError` where what they left is no log.
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
        """Returns when all that was appended is in the journal, or can't be taken in."""
        with self._exchange:
            answer = self._ask()
            if answer != b".":
                self._fail(self._last_words(answer))
                with suppress(sqlite3.Error, OSError):
                    absorb_all(self._journal)
        self.is_behind = False

    def close(self) -> None:
        """Ends the process once all is in the journal, and removes the log; after a failure that is kept."""
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
        while written < len(lines):  # as on a full disk, which says so at the next try
            written += os.write(self._piece, lines[written:])
        self._size += written
        if self._size >= _BYTES_A_PIECE:
            next_piece = _new_piece(self._journal, self._number + 1)
            os.close(self._piece)
            self._piece, self._number, self._size = next_piece, self._number + 1, 0
            self.is_behind = piece_of(self._journal, self._number - _PIECES_AHEAD).exists()

    def _look_after(self) -> None:
        """Sees that somebody takes in what is written. Raises `JournalError`; after a failure at every call."""
        if self._process.poll() is not None:
            with self._exchange:
                self._fail(self._last_words())
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

    def _last_words(self, first: bytes = b"") -> str:
        """Why the process has ended."""
        assert self._process.stdout is not None
        said = first + self._process.stdout.read()
        return said.lstrip(b".").removeprefix(b"!").decode() or "the process that writes it was ended"

    def _fail(self, why: str) -> None:
        self._failure = self._failure or why
        self._look_again = 0.0

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise JournalError(f"can't write {self._journal!r}: {self._failure}; what was finished before is in it")


def absorb_all(journal: Path | str) -> int:
    """Takes all that was logged into a journal; the number of the log's last piece."""
    connection = connect(str(journal))
    try:
        upgrade(connection)
        absorb(connection, str(journal))
        piece, _ = absorbed(connection)
        return piece
    finally:
        connection.close()


def upgrade(connection: sqlite3.Connection) -> None:
    """Gives the tables of an older version their columns of checksums, which are empty in its rows."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == _WITHOUT_CHECKSUMS:
        added = "".join(f"ALTER TABLE {table} ADD COLUMN crc INTEGER; " for table in _TABLES)
        connection.executescript(f"BEGIN IMMEDIATE; {added} PRAGMA user_version = {VERSION}; COMMIT;")


def _tidied(journal: str) -> int:
    """The number of the next piece. All others are in the journal then, and removed."""
    last = absorb_all(journal)
    for number in pieces(journal):
        _remove_taken(journal, number)
    return last + 1


def _remove_taken(journal: str, number: int) -> None:
    """Removes a piece that was taken in; says so where its last line was only half written."""
    piece = piece_of(journal, number)
    with suppress(FileNotFoundError):
        if not _ends_a_line(piece):
            said = "its last record was only half written; what that held is asked again"
            _log.warning("%s: %s", piece, said)
        piece.unlink()


def _ends_a_line(piece: Path) -> bool:
    with piece.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 1))
        return log.read(1) in (b"", b"\n")


def _new_piece(journal: str, number: int) -> int:
    return os.open(piece_of(journal, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
