"""The process that writes a journal: `python -I -S journal_child.py journal.sqlite`.

It reads batches of rows: eight bytes that say how long one is, and the rows as `marshal` packs
them, each with its kind before its values. For each batch that is committed it writes a `.`. At the
first failure of the file it writes `!` and what that was, and ends. It ends when its standard input does,
as it does when the parent dies in whatever way; whole batches that had been sent are written then.

Why a process: a thread takes the interpreter's lock from the event loop in every commit, and waits
for it in turn. It imports nothing of ours, so that it starts fast. `writer.py` starts it.
"""

from __future__ import annotations

import marshal
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import RawIOBase
from typing import Any, BinaryIO

_ROWS_A_STATEMENT = 64
_PAGES_BEFORE_CHECKPOINT = 4000  # 16 MB: a page that is written again and again is moved to its place once

# Texts come first, since calls name them.
_INSERTS = {
    "text": "INSERT OR IGNORE INTO texts",
    "call": "INSERT INTO calls",
    "question": "INSERT OR REPLACE INTO questions",
}


def write_all(path: str, batches: BinaryIO, news: RawIOBase) -> None:
    connection = sqlite3.connect(path, timeout=30, cached_statements=256)
    connection.execute("PRAGMA synchronous = NORMAL")  # safe against the process's death, not the machine's
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
    while len(size := batches.read(8)) == 8:
        packed = batches.read(int.from_bytes(size, "little"))
        if len(packed) < int.from_bytes(size, "little"):
            break  # the parent died while it sent
        write(connection, marshal.loads(packed))
        with suppress(BrokenPipeError):  # the parent died; what it has sent is written all the same
            news.write(b".")
    connection.close()


def write(connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Rows, each with its kind before its values, in one commit."""
    with connection:
        for kind, insert in _INSERTS.items():
            _insert(connection, insert, [values for name, *values in rows if name == kind])


def _insert(connection: sqlite3.Connection, insert: str, rows: Sequence[Sequence[Any]]) -> None:
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        part = rows[start : start + _ROWS_A_STATEMENT]
        places = f"({', '.join('?' * len(part[0]))})"
        values = [value for row in part for value in row]
        connection.execute(f"{insert} VALUES {', '.join([places] * len(part))}", values)


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they may reach both, and the parent decides what ends when
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    news = open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)  # noqa: SIM115 - as long as the process
    try:
        write_all(sys.argv[1], sys.stdin.buffer, news)
    except sqlite3.Error as error:  # any other is a fault of ours: it ends this with its traceback, and the run with it
        with suppress(BrokenPipeError):
            news.write(f"!{error}".encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
