"""The process that takes a run's log into its journal: `python -I -S journal_child.py journal.sqlite`.

The log lies beside the journal in numbered pieces, `journal.sqlite-log.7`. A line of it is a record, which
`journal.py` writes: its values as a JSON list, the kind first, and after a tab each what is kept as the JSON
that it is. A piece gets no more lines once there is a next one. How far the log was taken in stands in the
journal and changes in the same commit, so that every record is taken in once, whoever is killed when, and
whoever else takes them in too.

Every byte of the standard input is answered by a `.` when all that had been logged before it is in the
journal; at the first failure of the file comes a `!` and what that was. It ends when its input does, as it
does when the run dies in whatever way; all that was logged is in the journal then.

It imports nothing of ours, so that it starts fast. `journal_log.py` starts it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

_PAUSE_S = 0.1
_PIECES_A_COMMIT = 4  # some megabytes
_ROWS_A_STATEMENT = 64
_PAGES_BEFORE_CHECKPOINT = 4000  # 16 MB: a page that is written again and again is moved to its place once

# Texts come first, since calls name them.
_INSERTS = {
    "text": "INSERT OR IGNORE INTO texts",
    "call": "INSERT INTO calls",
    "question": "INSERT OR REPLACE INTO questions",
}


class _News(NamedTuple):
    """What the log has beyond a place, and the place behind that: the number of a piece, and bytes of it."""

    since: tuple[int, int]
    lines: list[bytes]
    until: tuple[int, int]


def connect(journal: str) -> sqlite3.Connection:
    connection = sqlite3.connect(journal, timeout=30, cached_statements=256, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")  # safe against the process's death, not the machine's
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
    return connection


def piece_of(journal: str, number: int) -> Path:
    return Path(f"{journal}-log.{number}")


def pieces(journal: str) -> list[int]:
    """The numbers of the pieces that are there."""
    before, there = Path(f"{journal}-log."), Path(journal).parent.iterdir()
    ends = [file.name.removeprefix(before.name) for file in there if file.name.startswith(before.name)]
    return sorted(int(end) for end in ends if end.isdecimal())


def absorb(connection: sqlite3.Connection, journal: str) -> None:
    """Takes in all that is in the log. Pieces that are taken in whole are removed, but for the last."""
    while news := _news(journal, absorbed(connection)):
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if absorbed(connection) == news.since:  # else another process was faster
                _write(connection, news.lines)
                connection.execute("UPDATE absorbed SET piece = ?, offset = ?", news.until)
    piece, _ = absorbed(connection)
    for number in pieces(journal):
        if number < piece:
            piece_of(journal, number).unlink(missing_ok=True)


def absorbed(connection: sqlite3.Connection) -> tuple[int, int]:
    """How far the log was taken in: the number of a piece, and bytes of it."""
    piece, offset = connection.execute("SELECT piece, offset FROM absorbed").fetchone()
    return piece, offset


def _news(journal: str, since: tuple[int, int]) -> _News | None:
    """The next lines, as many as go into one commit; None where there is neither a line nor a piece."""
    lines: list[bytes] = []
    piece, offset = since
    # All but the last of these were finished before they were listed.
    for number in [number for number in pieces(journal) if number >= piece][:_PIECES_A_COMMIT]:
        if number > piece:
            piece, offset = number, 0
        found = _lines(piece_of(journal, piece), offset)
        lines += found.split(b"\n")[:-1]
        offset += len(found)
    return _News(since, lines, (piece, offset)) if (piece, offset) != since else None


def _lines(piece: Path, offset: int) -> bytes:
    """Whole lines of a piece. The rest is being written, or its writer was killed, or the disk was full."""
    try:
        with piece.open("rb") as log:
            log.seek(offset)
            found = log.read()
    except FileNotFoundError:  # another process was faster
        return b""
    return found[: found.rfind(b"\n") + 1]


def _write(connection: sqlite3.Connection, lines: Sequence[bytes]) -> None:
    rows: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in _INSERTS}
    for line in lines:
        kind, *values = _record(line.decode())
        rows[kind].append(tuple(values))
    for kind, insert in _INSERTS.items():
        _insert(connection, insert, rows[kind])


def _record(line: str) -> list[Any]:
    head, *texts = line.split("\t")
    record = json.loads(head) + texts
    if record[0] == "call":
        _, task, place, kind, name, request, nth, status, ids, tokens, cost, answer = record
        prompt = pack(f"{len(ids)}q", *ids)
        return ["call", task, place, kind, name, bytes.fromhex(request), nth, status, prompt, answer, tokens, cost]
    return list(record)


def _insert(connection: sqlite3.Connection, insert: str, rows: Sequence[Sequence[Any]]) -> None:
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        part = rows[start : start + _ROWS_A_STATEMENT]
        places = f"({', '.join('?' * len(part[0]))})"
        values = [value for row in part for value in row]
        connection.execute(f"{insert} VALUES {', '.join([places] * len(part))}", values)


def _listen(asked: queue.SimpleQueue[bytes]) -> None:
    """Passes on what is asked, and an empty one at the end."""
    while heard := os.read(sys.stdin.fileno(), 1):
        asked.put(heard)
    asked.put(b"")


def _follow(journal: str) -> None:
    asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    connection = connect(journal)
    heard: bytes | None = None
    while heard != b"":
        try:
            heard = asked.get(timeout=_PAUSE_S)
        except queue.Empty:
            heard = None
        absorb(connection, journal)
        if heard:
            _say(b".")
    connection.close()


def _say(news: bytes) -> None:
    with suppress(BrokenPipeError):  # the run was killed; what it has logged is taken in all the same
        os.write(sys.stdout.fileno(), news)


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they may reach both, and the run decides what ends when
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        _follow(sys.argv[1])
    except (sqlite3.Error, OSError) as error:  # any other is a fault of ours: it ends this with its traceback
        _say(b"!" + str(error).encode())
        sys.exit(1)


if __name__ == "__main__":
    main()
