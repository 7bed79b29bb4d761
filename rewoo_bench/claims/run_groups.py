"""Run folders -> run groups, which claims are tested on: one model, one set of questions, one condition of the tools.

    gather("results/local/a", "results/local/b")
    [RunGroup(data="hotpotqa", dataset="hotpotqa", model="openai/small", failure_rate=0.0, …)]

Runs of the same questions, model and settings form one group, so that ReWOO and ReAct may come from two runs.
A run with an architecture that the group already has forms a group of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from rewoo_bench.claims.data_sets import BY_FORMAT, Data
from rewoo_bench.claims.derived_columns import KEY, derived
from rewoo_bench.errors import DataError
from rewoo_bench.model_names import REPLAY
from rewoo_bench.runs.columns import CALLS
from rewoo_bench.runs.comparability import queued
from rewoo_bench.runs.failed_rows import left_out
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, load, read_table
from rewoo_bench.runs.manifest import MANIFEST, ArchitectureFacts, DatasetFacts, Manifest, no_run, read_manifest
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.oracle_rows import oracle_rows

if TYPE_CHECKING:
    import pandas as pd

_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_SHAPE = r"chain-(?P<hops>\d+)x(?P<width>\d+)(?:\+(?P<unforeseen>\d+))?"
# Options that runs must share to form a group, and groups must share to be compared.
_SETTINGS = options_that(lambda role: role.claims)


@dataclass(frozen=True)
class ArchitectureRows:
    """One architecture's part of a run: its rows, indexed by question and trial, and the file of its calls."""

    architecture: str
    rows: pd.DataFrame
    calls_file: Path
    run: str = ""
    """The run's folder, as short as it can be told from the others."""
    tools: int | None = None
    """Number of tools that it offers the model."""
    exemplars: int = 0
    """Number of exemplars in its prompts."""
    unlike_paper: tuple[str, ...] = ()
    """In what its form isn't that of its paper, as in runs made before that was the default."""
    complete: bool = True
    never_asked: int = 0
    """Rows that a stopped run lacks; 0 for a part of a data set, where the number isn't known."""

    @cached_property
    def calls(self) -> pd.DataFrame | None:
        """Its rows of calls.parquet; None where the run has no such file."""
        if not self.calls_file.is_file():
            return None
        calls = read_table(self.calls_file, CALLS)
        own: pd.DataFrame = calls.filter(pc.equal(calls["architecture"], self.architecture)).to_pandas()
        return own

    def column(self, name: str) -> pd.Series[float] | None:
        """A column of the files, or one derived from them, without failed questions; None where there is none."""
        column = derived(name, self.rows, self.calls, self.calls_file.parent)
        return None if column is None else column.loc[self.rows.index[~left_out(self.rows)]]


@dataclass(frozen=True)
class RunGroup:
    """Runs of one model on one set of questions under one condition of the tools."""

    data: Data
    dataset: str
    model: str
    failure_rate: float
    failure_mode: str
    base: str
    """Equal for groups that differ only in the condition of the tools and in the number of questions."""
    ids: str
    architectures: Mapping[str, ArchitectureRows]
    parameters: float | None = None
    """Parameters of its smallest model, from run.json or from a name such as `qwen-1.5b`; None where neither says."""
    judge_parameters: float | None = None
    """Parameters of the judge; None where there is none, or where neither says."""
    queued: bool = False
    """Whether its questions shared a model on one machine: latency includes waiting for the model."""
    oracle: bool = False
    """Whether an oracle answered, or a replay of one: accuracy and latency mean nothing."""
    settings: str = ""
    """Equal for groups of the same models and settings, whatever their data set."""

    @property
    def replay(self) -> bool:
        """Whether its answers are replayed from another run."""
        return self.model.startswith(REPLAY)

    def runs(self, architectures: Iterable[str] = ()) -> tuple[str, ...]:
        """The runs with these architectures' rows; of all architectures where none is named."""
        wanted = set(architectures) or set(self.architectures)
        return tuple(dict.fromkeys(own.run for name, own in self.architectures.items() if name in wanted))

    def questions(self, architecture: str) -> frozenset[str]:
        """The ids of its questions."""
        return frozenset(self.architectures[architecture].rows.index.get_level_values("example_id"))

    @property
    def label(self) -> str:
        """`hotpotqa (dev.json), openai/small, 50% of tool calls failing (empty)`."""
        dataset = self.dataset
        if self.data != "other" and not dataset.startswith(self.data):
            dataset = f"{self.data} ({dataset})"
        failing = f"{self.failure_rate:.0%} of tool calls failing ({self.failure_mode})" if self.failure_rate else ""
        return ", ".join(filter(None, [dataset, self.model, failing]))

    def of_type(self, question_type: str) -> RunGroup | None:
        """The same with the questions of one type only; None where there is none."""
        kept = {
            name: replace(own, rows=own.rows[own.rows["question_type"].astype(str) == question_type], never_asked=0)
            for name, own in self.architectures.items()
        }
        return replace(self, architectures=kept) if any(len(own.rows) for own in kept.values()) else None

    def only(self, least_steps: int | None, most_steps: int | None, unforeseen: bool | None) -> RunGroup | None:
        """The same with the fitting questions of the chain data set only; None where none fits."""
        if least_steps is None and most_steps is None and unforeseen is None:
            return self
        if self.data != "chain":
            return None
        kept = {}
        for name, own in self.architectures.items():
            shape, steps = _shapes(own.rows), steps_of(own.rows)
            fits = (steps >= (least_steps or 0)) & (steps <= (most_steps or steps.max()))
            if unforeseen is not None:
                fits &= shape["unforeseen"].notna() == unforeseen
            kept[name] = replace(own, rows=own.rows[fits], never_asked=0)
        return replace(self, architectures=kept) if any(len(own.rows) for own in kept.values()) else None


def steps_of(rows: pd.DataFrame) -> pd.Series[float]:
    """Look-ups that each question of the chain data set needs."""
    shape = _shapes(rows)
    return shape["hops"].astype(float) * shape["width"].astype(float)


def _shapes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows["question_type"].astype(str).str.extract(_SHAPE).astype(object)


def gather(*runs: str | Path) -> list[RunGroup]:
    """The run groups of these run folders, in their order. Raises `DataError`."""
    folders = []
    for run in dict.fromkeys(map(Path, runs)):
        if not run.is_dir() and run.name != QUESTIONS_FILE:
            raise no_run(run, MANIFEST)
        folders.append(run if run.is_dir() else run.parent)
        if not (folders[-1] / MANIFEST).is_file():
            raise no_run(folders[-1], MANIFEST)
    groups: list[RunGroup] = []
    where = os.path.commonpath([folder.resolve().parent for folder in folders]) if folders else ""
    for folder in folders:
        name = folder.resolve().relative_to(where).as_posix()
        _add(_run_group(folder, name, read_manifest(folder)), groups)
    return groups


def _add(new: RunGroup, groups: list[RunGroup]) -> None:
    """Adds a run to the first group that it belongs to, or as a group of its own."""
    for position, each in enumerate(groups):
        alike = (each.base, each.ids, each.failure_rate, each.failure_mode) == (
            new.base, new.ids, new.failure_rate, new.failure_mode
        )  # fmt: skip
        if alike and not set(each.architectures) & set(new.architectures):
            groups[position] = replace(
                each,
                architectures={**each.architectures, **new.architectures},
                queued=each.queued or new.queued,
            )
            return
    groups.append(new)


def _run_group(folder: Path, name: str, manifest: Manifest) -> RunGroup:
    rows = load(folder)
    if not len(rows):
        raise DataError(f"{folder} has no finished question")
    options, dataset = manifest.options, manifest.dataset
    models = [str(rows[name].iloc[0]) for name in ("model", "planner_model", "solver_model")]
    source = dataset.source
    settings = {"models": models, "settings": [options.get(name) for name in _SETTINGS]}
    same = {
        "dataset": [dataset.name, dataset.format, dataset.split, dataset.seed],
        "source": [source.get(name) for name in ("sha256", "hub", "config", "revision")],
        "corpus": manifest.corpus.content_hash if manifest.corpus else None,
        **settings,
    }
    rate = float(options.get("tool_failure_rate") or 0.0)
    return RunGroup(
        data=_data(dataset),
        dataset=str(rows["dataset"].iloc[0]),
        model=_model(*models),
        failure_rate=rate,
        failure_mode=str(options.get("tool_failure_mode", "empty")) if rate else "",
        base=json.dumps(same, sort_keys=True),
        ids=str(dataset.ids_hash),
        architectures={own.architecture: own for own in _architectures(rows, folder, name, manifest)},
        parameters=_parameters(models, manifest),
        judge_parameters=_parameters([str(options.get("judge_model"))], manifest),
        queued=bool(queued(manifest)),
        oracle=bool(oracle_rows(rows).any()),
        settings=json.dumps(settings, sort_keys=True),
    )


def _architectures(rows: pd.DataFrame, folder: Path, run: str, manifest: Manifest) -> Iterator[ArchitectureRows]:
    facts = {each.name: each for each in manifest.architectures}
    for name, group in rows.groupby("architecture", sort=False, observed=True):
        indexed = group.set_index(KEY)
        if indexed.index.has_duplicates:
            raise DataError(f"{folder}: {name!r} has the question {indexed.index[indexed.index.duplicated()][0]} twice")
        own = facts.get(str(name))
        yield ArchitectureRows(
            str(name),
            indexed,
            folder / CALLS_FILE,
            run,
            tools=len(own.tools) if own else None,
            exemplars=sum(own.exemplars.values()) if own else 0,
            unlike_paper=tuple(_unlike_paper(own)) if own else (),
            complete=manifest.status == "done",
            never_asked=max(0, _expected_rows(manifest) - len(indexed)),
        )


def _unlike_paper(own: ArchitectureFacts) -> Iterator[str]:
    """In what ReWOO and ReAct weren't as in their papers before that was the default."""
    settings = own.settings or {}
    if own.name == "rewoo" and own.exemplars.get("solver"):
        yield "ReWOO's solver has an exemplar"
    if own.name == "rewoo" and settings.get("max_replans"):
        yield "a broken plan is made anew"
    if own.name == "react" and settings.get("answer_at_limit", settings.get("partial_answer")):
        yield "ReAct is asked for an answer at its limit"


def _parameters(models: Sequence[str], manifest: Manifest) -> float | None:
    """Of the smallest of these models: as their files say, else as the name does; None where that isn't known."""
    known = {each["name"]: each["parameters"] for each in manifest.models.values() if each.get("parameters")}
    sizes = [known.get(model) or _named_size(model) for model in models if model != "None"]
    return min((float(size) for size in sizes if size), default=None)


def _named_size(model: str) -> float | None:
    """The number of parameters that a name gives: 1.5e9 of `qwen2.5-coder-1.5b`."""
    sizes = [float(number) * {"b": 1e9, "m": 1e6}[unit.lower()] for number, unit in _SIZE.findall(model)]
    return sizes[-1] if sizes else None


def _expected_rows(manifest: Manifest) -> int:
    """Rows of each architecture in the whole run; 0 where an older manifest doesn't say."""
    questions = manifest.dataset.examples or 0
    return int(questions * (manifest.options.get("trials") or 1))


def _data(dataset: DatasetFacts) -> Data:
    """The claims' name of the data set, whatever its file is called."""
    for data in BY_FORMAT:
        if data == dataset.format:
            return data
    if dataset.source.get("generator") == "chain":
        return "chain"
    return "sample" if dataset.name == "sample" else "other"


def _model(model: str, planner: str, solver: str) -> str:
    roles = [
        f"{role} {name}" for role, name in (("planner", planner), ("solver", solver)) if name not in (model, "None")
    ]
    return " + ".join([model, *roles])


def before(each: RunGroup, groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Groups with the same data set, model and settings, in which no tool was made to fail."""
    return [other for other in groups if other.base == each.base and not other.failure_rate]
