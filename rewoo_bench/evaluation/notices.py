"""Warnings during a run: log records of the package, shown with the progress.

with notices_to(progress.say):
    ...     # logging.getLogger("rewoo_bench.models.hosted.client").warning("…") is one line on standard error
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rewoo_bench.escaping import terminal
from rewoo_bench.redaction import redact


class _Handler(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(redact(record.getMessage()))


@contextmanager
def notices_to(say: Callable[[str], None]) -> Iterator[None]:
    """Passes warnings of the package's loggers to `say`, a line each."""
    logger, handler = logging.getLogger("rewoo_bench"), _Handler(say)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def say(notice: str) -> None:
    """Prints a line on standard error, before there is a progress bar."""
    print(terminal(f"rewoo-bench: {notice}"), file=sys.stderr)
