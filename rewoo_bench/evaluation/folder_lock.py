"""A run's folder is taken by one process before anything is written into it, and kept until its run has ended.

with taken(folder, is_new=True):
    write_manifest(folder, manifest)
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rewoo_bench.errors import UsageError
from rewoo_bench.file_lock import locked
from rewoo_bench.journal.store import JOURNAL
from rewoo_bench.runs.folder import CALLS_FILE, LOCK, QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import MANIFEST, Manifest, write_manifest

_OF_A_RUN = (MANIFEST, JOURNAL, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE)


@contextmanager
def taken(folder: Path, *, is_new: bool) -> Iterator[None]:
    """Holds the folder of a run, which is made for a new one.

    Raises `UsageError` where another process holds it, where it has a run and a new one was to go there,
    and where it can't be written to.
    """
    flag = "--out" if is_new else "--resume"
    busy = f"{flag}: another process is at work on this run: it has the folder {str(folder)!r}"
    with ExitStack() as stack:
        try:
            if is_new:
                folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder / LOCK, busy))
        except OSError as error:
            raise UsageError(
                f"{flag}: can't write into the folder {str(folder)!r}: {error.strerror or error}"
            ) from None
        if is_new:
            check_new(folder)
        yield


def check_new(folder: Path) -> None:
    """Raises `UsageError` where a folder has a run, or the files of one."""
    found = next((name for name in _OF_A_RUN if (folder / name).exists()), None)
    if found == MANIFEST:
        go_on = f"go on with --resume {shlex.quote(str(folder))}"
        raise UsageError(f"--out: {str(folder)!r} holds another run; choose a new folder, or {go_on}")
    if found:
        raise UsageError(
            f"--out: {str(folder)!r} holds {found} of another run, without its {MANIFEST}; choose a new folder"
        )


def begin(folder: Path, manifest: Manifest, flag: str) -> None:
    """Writes the manifest of a run that begins or goes on. Raises `UsageError` where it can't be written."""
    try:
        write_manifest(folder, manifest)
    except OSError as error:
        said = error.strerror or error
        raise UsageError(f"{flag}: can't write into the folder {str(folder)!r}: {said}") from None


def check_journal(folder: Path, rows: int) -> None:
    """Raises `UsageError` where a run has so many finished questions and no journal: all would be paid again."""
    journal = folder / JOURNAL
    if rows and not (journal.is_file() and journal.stat().st_size):
        raise UsageError(
            f"--resume: {str(journal)!r} is missing or empty, and this run has {rows:,} questions in its tables: "
            "bring it back, or start a new run with another --out"
        )
