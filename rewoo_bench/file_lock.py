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


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Holds the lock. The file is never removed, since another process may have it open.

    Raises `UsageError` with `busy` where another process holds it, and `OSError` where the file can't be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(busy) from None
    try:
        yield
    finally:
        lock.release()
