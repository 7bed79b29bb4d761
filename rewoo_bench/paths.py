"""Finds the folders that ship with the package: `architectures` and `datasets`.

In an installed wheel they lie in `rewoo_bench/_bundled/`, in a clone beside the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).parent


def bundled_folder(kind: Literal["architectures", "datasets"]) -> Path:
    """The folder of that kind; it exists in a wheel, a clone and an editable install."""
    installed = PACKAGE / "_bundled" / kind
    return installed if installed.is_dir() else PACKAGE.parent / kind


def bundled_names(kind: Literal["architectures", "datasets"], description: str) -> list[str]:
    """Names of the bundled folders that hold the file `description`, sorted."""
    return sorted(path.parent.name for path in bundled_folder(kind).glob(f"*/{description}"))
