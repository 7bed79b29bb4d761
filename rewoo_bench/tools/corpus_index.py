"""The files of a corpus's cache entry, written once and memory-mapped by every run.

    text.bin            the pages' texts as UTF-8, one after the other
    pages.npz           offsets: int64[pages + 1], of each page in text.bin
                        starts: int64[pages], the first passage of each page
    titles.json         {"titles": [...], "keys": [...]}, a string for each page
    *.index.*           bm25s's own files, an index over passages (saved_ranking.py reads them)
    complete.json       {file name: [bytes, crc32]}, written last

The passages of a page are adjacent, in the file's order: so the best passage of every page is
one `np.maximum.reduceat` over the passages' scores.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rewoo_bench.text.words import K1, B, clean_title, terms, title_key
from rewoo_bench.tools.documents import Titles
from rewoo_bench.types import Document

# The scores of passages, read from an index that bm25s has saved.
#
#     ranking = SavedRanking.open(folder)
#     ranking.scores(ranking.term_ids(["tower", "height"]))   # float32[passages]
#
# bm25s works out the score of every term in every passage when it builds an index, so that a query
# only adds them up. To import bm25s for that would take longer than the rest of a run's start.


@dataclass(frozen=True, slots=True)
class SavedRanking:
    """A sparse matrix of passages x terms by columns: term i has `data[starts[i]:starts[i + 1]]`."""

    data: npt.NDArray[np.float32]
    passages: npt.NDArray[np.int32]
    """The row of each number in `data`."""
    starts: npt.NDArray[np.int32]
    vocabulary: dict[str, int]
    count: int
    """Of all passages."""

    @classmethod
    def open(cls, folder: Path) -> SavedRanking:
        """The index in that folder, memory-mapped. Raises OSError, ValueError or KeyError for a damaged one."""
        data, passages, starts = (
            np.load(folder / f"{name}.csc.index.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
        )
        vocabulary = json.loads((folder / "vocab.index.json").read_bytes())
        count = json.loads((folder / "params.index.json").read_bytes())["num_docs"]
        return cls(data, passages, starts, vocabulary, count)

    def term_ids(self, terms: Sequence[str]) -> list[int]:
        """The columns of those terms that any passage has."""
        return [self.vocabulary[term] for term in terms if term in self.vocabulary]

    def scores(self, term_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """The score of every passage: the sum over the query's terms."""
        scores = np.zeros(self.count, dtype=np.float32)
        for term in term_ids:
            there = slice(self.starts[term], self.starts[term + 1])
            scores[self.passages[there]] += self.data[there]  # a passage occurs once in a column
        return scores


FORMAT = 1  # raise it where the files or `terms` change: older entries are then left alone
_MANIFEST = "complete.json"


class DamagedIndex(Exception):
    """An entry that is missing, unfinished or not what was written."""


class NoWords(Exception):
    """Passages without a single word to find them by."""


@dataclass(frozen=True, slots=True)
class Index:
    """An open entry. The arrays are memory-mapped and only read."""

    titles: list[str]
    by_title: Titles
    text: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ranking: SavedRanking


def write_index(passages: Iterable[Document], folder: Path) -> None:
    """Writes the entry's files into an existing folder. Raises `NoWords` where no passage has any."""
    import bm25s

    pages: dict[str, list[str]] = {}
    for passage in passages:
        pages.setdefault(clean_title(passage.title), []).append(passage.text)
    vocabulary: dict[str, int] = {"": 0}  # bm25s wants the empty term to exist
    occurrences = _occurrences(pages, vocabulary)
    if len(vocabulary) == 1:
        raise NoWords
    ranking = bm25s.BM25(k1=K1, b=B, method="lucene", dtype="float32", int_dtype="int32")
    ranking.index((occurrences, vocabulary), show_progress=sys.stderr.isatty())
    ranking.save(folder, show_progress=False)
    _write_pages(pages, folder)
    sums = {file.name: _size_and_crc(file) for file in sorted(folder.iterdir())}
    (folder / _MANIFEST).write_text(json.dumps(sums), encoding="utf-8")


def _occurrences(pages: dict[str, list[str]], vocabulary: dict[str, int]) -> list[list[int]]:
    """The term ids of each passage, title included; adds new terms to the vocabulary."""
    from tqdm import tqdm

    total = sum(map(len, pages.values()))
    occurrences = []
    with tqdm(total=total, desc="Indexing", unit=" passages", leave=False, disable=None) as progress:
        for title, texts in pages.items():
            title_terms = terms(title)
            for text in texts:
                found = title_terms + terms(text)
                occurrences.append([vocabulary.setdefault(term, len(vocabulary)) for term in found])
            progress.update(len(texts))
    return occurrences


def _write_pages(pages: dict[str, list[str]], folder: Path) -> None:
    lengths = []
    with (folder / "text.bin").open("wb") as file:
        for texts in pages.values():
            lengths.append(file.write("\n".join(texts).encode("utf-8", "replace")))
    counts = [len(texts) for texts in pages.values()]
    np.savez(
        folder / "pages.npz",
        offsets=np.cumsum([0, *lengths], dtype=np.int64),
        starts=np.cumsum([0, *counts[:-1]], dtype=np.int64),
    )
    titles = {"titles": list(pages), "keys": [title_key(title) for title in pages]}
    (folder / "titles.json").write_text(json.dumps(titles), encoding="utf-8")


def read_index(folder: Path) -> Index:
    """Opens an entry. Raises `DamagedIndex` where any file isn't what `write_index` left."""
    try:
        sums = json.loads((folder / _MANIFEST).read_bytes())
        for name, written in sums.items():
            if _size_and_crc(folder / name) != written:
                raise DamagedIndex(f"{folder / name}: not what was written")
        ranking = SavedRanking.open(folder)
        titles = json.loads((folder / "titles.json").read_bytes())
        with np.load(folder / "pages.npz") as arrays:
            offsets, starts = arrays["offsets"], arrays["starts"]
        text = np.memmap(folder / "text.bin", dtype=np.uint8, mode="r").view(
            np.ndarray
        )  # slices of a plain array cost less
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise DamagedIndex(f"{folder}: {error}") from error
    return Index(titles["titles"], Titles(titles["titles"], titles["keys"]), text, offsets, starts, ranking)


def _size_and_crc(file: Path) -> list[int]:
    """Bytes and CRC-32, read in pieces: mapped pages would count as the process's memory."""
    crc = 0
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            crc = zlib.crc32(piece, crc)
        return [stream.tell(), crc]
