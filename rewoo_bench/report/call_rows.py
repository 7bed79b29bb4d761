"""The rows of calls.parquet, read in pieces: the last few stay in memory.

The calls of a question are next to each other, and a report takes the questions in about the order in which they were
written. So a piece is read once, as a rule, and memory doesn't grow with the number of questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from rewoo_bench.runs.columns import CALLS
from rewoo_bench.runs.folder import damage_of, open_table

CALL = (
    *("call_index", "kind", "name", "role", "place", "status", "attempts", "finish_reason"),
    *("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"),
    *("context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"),
    *("latency_s", "waiting_s", "replayed", "started_at"),
)
RowKey = tuple[str, str, int]  # architecture, example, trial
_KEY = ["architecture", "example_id", "trial"]
_PIECE = 512  # rows
_PIECES = 64  # kept as Python's values
_GROUPS = 16  # row groups of the file, kept as Arrow's; a run writes one for every 1,000 rows of questions.parquet
_BATCH = 10_000  # keys


class CallRows:
    """A calls.parquet. A context manager: the file stays open in it. Raises `DataError` for a damaged one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_table(path, CALLS)
        there = set(self._file.schema_arrow.names)
        self._names = [name for name in CALL if name in there]
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = list(accumulate(sizes, initial=0))
        self._piece = lru_cache(_PIECES)(self._read_piece)
        self._group = lru_cache(_GROUPS)(self._read_group)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def places(self) -> Iterator[tuple[RowKey, range]]:
        """The rows of each question."""
        last, start, row = None, 0, 0
        with damage_of(self._path):
            for batch in self._file.iter_batches(_BATCH, columns=_KEY):
                for key in zip(*(batch[name].to_pylist() for name in _KEY), strict=True):
                    if key != last:
                        if last is not None:
                            yield last, range(start, row)
                        last, start = key, row
                    row += 1
        if last is not None:
            yield last, range(start, row)

    def at(self, rows: range) -> list[dict[str, Any]]:
        """The calls in these rows."""
        calls: list[dict[str, Any]] = []
        while len(calls) < len(rows):
            number, place = divmod(rows[len(calls)], _PIECE)
            calls += self._piece(number)[place : place + len(rows) - len(calls)]
        return calls

    def _read_piece(self, number: int) -> list[dict[str, Any]]:
        first, end = number * _PIECE, (number + 1) * _PIECE
        parts = [
            self._group(group).slice(max(0, first - start), end - max(first, start))
            for group, start in enumerate(self._starts[:-1])
            if start < end and self._starts[group + 1] > first
        ]
        with damage_of(self._path):
            calls: list[dict[str, Any]] = pa.concat_tables(parts).to_pylist()
        return calls

    def _read_group(self, number: int) -> pa.Table:
        with damage_of(self._path):
            return self._file.read_row_group(number, columns=self._names)
