"""One process at a time works in a run's folder: it locks the folder before the first write, until the run ends.

with taken(folder, is_new=True):
    write_manifest(folder, manifest)
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.file_lock import locked
from rewoo_bench.journal.store import JOURNAL, is_unused
from rewoo_bench.runs.folder import CALLS_FILE, LOCK, QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import MANIFEST, Manifest, read_manifest, write_manifest

_OF_A_RUN = (MANIFEST, JOURNAL, QUESTIONS_FILE, CALLS_FILE, TRACES_FILE)


@contextmanager
def taken(folder: Path, *, is_new: bool) -> Iterator[None]:
    """Locks the folder of a run, which is made for a new run.

    Raises `UsageError` where another process has locked it, where a new run's folder holds a run already, where it
    can't be written to, and for a link in the place of a file that a resumed run writes: it may lead anywhere.
    """
    flag = "--out" if is_new else "--resume"
    busy = f"{flag}: another process is at work on this run: it has locked the folder {str(folder)!r}"
    with ExitStack() as stack:
        try:
            if is_new:
                folder.mkdir(parents=True, exist_ok=True)
            elif link := next((path for path in _written_in(folder) if path.is_symlink()), None):
                raise UsageError(f"{flag}: {str(link)!r} is a symbolic link; the files of a run lie in its own folder")
            stack.enter_context(locked(folder / LOCK, busy))
        except OSError as error:
            raise UsageError(
                f"{flag}: can't write into the folder {str(folder)!r}: {error.strerror or error}"
            ) from None
        if is_new:
            check_new(folder)
        yield


def _written_in(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in (*_OF_A_RUN, LOCK))
    yield from folder.glob(f"{JOURNAL}-*")


def check_new(folder: Path) -> None:
    """Raises `UsageError` where a folder has a run, or the files of one."""
    file = next((name for name in _OF_A_RUN if (folder / name).exists()), None)
    if file == JOURNAL and is_unused(folder / JOURNAL):
        return  # of a run that was killed before it had a manifest, and so before it asked anything
    if file == MANIFEST:
        go_on = f"continue that run with --resume {shlex.quote(str(folder))}{_with_cap(folder)}"
        raise UsageError(f"--out: {str(folder)!r} holds another run; choose a new folder, or {go_on}")
    if file:
        raise UsageError(
            f"--out: {str(folder)!r} holds {file} of another run, without its {MANIFEST}; choose a new folder"
        )
    if folder.is_dir() and any(path.name != LOCK for path in folder.iterdir()):
        raise UsageError(f"--out: the folder {str(folder)!r} isn't empty; choose a new one")


def _with_cap(folder: Path) -> str:
    """What else to give where a cap ended the run: with the same cap it would end at once."""
    try:
        reason = read_manifest(folder).reason or ""
    except DataError:  # --resume says what is wrong
        return ""
    flag = next((flag for flag in ("--run-tokens", "--run-cost") if flag in reason), None)
    return f" and another {flag}" if flag else ""


def begin(folder: Path, manifest: Manifest, flag: str) -> None:
    """Writes the manifest of a new or resumed run. Raises `UsageError` where it can't be written."""
    try:
        write_manifest(folder, manifest)
    except OSError as error:
        cause = error.strerror or error
        raise UsageError(f"{flag}: can't write into the folder {str(folder)!r}: {cause}") from None


def check_journal(folder: Path, rows: int, *, accept_loss: bool) -> None:
    """Raises `UsageError` for a run without its journal, which has one from its beginning: all would be paid again."""
    journal = folder / JOURNAL
    if accept_loss or (journal.is_file() and journal.stat().st_size):
        return
    tables = f", and this run has {rows:,} questions in its tables" if rows else ""
    raise UsageError(
        f"--resume: {str(journal)!r} is missing or empty{tables}: bring it back, ask every question again with "
        "--accept-loss, or start a new run with another --out"
    )
