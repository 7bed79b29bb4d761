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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
import pandas as pd
import pydantic
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictBool, StrictInt, StrictStr, TypeAdapter

from rewoo_bench.analysis.prices import EXAMPLE, priced, read_calls
from rewoo_bench.config.names import LOCAL, REPLAY, is_deterministic
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.gate.verdict import Group
from rewoo_bench.runs.folder import CALLS_FILE
from rewoo_bench.runs.manifest import LOOSE, ArchitectureFacts, DatasetFacts, Manifest, PrefixFacts
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import left_out
from rewoo_bench.text.escaping import controls_as_json

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
        return Baseline.model_validate(_parsed(path.read_text(encoding="utf-8")))
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

    def refused(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number")

    try:
        values = json.loads(text, parse_constant=refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    layer = [values]
    for _ in range(50):  # tables within tables; a baseline has some six
        parts = [each.values() if isinstance(each, dict) else each for each in layer]
        layer = [each for part in parts for each in part if isinstance(each, (dict, list))]
        if not layer:
            return values
    raise ValueError("nested too deeply")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is too large")
    return value


def _check_facts(kind: type[BaseModel], facts: Mapping[str, Any]) -> None:
    """Raises `ValueError` for a fact of a manifest that has the wrong type."""
    try:
        kind.model_validate({key: value for key, value in facts.items() if value is not None})
    except pydantic.ValidationError as error:
        raise ValueError(first_fault(error)) from None


def _check_columns(columns: Sequence[str]) -> None:
    missing = [name for name in (*_FIRST_COLUMNS, "total_tokens", "exact_match") if name not in columns]
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


OPTIONS = options_that(lambda role: role.baseline)


def baseline_of(
    run: str | Path, manifest: Manifest, rows: pd.DataFrame, *, deterministic: bool | None = None
) -> Baseline:
    """A run as a baseline. Raises `DataError` where the run has no rows or a wrong count."""
    if not len(rows):
        raise DataError(f"run {manifest.run_id!r} has no rows")
    models = {str(name) for column in ("model", "planner_model", "solver_model") for name in rows[column].unique()}
    facts = {facts.name: facts.model_dump(mode="json", exclude_unset=True) for facts in manifest.architectures}
    # by name, and not by the order of the rows, so that the file is the same
    rows, usd = _held_by_a_cache(Path(run), manifest, rows)
    groups = {str(name): group for name, group in rows.groupby(rows["architecture"].astype(str), sort=True)}
    prices = manifest.prices
    try:
        return Baseline(
            deterministic=is_deterministic(models) if deterministic is None else deterministic,
            model=_plain(str(rows["model"].iloc[0])),
            dataset=_dataset(manifest.dataset),
            corpus={"content_hash": manifest.corpus.content_hash} if manifest.corpus else None,
            models={
                role: {key: value for key, value in facts.items() if key not in LOOSE}
                | {"name": _plain(str(facts.get("name")))}
                for role, facts in manifest.models.items()
            },
            options={name: manifest.options.get(name) for name in OPTIONS},
            prices=prices and {_plain(model): price for model, price in prices.items()},
            tokenizer=manifest.tokenizer,
            architectures={
                name: _facts(facts.get(name, {}), group, manifest.shared_prefixes.get(name, {}), usd.get(name, {}))
                for name, group in groups.items()
            },
            columns=list(LINE_COLUMNS),
            questions={name: _lines(group) for name, group in groups.items()},
        )
    except pydantic.ValidationError as error:
        raise DataError(f"run {manifest.run_id!r} can't be compared: {first_fault(error)}") from None


def _dataset(facts: DatasetFacts) -> dict[str, Any]:
    """The identity of a data set, without its folder."""
    source = dict(facts.source)
    if source.get("file"):
        source["file"] = Path(source["file"]).name
    same = {"name": facts.name, "format": facts.format, "split": facts.split, "ids_hash": facts.ids_hash}
    return {**same, "source": source}


def _plain(name: str) -> str:
    """A model's name without the folder of its file or recording."""
    prefix = next((prefix for prefix in (REPLAY, LOCAL) if name.startswith(prefix)), None)
    return f"{prefix}{Path(name).name}" if prefix else name


def _facts(
    manifest: Mapping[str, Any], rows: pd.DataFrame, prefixes: Mapping[str, PrefixFacts], usd: dict[str, float]
) -> ArchitectureBaseline:
    counts = [name for name in COUNTS if name in rows]
    means = {name: round(float(rows[name].astype("float64").mean()), 4) for name in counts if rows[name].notna().any()}
    return ArchitectureBaseline(
        manifest=dict(manifest),
        usage_sources=sorted(map(str, rows["usage_source"].dropna().unique())),
        means=means,
        shared_prefixes=dict(prefixes),
        usd_per_1000=usd,
    )


def _held_by_a_cache(
    run: Path, manifest: Manifest, rows: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, dict[str, float]]]:
    """The rows with `CACHEABLE`, and dollars of 1,000 questions by architecture and price, where these are known.

    The part that all questions share takes the place of what earlier calls of the run happened to share, so that the
    order in which questions were asked doesn't matter. Calls of tools are made at once, and which of them finds the
    other's prompt is chance: only that part of theirs is counted as `CACHEABLE`.
    """
    if not (run / CALLS_FILE).exists():
        return rows, {}
    calls, tariff = read_calls(run, rows), named_tariff(EXAMPLE)
    names, scored = rows["architecture"].astype(str).to_numpy(), ~left_out(rows) & rows["exact_match"].notna()
    pairs = zip(names[calls.row], calls.role, strict=True)
    prefixes = manifest.shared_prefixes
    shared = [prefixes[name][role].tokens if role in prefixes.get(name, {}) else 0.0 for name, role in pairs]
    held = {"shared_run_tokens": np.array(shared), "shared_run_age_s": np.zeros(len(shared))}
    longer = np.where(calls.role == "tool", shared, np.maximum(calls.columns["shared_question_tokens"], shared))
    tokens = calls.of_rows(np.minimum(longer, calls.columns["input_tokens"]))
    if not calls.stands_in and not np.isnan(tokens[scored]).any():
        rows = rows.assign(**{CACHEABLE: tokens})
    usd = calls.of_rows(priced(replace(calls, columns={**calls.columns, **held}), {"": tariff}).usd)
    dollars = {name: usd[(names == name) & scored] for name in prefixes}
    means = {name: 1000 * float(some.mean()) for name, some in dollars.items() if len(some)}
    return rows, {name: {tariff.under: round(mean, 6)} for name, mean in means.items() if mean > 0}


def _lines(rows: pd.DataFrame) -> list[list[Any]]:
    """The rows of an architecture as lines, by id and trial."""
    rows = rows.assign(exact_match=rows["exact_match"].mask(left_out(rows)))  # as if it had failed
    lines = [[_value(row, column) for column in LINE_COLUMNS] for row in rows.to_dict("records")]
    return sorted(lines, key=lambda line: (line[0], line[1]))


def _value(row: Mapping[Any, Any], column: str) -> Any:
    if column == "text":
        # tells whether an id still belongs to the same question and answers
        told = [str(row["question"]), [] if row["answers"] is None else list(row["answers"])]
        return sha256(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:8]
    value = row.get(column)
    if value is None or value != value or str(value) == "<NA>":
        return None
    if column in ("example_id", "stop_reason"):
        return str(value)
    if column == "exact_match":
        return bool(value)
    return round(float(value), 6) if column == "f1" else int(value)
