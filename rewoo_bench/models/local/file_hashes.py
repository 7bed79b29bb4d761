"""The sha256 of a large file, computed again only when the file has changed.

    stamped_sha256(Path("model.gguf"), Path("model.gguf.stamp"))    # "b179c952…", at once from the second time

A stamp is a small file of JSON: `{"size": 98362432, "mtime_ns": 1790000000000000000, "sha256": "b179…"}`.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def stamped_sha256(path: Path, stamp: Path) -> str:
    """The file's sha256, from the stamp if size and modification time match it. Raises OSError."""
    known, facts = _read(stamp), _facts(path)
    if known is not None and {**known, **facts} == known:
        return str(known["sha256"])
    return _write(stamp, facts, hash_file(path))


def is_unchanged(path: Path, stamp: Path) -> bool:
    """Whether the file's content matches its stamp; False where one of them is missing."""
    known = _read(stamp)
    if known is None or not path.is_file():
        return False
    facts = _facts(path)
    if {**known, **facts} == known:
        return True
    if hash_file(path) != known["sha256"]:
        return False  # the stamp stays, for the next process that checks
    _write(stamp, facts, known["sha256"])
    return True


def stamp_of(path: Path) -> Path:
    """The path of the stamp of a file in the cache."""
    return path.with_name(f"{path.name}.stamp")


def hash_file(path: Path) -> str:
    """The file's sha256, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(stamp: Path) -> dict[str, Any] | None:
    """The contents of a stamp; None where it is missing or damaged."""
    try:
        known = json.loads(stamp.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and isinstance(known.get("sha256"), str) else None


def _facts(path: Path) -> dict[str, int]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _write(stamp: Path, facts: dict[str, int], sha256: str) -> str:
    with suppress(OSError):  # without a stamp it is only slower
        stamp.parent.mkdir(parents=True, exist_ok=True)
        partial = stamp.with_name(f"{stamp.name}.{os.getpid()}")
        partial.write_text(json.dumps({**facts, "sha256": sha256}), "utf-8")
        partial.replace(stamp)
    return sha256
