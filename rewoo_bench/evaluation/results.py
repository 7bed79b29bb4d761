"""The results of an evaluation in memory: a sequence of `Result` that is also the tables of a run.

results = await rewoo_bench.evaluate("sample", ["rewoo", "react"])
results[0].trajectory.answer
results.to_frame()["total_tokens"].mean()       # the columns of questions.parquet
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.folder import lines_of
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.folder import as_frame
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.tables import tables_of

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
        return as_frame(self._tables[0])

    def calls_to_frame(self) -> pd.DataFrame:
        """A row for each model or tool call: the columns of calls.parquet."""
        frame: pd.DataFrame = self._tables[1].to_pandas()
        return frame

    @cached_property
    def _tables(self) -> tuple[pa.Table, pa.Table]:
        rows = [lines_of(result, self._columns)[1].decode() for result in self._results]
        return tables_of(rows) if rows else (QUESTIONS.empty_table(), CALLS.empty_table())


# How a run, and a session of it, ended.


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `done`, or `incomplete` for the reason given."""

    folder: Path
    status: Literal["done", "incomplete"]
    reason: str | None = None
    is_resumable: bool = True
    """Whether `--resume` can finish an incomplete run; False where every failure would come again."""
    keys: Sequence[TaskKey] = ()
    """Questions x trials x architectures in the order of the tables, finished or not."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The columns of questions.parquet that all rows share."""
    was_interrupted: bool = False
    """Whether a signal ended it; a run may be done for all that."""


@dataclass
class SessionEnd:
    """How a session ends, as it stands here if it is cancelled; and whether another session could do better."""

    status: Literal["done", "incomplete"] = "incomplete"
    reason: str | None = "interrupted"
    wrong: UsageError | None = None
    """The command or its input was wrong, or the provider refused everything (`is_refused`)."""
    is_refused: bool = False
    has_repeated_crash: bool = False
    failed: int = 0
    """Number of failed questions."""
    can_be_retried: bool = False
    """Whether one of them may succeed when it is tried again."""

    def add(self, result: Result) -> None:
        """Counts a result, if it failed."""
        if result.has_failed:
            self.failed += 1
            self.can_be_retried |= result.is_retryable

    def is_failure(self, fail_on_error: float | None, tasks: int) -> bool:
        """Whether failures ended the run before its last question."""
        if fail_on_error is None:
            return self.has_repeated_crash
        return self.has_repeated_crash or self.failed > (fail_on_error * (1 if fail_on_error >= 1 else tasks))
