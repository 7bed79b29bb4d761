"""A file of passages as pages that can be found, its index built once and kept on disk.

    corpus = Corpus.open("passages.jsonl.gz")   # builds the index, or finds it in the cache
    corpus.find("shirley temple")               # Document(title="Shirley Temple", text=...)
    corpus.search("child actress 1930s", 5)     # [Hit, ...]

A file has objects `{"title": …, "text": …}` as jsonl, json (a list, or an object whose values they are) or parquet, or
is a text whose paragraphs are `Paragraph 1`, `Paragraph 2`, …; also as .gz. `contents` or `content` may take the place
of `text`, as in StrategyQA's paragraphs and in Pyserini's corpora. A passage without a title is a page of its own,
named by its first words.

The cache entry's name is the hash of the file's bytes, so a changed file is a new corpus and a moved one isn't. Its
files are memory-mapped, so a process loads only the parts that it reads:

    text.bin            the pages' texts as UTF-8, one after the other
    pages.npz           offsets: int64[pages + 1], of each page in text.bin
                        starts: int64[pages], the first passage of each page
    titles.json         {"titles": [...], "keys": [...]}, a string for each page
    *.index.*           bm25s's own files, an index over passages

The passages of a page are adjacent, in the file's order: so the best passage of every page is one
`np.maximum.reduceat` over the passages' scores.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
from filelock import FileLock
from pyarrow import parquet

from rewoo_bench.errors import DataError
from rewoo_bench.system import files as paths
from rewoo_bench.text.data_files import DATA_FAULTS, data_fault, open_data, plain_name
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.words import K1, B, clean_title, has_title, index_terms, title_key, with_titles
from rewoo_bench.tools.search import Hit, Titles
from rewoo_bench.types import Document

_EXPECTED = 'an object with the strings "text" and, where it has one, "title"'
_PASSAGE_SUFFIXES = (".jsonl", ".json", ".txt")  # each also as .gz; and .parquet
_TEXT_KEYS = ("text", "contents", "content")
_QUOTED_LINE = re.compile(r'"([^"\n]+)"\n')
"""How FlashRAG's and Search-R1's corpora, which have `contents` alone, write the title of a passage."""


def check_passages(path: Path) -> None:
    """Raises `DataError` where a file is missing, empty or of another format, without reading it."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {what}; expected a corpus in jsonl, json, txt or parquet")
    if not plain_name(path).endswith(_PASSAGE_SUFFIXES) and path.suffix.lower() != ".parquet":
        raise DataError(
            f"{path}: unknown extension {path.suffix!r}; expected {', '.join(_PASSAGE_SUFFIXES)} (or .gz), .parquet"
        )
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; expected {_EXPECTED} on each line")


def read_passages(path: Path) -> Iterator[Document]:
    """The passages of a file, in order, those without a text left out.

    Raises `DataError` as `check_passages` does, and for a damaged file, naming the line (the row, in parquet).
    """
    check_passages(path)
    kind = Path(plain_name(path)).suffix
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path)
        return
    number = 0  # of the line, where it is known
    try:
        with open_data(path) as file:
            if kind == ".json":
                number = 1
                rows = load_json(file.read().decode("utf-8-sig"))
                if not isinstance(rows, list | dict):
                    raise DataError(f"{path}: found {rows!r:.60}; expected a list of passages, {_EXPECTED} each")
                for place, row in enumerate(rows.values() if isinstance(rows, dict) else rows, start=1):
                    yield from _passage(row, f"{path}: passage {place}")
            elif kind == ".txt":
                lines = (line.decode("utf-8-sig").split() for line in file)
                paragraphs = (chain.from_iterable(words) for has_words, words in groupby(lines, bool) if has_words)
                for count, words in enumerate(paragraphs, start=1):
                    yield Document(f"Paragraph {count}", " ".join(words))
            else:
                for number, line in enumerate(file, start=1):
                    if text := line.decode("utf-8-sig").strip():
                        yield from _passage(load_json(text), f"{path}:{number}")
    except DATA_FAULTS as error:
        if isinstance(error, json.JSONDecodeError):
            number += error.lineno - 1
        elif not isinstance(error, ValueError):  # the next line couldn't be read
            number += 1
        where = f"{path}:{number}" if number else str(path)
        raise DataError(f"{where}: {data_fault(error)}; expected {_EXPECTED}") from None


def _read_parquet(path: Path) -> Iterator[Document]:
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            key = next((key for key in _TEXT_KEYS if key in names), _TEXT_KEYS[0])
            if key not in names:
                raise DataError(f"{path}: no column {key!r} (found: {', '.join(names)}); expected title and text")
            for batch in file.iter_batches(columns=[name for name in ("title", key) if name in names]):
                for row in batch.to_pylist():
                    number += 1
                    yield from _passage(row, f"{path}: row {number}")
    except (pyarrow.ArrowException, OSError) as error:
        what = str(error).splitlines()[0]
        raise DataError(f"{path}: can't be read as parquet ({what}); expected columns title and text") from None


def _passage(row: Any, where: str) -> Iterator[Document]:
    """The row as a passage, or nothing where its text is blank."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: found {row!r:.60}; expected {_EXPECTED}")
    text = next((key for key in _TEXT_KEYS if key in row), _TEXT_KEYS[0])
    title = "" if row.get("title") is None else row["title"]
    for key, value in (("title", title), (text, row.get(text))):
        if not isinstance(value, str):
            found = f"{key!r} is {value!r:.60}" if key in row else f"no {key!r} among {', '.join(map(repr, row))}"
            raise DataError(f"{where}: {found[:200]}; expected {_EXPECTED}")
    passage = row[text].strip()
    if "title" not in row and (first := _QUOTED_LINE.match(passage)):
        title, passage = first[1], passage[first.end() :].strip()
    if passage:
        yield Document(title, passage)


_FORMAT = 2  # raise it where the files or `terms` change: older entries are then left alone


class NoWords(Exception):
    """Passages without a single word to find them by."""


@dataclass(frozen=True, slots=True)
class SavedRanking:
    """The scores of passages, from an index that bm25s has saved: term i has `data[starts[i]:starts[i + 1]]`.

    To import bm25s for a sum of such scores would take longer than the rest of a run's start.
    """

    data: npt.NDArray[np.float32]
    passages: npt.NDArray[np.int32]
    """The passage of each number in `data`."""
    starts: npt.NDArray[np.int32]
    vocabulary: dict[str, int]
    count: int
    """Of all passages."""

    @classmethod
    def open(cls, folder: Path) -> SavedRanking:
        """The index in that folder, memory-mapped."""
        data, passages, starts = (
            np.load(folder / f"{name}.csc.index.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
        )
        vocabulary = json.loads((folder / "vocab.index.json").read_bytes())
        count = json.loads((folder / "params.index.json").read_bytes())["num_docs"]
        return cls(data, passages, starts, vocabulary, count)

    def term_ids(self, terms: Sequence[str]) -> list[int]:
        """The numbers of those terms that any passage has."""
        return [self.vocabulary[term] for term in terms if term in self.vocabulary]

    def scores(self, term_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """The score of every passage: the sum over the query's terms."""
        scores = np.zeros(self.count, dtype=np.float32)
        for term in term_ids:
            part = slice(self.starts[term], self.starts[term + 1])
            scores[self.passages[part]] += self.data[part]  # a term has a passage once
        return scores


def write_index(passages: Iterable[Document], folder: Path) -> None:
    """Writes the entry's files into an existing folder. Raises `NoWords` where no passage has any."""
    import bm25s  # takes longer to load than an index to be opened
    from tqdm import tqdm

    pages: dict[str, list[str]] = {}
    without_title: list[Document] = []
    for passage in passages:
        if has_title(passage):
            pages.setdefault(clean_title(passage.title), []).append(passage.text)
        else:
            without_title.append(passage)
    untitled = set[str]()  # their names are words of their texts, which count once
    for named in with_titles(without_title, pages):
        # Search shows a page's first paragraph, which of an untitled one is all of the passage.
        pages[clean_title(named.title)] = [" ".join(named.text.split())]
        untitled.add(clean_title(named.title))
    counts = [len(texts) for texts in pages.values()]
    vocabulary: dict[str, int] = {"": 0}  # bm25s wants the empty term to exist
    occurrences, lengths = [], []  # the term ids of each passage, title included; the bytes of each page
    with (
        tqdm(total=sum(counts), desc="Indexing", unit=" passages", leave=False, disable=None) as progress,
        (folder / "text.bin").open("wb") as file,
    ):
        for title, texts in pages.items():
            title_terms = [] if title in untitled else index_terms(title)
            for text in texts:
                occurrences.append([vocabulary.setdefault(t, len(vocabulary)) for t in title_terms + index_terms(text)])
            lengths.append(file.write("\n".join(texts).encode("utf-8", "replace")))
            progress.update(len(texts))
    if len(vocabulary) == 1:
        raise NoWords
    ranking = bm25s.BM25(k1=K1, b=B, method="lucene", dtype="float32", int_dtype="int32")
    ranking.index((occurrences, vocabulary), show_progress=sys.stderr.isatty())
    ranking.save(folder, show_progress=False)
    offsets, starts = (np.cumsum([0, *sizes], dtype=np.int64) for sizes in (lengths, counts[:-1]))
    np.savez(folder / "pages.npz", offsets=offsets, starts=starts)
    titles = {"titles": list(pages), "keys": [title_key(title) for title in pages]}
    (folder / "titles.json").write_text(json.dumps(titles), encoding="utf-8")


class Corpus:
    """Passages of a file, those of the same title joined into one page; satisfies `Pages`.

    `content_hash` is the sha256 of the file's bytes, for the run's manifest; `len()` counts pages.
    Any number of threads may search at once.
    """

    def __init__(self, entry: Path, content_hash: str) -> None:
        self.content_hash = content_hash
        self._ranking = SavedRanking.open(entry)
        titles = json.loads((entry / "titles.json").read_bytes())
        with np.load(entry / "pages.npz") as arrays:
            self._offsets, self._starts = arrays["offsets"], arrays["starts"]
        # Slices of a plain array cost less than those of a memmap.
        self._text = np.memmap(entry / "text.bin", dtype=np.uint8, mode="r").view(np.ndarray)
        self._titles: list[str] = titles["titles"]
        self._by_title = Titles(self._titles, titles["keys"])

    @classmethod
    def open(cls, path: str | Path, cache_dir: Path | None = None) -> Corpus:
        """The corpus of a file that `read_passages` reads; `cache_dir` replaces the usual cache folder.

        Raises `DataError` where the file can't be used or the cache can't be written.
        """
        path, cache_dir = Path(path), cache_dir or paths.cache_dir()
        check_passages(path)
        with path.open("rb") as file:
            content_hash = hashlib.file_digest(file, "sha256").hexdigest()
        kind = "-txt" if plain_name(path).endswith(".txt") else ""  # the same bytes are other passages as JSON lines
        entry = cache_dir / "corpus" / f"{content_hash[:32]}{kind}-v{_FORMAT}"
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(cache_dir / "corpus.lock"):
                if not entry.is_dir():
                    with TemporaryDirectory(prefix=".building-", dir=entry.parent, ignore_cleanup_errors=True) as work:
                        made = Path(work, "made")
                        made.mkdir()
                        write_index(read_passages(path), made)
                        made.rename(entry)  # nobody ever sees half of one
            return cls(entry, content_hash)
        except NoWords:
            raise DataError(f"{path}: no passage with text; expected {_EXPECTED} on each line") from None
        except (ValueError, KeyError) as error:
            raise DataError(f"{entry}: can't be read ({error}); remove it, and the index is built anew") from None
        except OSError as error:
            where = f"{error.filename or entry.parent}: {error.strerror}"
            raise DataError(
                f"can't keep the index of {path}: {where}; set REWOO_BENCH_CACHE to a writable folder"
            ) from None

    def __len__(self) -> int:
        return len(self._titles)

    def find(self, title: str) -> Document | None:
        page = self._by_title.find(title)
        return None if page is None else self._document(page)

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best pages, each by its best passage. Equal scores: the earlier page first."""
        ids = self._ranking.term_ids(index_terms(query))
        if not ids or k < 1:
            return []
        scores = np.maximum.reduceat(self._ranking.scores(ids), self._starts)
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            # Not bm25s's own top k: that sorts zeros too, knows no pages and breaks ties at random.
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least]
        best = found[np.argsort(-scores[found], kind="stable")][:k]
        return [Hit(self._document(int(page)), float(scores[page])) for page in best]

    def similar(self, title: str, k: int) -> list[str]:
        return [self._titles[page] for page in self._by_title.similar(title, k)]

    def _document(self, page: int) -> Document:
        start, end = self._offsets[page : page + 2]
        return Document(self._titles[page], self._text[start:end].tobytes().decode("utf-8"))
