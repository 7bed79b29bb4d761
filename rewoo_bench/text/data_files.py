"""Lines and JSON of data files, plain or gzipped, within bounds.

    with open_bounded(Path("rows.jsonl.gz")) as file:
        for line in file.lines():
            row = load_json(line)

A gzip file can hold a thousand times its size, so reading stops at a bound.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

LONGEST_LINE = 64 * 2**20  # bytes of a line, or of a JSON document
_LARGEST_FILE = 4 * 2**30  # bytes of a whole file
_LARGEST_RATIO = 50  # times the size on disk; a bound is never smaller than that. Text is some 10 times smaller as gzip


def plain_name(path: Path) -> str:
    """The file's name in lower case, without `.gz`."""
    return path.name.lower().removesuffix(".gz")


class TooLarge(ValueError):
    """More data than a file of that size on disk may hold; the message says how much."""


@dataclass
class BoundedFile:
    """An open file, read within bounds. The bounds are in bytes."""

    file: BinaryIO
    longest_line: int
    largest_file: int
    _read: int = 0

    def lines(self) -> Iterator[bytes]:
        """The lines, the first without a byte order mark: files of Windows tools have one. Raises `TooLarge`."""
        while line := self.file.readline(self.longest_line + 1):
            is_first = not self._read
            self._count(line)
            yield line.removeprefix(codecs.BOM_UTF8) if is_first else line

    def rest(self, already: int = 0) -> bytes:
        """The rest of the file; with the bytes `already` read it is one document. Raises `TooLarge`."""
        content = self.file.read(max(0, self.longest_line - already) + 1)
        self._count(content, already)
        return content

    def _count(self, piece: bytes, already: int = 0) -> None:
        self._read += len(piece)
        if len(piece) + already > self.longest_line:
            raise TooLarge(f"a line or a document of more than {self.longest_line:,} bytes")
        if self._read > self.largest_file:
            raise TooLarge(f"more than {self.largest_file:,} bytes")


@contextmanager
def open_bounded(path: Path) -> Iterator[BoundedFile]:
    """The file, decompressed where its name ends in `.gz`. Raises `OSError`, and while it is read `EOFError`,
    `zlib.error`, `gzip.BadGzipFile` and `TooLarge`.
    """
    least = _LARGEST_RATIO * path.stat().st_size
    gzipped = path.suffix.lower() == ".gz"
    with cast(BinaryIO, gzip.open(path, "rb")) if gzipped else path.open("rb") as file:
        yield BoundedFile(file, max(LONGEST_LINE, least), max(_LARGEST_FILE, least))


DATA_FAULTS = (ValueError, EOFError, zlib.error, OSError)
"""What reading a damaged file raises."""


def data_fault(error: Exception) -> str:
    """One of `DATA_FAULTS` in words, as the end of a message."""
    if isinstance(error, TooLarge):
        return f"larger than a data file may be: {error}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text: {error}; save it as UTF-8"
    if isinstance(error, ValueError):
        return f"not valid JSON, or cut off: {error}"
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return f"can't be read: {error.strerror or error}"
    return f"damaged gzip, or cut off: {error}"
