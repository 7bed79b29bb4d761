"""Keeps the garbage collector from what lives as long as the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """What is alive at the beginning isn't looked through by the garbage collector inside.

    The modules of a provider's library are some hundred megabytes of objects that stay; every full
    collection went through all of them, a tenth of a second in which nothing else happened. Where
    somebody has frozen the heap before, it is left as it is.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
