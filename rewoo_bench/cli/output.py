"""Standard output and standard error that may be closed or full: `rewoo-bench … | head`, `> /dev/full`.

    with guarded_output():
        ...     # a closed pipe is silent, and the command keeps its own exit code; a full disk raises OutputFailed

Without it a closed pipe would end a command in the middle, with exit code 1, which means that a gate failed.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rewoo_bench.errors import RewooBenchError

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
        if self._failure is not None:
            raise self._failure
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fail(error)
            return len(text)

    def flush(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        with suppress(OSError, ValueError):  # not every stream has a file descriptor
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        if not self._is_silent and error.errno not in _CLOSED:
            self._failure = OutputFailed(f"can't write to standard output: {error.strerror or error}")
            raise self._failure


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guards `sys.stdout` and `sys.stderr`. Inside, `OutputFailed` is raised for standard output alone."""
    before = sys.stdout, sys.stderr
    _open_closed_ones()
    sys.stdout = GuardedStream(sys.stdout, is_silent=False)
    sys.stderr = GuardedStream(sys.stderr, is_silent=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_closed_ones() -> None:
    """Streams closed by the caller (`2>&-`) go to the null device; the next file would get their number otherwise."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
