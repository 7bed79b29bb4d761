"""The results of an evaluation in memory: a sequence of `Result` that is also the tables of a run.

results = await rewoo_bench.evaluate("sample", ["rewoo", "react"])
results[0].trajectory.answer
results.to_frame()["total_tokens"].mean()       # the columns of questions.parquet
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rewoo_bench.evaluation.tasks import Result

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Results(Sequence[Result]):
    """Results in the order of the tables, and the run that they are of. `columns` are those that all rows share.

    `folder` is the run's folder where one was written. `status` is `done`, or `incomplete` for `reason`.
    """

    def __init__(
        self,
        results: Iterable[Result],
        columns: Mapping[str, Any],
        *,
        folder: Path | None = None,
        status: str = "done",
        reason: str | None = None,
    ) -> None:
        self._results = list(results)
        self._columns = columns
        self.folder = folder
        self.status = status
        self.reason = reason

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...

    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        return self._results[index]

    def __repr__(self) -> str:
        where = f" in {str(self.folder)!r}" if self.folder else ""
        return f"<{len(self)} results of run {self._columns['run_id']!r}{where}, {self.status}>"

    def to_frame(self) -> pd.DataFrame:
        """A row for each result, with the columns and types of `rewoo_bench.load`."""
        from rewoo_bench.runs.folder import as_frame

        return as_frame(self._tables[0])

    def calls_to_frame(self) -> pd.DataFrame:
        """A row for each model or tool call: the columns of calls.parquet."""
        frame: pd.DataFrame = self._tables[1].to_pandas()
        return frame

    @cached_property
    def _tables(self) -> tuple[pa.Table, pa.Table]:
        from rewoo_bench.evaluation.rows import lines_of
        from rewoo_bench.journal_tables import tables_of
        from rewoo_bench.runs.columns import CALLS, QUESTIONS

        rows = [lines_of(result, self._columns)[1].decode() for result in self._results]
        return tables_of(rows) if rows else (QUESTIONS.empty_table(), CALLS.empty_table())
