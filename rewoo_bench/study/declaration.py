"""study.toml -> the runs of a study.

    [study]
    question = "When does planning ahead pay?"

    [models]
    qwen.model = "local/qwen2.5-coder-1.5b"         # each entry: options of `rewoo-bench run`

    [datasets]
    hotpotqa.dataset = "hotpotqa"
    chain.dataset = "chain?hops={hops}"             # {hops} is a condition of the cells

    [[cells]]
    name = "main"
    models = ["qwen"]
    datasets = ["hotpotqa"]
    architectures = ["rewoo", "react"]
    n = 100
    conditions.tool_failure_rate = [0.0, 0.3]

Each combination of model, data set and conditions is a run of these architectures. A condition that isn't the name of
an option has its place, in braces, in the name of the data set or of an architecture. Options of the study hold for
every run; those of a model, a data set and the cells replace them, in this order.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.config.specs import read_values, validated
from rewoo_bench.errors import SpecError, UsageError, unknown
from rewoo_bench.evaluation.question_choice import read_ids
from rewoo_bench.runs.options import OPTIONS, RunOptions, as_values

_OF_A_RUN = frozenset({"architectures", "questions", "out", "resume", "accept_loss", "progress", "report"})
"""Options that the study itself gives to its runs."""
_OF_THIS_MACHINE = frozenset({"ids", "corpus", "failed_in", "wrong_in", "llama_server", "price", "prices"})
"""Options with which a run has other answers and that `--set` may change, beside models and a data set's file."""
_UNFIT = re.compile(r"[^\w.+=-]+")
Value = str | float | int | bool


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class About(_Table):
    """The table `[study]`."""

    title: str = ""
    question: str
    """What the study asks, in a sentence."""
    declared: date | None = None
    """The day on which its outcomes were decided."""
    settings: dict[str, Any] = {}
    """Options of every run."""
    prices: list[str] = []
    """Further prices for ReAct's dollars against ReWOO's in the main cells, as for `--prices`."""


class Cells(_Table):
    """A table `[[cells]]`: a run for each combination of models, data sets and conditions."""

    name: str = Field(pattern=r"^[\w.+-]+$")
    models: list[str] = Field(min_length=1)
    datasets: list[str] = Field(min_length=1)
    architectures: list[str] = Field(min_length=1)
    """Names as for `--arch`, agents as `agent:COMMAND`."""
    n: int | None = Field(default=None, ge=1, strict=True)
    """Questions of each run; None is all that the data set has."""
    conditions: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    settings: dict[str, Any] = {}
    stage: int = Field(default=1, strict=True)
    """Cells of a later stage begin when those of earlier ones have all their questions."""
    exploratory: bool = False
    """Whether no outcome was declared for them."""
    report: bool = False
    """Whether every question is published with its texts, which the data set's licence must allow."""


class Outcome(_Table):
    """A table `[[outcomes]]`: what is decided by the study, declared before its models are asked."""

    name: str
    cells: str
    dataset: str | None = None
    """None for a data set is each of the cells, as an outcome of its own; so for `model`."""
    model: str | None = None
    architectures: tuple[str, str]
    measure: Literal["total_tokens", "input_tokens", "cost_usd", "latency_s", "exact_match", "f1"]
    statistic: Literal["ratio", "difference", "non-inferiority"]
    """A ratio of amounts, or a difference of scores, of the first architecture and the second; `non-inferiority` says
    that the first is at most `margin` worse."""
    prices: str | None = None
    """For `cost_usd`, as for `--prices`; None takes the dollars of the runs."""
    margin: float | None = Field(default=None, gt=0, lt=1)
    family: str = "primary"
    """The outcomes of a family share one error rate (Holm)."""


class StudySpec(_Table):
    """A study.toml."""

    study: About
    models: dict[str, dict[str, Any]]
    datasets: dict[str, dict[str, Any]]
    cells: list[Cells] = Field(min_length=1)
    outcomes: list[Outcome] = []


@dataclass(frozen=True)
class Cell:
    """A run of a study."""

    name: str
    """Its folder."""
    cells: str
    """The name of the table that declares it."""
    model: str
    dataset: str
    conditions: Mapping[str, Value]
    stage: int
    exploratory: bool
    options: RunOptions
    """Without a folder."""
    report: bool = False

    @property
    def conditions_shown(self) -> list[str]:
        """`["tool_failure_rate=0.3"]`."""
        return [f"{name}={value}" for name, value in self.conditions.items()]

    @property
    def title(self) -> str:
        """`hotpotqa, qwen, tool_failure_rate=0.3`."""
        return ", ".join([self.dataset, self.model, *self.conditions_shown])

    @property
    def declared_options(self) -> dict[str, Any]:
        """What the study's file says of its architectures, questions and other options, by name."""
        chosen_elsewhere = _OF_A_RUN - {"architectures", "questions"}
        return {name: getattr(self.options, name) for name in OPTIONS if name not in chosen_elsewhere}


@dataclass(frozen=True)
class Study:
    """A study, read and checked: its declaration and its runs."""

    file: Path
    spec: StudySpec
    cells: Sequence[Cell]
    sha256: str
    """Of all that bears on the outcomes, the ids of questions included. Their number may grow, and cells come later."""
    declared_models: Mapping[str, str]
    """What the file says for `model` of each model that is asked, whatever `--set` puts in its place."""

    def price(self, name: str) -> str:
        """A price as `--prices` has it: a sheet with `./` lies beside the study's file."""
        return _beside(name, self.file.parent)


def read_study(file: Path, changes: Sequence[str] = ()) -> Study:
    """The study of a file. `changes` are values for this machine (`datasets.hotpotqa.dataset=hotpotqa=dev.json`).

    Changes are no part of the declaration, so they leave its hash as it is. Raises `SpecError` and `UsageError`.
    """
    values = read_values(file)
    declared = validated(StudySpec, values, str(file))
    for change in changes:
        _change(values, change)
    spec = validated(StudySpec, values, str(file))
    cells = [cell for table in spec.cells for cell in _cells(spec, table, file)]
    _check_different(file, "runs", [cell.name for cell in cells])
    for outcome in spec.outcomes:
        _check_outcome(spec, outcome, cells, f"{file}: outcome {outcome.name!r}")
    decided = [outcome_name(each, cell) for each in spec.outcomes for cell in cells if decides(each, cell)]
    _check_different(file, "outcomes", decided)
    prices = [*spec.study.prices, *(outcome.prices for outcome in spec.outcomes if outcome.prices)]
    for price in prices:  # now, and not when all runs have been paid
        named_tariff(_beside(price, file.parent))
    models = {cell.model: str(declared.models[cell.model].get("model", "")) for cell in cells}
    return Study(file, spec, cells, _digest(declared, file), models)


def _check_different(file: Path, what: str, names: Sequence[str]) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise SpecError(f"{file}: two {what} would be called {twice[0]!r}: give them different names")


def outcome_name(outcome: Outcome, cell: Cell) -> str:
    """`tokens/hotpotqa/qwen`, with the conditions behind it."""
    return "/".join([outcome.name, cell.dataset, cell.model, *cell.conditions_shown])


def decides(outcome: Outcome, cell: Cell) -> bool:
    """Whether an outcome is one of this run."""
    is_of_cells = cell.cells == outcome.cells and outcome.dataset in (None, cell.dataset)
    is_of_model = outcome.model in (None, cell.model)
    return is_of_cells and is_of_model and {*outcome.architectures} <= {*cell.options.architectures}


def _digest(spec: StudySpec, file: Path) -> str:
    """The sha256 of the question, the outcomes and the cells that these name, without options that change no answer."""
    named = {outcome.cells for outcome in spec.outcomes}
    tables = [table for table in spec.cells if table.name in named]

    def options(of: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: value for name, value in (of or {}).items() if name not in OPTIONS or OPTIONS[name].role.resume}

    datasets = {name: options(spec.datasets.get(name)) for table in tables for name in table.datasets}
    for settings in datasets.values():
        if isinstance(ids := settings.get("ids"), str):
            settings["ids"] = read_ids(file.parent / ids)
    cells = [table.model_dump(exclude={"n", "report"}) for table in tables]
    declared = {
        "study": spec.study.model_dump(exclude={"title", "prices", "settings"})
        | {"settings": options(spec.study.settings)},
        "models": {name: options(spec.models.get(name)) for table in tables for name in table.models},
        "datasets": datasets,
        "cells": [{**cell, "settings": options(cell["settings"])} for cell in cells],
        "outcomes": [outcome.model_dump() for outcome in spec.outcomes],
    }
    return sha256(json.dumps(declared, sort_keys=True, default=str).encode()).hexdigest()


def _change(values: dict[str, Any], change: str) -> None:
    """Sets the value at a path, as `--set` gives it: text where JSON wouldn't read a value.

    Raises `UsageError` for what isn't there, and for a value that changes answers: such a run wouldn't be as declared.
    """
    path, equals, text = change.partition("=")
    parts = path.split(".")
    if not equals or len(parts) != 3 or parts[0] not in ("study", "models", "datasets"):
        expected = "TABLE.NAME.KEY=VALUE, such as datasets.hotpotqa.corpus=passages.jsonl"
        raise UsageError(f"--set {change}: expected {expected}")
    table, name, key = parts
    if not isinstance(place := values[table].get(name), dict):
        raise UsageError(f"--set {change}: {unknown('table', name, values[table])}")
    is_same_data = key == "dataset" and _data_set(text) == _data_set(str(place.get(key)))
    may_differ = key in _OF_THIS_MACHINE or key.endswith("model") or is_same_data
    if not may_differ and key in OPTIONS and OPTIONS[key].role.resume:
        raise UsageError(f"--set {change}: {key} changes answers: change it in the file")
    value: Any = text
    with suppress(ValueError):
        value = json.loads(text)
    place[key] = value


def _data_set(name: str) -> tuple[str, str]:
    """`hotpotqa` and `objectives=2` of `hotpotqa=dev.json?objectives=2`."""
    named, _, options = name.partition("?")
    return named.partition("=")[0], options


def _check_outcome(spec: StudySpec, outcome: Outcome, cells: Sequence[Cell], where: str) -> None:
    """Raises `SpecError` for an outcome that no run decides, or whose statistic isn't one of its measure."""
    for what, wanted, known in (
        ("cells", outcome.cells, {cell.cells for cell in cells}),
        ("data set", outcome.dataset, spec.datasets.keys()),
        ("model", outcome.model, spec.models.keys()),
    ):
        if wanted is not None and wanted not in known:
            raise SpecError(f"{where}: {unknown(what, wanted, known)}")
    if not any(decides(outcome, cell) for cell in cells):
        raise SpecError(f"{where}: no run of {outcome.cells!r} has both {' and '.join(outcome.architectures)}")
    if (outcome.statistic == "ratio") == (outcome.measure in ("exact_match", "f1")):
        raise SpecError(f"{where}: a ratio is of tokens, dollars or seconds, a difference of exact_match or f1")
    if (outcome.statistic == "non-inferiority") != (outcome.margin is not None):
        raise SpecError(f"{where}: give a margin (0.05) with non-inferiority, and with nothing else")


def _cells(spec: StudySpec, table: Cells, file: Path) -> list[Cell]:
    """The runs that a table declares. Raises `SpecError`."""
    where = f"{file}: cells {table.name!r}"
    for what, wanted, known in (("model", table.models, spec.models), ("data set", table.datasets, spec.datasets)):
        if strange := next((each for each in wanted if each not in known), None):
            raise SpecError(f"{where}: {unknown(what, strange, known)}")
    return [
        _cell(spec, table, model, dataset, dict(zip(table.conditions, chosen, strict=True)), file.parent, where)
        for model, dataset in product(table.models, table.datasets)
        for chosen in product(*table.conditions.values())
    ]


def _cell(
    spec: StudySpec, table: Cells, model: str, dataset: str, conditions: dict[str, Value], folder: Path, where: str
) -> Cell:
    settings = {
        **spec.study.settings, **spec.models[model], **spec.datasets[dataset], **table.settings,
        **{name: value for name, value in conditions.items() if name in OPTIONS},
    }  # fmt: skip
    if "dataset" not in settings:
        raise SpecError(f"{where}: the data set {dataset!r} has no dataset")
    names = [settings["dataset"], *table.architectures]
    for condition, value in conditions.items():
        if condition in OPTIONS:
            continue
        place = f"{{{condition}}}"
        if not any(place in name for name in names):
            said = f"the condition {condition!r} is no option of a run, and no data set or architecture has {place}"
            raise SpecError(f"{where}: {said}")
        names = [name if name.startswith("agent:") else name.replace(place, str(value)) for name in names]
    settings["dataset"], *architectures = names
    options = _options(settings, folder, where)
    beside = [each if each.startswith("agent:") else _beside(each, folder) for each in architectures]
    options = replace(options, architectures=tuple(beside), questions=table.n)
    cell = Cell("", table.name, model, dataset, conditions, table.stage, table.exploratory, options, table.report)
    return replace(cell, name=_UNFIT.sub("-", "-".join([table.name, dataset, model, *cell.conditions_shown])))


def _beside(value: str, folder: Path) -> str:
    """A path that begins with `./` or `../` begins at the study's file."""
    return str((folder / value).resolve()) if value.startswith(("./", "../")) else value


def _options(settings: Mapping[str, Any], folder: Path, where: str) -> RunOptions:
    """Options from values of TOML; a path that begins with `./` begins at the study's file. Raises `SpecError`."""
    known = OPTIONS.keys() - _OF_A_RUN
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            raise SpecError(f"{where}: {unknown('option', name, sorted(known))}")
        if name == "ids" and isinstance(value, str):
            value = read_ids(folder / value)
        values[name] = _beside(value, folder) if isinstance(value, str) else value
    try:
        return RunOptions(("rewoo",), **as_values(values))
    except UsageError as error:
        raise SpecError(f"{where}: {error}") from None
