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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
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
_PLACE = re.compile(r"\{(\w+)\}")
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
    """Runs that were imported (`rewoo-bench import`), by name: paths from the folder of the study's runs."""
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
    declared: Mapping[str, RunOptions]
    """The options of its runs as the file has them, without this machine's values."""

    def price(self, name: str) -> str:
        """A price as `--prices` has it: a sheet with `./` lies beside the study's file."""
        return _beside(name, self.file.parent)

    @property
    def declared_models(self) -> Mapping[str, str]:
        """What the file says for `model` of each of its models."""
        return {cell.model: self.declared[cell.name].model for cell in self.cells if cell.name in self.declared}


def read_study(file: Path, changes: Sequence[str] = ()) -> Study:
    """The study of a file. `changes` are values for this machine (`datasets.hotpotqa.dataset=hotpotqa=dev.json`).

    Changes are no part of the declaration, so they leave its hash as it is. Raises `SpecError` and `UsageError`.
    """
    values = read_values(file)
    declared = validated(StudySpec, values, str(file))
    digest = _digest(declared, file)
    for change in changes:
        _change(values, change)
    spec = validated(StudySpec, values, str(file))
    cells = [cell for table in spec.cells for cell in _cells(spec, table, file)]
    names = [cell.name for cell in cells]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SpecError(f"{file}: two runs would be in the folder {twice!r}: give their cells different names")
    for price in spec.study.prices:
        _check_price(price, file, str(file))
    decided = set[str]()
    for outcome in spec.outcomes:
        _check_outcome(spec, outcome, file)
        own = [outcome_name(outcome, cell) for cell in cells if decides(outcome, cell)]
        if not own:
            named = " and ".join(map(repr, outcome.architectures))
            raise SpecError(f"{file}: outcome {outcome.name!r}: no run of {outcome.cells!r} has both {named}")
        if twice := next((name for name in own if name in decided), None):
            raise SpecError(f"{file}: two outcomes would be called {twice!r}: give them different names")
        decided.update(own)
    as_declared: dict[str, RunOptions] = {}
    with suppress(SpecError):  # what only this machine's values make whole
        as_declared = {cell.name: cell.options for table in declared.cells for cell in _cells(declared, table, file)}
    return Study(file, spec, cells, digest, as_declared)


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
    own = {outcome.prices for outcome in spec.outcomes if outcome.prices and ".toml" in outcome.prices}
    for price in sorted(own):  # prices that anybody can change
        _check_price(price, file, str(file))
        declared[price] = asdict(named_tariff(_beside(price, file.parent))) | {"path": None}
    return sha256(json.dumps(declared, sort_keys=True, default=str).encode()).hexdigest()


def _change(values: dict[str, Any], change: str) -> None:
    """Sets the value at a path, as `--set` gives it: text where TOML wouldn't read a value."""
    path, equals, text = change.partition("=")
    *tables, name = path.split(".")
    if not equals or not tables or not name:
        raise UsageError(f"--set {change}: expected TABLE.NAME.KEY=VALUE, such as datasets.hotpotqa.dataset=dev.json")
    if tables == ["study"] and name in ("question", "declared"):
        raise UsageError(f"--set {change}: a study's question and day of declaration can be changed only in its file")
    if tables[0] == "cells":
        places = _settings_of_cells(values["cells"], tables[1:], change)
    else:
        place: Any = values
        for table in tables:
            if not isinstance(place, dict) or not isinstance(place.get(table), dict):
                known = [each for each in place if isinstance(place[each], dict)] if isinstance(place, dict) else []
                raise UsageError(f"--set {change}: {unknown('table', table, known)}")
            place = place[table]
        places = [place]
    value: Any = text
    with suppress(ValueError):
        value = json.loads(text)
    for place in places:
        place[name] = value


def _settings_of_cells(cells: Sequence[dict[str, Any]], path: Sequence[str], change: str) -> list[dict[str, Any]]:
    """The settings of each table of cells that has a name. Raises `UsageError` for a path to anything else."""
    if path[1:] != ["settings"]:
        raise UsageError(f"--set {change}: of cells only settings can be set: cells.NAME.settings.KEY=VALUE")
    if not (own := [each for each in cells if each["name"] == path[0]]):
        raise UsageError(f"--set {change}: {unknown('cells', path[0], [each['name'] for each in cells])}")
    return [each.setdefault("settings", {}) for each in own]


def _check_outcome(spec: StudySpec, outcome: Outcome, file: Path) -> None:
    """Raises `SpecError` for an outcome of cells, a data set, a model or architectures that the study doesn't have."""
    where = f"{file}: outcome {outcome.name!r}"
    tables = [table for table in spec.cells if table.name == outcome.cells]
    if not tables:
        raise SpecError(f"{where}: {unknown('cells', outcome.cells, [table.name for table in spec.cells])}")
    architectures = [each for table in tables for each in table.architectures]
    for what, wanted, known in (
        ("data set", outcome.dataset, [each for table in tables for each in table.datasets]),
        ("model", outcome.model, [each for table in tables for each in table.models]),
        *(("architecture", each, architectures) for each in outcome.architectures),
    ):
        if wanted is not None and wanted not in known:
            raise SpecError(f"{where}: {unknown(what, wanted, known)}")
    if len({*outcome.architectures}) < 2:
        raise SpecError(f"{where}: {outcome.architectures[0]!r} against itself: give two architectures")
    if (outcome.statistic == "ratio") == (outcome.measure in ("exact_match", "f1")):
        raise SpecError(f"{where}: a ratio is of tokens, dollars or seconds, a difference of exact_match or f1")
    if (outcome.statistic == "non-inferiority") != (outcome.margin is not None):
        raise SpecError(f"{where}: give a margin (0.05) with non-inferiority, and with nothing else")
    if outcome.prices and outcome.measure != "cost_usd":
        raise SpecError(f"{where}: prices are for the measure cost_usd")
    _check_price(outcome.prices, file, where)


def _check_price(price: str | None, file: Path, where: str) -> None:
    """Raises `SpecError` for a price that no sheet has: now, and not when all runs have been paid."""
    try:
        if price is not None:
            named_tariff(_beside(price, file.parent))
    except UsageError as error:
        raise SpecError(f"{where}: {str(error).removeprefix('--')}") from None


def _cells(spec: StudySpec, table: Cells, file: Path) -> list[Cell]:
    """The runs that a table declares. Raises `SpecError`."""
    where = f"{file}: cells {table.name!r}"
    for what, wanted, known in (("model", table.models, spec.models), ("data set", table.datasets, spec.datasets)):
        if strange := next((each for each in wanted if each not in known), None):
            raise SpecError(f"{where}: {unknown(what, strange, known)}")
    if both := table.conditions.keys() & table.settings.keys():
        raise SpecError(f"{where}: {min(both)!r} is a condition and a setting")
    names = [*table.conditions]
    return [
        _cell(spec, table, model, dataset, dict(zip(names, chosen, strict=True)), file, where)
        for model, dataset in product(table.models, table.datasets)
        for chosen in product(*table.conditions.values())
    ]


def _cell(
    spec: StudySpec, table: Cells, model: str, dataset: str, conditions: dict[str, Value], file: Path, where: str
) -> Cell:
    settings = {
        **spec.study.settings, **spec.models[model], **spec.datasets[dataset], **table.settings,
        **{name: value for name, value in conditions.items() if name in OPTIONS},
    }  # fmt: skip
    if "dataset" not in settings:
        raise SpecError(f"{where}: the data set {dataset!r} has no dataset")
    free = {name: str(value) for name, value in conditions.items() if name not in OPTIONS}
    used = set[str]()

    def filled(text: str) -> str:
        used.update(places := _PLACE.findall(text))
        if missing := next((place for place in places if place not in free), None):
            raise SpecError(f"{where}: {text!r} has a place {{{missing}}} for a condition that isn't given")
        return _PLACE.sub(lambda place: free[place.group(1)], text)

    architectures = tuple(
        each if each.startswith("agent:") else _beside(filled(each), file.parent) for each in table.architectures
    )
    settings["dataset"] = filled(str(settings["dataset"]))
    if unused := next((name for name in free if name not in used), None):
        raise SpecError(
            f"{where}: the condition {unused!r} is no option of a run, and no data set or architecture has {{{unused}}}"
        )
    options = replace(_options(settings, file.parent, where), architectures=architectures, questions=table.n)
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
