"""The data of figures: rows, calls and manifests of some runs, split into the parts that are drawn together.

data = read(["results/local/my-run"])
for part in data.split():           # a data set with a model each
    part.facts()                    # "n = 50 questions · local/smollm2-135m · hotpotqa · 2026-11-22"
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import PRICED_COLUMNS
from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.prices import of_dollars, pricing_of
from rewoo_bench.analysis.stats.paired import Floats, Interval, mean_of, proportion
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots.style import SeriesStyle, series_styles
from rewoo_bench.runs.columns import CALLS, PARTS, QUESTIONS
from rewoo_bench.runs.comparability import unfinished
from rewoo_bench.runs.folder import CALLS_FILE, load, manifests, read_table
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import (
    Rows,
    check_columns,
    left_out,
    model_labels,
)

_CALLS = ["run_id", "call_index", "place", "status", *PARTS, *PRICED_COLUMNS]
_ROW = ["run_id", "architecture", "example_id", "trial"]
_WHAT_RAN = ["dataset", "model", "planner_model", "solver_model"]


@dataclass(frozen=True)
class PlotData:
    """Rows of questions.parquet, of calls.parquet, and run.json by run id where there is one."""

    rows: pd.DataFrame
    calls: pd.DataFrame
    manifests: Manifests
    styles: Mapping[str, SeriesStyle]
    """Of every architecture of these runs, so that it has the same colour and marker in each figure."""
    dollars: str = ""
    """At which prices dollars are; empty where none are known."""
    failed: pd.DataFrame | None = None
    """Rows left out: those that the infrastructure failed, and unmetered ones (runs/rows.py)."""

    @property
    def architectures(self) -> list[str]:
        """In the order of the rows."""
        return [str(name) for name in self.rows["architecture"].unique()]

    @property
    def model(self) -> str:
        """The model, with another planner or solver in brackets; several models are joined by `and`."""
        return " and ".join(model_labels(Rows(self.rows)))

    @property
    def dataset(self) -> str:
        return " and ".join(str(name) for name in self.rows["dataset"].unique())

    @property
    def oracle(self) -> bool:
        """Whether an oracle answered any row: its accuracy and its seconds mean nothing."""
        return bool(Rows(self.rows).oracle.any())

    @property
    def trials(self) -> int:
        return int(self.rows["trial"].max()) + 1

    @property
    def point(self) -> str:
        """What a point in a figure is: the caption's word for a row."""
        return "a question" if self.trials == 1 else "a trial of a question"

    def of(self, architecture: str) -> pd.DataFrame:
        """The rows of an architecture."""
        return self.rows[self.rows["architecture"] == architecture]

    def only(self, rows: pd.DataFrame) -> PlotData:
        """The same with some of the rows, and their calls."""
        keys = rows[_ROW].astype({name: str for name in _ROW if name != "trial"})
        return replace(self, rows=rows, calls=self.calls.merge(keys, on=_ROW))

    def split(self, *, faults: bool = True, by_dataset: bool = True) -> Iterator[PlotData]:
        """A part for each data set and model, or for each model; without `faults` not of runs with failing tools."""
        keys = _WHAT_RAN if by_dataset else _WHAT_RAN[1:]
        kept = faults | (self.option("tool_failure_rate", 0.0) == 0).to_numpy(dtype=bool)
        for _, rows in self.rows[kept].groupby(keys, sort=False, observed=True):
            yield self.only(rows)

    def counted(self) -> PlotData:
        """Without failed and unmetered rows; `facts` gives their number. Raises `NothingToDraw` where that is all."""
        mask = left_out(self.rows)
        if mask.all():
            raise NothingToDraw(f"needs questions that count; all {len(self.rows):,} rows failed or were unmetered")
        return replace(self.only(self.rows[~mask]), failed=self.rows[mask])

    def option(self, name: str, default: Any) -> pd.Series[Any]:
        """An option of the run, for every row."""
        values = {run: manifest.options.get(name, default) for run, manifest in self.manifests.items()}
        return self.rows["run_id"].astype(str).map(lambda run: values.get(run, default))

    def check_once(self, *keys: str) -> None:
        """Raises `NothingToDraw` where an architecture ran twice on a question.

        `keys` are columns to use instead of the architecture.
        """
        twice = self.rows.duplicated([*(keys or ("architecture",)), "dataset", "example_id", "trial"])
        if twice.any():
            name = str(self.rows["architecture"].to_numpy()[twice.to_numpy().argmax()])
            runs = ", ".join(sorted(self.of(name)["run_id"].astype(str).unique()))
            raise NothingToDraw(f"needs one run of {name!r} on these questions, not several: {runs}")

    def facts(self, *, n: int | None = None) -> str:
        """The last line of every caption: number of questions (or `n`), model, data set, date."""
        days = self.rows["started_at"].dropna()
        ends = dict.fromkeys(str(moment)[:10] for moment in (days.min(), days.max())) if len(days) else {}
        sizes = self.rows.groupby("architecture", observed=True)["example_id"].nunique()
        of_each = " to ".join(dict.fromkeys(f"{size:,}" for size in (sizes.min(), sizes.max())))
        questions = f"n = {of_each if n is None else f'{n:,}'} questions"
        if self.trials > 1:
            questions += f", {self.trials} trials each"
        own_runs = {run: self.manifests[run] for run in self.rows["run_id"].astype(str) if run in self.manifests}
        questions += ", of an unfinished run" if unfinished(own_runs) else ""
        if self.failed is not None:
            own = self.rows[_WHAT_RAN].drop_duplicates().astype(str)
            lost = self.counts(self.failed.astype(dict.fromkeys(_WHAT_RAN, str)).merge(own, on=_WHAT_RAN))
            questions += f" (left out, failed or unmetered: {lost})" if lost else ""
        return " · ".join(filter(None, (questions, self.model, self.dataset, " to ".join(ends))))

    def counts(self, rows: pd.DataFrame) -> str:
        """`ReAct 2, ReWOO 1`: number of these rows by architecture; empty for no rows."""
        sizes = rows["architecture"].astype(str).value_counts(sort=False)
        return ", ".join(f"{self.styles[str(name)].name} {size:,}" for name, size in sizes.items() if size)


def read(runs: Sequence[str | Path]) -> PlotData:
    """The runs, given as folders or parquet files; of a stopped run, the questions that all its architectures have.

    Raises `DataError`. A run without calls.parquet has no calls.
    """
    rows = load(*runs)
    paths = [(Path(run) if Path(run).is_dir() else Path(run).parent) / CALLS_FILE for run in runs]
    tables = [read_table(path, CALLS, columns=_CALLS).to_pandas() for path in paths if path.is_file()]
    filled = [table for table in tables if len(table)]
    calls = pd.concat(filled, ignore_index=True) if filled else None
    read = manifests(*runs)
    pricing = pricing_of(runs, rows, read)
    return replace(plot_data_of(pricing.of(rows), calls, read), dollars=of_dollars(pricing))


def plot_data_of(rows: pd.DataFrame, calls: pd.DataFrame | None, of_runs: Manifests | None = None) -> PlotData:
    """The same from rows of questions.parquet and of calls.parquet. Raises `DataError`."""
    check_columns(rows.columns, QUESTIONS.names)
    calls = pd.DataFrame(columns=_CALLS) if calls is None else calls.reindex(columns=_CALLS)
    # without the questions that only some architectures of a run have: it may have been stopped in the middle
    architectures = rows.groupby("run_id", observed=True)["architecture"].nunique()
    wanted = rows["run_id"].astype(str).map({str(run): int(count) for run, count in architectures.items()})
    there = rows.groupby(["run_id", "example_id", "trial"], observed=True)["architecture"].transform("size")
    whole = rows[(there.to_numpy() >= wanted.to_numpy()).astype(bool)]
    if len(whole) < len(rows):
        calls = calls.merge(whole[_ROW].astype({"run_id": str, "architecture": str}), on=_ROW)
    return PlotData(whole, calls, of_runs or {}, series_styles(rows["architecture"].astype(str)))


def positive(rows: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    """A mask: True where the column has a number above 0; an empty cell is none."""
    return column(rows, name) > 0


def mean_of_questions(rows: pd.DataFrame, column: str) -> Interval:
    """The mean over questions with its 95% interval; the trials of a question are one observation."""
    known = rows[["dataset", "example_id", column]].dropna()
    values = known.groupby(["dataset", "example_id"], sort=False, observed=True)[column].mean().to_numpy(np.float64)
    if len(values) < 2:
        return Interval(float(values[0]) if len(values) else math.nan, math.nan, math.nan, len(values))
    return mean_of(values)


def share_of(rows: pd.DataFrame, name: str = "exact_match") -> Interval:
    """The share of rows with 1 in a column of 0 and 1, with its 95% interval; NaN where there are none."""
    values = column(rows, name)
    known = ~np.isnan(values)
    found = proportion(values[known], clusters=rows["example_id"].to_numpy(dtype=object)[known])
    return found if found.n else Interval(math.nan, math.nan, math.nan, 0)


def arms(values: Sequence[Interval]) -> Floats:
    """Lengths of error bars, below and above: 2 x len(values); none where there is no bound."""
    below_above = [[value.estimate - value.low, value.high - value.estimate] for value in values]
    lengths: Floats = np.nan_to_num(np.array(below_above, dtype=np.float64), posinf=0.0).T
    return np.maximum(lengths, 0.0)
