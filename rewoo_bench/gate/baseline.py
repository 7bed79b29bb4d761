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
import math
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pydantic
from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.analysis.call_costs import read_calls
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.names import file_name, is_deterministic
from rewoo_bench.errors import DataError
from rewoo_bench.gate.verdict import Group
from rewoo_bench.runs.folder import CALLS_FILE
from rewoo_bench.runs.manifest import LOOSE, ArchitectureFacts, DatasetFacts, Manifest, PrefixFacts
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import MODELS, Rows, mean_over_questions

COMPARED_COUNTS = ("total_tokens", "input_tokens", "output_tokens", "llm_calls", "tool_calls", "replans")
ROLES = {"planner": "planner_tokens", "solver": "solver_tokens", "tool": "tool_llm_tokens", "agent": "agent_tokens"}
EVIDENCE, CACHED = "evidence_tokens", "cached_input_tokens"
CACHEABLE = "cacheable_tokens"
"""Input tokens that a prefix cache could hold, whatever the provider reported: what all questions share, or what an
earlier call of the question had, whichever is longer. Null where the run doesn't say."""
COUNTS = (*COMPARED_COUNTS, *ROLES.values(), EVIDENCE, CACHED, CACHEABLE)
BASELINE_OPTIONS = options_that(lambda role: role.baseline)


class BaselineLine(NamedTuple):
    """A question and trial of an architecture: its counts and its outcome."""

    example_id: str
    trial: int
    text: str
    """Tells whether an id still belongs to the same question and answers."""
    total_tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    llm_calls: int | None
    tool_calls: int | None
    replans: int | None
    planner_tokens: int | None
    solver_tokens: int | None
    tool_llm_tokens: int | None
    agent_tokens: int | None
    evidence_tokens: int | None
    cached_input_tokens: int | None
    cacheable_tokens: int | None
    exact_match: bool | None
    """None where the question failed, or no answer was scored."""
    f1: float | None
    stop_reason: str | None


def column_of(lines: Sequence[BaselineLine], name: str) -> Floats:
    """A count of each line; NaN where it isn't known."""
    return np.array([getattr(line, name) for line in lines], dtype=np.float64)


def counted_lines(lines: Sequence[BaselineLine]) -> list[bool]:
    """Whether each line of an architecture was scored; where none was, whether it didn't fail."""
    scored = [line.exact_match is not None for line in lines]
    return scored if any(scored) else [line.stop_reason != "error" for line in lines]


class ArchitectureBaseline(BaseModel):
    """The facts of an architecture. `means` are for the reader of a diff."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    manifest: ArchitectureFacts
    usage_sources: list[str]
    means: dict[str, float]
    shared_prefixes: dict[str, PrefixFacts]
    """By role, where its prompts of different questions begin to differ."""


class Baseline(BaseModel):
    """The facts and counts of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    deterministic: bool
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

    def group(self, architecture: str) -> Group:
        return Group(architecture, self.dataset.name, self.model)

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
    except pydantic.ValidationError as error:
        fault = error.errors()[0]
        what = ": ".join(filter(None, [".".join(map(str, fault["loc"])), fault["msg"]]))
        raise DataError(f"{path}: invalid baseline file: {what}; write it with {way}") from None


def baseline_of(run: str | Path, manifest: Manifest, rows: Rows, *, deterministic: bool | None = None) -> Baseline:
    """A run as a baseline. Raises `DataError` where the run has no rows."""
    if not len(rows):
        raise DataError(f"run {manifest.run_id!r} has no rows")
    models = {name for column in MODELS for name in rows.texts(column)}
    rows = _held_by_a_cache(Path(run), manifest, rows)
    architectures: dict[str, ArchitectureBaseline] = {}
    questions = {}
    # by name, and not by the order of the rows, so that the file is the same
    for (name,), group in sorted(rows.groups("architecture").items()):
        means = {count: mean_over_questions(group[count], group.question) for count in COUNTS if count in group}
        architectures[name] = ArchitectureBaseline(
            manifest=next(each for each in manifest.architectures if each.name == name),
            usage_sources=sorted(group.texts("usage_source")),
            means={count: round(mean, 4) for count, mean in means.items() if not math.isnan(mean)},
            shared_prefixes=manifest.shared_prefixes.get(name, {}),
        )
        questions[name] = _lines(group)
    dataset, source = manifest.dataset, dict(manifest.dataset.source)
    if source.get("file"):
        source["file"] = Path(source["file"]).name
    identity = {key: getattr(dataset, key) for key in ("name", "format", "split", "ids_hash")}
    return Baseline(
        format=1,
        deterministic=is_deterministic(models) if deterministic is None else deterministic,
        model=file_name(rows["model"][0]),
        dataset=DatasetFacts(**identity, source=source),
        corpus={"content_hash": manifest.corpus.content_hash} if manifest.corpus else None,
        models={
            role: {key: value for key, value in facts.items() if key not in LOOSE}
            | {"name": file_name(str(facts.get("name")))}
            for role, facts in manifest.models.items()
        },
        options={name: manifest.options.get(name) for name in BASELINE_OPTIONS},
        prices=manifest.prices and {file_name(model): price for model, price in manifest.prices.items()},
        tokenizer=manifest.tokenizer,
        architectures=architectures,
        columns=list(BaselineLine._fields),
        questions=questions,
    )


def _held_by_a_cache(run: Path, manifest: Manifest, rows: Rows) -> Rows:
    """The rows with `CACHEABLE`, where it is known.

    The part that all questions share takes the place of what earlier calls of the run happened to share, so that the
    order in which questions were asked doesn't matter. Calls of tools are made at once, and which of them finds the
    other's prompt is chance: only that part of theirs is counted as `CACHEABLE`.
    """
    if not (run / CALLS_FILE).exists():
        return rows
    calls = read_calls(run, rows)
    names, prefixes = rows["architecture"], manifest.shared_prefixes
    pairs = zip(names[calls.row], calls.role, strict=True)
    shared = [prefixes[name][role].tokens if role in prefixes.get(name, {}) else 0.0 for name, role in pairs]
    longer = np.where(calls.role == "tool", shared, np.maximum(calls.columns["shared_question_tokens"], shared))
    tokens = calls.of_rows(np.minimum(longer, calls.columns["input_tokens"]))
    return rows if np.isnan(tokens[~rows.left_out]).any() else rows.assign(**{CACHEABLE: tokens})


def _lines(rows: Rows) -> list[BaselineLine]:
    """The rows of an architecture as lines, by id and trial; one that is in no mean is as if it had failed."""

    def whole(name: str) -> list[int | None]:
        values = rows[name].tolist() if name in rows else [math.nan] * len(rows)
        return [None if math.isnan(value) else int(value) for value in values]

    told = zip(rows["question"], rows["answers"], strict=True)
    texts = [json.dumps([question, list(answers)], ensure_ascii=False) for question, answers in told]
    lost, right, f1 = rows.left_out, rows["exact_match"], rows["f1"]
    lines = map(
        BaselineLine,
        rows["example_id"].tolist(),
        rows["trial"].astype(int).tolist(),
        [sha256(text.encode("utf-8", "replace")).hexdigest()[:8] for text in texts],
        *map(whole, COUNTS),
        [None if gone or math.isnan(value) else bool(value) for gone, value in zip(lost, right, strict=True)],
        [None if math.isnan(value) else round(float(value), 6) for value in f1],
        ["error" if gone else stop or None for gone, stop in zip(lost, rows["stop_reason"], strict=True)],
    )
    return sorted(lines, key=lambda line: (line.example_id, line.trial))
