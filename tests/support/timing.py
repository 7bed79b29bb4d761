"""Bounds on work, which other processes on a loaded machine hardly change."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def processor_time(most: float) -> Iterator[None]:
    """Fails where the block takes this process more than `most` seconds: minutes instead of milliseconds."""
    start = time.process_time()
    yield
    assert time.process_time() - start < most


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Counts the calls of Python functions in this thread: the first and only number of the list."""
    count = [0]

    def add(frame: FrameType, event: str, argument: Any) -> None:
        count[0] += event == "call"

    sys.setprofile(add)
    try:
        yield count
    finally:
        sys.setprofile(None)
