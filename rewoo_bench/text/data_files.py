"""Data files, plain or gzipped.

with open_data(Path("rows.jsonl.gz")) as file:
    rows = [load_json(line.decode("utf-8-sig")) for line in file]    # files of Windows tools begin with a mark
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast


def plain_name(path: Path) -> str:
    """The file's name in lower case, without `.gz`."""
    return path.name.lower().removesuffix(".gz")


def open_data(path: Path) -> BinaryIO:
    """The file, decompressed where its name ends in `.gz`. It and its reading raise `DATA_FAULTS`."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


DATA_FAULTS = (ValueError, EOFError, zlib.error, OSError)
"""What reading a damaged file raises."""


def data_fault(error: Exception) -> str:
    """What is wrong with a file, as the end of a message."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text: {error}; save it as UTF-8"
    if isinstance(error, ValueError):
        return f"not valid JSON, or cut off: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"can't be read: {error.strerror}"
    return f"damaged, or cut off: {error}"
