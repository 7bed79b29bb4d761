"""Files that a flag names: a file is whole or not there, and symbolic links, pipes and devices stay what they are.

with replaced(Path("report.html")) as file:
    file.write(b"<!doctype html>")
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file to write. Raises `OSError`.

    A regular file is replaced as a whole when the block ends without an exception, also behind a symbolic link.
    What is written for a pipe or a device goes there at once.
    """
    if is_stream(path):
        with path.open("ab") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    part = target.with_name(f"{target.name}.part")
    with removed_unless_written(part):
        with part.open("wb") as file:
            yield file
        part.replace(target)


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe or a device; /dev/stdout is one even where it is redirected to a file."""
    return path.is_relative_to("/dev") or (path.exists() and not path.is_file())


@contextmanager
def removed_unless_written(part: Path) -> Iterator[None]:
    """Removes a partial file when writing it fails."""
    try:
        yield
    except BaseException:
        part.unlink(missing_ok=True)
        raise
