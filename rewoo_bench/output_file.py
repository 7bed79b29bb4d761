"""Files that a flag names: a file is whole or not there, and symbolic links, pipes and devices stay what they are.

with replaced(Path("report.html")) as file:
    file.write(b"<!doctype html>")
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path, *, follows: bool = True) -> Iterator[IO[bytes]]:
    """A file to write. Raises `OSError`.

    A regular file is replaced as a whole when the block ends without an exception, and keeps its permissions. So is
    that behind a symbolic link, where the user named the file; without `follows` the link itself is replaced, as in a
    run's folder, which somebody else may have made. What is written for a pipe or a device goes there at once.
    """
    if follows and is_stream(path):
        with path.open("ab") as file:
            yield file
        return
    target = Path(os.path.realpath(path)) if follows else path
    part = target.with_name(f".{secrets.token_hex(8)}.part")  # which nobody can foresee: others may write here, too
    with removed_unless_written(part):
        with new_file(part) as file:
            yield file
        if target.exists() and not target.is_symlink():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)


def new_file(path: Path) -> IO[bytes]:
    """A new file in the place of whatever has the name; a symbolic link is replaced, and never written through."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o666), "wb")


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
