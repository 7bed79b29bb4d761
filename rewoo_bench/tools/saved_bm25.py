"""The scores of passages, read from an index that bm25s has saved.

    ranking = SavedRanking.open(folder)
    ranking.scores(ranking.term_ids(["tower", "height"]))   # float32[passages]

bm25s works out the score of every term in every passage when it builds an index, so that a query
only adds them up. To import bm25s for that would take longer than the rest of a run's start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt


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
