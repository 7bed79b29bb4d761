"""One process at a time: a lock on a file, which the operating system releases when the process ends.

    with locked(folder / "run.lock", "another process is at work on this run"):
        ...

It is flock on Linux and macOS, and msvcrt.locking on Windows. A network file system takes part where it
supports these, as NFS 4 and SMB do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewoo_bench.errors import UsageError

_MOMENT_S = 0.1  # for which `is_locked` of another process may hold a lock


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Holds the lock. The file is never removed, since another process may have it open.

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
