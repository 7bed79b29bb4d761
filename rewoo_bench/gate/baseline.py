"""A run as numbers and ids: what a later run is compared with, small enough to be committed.

    {
      "architectures": {"rewoo": {"prompts_sha256": …, "settings": …, "means": {"total_tokens": 1431.92, …}, …}},
      "dataset": {"ids_hash": …, …},
      "deterministic": true,
      …
      "questions": {
        "rewoo": [
          ["sample-001", 0, "3f1c09aa", 2, 2, 0, 1283, 58, …],

A line a question, in the order of `columns`; no text of a question or an answer. The same run gives
the same bytes. A run folder and a baseline file are read into the same `Baseline`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict

from rewoo_bench.errors import DataError
from rewoo_bench.gate.verdict import Group
from rewoo_bench.model_names import LOCAL, REPLAY, is_deterministic
from rewoo_bench.runs.manifest import DatasetFacts, Manifest
from rewoo_bench.runs.manifest_diff import LOOSE
from rewoo_bench.runs.options import options_that
from rewoo_bench.short_names import short_name

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("total_tokens", "input_tokens", "output_tokens", "llm_calls", "tool_calls", "replans")
ROLES = {"planner": "planner_tokens", "solver": "solver_tokens", "tool": "tool_llm_tokens", "agent": "agent_tokens"}
EVIDENCE = "evidence_tokens"
COUNTS = (*METRICS, *ROLES.values(), EVIDENCE)
KEYS = ["example_id", "trial"]
COLUMNS = (*KEYS, "text", *COUNTS, "exact_match", "f1", "stop_reason")

OPTIONS = options_that(lambda matters: matters.baseline)
_PREFIXES = (REPLAY, LOCAL)


class ArchitectureFacts(BaseModel):
    """What a run says of an architecture. `means` are for the reader of a diff."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    manifest: dict[str, Any]
    usage_sources: list[str]
    means: dict[str, float]


class Baseline(BaseModel):
    """The facts and counts of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    deterministic: bool
    """Whether the same questions give the same counts."""
    model: str
    dataset: dict[str, Any]
    corpus: dict[str, Any] | None
    models: dict[str, Any]
    options: dict[str, Any]
    prices: dict[str, Any] | None
    tokenizer: str | None
    architectures: dict[str, ArchitectureFacts]
    columns: list[str]
    questions: dict[str, list[list[Any]]]

    def group(self, architecture: str) -> Group:
        return Group(architecture, str(self.dataset.get("name")), self.model)

    def rows(self, architecture: str) -> pd.DataFrame:
        """Counts by question and trial; a column that a run doesn't have is not in it."""
        import pandas as pd

        table = pd.DataFrame(self.questions.get(architecture, []), columns=self.columns).set_index(KEYS)
        return table.drop(columns=[name for name in COUNTS if table[name].isna().all()])

    def text(self) -> str:
        """The file: facts indented, then a line a question."""
        facts = json.dumps(self.model_dump(exclude={"questions"}), indent=2, sort_keys=True, ensure_ascii=False)
        blocks = [
            f"    {json.dumps(name, ensure_ascii=False)}: [\n"
            + ",\n".join(f"      {json.dumps(row, ensure_ascii=False)}" for row in rows)
            + "\n    ]"
            for name, rows in sorted(self.questions.items())
        ]
        return facts.removesuffix("\n}") + ',\n  "questions": {\n' + ",\n".join(blocks) + "\n  }\n}\n"


def read_baseline(path: Path) -> Baseline:
    """A baseline file. Raises `DataError`."""
    try:
        return _with_short_names(Baseline.model_validate_json(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise DataError(f"no such baseline: {str(path)!r}; expected a run folder or a baseline file") from None
    except (UnicodeDecodeError, pydantic.ValidationError) as error:
        fault = str(error.errors()[0]["msg"]) if isinstance(error, pydantic.ValidationError) else str(error)
        raise DataError(f"{path}: no baseline that can be read: {fault}; write it with `baseline update`") from None


def _with_short_names(baseline: Baseline) -> Baseline:
    """Bundled runners and generators under their short names; an older file has import paths."""
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
    return baseline.model_copy(update={"architectures": architectures, "dataset": dataset})


def baseline_of(manifest: Manifest, rows: pd.DataFrame, *, deterministic: bool | None = None) -> Baseline:
    """A run's manifest and rows as a baseline. Raises `DataError` where the run has no rows."""
    if not len(rows):
        raise DataError(f"run {manifest.run_id!r} has no rows")
    models = {str(name) for column in ("model", "planner_model", "solver_model") for name in rows[column].unique()}
    facts = {facts.name: facts.model_dump(mode="json", exclude_unset=True) for facts in manifest.architectures}
    # by name, and not by the order of the rows, so that the file is the same
    groups = {str(name): group for name, group in rows.groupby(rows["architecture"].astype(str), sort=True)}
    prices = manifest.prices
    return Baseline(
        deterministic=is_deterministic(models) if deterministic is None else deterministic,
        model=_plain(str(rows["model"].iloc[0])),
        dataset=_dataset(manifest.dataset),
        corpus={"content_hash": manifest.corpus.content_hash} if manifest.corpus else None,
        models={role: _model(model) for role, model in manifest.models.items()},
        options={name: manifest.options.get(name) for name in OPTIONS},
        prices=prices and {_plain(model): price for model, price in prices.items()},
        tokenizer=manifest.tokenizer,
        architectures={name: _architecture(facts.get(name, {}), group) for name, group in groups.items()},
        columns=list(COLUMNS),
        questions={name: _lines(group) for name, group in groups.items()},
    )


def _dataset(facts: DatasetFacts) -> dict[str, Any]:
    """What tells a data set from another, without the folder it lies in."""
    source = dict(facts.source)
    if source.get("file"):
        source["file"] = Path(source["file"]).name
    same = {"name": facts.name, "format": facts.format, "split": facts.split, "ids_hash": facts.ids_hash}
    return {**same, "source": source}


def _model(manifest: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: value for key, value in manifest.items() if key not in LOOSE}
    return {**facts, "name": _plain(str(manifest.get("name")))}


def _plain(name: str) -> str:
    """A model's name without the folder of its file or recording."""
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
    return f"{prefix}{Path(name).name}" if prefix else name


def _architecture(manifest: Mapping[str, Any], rows: pd.DataFrame) -> ArchitectureFacts:
    counts = [name for name in COUNTS if name in rows]
    means = {name: round(float(rows[name].astype("float64").mean()), 4) for name in counts if rows[name].notna().any()}
    return ArchitectureFacts(
        manifest=dict(manifest), usage_sources=sorted(map(str, rows["usage_source"].dropna().unique())), means=means
    )


def _lines(rows: pd.DataFrame) -> list[list[Any]]:
    """The rows of an architecture as lines, by id and trial."""
    lines = [[_value(row, column) for column in COLUMNS] for row in rows.to_dict("records")]
    return sorted(lines, key=lambda line: (line[0], line[1]))


def _value(row: Mapping[Any, Any], column: str) -> Any:
    if column == "text":
        return _digest(str(row["question"]), row["answers"])
    value = row.get(column)
    if value is None or value != value or str(value) == "<NA>":
        return None
    if column in ("example_id", "stop_reason"):
        return str(value)
    if column == "exact_match":
        return bool(value)
    return round(float(value), 6) if column == "f1" else int(value)


def _digest(question: str, answers: Sequence[str] | None) -> str:
    """Tells whether an id still stands for the same question and answers."""
    told = json.dumps([question, list(answers) if answers is not None else []], ensure_ascii=False)
    return sha256(told.encode("utf-8", "replace")).hexdigest()[:8]
