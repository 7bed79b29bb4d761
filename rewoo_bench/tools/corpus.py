"""A file of passages as pages that can be found, its index built once and kept on disk.

    corpus = Corpus.open("passages.jsonl.gz")   # builds the index, or finds it in the cache
    corpus.find("shirley temple")               # Document(title="Shirley Temple", text=...)
    corpus.search("child actress 1930s", 5)     # [Hit, ...]

The cache entry's name is the hash of the file's bytes, so a changed file is a new corpus and a
moved one isn't. Texts and scores stay on disk, memory-mapped: a process loads only the parts that it reads.
"""

from __future__ import annotations

import errno
import hashlib
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rewoo_bench import paths
from rewoo_bench.errors import DataError
from rewoo_bench.text.words import terms
from rewoo_bench.tools.documents import Hit
from rewoo_bench.tools.passages import EXPECTED, check_passages, is_plain_text, read_passages
from rewoo_bench.types import Document

if TYPE_CHECKING:
    from rewoo_bench.tools.corpus_index import Index

_ATTEMPTS = 3  # another process may replace a damaged entry between our check and our opening of it


class Corpus:
    """Passages of a file, those of the same title joined into one page; satisfies `Pages`.

    `content_hash` is the sha256 of the file's bytes, for the run's manifest; `len()` counts pages.
    Any number of threads may search at once.
    """

    def __init__(self, index: Index, content_hash: str) -> None:
        self._index = index
        self.content_hash = content_hash

    @classmethod
    def open(cls, path: str | Path, cache_dir: Path | None = None) -> Corpus:
        """The corpus of a file that `passages` reads; `cache_dir` replaces the usual cache folder.

        Raises `DataError` where the file can't be used or the cache can't be written.
        """
        path = Path(path)
        check_passages(path)
        try:
            with path.open("rb") as file:
                content_hash = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{path}: can't be read ({error.strerror})") from None
        return cls(_cached_index(path, content_hash, cache_dir or paths.cache_dir()), content_hash)

    def __len__(self) -> int:
        return len(self._index.titles)

    def find(self, title: str) -> Document | None:
        page = self._index.by_title.find(title)
        return None if page is None else self._document(page)

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best pages, each by its best passage. Equal scores: the earlier page first."""
        import numpy as np

        index = self._index
        ids = index.ranking.term_ids(terms(query))
        if not ids or k < 1:
            return []
        scores = np.maximum.reduceat(index.ranking.scores(ids), index.starts)
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            # Not bm25s's own top k: that sorts zeros too, knows no pages and breaks ties at random.
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least]
        best = found[np.argsort(-scores[found], kind="stable")][:k]
        return [Hit(self._document(int(page)), float(scores[page])) for page in best]

    def similar(self, title: str, k: int) -> list[str]:
        return [self._index.titles[page] for page in self._index.by_title.similar(title, k)]

    def _document(self, page: int) -> Document:
        start, end = self._index.offsets[page : page + 2]
        return Document(self._index.titles[page], self._index.text[start:end].tobytes().decode("utf-8"))


def _cached_index(path: Path, content_hash: str, cache_folder: Path) -> Index:
    from rewoo_bench.tools.corpus_index import FORMAT, DamagedIndex, read_index

    kind = "-txt" if is_plain_text(path) else ""  # the same bytes are other passages as JSON lines
    entry = cache_folder / "corpus" / f"{content_hash[:32]}{kind}-v{FORMAT}"
    for _ in range(_ATTEMPTS):
        try:
            return read_index(entry)
        except DamagedIndex:
            _build(path, entry)
    raise DataError(f"{entry}: can't be read back after it was written; expected a sound disk")


def _build(path: Path, entry: Path) -> None:
    """Writes the entry under another name, then renames it: nobody ever sees half of one."""
    from rewoo_bench.tools.corpus_index import NoWords, write_index

    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=entry.parent, ignore_cleanup_errors=True) as work:
            made = Path(work, "made")
            made.mkdir()
            write_index(read_passages(path), made)
            _install(made, entry, Path(work, "replaced"))
    except NoWords:
        raise DataError(f"{path}: no passage with text; expected {EXPECTED} on each line") from None
    except OSError as error:
        where = f"{error.filename or entry.parent}: {error.strerror}"
        raise DataError(
            f"can't keep the index of {path}: {where}; set REWOO_BENCH_CACHE to a writable folder"
        ) from None


def _install(made: Path, entry: Path, replaced: Path) -> None:
    """Renames a finished entry into place, unless another process put a sound one there meanwhile."""
    from rewoo_bench.tools.corpus_index import DamagedIndex, read_index

    with suppress(DamagedIndex):
        read_index(entry)
        return
    with suppress(FileNotFoundError):
        entry.rename(replaced)
    try:
        made.rename(entry)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
