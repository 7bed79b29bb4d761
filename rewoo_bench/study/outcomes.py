"""A study's runs -> the table of each, what its declared outcomes come to, and every figure by a name.

    found = read_results(study, Path("results/local/study"))
    found.outcomes[0].verdict            # "react takes more"
    found.figures["main/hotpotqa/qwen/rewoo/total_tokens"].text

An outcome is decided on the questions that all architectures of its run have finished. The outcomes of a family are
adjusted for their number together (Holm), those of every data set and model among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rewoo_bench.analysis.pairs import ALPHA
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.analysis.stats.paired import (
    Floats,
    Interval,
    difference_and_p,
    difference_of_proportions,
    mean_of,
    proportion,
    ratio_and_p,
)
from rewoo_bench.analysis.stats.tests import holm, minimum_detectable_difference
from rewoo_bench.analysis.stats.trials import by_trials, flips, pass_hat
from rewoo_bench.errors import DataError
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import Manifest, read_manifest
from rewoo_bench.runs.rows import left_out
from rewoo_bench.study.declaration import Cell, Outcome, Study
from rewoo_bench.study.status import why_exploratory

PAIR = ("react", "rewoo")
"""The architectures that the study is about, in any form (`react?repeat_guard=stop`)."""
_ROUND = 1e-6
_AMOUNTS = ("total_tokens", "llm_calls", "input_tokens", "output_tokens")


@dataclass(frozen=True)
class Figure:
    """A number of the study."""

    interval: Interval
    form: str = ".2f"

    @property
    def text(self) -> str:
        """`3.36 [2.89, 3.91]`."""
        value = self.interval
        if not value.n:
            return "-"
        return f"{value.estimate:{self.form}} [{value.low:{self.form}}, {value.high:{self.form}}]"


@dataclass(frozen=True)
class Decided:
    """A declared outcome on one data set with one model."""

    outcome: Outcome
    dataset: str
    model: str
    interval: Interval
    p: float
    """Of the null hypothesis: a ratio of 1, no difference, or a difference of the margin and more."""
    exploratory: str | None = None
    detectable: float | None = None
    """Of exact match: the smallest difference that exact McNemar shows 4 times in 5 on so many questions."""
    p_holm: float = math.nan

    @property
    def verdict(self) -> str:
        """What the interval shows, in words."""
        first, second = self.outcome.architectures
        value = self.interval
        if not value.n:
            return "no data"
        shown = self.p_holm < ALPHA and not value.rare
        if self.outcome.statistic == "non-inferiority":
            assert self.outcome.margin is not None
            if value.high < -self.outcome.margin:
                return f"{first} is worse by more than {self.outcome.margin:g}"
            return f"{first} is at most {self.outcome.margin:g} worse" if shown else "undecided"
        null = 1.0 if self.outcome.statistic == "ratio" else 0.0
        if not shown:
            return "undecided"
        return f"{first if value.low > null else second} takes more" if null else f"{first} and {second} differ"


@dataclass
class CellResults:
    """A run of the study: its rows on the questions that all of its architectures have."""

    cell: Cell
    manifest: Manifest
    rows: pd.DataFrame
    exploratory: str | None
    dollars: Mapping[str, Floats]
    """Dollars of each row under each price of `SHOWN`."""

    @property
    def n(self) -> int:
        return int(self.rows["example_id"].nunique())

    def of(self, architecture: str, column: str) -> pd.Series[float]:
        """A column of an architecture by question, the trials of a question averaged; dollars by their price."""
        values = pd.Series(self.dollars[column], self.rows.index) if column in self.dollars else self.rows[column]
        own = (self.rows["architecture"] == architecture) & ~left_out(self.rows)
        return values[own].astype(float).groupby(self.rows["example_id"][own].astype(str)).mean()

    def both(self, first: str, second: str, column: str) -> tuple[Floats, Floats]:
        """The values of two architectures on their shared questions."""
        pair = pd.concat([self.of(first, column), self.of(second, column)], axis=1, join="inner").dropna()
        return pair.iloc[:, 0].to_numpy(), pair.iloc[:, 1].to_numpy()


@dataclass
class StudyResults:
    """Everything that is published of a study, computed from the tables of its runs."""

    study: Study
    cells: Sequence[CellResults]
    outcomes: Sequence[Decided]
    figures: Mapping[str, Figure] = field(default_factory=dict)


def read_results(study: Study, folder: Path, cells: Sequence[Cell] | None = None) -> StudyResults:
    """The results of the runs that have any. Raises `DataError` where none has."""
    found = [each for cell in cells or study.cells if (each := _cell(study, cell, folder / cell.name)) is not None]
    if not found:
        raise DataError(f"{str(folder)!r} has no run of the study: begin with rewoo-bench study run {study.file}")
    outcomes = _decided(study, found)
    figures = {name: figure for each in found for name, figure in _figures(each)}
    figures |= {f"{each.outcome.name}/{each.dataset}/{each.model}": _of_outcome(each) for each in outcomes}
    return StudyResults(study, found, outcomes, figures)


def _cell(study: Study, cell: Cell, folder: Path) -> CellResults | None:
    try:
        manifest, rows = read_manifest(folder), load(folder)
    except DataError:
        return None
    if not len(rows):
        return None
    asked = rows.groupby("example_id", observed=True)["architecture"].nunique()
    whole = rows[rows["example_id"].isin(asked.index[asked == rows["architecture"].nunique()])].reset_index(drop=True)
    try:
        priced = priced_rows([folder], whole, [[name] for name in SHOWN])
        dollars = {name: each.usd for name, each in zip(SHOWN, priced, strict=True)}
    except DataError:
        dollars = {name: np.full(len(whole), np.nan) for name in SHOWN}
    return CellResults(cell, manifest, whole, why_exploratory(study, cell, manifest), dollars)


def _decided(study: Study, cells: Sequence[CellResults]) -> list[Decided]:
    found = [
        _decide(outcome, each)
        for outcome in study.spec.outcomes
        for each in cells
        if each.cell.cells == outcome.cells
        and outcome.dataset in (None, each.cell.dataset)
        and outcome.model in (None, each.cell.model)
        and not each.cell.conditions
    ]
    families: dict[str, list[int]] = {}
    for place, each in enumerate(found):
        if each.exploratory is None and each.interval.n:
            families.setdefault(each.outcome.family, []).append(place)
    for places in families.values():
        for place, adjusted in zip(places, holm([found[place].p for place in places]), strict=True):
            found[place] = replace(found[place], p_holm=adjusted)
    return found


def _decide(outcome: Outcome, of: CellResults) -> Decided:
    first, second = outcome.architectures
    column = outcome.prices or "none" if outcome.measure == "cost_usd" else outcome.measure
    a, b = of.both(first, second, column)
    more = of.cell.dataset, of.cell.model
    if outcome.statistic == "ratio":
        interval, p = ratio_and_p(b, a, None)
        return Decided(outcome, *more, interval, p, of.exploratory)
    margin = outcome.margin or 0.0 if outcome.statistic == "non-inferiority" else 0.0
    shown = minimum_detectable_difference(float((a != b).mean()), float(len(a)), ALPHA) if len(a) else math.nan
    return Decided(outcome, *more, _difference(b, a), _p_of_difference(b, a, -margin), of.exploratory, shown)


def _difference(a: Floats, b: Floats, level: float = 0.95) -> Interval:
    """The mean of b less that of a, of scores from 0 to 1."""
    if np.isin(np.concatenate([a, b]), (0, 1)).all():
        return difference_of_proportions(a, b, level=level)
    return difference_and_p(a, b, (0.0, 1.0), None, level)[0]


def _p_of_difference(a: Floats, b: Floats, null: float) -> float:
    """One less the level of the interval that ends at `null`: below 0.05 where the 95% interval leaves it out."""
    if not len(a):
        return math.nan
    is_above = float(b.mean() - a.mean()) > null
    low, high = _ROUND, 1 - _ROUND  # of p
    while high - low > _ROUND:
        middle = (low + high) / 2
        interval = _difference(a, b, 1 - middle)
        is_out = interval.low > null if is_above else interval.high < null
        low, high = (low, middle) if is_out else (middle, high)
    return high


def family(architecture: str) -> str:
    """`react` of `react?repeat_guard=stop`."""
    return architecture.partition("?")[0]


def _of_outcome(decided: Decided) -> Figure:
    return Figure(decided.interval, "+.3f" if decided.outcome.statistic != "ratio" else ".2f")


def _figures(of: CellResults) -> Iterator[tuple[str, Figure]]:
    """Means of each architecture; ratios and differences with the first one, and of each ReAct with each ReWOO."""
    cell = of.cell
    where = cell.name
    names = list(cell.options.architectures)
    for name in names:
        own = of.rows[(of.rows["architecture"] == name) & ~left_out(of.rows)]
        scores, questions = own["exact_match"].astype(float).to_numpy(), own["example_id"].astype(str).to_numpy()
        known = ~np.isnan(scores)
        yield f"{where}/{name}/exact_match", Figure(proportion(scores[known], clusters=questions[known]))
        outcomes = by_trials(scores, questions)
        if (trials := int(outcomes.trials.max(initial=0))) > 1:
            yield f"{where}/{name}/pass^{trials}", Figure(pass_hat(outcomes, trials))
            yield f"{where}/{name}/flips", Figure(flips(outcomes))
        for column in _AMOUNTS:
            form = ",.0f" if column.endswith("tokens") else ".2f"
            yield f"{where}/{name}/{column}", Figure(mean_of(of.of(name, column).dropna().to_numpy()), form)
        for price in SHOWN:
            yield f"{where}/{name}/{price}", Figure(mean_of(1000 * of.of(name, price).dropna().to_numpy()), ".3f")
        loops = own["loop_tokens"].astype(float)
        if loops.notna().any():
            share = float(loops.sum() / own["total_tokens"].astype(float).sum())
            yield f"{where}/{name}/in loops", Figure(Interval(share, share, share, of.n), ".0%")
    for first in names:
        for second in names:
            is_loop_and_plan = family(first) == PAIR[0] and family(second) == PAIR[1]
            if first == second or not (is_loop_and_plan or second == names[0] or names == [second, first]):
                continue
            pair = f"{where}/{first} / {second}"
            for column in ("total_tokens", *SHOWN):
                a, b = of.both(first, second, column)
                yield f"{pair}/{column}", Figure(ratio_and_p(b, a, None)[0])
            a, b = of.both(first, second, "exact_match")
            if len(a):
                yield f"{where}/{first} - {second}/exact_match", Figure(_difference(b, a), "+.3f")
