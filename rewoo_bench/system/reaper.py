"""A small process that outlives a killed run by a moment, to end the programs that the run had started.

It reads lines on its standard input: "+123 MARK" for a new process group, "-123 MARK" for one that has ended. When
the run ends, however it ends, the input is closed, and the processes that are left are killed. Only the standard
library, since it runs as a script of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MARK = "REWOO_BENCH_PROCESS"
"""A variable of such a program's processes. Its value, a mark, finds those that have left their process group."""
_PROCESSES = Path("/proc")
_ROUNDS = 10  # a process may start another one while it is looked for


def reap(lines: Iterable[str]) -> None:
    """Kills the processes that are left at the end of `lines`."""
    groups: dict[str, int] = {}
    for line in lines:
        number, _, mark = line[1:].strip().partition(" ")
        groups.pop(mark, None)
        if line.startswith("+"):
            groups[mark] = int(number)
    for group in groups.values():
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(group, signal.SIGKILL)
            else:  # Windows, where this ends the process
                os.kill(group, signal.SIGTERM)
    for again_after_s in (0.0, 0.2, 0.5) if groups else ():  # one that was just being started had no environment yet
        time.sleep(again_after_s)
        for mark in groups:
            kill_marked(mark)


def kill_marked(mark: str) -> None:
    """Kills the processes with this mark in their environment; only on Linux, where /proc shows it."""
    for _ in range(_ROUNDS):
        found = list(_marked(mark.encode()))
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not found:
            return


def _marked(mark: bytes) -> Iterator[int]:
    for folder in _PROCESSES.iterdir() if mark and _PROCESSES.is_dir() else ():
        if folder.name.isdecimal():
            with suppress(OSError):  # it has ended, or belongs to another user
                if mark in (folder / "environ").read_bytes():
                    yield int(folder.name)


if __name__ == "__main__":
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    reap(sys.stdin)
