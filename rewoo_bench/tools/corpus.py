"""A file of passages as pages that can be found, its index built once and kept on disk.

    corpus = Corpus.open("passages.jsonl.gz")   # builds the index, or finds it in the cache
    corpus.find("shirley temple")               # Document(title="Shirley Temple", text=...)
    corpus.search("child actress 1930s", 5)     # [Hit, ...]

The cache entry's name is the hash of the file's bytes, so a changed file is a new corpus and a
moved one isn't. Texts and scores stay on disk, memory-mapped: a process loads only the parts that it reads.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.errors import DataError
from rewoo_bench.system import files as paths
from rewoo_bench.text.data_files import BoundedFile, TooLarge, open_bounded, parse_json
from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.words import terms
from rewoo_bench.tools.documents import Hit
from rewoo_bench.types import Document

if TYPE_CHECKING:
    from rewoo_bench.tools.corpus_index import Index


# Reads a file of passages: objects as jsonl, json or parquet, or the paragraphs of a text file; also as .gz.
#
#     {"title": "Shirley Temple", "text": "Shirley Temple Black was an American actress."}
#
# `contents` or `content` may take the place of `text`, as in StrategyQA's paragraphs and in Pyserini's corpora; other
# keys are ignored. A .json file is a list of such objects, or an object whose values they are. Empty lines separate the
# paragraphs of a .txt file; their titles are `Paragraph 1`, `Paragraph 2`, …


EXPECTED = 'an object with the strings "title" and "text"'
SUFFIXES = (".jsonl", ".json", ".txt")  # each also as .gz; and .parquet
TEXTS = ("text", "contents", "content")


def check_passages(path: Path) -> None:
    """Raises `DataError` where a file is missing, empty or of another format, without reading it."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected a corpus in jsonl, json, txt or parquet")
    if not _plain_name(path).endswith(SUFFIXES) and path.suffix.lower() != ".parquet":
        raise DataError(f"{path}: unknown extension {path.suffix!r}; expected {', '.join(SUFFIXES)} (or .gz), .parquet")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; expected {EXPECTED} on each line")


def read_passages(path: Path) -> Iterator[Document]:
    """The passages of a file, in order, those without a text left out.

    Raises `DataError` as `check_passages` does, and for a damaged file, naming the line (the row, in
    parquet).
    """
    check_passages(path)
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path)
        return
    place = _Place(path)
    try:
        with open_bounded(path) as file:
            yield from _READERS[Path(_plain_name(path)).suffix](file, place)
    except json.JSONDecodeError as error:
        place.line += error.lineno - 1
        raise DataError(f"{place}: not JSON ({error.msg}, column {error.colno}); expected {EXPECTED}") from None
    except UnicodeDecodeError:
        raise DataError(f"{place}: not UTF-8; expected {EXPECTED}") from None
    except TooLarge as error:
        raise DataError(f"{place.next}: larger than a corpus may be: {error}; expected {EXPECTED}") from None
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error}); expected {EXPECTED}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{place.next}: damaged or cut off gzip data ({error}); expected a whole file") from None


def is_plain_text(path: Path) -> bool:
    """Whether a file is a text whose paragraphs are the passages."""
    return _plain_name(path).endswith(".txt")


@dataclass
class _Place:
    """The file and the line that is read, for messages."""

    path: Path
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def next(self) -> str:
        """The line after it, which couldn't be read."""
        return f"{self.path}:{self.line + 1}"


def _plain_name(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")


def _lines(file: BoundedFile, place: _Place) -> Iterator[str]:
    for place.line, line in enumerate(file.lines(), start=1):
        yield line.decode()


def _read_jsonl(file: BoundedFile, place: _Place) -> Iterator[Document]:
    for line in _lines(file, place):
        if line.strip():
            yield from _passage(parse_json(line), str(place))


def _read_json(file: BoundedFile, place: _Place) -> Iterator[Document]:
    place.line = 1
    rows = parse_json(file.rest().decode("utf-8-sig"))
    if not isinstance(rows, list | dict):
        raise DataError(f"{place.path}: found {rows!r:.60}; expected a list of passages, {EXPECTED} each")
    for number, row in enumerate(rows.values() if isinstance(rows, dict) else rows, start=1):
        yield from _passage(row, f"{place.path}: passage {number}")


def _read_text(file: BoundedFile, place: _Place) -> Iterator[Document]:
    """The paragraphs of a plain text, each on one line."""
    number, lines = 0, list[str]()
    for line in chain(_lines(file, place), [""]):
        if words := line.split():
            lines += words
        elif lines:
            number += 1
            yield Document(f"Paragraph {number}", " ".join(lines))
            lines = []


_READERS = {".jsonl": _read_jsonl, ".json": _read_json, ".txt": _read_text}


def _read_parquet(path: Path) -> Iterator[Document]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            key = next((key for key in TEXTS if key in names), TEXTS[0])
            missing = {"title", key} - set(names)
            if missing:
                raise DataError(
                    f"{path}: no column {min(missing)!r} (found: {', '.join(names)}); expected title and text"
                )
            for batch in file.iter_batches(columns=["title", key]):
                for row in batch.to_pylist():
                    number += 1
                    yield from _passage(row, f"{path}: row {number}")
    except (pyarrow.ArrowException, OSError) as error:
        what = str(error).splitlines()[0]
        raise DataError(f"{path}: can't be read as parquet ({what}); expected columns title and text") from None


def _passage(row: Any, where: str) -> Iterator[Document]:
    """The row as a passage, or nothing where its text is blank."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: found {row!r:.60}; expected {EXPECTED}")
    text = next((key for key in TEXTS if key in row), TEXTS[0])
    for key in ("title", text):
        if not isinstance(row.get(key), str):
            found = f"{key!r} is {row[key]!r:.60}" if key in row else f"no {key!r} among {', '.join(map(repr, row))}"
            raise DataError(f"{where}: {found[:200]}; expected {EXPECTED}")
    if row[text].strip():
        yield Document(replace_surrogates(row["title"]), replace_surrogates(row[text].strip()))


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
