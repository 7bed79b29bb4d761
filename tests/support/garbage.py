"""Collecting what tests of agents leave behind."""

from __future__ import annotations

import gc
import warnings


def collect_without_warnings() -> None:
    """Collects garbage. A client of an agent's own that was never closed warns of that when it is collected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
