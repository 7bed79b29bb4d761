"""What the commands share: exit codes, output that may be closed or full."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from rewoo_bench.errors import RewooBenchError
from rewoo_bench.system.output import echo

DONE, FAILED, WRONG, INCOMPLETE, BROKEN, INTERRUPTED = 0, 1, 2, 3, 70, 130
# FAILED: of a gate, of an external agent on every question, or of a run in which no model call was metered.
# BROKEN: EX_SOFTWARE of sysexits.h


def warn_of_unfinished(*runs: str | Path) -> None:
    """Prints a line on standard error for each run that isn't done, whose figures are of a part of it."""
    from rewoo_bench.runs.comparability import unfinished  # `--help` reads no run
    from rewoo_bench.runs.folder import named_manifests

    for line in unfinished(named_manifests(*runs)):
        echo(f"WARNING: {line}", err=True)


# Standard output and standard error that may be closed or full: `rewoo-bench … | head`, `> /dev/full`.
#
#     with guarded_output():
#         ...     # a closed pipe is silent, and the command keeps its own exit code; a full disk raises OutputFailed
#
# Without it a closed pipe would end a command in the middle, with exit code 1, which means that a gate failed.


_CLOSED = (errno.EPIPE, errno.ESHUTDOWN)


class OutputFailed(RewooBenchError):
    """Standard output can't be written, for example because the disk is full."""


class GuardedStream:
    """A text stream whose failed writes are silent where nobody reads any more, or where `is_silent`.

    After the first failure everything goes to the null device: the interpreter's own last flush would fail, too.
    """

    def __init__(self, stream: TextIO, *, is_silent: bool) -> None:
        self._stream = stream
        self._is_silent = is_silent
        self._failure: OutputFailed | None = None  # raised at every use: click ignores errors of its first, empty write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._guarded(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._guarded(self._stream.flush)

    def _guarded(self, call: Callable[..., object], *arguments: str) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            call(*arguments)
        except OSError as error:
            with suppress(OSError, ValueError):  # not every stream has a file descriptor
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            if not self._is_silent and error.errno not in _CLOSED:
                self._failure = OutputFailed(f"can't write to standard output: {error.strerror or error}")
                raise self._failure from None


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guards `sys.stdout` and `sys.stderr`. Inside, `OutputFailed` is raised for standard output alone."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None:  # as where the shell has closed it
        sys.stdout = GuardedStream(sys.stdout, is_silent=False)
    if sys.stderr is not None:
        sys.stderr = GuardedStream(sys.stderr, is_silent=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
