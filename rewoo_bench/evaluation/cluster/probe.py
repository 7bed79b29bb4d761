"""What a node has, found out by a function that Ray brings to it: only the standard library, and no module of ours.

Ray sends this module itself (`register_pickle_by_value`), so it also runs where rewoo_bench isn't installed.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def versions() -> dict[str, str]:
    """Package -> version; a package that isn't installed is missing."""
    found = {"python": platform.python_version()}
    for package in ("rewoo-bench", "ray"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
