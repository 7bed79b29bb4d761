"""The download cache: model files, their stamps, rows of data sets."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$REWOO_BENCH_CACHE`, else `$XDG_CACHE_HOME/rewoo_bench`, else `~/.cache/rewoo_bench`."""
    if own := os.environ.get("REWOO_BENCH_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "rewoo_bench"
