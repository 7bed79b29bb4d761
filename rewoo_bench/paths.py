"""Folders: those that ship with the package (`architectures` and `datasets`), and the download cache.

In an installed wheel the bundled ones are in `rewoo_bench/_bundled/`, in a clone next to the package.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).parent


def bundled_folder(kind: Literal["architectures", "datasets"]) -> Path:
    """The folder of that kind; it exists in a wheel, a clone and an editable install."""
    installed = PACKAGE / "_bundled" / kind
    return installed if installed.is_dir() else PACKAGE.parent / kind


def agents_folder() -> Path:
    """The folder of the bundled agents of other frameworks, one folder each."""
    return bundled_folder("architectures") / "agents"


def bundled_names(kind: Literal["architectures", "datasets"], description: str) -> list[str]:
    """Names of the bundled folders that hold the file `description`, sorted."""
    return sorted(path.parent.name for path in bundled_folder(kind).glob(f"*/{description}"))


def cache_dir() -> Path:
    """The download cache: `$REWOO_BENCH_CACHE`, else the folder that this platform has for caches.

    On Linux that is `$XDG_CACHE_HOME/rewoo_bench` or `~/.cache/rewoo_bench`. Earlier versions used these on every
    platform, and where there is one it is used.
    """
    from platformdirs import user_cache_path  # some milliseconds, and most commands need no cache

    if own := os.environ.get("REWOO_BENCH_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    earlier = (Path(shared) if shared else Path.home() / ".cache") / "rewoo_bench"
    return earlier if earlier.is_dir() else user_cache_path("rewoo_bench", appauthor=False)
