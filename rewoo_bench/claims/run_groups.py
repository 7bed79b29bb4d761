"""Run folders -> what there is to test claims on: one model, one set of questions, one condition of the tools.

    gather("results/local/a", "results/local/b")
    [Evidence(data="hotpotqa", dataset="hotpotqa", model="openai/small", failure_rate=0.0, …)]

Runs of the same questions, model and settings are put together, so that ReWOO and ReAct may come from
two runs; a run that has an architecture again (a variant of it, the same once more) stands alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow.parquet as pq

from rewoo_bench.claims.derived_columns import KEY, derived
from rewoo_bench.errors import DataError
from rewoo_bench.model_names import REPLAY, is_oracle
from rewoo_bench.runs.comparability import queued
from rewoo_bench.runs.failed_rows import failed
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, load
from rewoo_bench.runs.manifest import MANIFEST, DatasetFacts, Manifest, read_manifest
from rewoo_bench.runs.options import options_that

if TYPE_CHECKING:
    import pandas as pd

Data = Literal["hotpotqa", "triviaqa", "chain", "sample", "other"]
_SHAPE = r"chain-(?P<hops>\d+)x(?P<width>\d+)(?:\+(?P<unforeseen>\d+))?"
# Options that two runs must share to be put together, and for one to be held against the other.
_SETTINGS = options_that(lambda matters: matters.claims)


@dataclass(frozen=True)
class System:
    """One architecture's part of a run: its rows, indexed by question and trial, and where its calls are."""

    architecture: str
    rows: pd.DataFrame
    calls_file: Path
    tools: int | None
    """How many tools it offers the model."""
    unasked: int = 0
    """Rows that the whole run has and this has not; 0 of a part of a data set, where nobody knows."""

    @cached_property
    def calls(self) -> pd.DataFrame | None:
        """Its rows of calls.parquet; None where the run has no such file."""
        if not self.calls_file.is_file():
            return None
        here = [("architecture", "=", self.architecture)]
        found: pd.DataFrame = pq.read_table(self.calls_file, filters=here).to_pandas()
        return found

    def column(self, name: str) -> pd.Series[float] | None:
        """A column of the files, or one derived from them, without failed questions; None where there is no such."""
        found = derived(name, self.rows, self.calls)
        return None if found is None else found.loc[self.rows.index[~failed(self.rows)]]


@dataclass(frozen=True)
class Evidence:
    """What one model did on one set of questions under one condition."""

    data: Data
    dataset: str
    model: str
    failure_rate: float
    failure_mode: str
    base: str
    """The same for evidence that differs in nothing but the condition, and in how many questions there are."""
    ids: str
    runs: tuple[str, ...]
    complete: bool
    systems: Mapping[str, System]
    queued: bool = False
    """Whether its questions shared a model on this machine: their seconds are those of a queue."""
    ambiguous: bool = False
    """Whether there is other evidence that only its run tells from this."""

    @property
    def oracle(self) -> bool:
        """Whether its accuracy and its latency mean nothing."""
        return is_oracle(self.model)

    @property
    def replay(self) -> bool:
        """Whether its answers are those of another run."""
        return self.model.startswith(REPLAY)

    @property
    def label(self) -> str:
        """`hotpotqa (dev.json), openai/small, 50% of tool calls failing (empty), run 18d7`."""
        named = self.dataset
        if self.data != "other" and not named.startswith(self.data):
            named = f"{self.data} ({named})"
        failing = f"{self.failure_rate:.0%} of tool calls failing ({self.failure_mode})" if self.failure_rate else ""
        run = f"run {self.runs[0].rpartition('-')[2]}" if self.ambiguous else ""
        return ", ".join(filter(None, [named, self.model, failing, run, "" if self.complete else "unfinished"]))

    def only(self, least_steps: int | None, most_steps: int | None, unforeseen: bool | None) -> Evidence | None:
        """The same with those questions of the chain data set only that fit; None where none does."""
        if least_steps is None and most_steps is None and unforeseen is None:
            return self
        if self.data != "chain":
            return None
        kept = {}
        for name, system in self.systems.items():
            shape, steps = _shapes(system.rows), steps_of(system.rows)
            there = (steps >= (least_steps or 0)) & (steps <= (most_steps or steps.max()))
            if unforeseen is not None:
                there &= shape["unforeseen"].notna() == unforeseen
            kept[name] = replace(system, rows=system.rows[there], unasked=0)
        return replace(self, systems=kept) if any(len(system.rows) for system in kept.values()) else None


def steps_of(rows: pd.DataFrame) -> pd.Series[float]:
    """Look-ups that each question of the chain data set takes."""
    shape = _shapes(rows)
    return shape["hops"].astype(float) * shape["width"].astype(float)


def _shapes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows["question_type"].astype(str).str.extract(_SHAPE).astype(object)


def gather(*runs: str | Path) -> list[Evidence]:
    """All that there is in the runs' folders, in their order. Raises `DataError`."""
    gathered: list[Evidence] = []
    for run in dict.fromkeys(map(Path, runs)):
        folder = run if run.is_dir() else run.parent
        if not (folder / MANIFEST).is_file():
            raise DataError(f"{str(run)!r} has no {MANIFEST}: expected a run folder, which says what was run")
        _add(_evidence(folder, read_manifest(folder)), gathered)
    labels = [each.label for each in gathered]
    return [replace(each, ambiguous=labels.count(each.label) > 1) for each in gathered]


def _add(new: Evidence, gathered: list[Evidence]) -> None:
    """Puts the run to the first that it belongs to, or behind them all."""
    for place, each in enumerate(gathered):
        alike = (each.base, each.ids, each.failure_rate, each.failure_mode) == (
            new.base, new.ids, new.failure_rate, new.failure_mode
        )  # fmt: skip
        if alike and not set(each.systems) & set(new.systems):
            both, complete = {**each.systems, **new.systems}, each.complete and new.complete
            waits, names = each.queued or new.queued, (*each.runs, *new.runs)
            gathered[place] = replace(each, systems=both, runs=names, complete=complete, queued=waits)
            return
    gathered.append(new)


def _evidence(folder: Path, manifest: Manifest) -> Evidence:
    rows = load(folder / QUESTIONS_FILE)
    if not len(rows):
        raise DataError(f"{folder} has no finished question")
    options, dataset = manifest.options, manifest.dataset
    models = [str(rows[name].iloc[0]) for name in ("model", "planner_model", "solver_model")]
    source = dataset.source
    same = {
        "dataset": [dataset.name, dataset.format, dataset.split, dataset.seed],
        "source": [source.get(name) for name in ("sha256", "hub", "config", "revision")],
        "corpus": manifest.corpus.content_hash if manifest.corpus else None,
        "models": models,
        "settings": [options.get(name) for name in _SETTINGS],
    }
    rate = float(options.get("tool_failure_rate") or 0.0)
    return Evidence(
        data=_data(dataset),
        dataset=str(rows["dataset"].iloc[0]),
        model=_model(*models),
        failure_rate=rate,
        failure_mode=str(options.get("tool_failure_mode", "empty")) if rate else "",
        base=json.dumps(same, sort_keys=True),
        ids=str(dataset.ids_hash),
        runs=(manifest.run_id,),
        complete=manifest.status == "done",
        systems={system.architecture: system for system in _systems(rows, folder, manifest)},
        queued=bool(queued(manifest)),
    )


def _systems(rows: pd.DataFrame, folder: Path, manifest: Manifest) -> Iterator[System]:
    tools = {each.name: len(each.tools) for each in manifest.architectures}
    for name, group in rows.groupby("architecture", sort=False, observed=True):
        indexed = group.set_index(KEY)
        if indexed.index.has_duplicates:
            raise DataError(f"{folder}: {name!r} has the question {indexed.index[indexed.index.duplicated()][0]} twice")
        unasked = max(0, _asked_for(manifest) - len(indexed))
        yield System(str(name), indexed, folder / CALLS_FILE, tools.get(str(name)), unasked)


def _asked_for(manifest: Manifest) -> int:
    """How many rows each architecture has in the whole run; 0 where an older manifest doesn't say."""
    questions = manifest.dataset.examples or 0
    return int(questions * (manifest.options.get("trials") or 1))


def _data(dataset: DatasetFacts) -> Data:
    """Which data set the claims would call it, whatever the name of its file."""
    if dataset.format in ("hotpotqa", "triviaqa"):
        return "hotpotqa" if dataset.format == "hotpotqa" else "triviaqa"
    if dataset.source.get("generator") == "chain":
        return "chain"
    return "sample" if dataset.name == "sample" else "other"


def _model(model: str, planner: str, solver: str) -> str:
    roles = [
        f"{role} {name}" for role, name in (("planner", planner), ("solver", solver)) if name not in (model, "None")
    ]
    return " + ".join([model, *roles])


def before(each: Evidence, gathered: Sequence[Evidence]) -> list[Evidence]:
    """Evidence of the same questions, model and settings, where no tool was made to fail."""
    return [other for other in gathered if other.base == each.base and not other.failure_rate]
