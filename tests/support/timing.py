"""Bounds on the time of the processor, which other processes on a loaded machine hardly change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processor_time(most: float) -> Iterator[None]:
    """Fails where the block takes this process more than `most` seconds: minutes instead of milliseconds."""
    start = time.process_time()
    yield
    assert time.process_time() - start < most
