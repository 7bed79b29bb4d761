"""A run as numbers and ids: what a later run is compared with, small enough to be committed.

    {
      "architectures": {"rewoo": {"prompts_sha256": …, "settings": …, "means": {"total_tokens": 1431.92, …}, …}},
      "dataset": {"ids_hash": …, …},
      "deterministic": true,
      …
      "questions": {
        "rewoo": [
          ["sample-001", 0, "3f1c09aa", 2, 2, 0, 1283, 58, …],

A line for each question and trial, in the order of `columns`, without the texts of questions and answers. The same
run gives the same bytes. A run folder and a baseline file are read into the same `Baseline`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import pydantic
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictBool, StrictInt, StrictStr, TypeAdapter

from rewoo_bench.errors import DataError
from rewoo_bench.escaping import controls_as_json
from rewoo_bench.gate.verdict import Group
from rewoo_bench.runs.manifest import ArchitectureFacts, DatasetFacts, PrefixFacts
from rewoo_bench.runs.options import with_new_names
from rewoo_bench.short_names import short_name

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("total_tokens", "input_tokens", "output_tokens", "llm_calls", "tool_calls", "replans")
ROLES = {"planner": "planner_tokens", "solver": "solver_tokens", "tool": "tool_llm_tokens", "agent": "agent_tokens"}
EVIDENCE, CACHED = "evidence_tokens", "cached_input_tokens"
CACHEABLE = "cacheable_tokens"
"""Input tokens that a prefix cache could hold, whatever the provider reported: what all questions share, or what an
earlier call of the question had, whichever is longer. Null in older runs and in baselines of them."""
COUNTS = (*METRICS, *ROLES.values(), EVIDENCE, CACHED, CACHEABLE)
ROW_KEYS = ("example_id", "trial")
LINE_COLUMNS = (*ROW_KEYS, "text", *COUNTS, "exact_match", "f1", "stop_reason", "broken_plans")

_FIRST_COLUMNS = (*ROW_KEYS, "text")
_NEEDED_COLUMNS = (*_FIRST_COLUMNS, "total_tokens", "exact_match")
_DEEPEST = 50  # tables within tables; a baseline has some six
_Count = Annotated[StrictInt, Field(ge=0, le=1 << 53)]
_CELLS: Mapping[str, Any] = {
    "example_id": StrictStr,
    "trial": Annotated[StrictInt, Field(ge=0, lt=1 << 31)],
    "text": StrictStr,
    **dict.fromkeys(COUNTS, _Count | None),
    "exact_match": StrictBool | None,
    "f1": Annotated[float, Field(strict=True, ge=0, le=1)] | None,
    "stop_reason": StrictStr | None,
    "broken_plans": _Count | None,
}


class ArchitectureBaseline(BaseModel):
    """The facts of an architecture. `means` are for the reader of a diff."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    manifest: dict[str, Any]
    usage_sources: list[str]
    means: dict[str, FiniteFloat]
    shared_prefixes: dict[str, PrefixFacts] = {}
    """By role, where its prompts of different questions begin to differ; empty in older baselines."""
    usd_per_1000: dict[str, Annotated[FiniteFloat, Field(gt=0)]] = {}
    """Dollars of 1,000 questions by the price's whole name, where a cache holds those prefixes and a question's own."""

    @pydantic.field_validator("manifest")
    @classmethod
    def _is_of_an_architecture(cls, manifest: dict[str, Any]) -> dict[str, Any]:
        _check_facts(ArchitectureFacts, {"name": "", **manifest})
        return manifest


class Baseline(BaseModel):
    """The facts and counts of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    deterministic: StrictBool
    """Whether the same questions give the same counts."""
    model: str
    dataset: dict[str, Any]
    corpus: dict[str, Any] | None
    models: dict[str, Any]
    options: dict[str, Any]
    prices: dict[str, Any] | None
    tokenizer: str | None
    architectures: dict[str, ArchitectureBaseline]
    columns: list[str]
    questions: dict[str, list[list[Any]]] = Field(min_length=1)

    @pydantic.field_validator("dataset")
    @classmethod
    def _is_of_a_data_set(cls, dataset: dict[str, Any]) -> dict[str, Any]:
        _check_facts(DatasetFacts, dataset)
        return dataset

    @pydantic.model_validator(mode="after")
    def _has_sound_lines(self) -> Baseline:
        _check_columns(self.columns)
        line: Any = GenericAlias(tuple, tuple(_CELLS[name] for name in self.columns))
        lines: TypeAdapter[Any] = TypeAdapter(list[line])
        for name, rows in self.questions.items():
            if name not in self.architectures:
                raise ValueError(f"questions of {name!r}, which is not among the architectures")
            try:
                lines.validate_python(rows)
            except pydantic.ValidationError as error:
                raise ValueError(f"questions of {name!r}: {_wrong_cell(error, self.columns)}") from None
            _check_lines(name, rows, self.columns)
        return self

    def group(self, architecture: str) -> Group:
        return Group(architecture, str(self.dataset.get("name")), self.model)

    def rows(self, architecture: str) -> pd.DataFrame:
        """Counts by question and trial; a column that a run doesn't have is not in it."""
        import pandas as pd

        table = pd.DataFrame(self.questions.get(architecture, []), columns=self.columns).set_index(list(ROW_KEYS))
        return table.drop(columns=[name for name in COUNTS if name in table and table[name].isna().all()])

    def text(self) -> str:
        """The file: facts indented, then a line for each question and trial."""
        facts = json.dumps(self.model_dump(exclude={"questions"}), indent=2, sort_keys=True, ensure_ascii=False)
        blocks = [
            f"    {json.dumps(name, ensure_ascii=False)}: [\n"
            + ",\n".join(f"      {json.dumps(row, ensure_ascii=False)}" for row in rows)
            + "\n    ]"
            for name, rows in sorted(self.questions.items())
        ]
        written = facts.removesuffix("\n}") + ',\n  "questions": {\n' + ",\n".join(blocks) + "\n  }\n}\n"
        return controls_as_json(written)


def read_baseline(path: Path) -> Baseline:
    """A baseline file. Raises `DataError`."""
    try:
        return _upgraded(Baseline.model_validate(_parsed(path.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        way = "expected a run folder, or a file of `rewoo-bench baseline update RUN --out FILE`"
        raise DataError(f"no such baseline: {str(path)!r}; {way}") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
    except pydantic.ValidationError as error:
        fault = first_fault(error)
    except ValueError as error:  # not UTF-8, or not JSON
        fault = str(error)
    raise DataError(
        f"{path}: invalid baseline file: {fault}; write it with `rewoo-bench baseline update RUN --out FILE`"
    )


def first_fault(error: pydantic.ValidationError) -> str:
    """`columns: Field required`: the first fault, with its place."""
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _parsed(text: str) -> Any:
    """JSON without NaN and Infinity. Raises `ValueError`."""
    try:
        values = json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    layer = [values]
    for _ in range(_DEEPEST):
        layer = [each for value in layer for each in _children(value)]
    if layer:
        raise ValueError("nested too deeply")
    return values


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is too large")
    return value


def _children(value: Any) -> Iterator[Any]:
    """The tables and lists right within a value of JSON."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from (part for part in parts if isinstance(part, (dict, list)))


def _check_facts(kind: type[BaseModel], facts: Mapping[str, Any]) -> None:
    """Raises `ValueError` for a fact of a manifest that has the wrong type."""
    try:
        kind.model_validate({key: value for key, value in facts.items() if value is not None})
    except pydantic.ValidationError as error:
        raise ValueError(first_fault(error)) from None


def _check_columns(columns: Sequence[str]) -> None:
    missing = [name for name in _NEEDED_COLUMNS if name not in columns]
    unknown = [name for name in columns if name not in _CELLS]
    if missing or unknown:
        wrong = f"{missing[0]!r} is missing" if missing else f"unknown column {unknown[0]!r}"
        raise ValueError(f"columns: {wrong}")
    if len(set(columns)) < len(columns):
        raise ValueError("columns: one is there twice")
    if tuple(columns[: len(_FIRST_COLUMNS)]) != _FIRST_COLUMNS:
        raise ValueError(f"columns: expected {', '.join(_FIRST_COLUMNS)} first")


def _wrong_cell(error: pydantic.ValidationError, columns: Sequence[str]) -> str:
    """`line 3, total_tokens: Input should be a valid integer, got 1.5`."""
    fault = error.errors()[0]
    line, *cell = fault["loc"]
    if not cell or not isinstance(cell[0], int):
        return f"line {int(line) + 1}: expected {len(columns)} values"
    missing = fault["type"] == "missing"
    return f"line {int(line) + 1}, {columns[cell[0]]}: " + (
        "missing" if missing else f"{fault['msg']}, got {fault['input']!r:.50}"
    )


def _check_lines(architecture: str, lines: Sequence[Sequence[Any]], columns: Sequence[str]) -> None:
    """Raises `ValueError` for a question that is there twice, and for a count that only some questions have."""
    if not lines:
        raise ValueError(f"questions of {architecture!r}: there are none")
    seen: set[tuple[str, int]] = set()
    for example_id, trial, *_ in lines:
        if (example_id, trial) in seen:
            raise ValueError(f"questions of {architecture!r}: {example_id!r}, trial {trial}, is there twice")
        seen.add((example_id, trial))
    place = {name: position for position, name in enumerate(columns)}
    scored = [line for line in lines if line[place["exact_match"]] is not None]
    for name in (name for name in METRICS if name in place):
        unknown = sum(line[place[name]] is None for line in scored)
        if unknown and (unknown < len(scored) or name == "total_tokens"):
            first = next(line for line in scored if line[place[name]] is None)
            raise ValueError(f"questions of {architecture!r}: {name} of {first[0]!r} is null")


def _upgraded(baseline: Baseline) -> Baseline:
    """Options, bundled runners and generators by their names of today, where an older file has others."""
    architectures = {}
    for name, facts in baseline.architectures.items():
        manifest = {**facts.manifest}
        if "runner" in manifest:
            manifest["runner"] = short_name(str(manifest["runner"]))
        architectures[name] = facts.model_copy(update={"manifest": manifest})
    source = {**baseline.dataset.get("source", {})}
    if "generator" in source:
        source["generator"] = short_name(str(source["generator"]))
    dataset = {**baseline.dataset, "source": source}
    options = with_new_names(baseline.options)
    return baseline.model_copy(update={"architectures": architectures, "dataset": dataset, "options": options})
