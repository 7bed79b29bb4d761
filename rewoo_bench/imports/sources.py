"""What a user names -> files: a file, a folder, or standard input.

    with local_files(["runs.json", "-"]) as paths:
        ...

Standard input and what a shell offers as a file (`<(zcat runs.gz)`) are copied, up to 4 GB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rewoo_bench.errors import UsageError
from rewoo_bench.imports.documents import is_trace_name
from rewoo_bench.runs.folder import JOURNAL_FILE, QUESTIONS_FILE
from rewoo_bench.runs.manifest import MANIFEST

_LARGEST = 4 * 2**30  # bytes of a file that is copied
_LONGEST_NAME = 80  # characters, of up to three bytes each


def are_traces(path: Path) -> bool:
    """Whether a file or folder holds what other programs recorded, and no run of this one."""
    if not path.is_dir():
        return path.is_file() and path.suffix != ".parquet"
    names = {each.name for each in path.rglob("*")}
    return not names & {MANIFEST, QUESTIONS_FILE, JOURNAL_FILE} and any(map(is_trace_name, names))


def name_of(given: str) -> str:
    """The name of a file that a user names, without characters that can't be shown."""
    name = "stdin" if given == "-" else Path(given).name
    return "".join(each if each.isprintable() else "_" for each in name)[-_LONGEST_NAME:]


@contextmanager
def local_files(given: Iterable[str]) -> Iterator[list[Path]]:
    """The files and folders that are given, those that can be read only once copied first. Raises `UsageError`."""
    with TemporaryDirectory(prefix="rewoo-bench-") as folder:
        paths = []
        for number, each in enumerate(given):
            path = Path(each)
            if each == "-" or path.is_fifo():
                path = Path(folder, str(number), name_of(each))
                path.parent.mkdir()
                _copy(each, path)
            elif not (path.is_file() or path.is_dir()):
                raise UsageError(f"no such file or folder: {each!r}")
            paths.append(path)
        yield paths


def _copy(given: str, path: Path) -> None:
    with open(0 if given == "-" else given, "rb", closefd=given != "-") as source, path.open("wb") as file:
        while piece := source.read(1 << 20):
            file.write(piece)
            if file.tell() > _LARGEST:
                raise UsageError(f"{given}: more than {_LARGEST >> 30} GB; give it as a file")
