"""The download cache, locks, and files that are whole or not there."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rewoo_bench.errors import UsageError


def cache_dir() -> Path:
    """The download cache: `$REWOO_BENCH_CACHE`, else the folder that this platform has for caches.

    On Linux that is `$XDG_CACHE_HOME/rewoo_bench` or `~/.cache/rewoo_bench`.
    """
    from platformdirs import user_cache_path  # some milliseconds, and most commands need no cache

    if own := os.environ.get("REWOO_BENCH_CACHE"):
        return Path(own).expanduser()
    return user_cache_path("rewoo_bench", appauthor=False)


_MOMENT_S = 0.1  # for which `is_locked` of another process may hold a lock


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Holds the lock on a file, which the operating system releases when the process ends.

    The file is never removed, since another process may have it open. A network file system takes part where it
    supports flock (on Windows, msvcrt.locking), as NFS 4 and SMB do.

    Raises `UsageError` with `busy` where another process holds it, and `OSError` where the file can't be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=_MOMENT_S, poll_interval=_MOMENT_S / 10)
    except Timeout:
        raise UsageError(busy) from None
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock; nothing is written. Raises `OSError` for a file that can't be opened."""
    if not path.exists():
        return False
    try:
        with locked(path, "busy"):
            return False
    except UsageError:
        return True


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
    return path.open("xb")


def is_file(path: Path | str) -> bool:
    """Whether a file is there; False for a text that can be no path, such as a long one."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises OSError for these


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe or a device; /dev/stdout is one even where it is redirected to a file."""
    return path.is_relative_to("/dev") or (path.exists() and not path.is_file())


@contextmanager
def removed_unless_written(*parts: Path) -> Iterator[None]:
    """Removes partial files when writing them fails."""
    try:
        yield
    except BaseException:  # Ctrl-C, too
        for part in parts:
            part.unlink(missing_ok=True)
        raise
