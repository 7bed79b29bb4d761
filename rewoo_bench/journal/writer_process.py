"""The process that moves a run's log into its journal: `python -I -S writer_process.py journal.sqlite`.

The log is next to the journal in numbered pieces, `journal.sqlite-log.7`. Each line is a record, written by
`store.py`: the CRC-32 of the rest in hexadecimal digits, a tab, the values as a JSON list with the kind first,
and then, after a tab each, the values that are JSON already. Lines of older versions begin with the list.
A row of the journal has a checksum of its values, too. A piece gets no more lines once the next one exists. The
position up to which the log was moved is in the journal and changes in the same commit, so that every record is
moved exactly once, even if a process is killed at any time or several processes move records.

Every byte of the standard input is answered by a `.` when all records logged before it are in the journal; at
the first failure of the file by a `!` and the reason. The process ends when its input ends, also when the run is
killed; all logged records are in the journal then.

It imports nothing of ours, so that it starts fast. `log.py` starts it.
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
from zlib import crc32

_PAUSE_S = 0.1
_PIECES_A_COMMIT = 4  # some megabytes
_ROWS_A_STATEMENT = 64
_PAGES_BEFORE_CHECKPOINT = 4000  # 16 MB: a page that is written again and again is moved to its place once

# Texts come first, since calls name them. The checksum is the last column of each.
_INSERTS = {
    "text": "INSERT OR IGNORE INTO texts",
    "call": "INSERT INTO calls",
    "question": "INSERT OR REPLACE INTO questions",
}


class DamagedRecord(ValueError):
    """A record of the log, or the position in it, has a wrong checksum."""


class _Batch(NamedTuple):
    """Lines of the log from one position to another; a position is the number of a piece and an offset in bytes."""

    since: tuple[int, int]
    lines: list[bytes]
    until: tuple[int, int]


def connect(journal: str) -> sqlite3.Connection:
    connection = sqlite3.connect(journal, timeout=30, cached_statements=256, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")  # safe against the process's death, not the machine's
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
    return connection


def checksum(values: Sequence[object]) -> int:
    """CRC-32 of a row's values, as text where they aren't bytes."""
    crc = 0
    for value in values:
        crc = crc32(value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass"), crc)
    return crc


def is_sound(row: Sequence[object]) -> bool:
    """Whether a row's last value is the checksum of the others; older versions wrote none."""
    return row[-1] is None or row[-1] == checksum(row[:-1])


def as_line(record: bytes) -> bytes:
    """A record as a line of the log."""
    return b"%08x\t%b\n" % (crc32(record), record)


def piece_of(journal: str, number: int) -> Path:
    return Path(f"{journal}-log.{number}")


def pieces(journal: str) -> list[int]:
    """The numbers of the existing pieces."""
    before, there = Path(f"{journal}-log."), Path(journal).parent.iterdir()
    ends = [file.name.removeprefix(before.name) for file in there if file.name.startswith(before.name)]
    return sorted(int(end) for end in ends if end.isdecimal())


def absorb(connection: sqlite3.Connection, journal: str) -> None:
    """Moves all records of the log into the journal. Finished pieces are removed, but for the last."""
    while batch := _next_batch(journal, absorbed(connection)):
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if absorbed(connection) == batch.since:  # else another process was faster
                _write(connection, batch.lines)
                until = (*batch.until, checksum(batch.until))
                connection.execute("UPDATE absorbed SET piece = ?, offset = ?, crc = ?", until)
    piece, _ = absorbed(connection)
    for number in pieces(journal):
        if number < piece:
            piece_of(journal, number).unlink(missing_ok=True)


def absorbed(connection: sqlite3.Connection) -> tuple[int, int]:
    """The position up to which the log is in the journal: a piece and an offset. Raises `DamagedRecord`."""
    row = connection.execute("SELECT piece, offset, crc FROM absorbed").fetchone()
    if row is None or not is_sound(row):
        raise DamagedRecord("the position in its log is damaged")
    return row[0], row[1]


def _next_batch(journal: str, since: tuple[int, int]) -> _Batch | None:
    """The lines of the next commit; None where there is neither a new line nor a new piece."""
    lines: list[bytes] = []
    piece, offset = since
    # All but the last of these were finished before they were listed.
    for number in [number for number in pieces(journal) if number >= piece][:_PIECES_A_COMMIT]:
        if number > piece:
            piece, offset = number, 0
        data = _lines(piece_of(journal, piece), offset)
        lines += data.split(b"\n")[:-1]
        offset += len(data)
    return _Batch(since, lines, (piece, offset)) if (piece, offset) != since else None


def _lines(piece: Path, offset: int) -> bytes:
    """Whole lines of a piece. The rest is being written, or its writer was killed, or the disk was full."""
    try:
        with piece.open("rb") as log:
            log.seek(offset)
            data = log.read()
    except FileNotFoundError:  # another process was faster
        return b""
    return data[: data.rfind(b"\n") + 1]


def _write(connection: sqlite3.Connection, lines: Sequence[bytes]) -> None:
    rows: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in _INSERTS}
    for line in lines:
        kind, *values = _record(_checked(line).decode())
        rows[kind].append((*values, checksum(values)))
    for kind, insert in _INSERTS.items():
        _insert(connection, insert, rows[kind])


def _checked(line: bytes) -> bytes:
    """A line without its checksum. Raises `DamagedRecord` where that is wrong."""
    if line.startswith(b"["):  # of an older version
        return line
    written, _, record = line.partition(b"\t")
    if written != b"%08x" % crc32(record):
        raise DamagedRecord(f"a record is damaged: {record[:60].decode(errors='replace')} …")
    return record


def _record(line: str) -> list[Any]:
    head, *texts = line.split("\t")
    record = json.loads(head) + texts
    if record[0] == "call":
        _, task, place, kind, name, request, nth, status, ids, tokens, cost, answer = record
        prompt = pack(f"{len(ids)}q", *ids)
        return ["call", task, place, kind, name, bytes.fromhex(request), nth, status, prompt, answer, tokens, cost]
    if record[0] == "question":
        _, task, failed, rows, trace = record
        return ["question", task, int(failed), rows, trace]
    return list(record)


def _insert(connection: sqlite3.Connection, insert: str, rows: Sequence[Sequence[Any]]) -> None:
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        part = rows[start : start + _ROWS_A_STATEMENT]
        places = f"({', '.join('?' * len(part[0]))})"
        values = [value for row in part for value in row]
        connection.execute(f"{insert} VALUES {', '.join([places] * len(part))}", values)


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """Passes on each request, and an empty one at the end."""
    while request := os.read(sys.stdin.fileno(), 1):
        requests.put(request)
    requests.put(b"")


def _follow(journal: str) -> None:
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    connection = connect(journal)
    request: bytes | None = None
    while request != b"":
        try:
            request = requests.get(timeout=_PAUSE_S)
        except queue.Empty:
            request = None
        absorb(connection, journal)
        if request:
            _send(b".")
    connection.close()


def _send(answer: bytes) -> None:
    with suppress(BrokenPipeError):  # the run was killed; its records are moved all the same
        os.write(sys.stdout.fileno(), answer)


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they may reach both processes, and the run decides
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        _follow(sys.argv[1])
    except (
        sqlite3.Error,
        OSError,
        DamagedRecord,
    ) as error:  # any other is a bug: the process ends with its traceback
        _send(b"!" + str(error).encode())
        sys.exit(1)


if __name__ == "__main__":
    main()
