"""A run as numbers and ids: what a later run is compared with, small enough to be committed.

    {
      "architectures": {"rewoo": {"prompts_sha256": …, "settings": …, "means": {"total_tokens": 1431.92, …}, …}},
      "dataset": {"ids_hash": …, …},
      "deterministic": true,
      …
      "questions": {
        "rewoo": [
          ["sample-001", 0, "3f1c09aa", 2, 2, 0, 1283, 58, …],

A `BaselineLine` for each question and trial, without the texts of questions and answers. The same run gives the same
bytes. A run folder and a baseline file are read into the same `Baseline`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pydantic
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictBool, StrictInt, StrictStr

from rewoo_bench.analysis.call_costs import priced, read_calls
from rewoo_bench.analysis.prices import EXAMPLE
from rewoo_bench.config.names import LOCAL, REPLAY, is_deterministic
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.gate.verdict import Group
from rewoo_bench.runs.folder import CALLS_FILE
from rewoo_bench.runs.manifest import LOOSE, ArchitectureFacts, DatasetFacts, Manifest, PrefixFacts
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import MODELS, left_out, mean_over_questions

COMPARED_COUNTS = ("total_tokens", "input_tokens", "output_tokens", "llm_calls", "tool_calls", "replans")
ROLES = {"planner": "planner_tokens", "solver": "solver_tokens", "tool": "tool_llm_tokens", "agent": "agent_tokens"}
EVIDENCE, CACHED = "evidence_tokens", "cached_input_tokens"
CACHEABLE = "cacheable_tokens"
"""Input tokens that a prefix cache could hold, whatever the provider reported: what all questions share, or what an
earlier call of the question had, whichever is longer. Null where the run doesn't say."""
COUNTS = (*COMPARED_COUNTS, *ROLES.values(), EVIDENCE, CACHED, CACHEABLE)
BASELINE_OPTIONS = options_that(lambda role: role.baseline)

_Count = Annotated[StrictInt, Field(ge=0, le=1 << 53)] | None


class BaselineLine(NamedTuple):
    """A question and trial of an architecture: its counts and its outcome."""

    example_id: StrictStr
    trial: Annotated[StrictInt, Field(ge=0, lt=1 << 31)]
    text: StrictStr
    """Tells whether an id still belongs to the same question and answers."""
    total_tokens: _Count
    input_tokens: _Count
    output_tokens: _Count
    llm_calls: _Count
    tool_calls: _Count
    replans: _Count
    planner_tokens: _Count
    solver_tokens: _Count
    tool_llm_tokens: _Count
    agent_tokens: _Count
    evidence_tokens: _Count
    cached_input_tokens: _Count
    cacheable_tokens: _Count
    exact_match: StrictBool | None
    """None where the question failed, or no answer was scored."""
    f1: Annotated[float, Field(strict=True, ge=0, le=1)] | None
    stop_reason: StrictStr | None
    broken_plans: _Count


class ArchitectureBaseline(BaseModel):
    """The facts of an architecture. `means` are for the reader of a diff."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    manifest: ArchitectureFacts
    usage_sources: list[str]
    means: dict[str, FiniteFloat]
    shared_prefixes: dict[str, PrefixFacts]
    """By role, where its prompts of different questions begin to differ."""
    usd_per_1000: dict[str, Annotated[FiniteFloat, Field(gt=0)]]
    """Dollars of 1,000 questions by the price's whole name, where a cache holds those prefixes and a question's own."""


class Baseline(BaseModel):
    """The facts and counts of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    deterministic: StrictBool
    """Whether the same questions give the same counts."""
    model: str
    dataset: DatasetFacts
    corpus: dict[str, Any] | None
    models: dict[str, Any]
    options: dict[str, Any]
    prices: dict[str, Any] | None
    tokenizer: str | None
    architectures: dict[str, ArchitectureBaseline]
    columns: list[str]
    """The names of a line's cells, for the reader."""
    questions: dict[str, list[BaselineLine]] = Field(min_length=1)

    @pydantic.model_validator(mode="after")
    def _has_sound_lines(self) -> Baseline:
        if self.columns != list(BaselineLine._fields):
            raise ValueError(f"columns: expected {', '.join(BaselineLine._fields)}")
        for name, lines in self.questions.items():
            if name not in self.architectures:
                raise ValueError(f"questions of {name!r}, which is not among the architectures")
            if not lines:
                raise ValueError(f"questions of {name!r}: there are none")
            seen: set[tuple[str, int]] = set()
            for line in lines:
                if (line.example_id, line.trial) in seen:
                    raise ValueError(f"questions of {name!r}: {line.example_id!r}, trial {line.trial}, is there twice")
                seen.add((line.example_id, line.trial))
            measured = [line for line in lines if line.exact_match is not None]
            measured = measured or [line for line in lines if line.stop_reason != "error"]
            for count in COMPARED_COUNTS:
                unknown = [line.example_id for line in measured if getattr(line, count) is None]
                if unknown and (len(unknown) < len(measured) or count == "total_tokens"):
                    raise ValueError(f"questions of {name!r}: {count} of {unknown[0]!r} is null")
        return self

    def group(self, architecture: str) -> Group:
        return Group(architecture, self.dataset.name, self.model)

    def rows(self, architecture: str) -> pd.DataFrame:
        """Counts by question and trial; a count that a run doesn't have is not in it."""
        table = pd.DataFrame(self.questions.get(architecture, []), columns=list(BaselineLine._fields))
        table = table.set_index(["example_id", "trial"])
        return table.drop(columns=[name for name in COUNTS if table[name].isna().all()])

    @property
    def unscored(self) -> list[str]:
        """Architectures of which no answer was scored: their counts alone are compared."""
        return [name for name, lines in self.questions.items() if all(line.exact_match is None for line in lines)]

    def text(self) -> str:
        """The file: facts indented, then a line for each question and trial."""
        values = self.model_dump(mode="json", exclude={"questions"}, exclude_unset=True)
        facts = json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False)
        blocks = [
            f"    {json.dumps(name, ensure_ascii=False)}: [\n"
            + ",\n".join(f"      {json.dumps(line, ensure_ascii=False)}" for line in lines)
            + "\n    ]"
            for name, lines in sorted(self.questions.items())
        ]
        return facts.removesuffix("\n}") + ',\n  "questions": {\n' + ",\n".join(blocks) + "\n  }\n}\n"


def read_baseline(path: Path) -> Baseline:
    """A baseline file. Raises `DataError`."""
    way = "`rewoo-bench gate RUN --baseline FILE --update`"
    try:
        return Baseline.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"no such baseline: {str(path)!r}; expected a run folder, or a file of {way}") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
    except pydantic.ValidationError as error:
        raise DataError(f"{path}: invalid baseline file: {_first_fault(error)}; write it with {way}") from None


def _first_fault(error: pydantic.ValidationError) -> str:
    """`columns: Field required`, `questions of 'rewoo', line 3, f1: …`: the first fault, with its place."""
    fault = error.errors()[0]
    place, message = list(fault["loc"]), fault["msg"].removeprefix("Value error, ")
    if place[:1] == ["questions"] and len(place) > 2:
        cells = [BaselineLine._fields[cell] if isinstance(cell, int) else cell for cell in place[3:]]
        of_line = ", ".join([f"questions of {place[1]!r}", f"line {int(place[2]) + 1}", *map(str, cells[:1])])
        return f"{of_line}: {message}, got {fault['input']!r:.50}"
    return ": ".join(filter(None, [".".join(map(str, place)), message]))


def baseline_of(
    run: str | Path, manifest: Manifest, rows: pd.DataFrame, *, deterministic: bool | None = None
) -> Baseline:
    """A run as a baseline. Raises `DataError` where the run has no rows or a wrong count."""
    if not len(rows):
        raise DataError(f"run {manifest.run_id!r} has no rows")
    models = {str(name) for column in MODELS for name in rows[column].unique()}
    rows, usd = _held_by_a_cache(Path(run), manifest, rows)
    architectures: dict[str, ArchitectureBaseline] = {}
    questions = {}
    # by name, and not by the order of the rows, so that the file is the same
    for name, group in rows.groupby(rows["architecture"].astype(str), sort=True):
        asked = group["example_id"].to_numpy(str)
        known = [count for count in COUNTS if count in group and group[count].notna().any()]
        architectures[name] = ArchitectureBaseline(
            manifest=next(each for each in manifest.architectures if each.name == name),
            usage_sources=sorted(map(str, group["usage_source"].dropna().unique())),
            means={
                count: round(mean_over_questions(group[count].astype("float64").to_numpy(), asked), 4)
                for count in known
            },
            shared_prefixes=manifest.shared_prefixes.get(name, {}),
            usd_per_1000=usd.get(name, {}),
        )
        questions[name] = _lines(group)
    dataset, source = manifest.dataset, dict(manifest.dataset.source)
    if source.get("file"):
        source["file"] = Path(source["file"]).name
    identity = {key: getattr(dataset, key) for key in ("name", "format", "split", "ids_hash")}
    try:
        return Baseline(
            format=1,
            deterministic=is_deterministic(models) if deterministic is None else deterministic,
            model=_plain(str(rows["model"].iloc[0])),
            dataset=DatasetFacts(**identity, source=source),
            corpus={"content_hash": manifest.corpus.content_hash} if manifest.corpus else None,
            models={
                role: {key: value for key, value in facts.items() if key not in LOOSE}
                | {"name": _plain(str(facts.get("name")))}
                for role, facts in manifest.models.items()
            },
            options={name: manifest.options.get(name) for name in BASELINE_OPTIONS},
            prices=manifest.prices and {_plain(model): price for model, price in manifest.prices.items()},
            tokenizer=manifest.tokenizer,
            architectures=architectures,
            columns=list(BaselineLine._fields),
            questions=questions,
        )
    except pydantic.ValidationError as error:
        raise DataError(f"run {manifest.run_id!r} can't be compared: {_first_fault(error)}") from None


def _plain(name: str) -> str:
    """A model's name without the folder of its file or recording."""
    prefix = next((prefix for prefix in (REPLAY, LOCAL) if name.startswith(prefix)), None)
    return f"{prefix}{Path(name).name}" if prefix else name


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
    names, scored = rows["architecture"].astype(str).to_numpy(), ~left_out(rows)
    for name in set(names):
        scored[names == name] &= is_counted(rows[names == name])
    pairs = zip(names[calls.row], calls.role, strict=True)
    prefixes = manifest.shared_prefixes
    shared = [prefixes[name][role].tokens if role in prefixes.get(name, {}) else 0.0 for name, role in pairs]
    held = {"shared_run_tokens": np.array(shared), "shared_run_age_s": np.zeros(len(shared))}
    longer = np.where(calls.role == "tool", shared, np.maximum(calls.columns["shared_question_tokens"], shared))
    tokens = calls.of_rows(np.minimum(longer, calls.columns["input_tokens"]))
    if not np.isnan(tokens[scored]).any():
        rows = rows.assign(**{CACHEABLE: tokens})
    usd = calls.of_rows(priced(replace(calls, columns={**calls.columns, **held}), {"": tariff}).usd)
    own = {name: (names == name) & scored for name in prefixes}
    asked = rows["example_id"].to_numpy(str)
    means = {
        name: 1000 * mean_over_questions(usd[some], asked[some])
        for name, some in own.items()
        if not np.isnan(usd[some]).any()
    }
    return rows, {name: {tariff.under: round(mean, 6)} for name, mean in means.items() if mean > 0}


def is_counted(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """The rows of an architecture that were scored; where none was, those that didn't fail."""
    scored: NDArray[np.bool_] = rows["exact_match"].notna().to_numpy()
    return scored if scored.any() else (rows["stop_reason"] != "error").to_numpy()


def _lines(rows: pd.DataFrame) -> list[BaselineLine]:
    """The rows of an architecture as lines, by id and trial; one that is in no mean is as if it had failed."""
    lost = left_out(rows)
    stops = rows["stop_reason"].astype(object).mask(lost, "error")
    rows = rows.assign(exact_match=rows["exact_match"].mask(lost), stop_reason=stops)
    cells = rows.reindex(columns=[*BaselineLine._fields, "question", "answers"]).astype(object)
    lines = []
    for row in cells.where(cells.notna(), None).to_dict("records"):
        told = [str(row["question"]), [] if row["answers"] is None else list(row["answers"])]
        counts = {name: None if row[name] is None else int(row[name]) for name in (*COUNTS, "broken_plans")}
        lines.append(
            BaselineLine(
                example_id=str(row["example_id"]),
                trial=int(row["trial"]),
                text=sha256(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:8],
                exact_match=None if row["exact_match"] is None else bool(row["exact_match"]),
                f1=None if row["f1"] is None else round(float(row["f1"]), 6),
                stop_reason=row["stop_reason"] and str(row["stop_reason"]),
                **counts,
            )
        )
    return sorted(lines, key=lambda line: (line.example_id, line.trial))
