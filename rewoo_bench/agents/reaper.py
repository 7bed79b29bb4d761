"""A small process that outlives a killed run by a moment, to end the agents that the run had started.

It reads lines on its standard input: "+123" for a new process group, "-123" for one that has ended. When the run
ends, however it ends, the input is closed, and the groups that are left are killed. Only the standard library.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress


def reap(lines: Iterable[str]) -> None:
    """Kills the groups that are left at the end of `lines`."""
    groups: set[int] = set()
    for line in lines:
        sign, number = line[:1], int(line[1:])
        groups = groups | {number} if sign == "+" else groups - {number}
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    reap(sys.stdin)
