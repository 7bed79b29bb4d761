"""The options of a run: the flags of the command, and `options` of the manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rewoo_bench.runs.option_types import (
    ANSWERS,
    SESSION,
    UNSAVED,
    Amount,
    AmountOrNone,
    Count,
    CountOrNone,
    Matters,
    Seed,
    Share,
    Trials,
    check_options,
    matters_of,
)
from rewoo_bench.types import FaultMode

DEFAULT_MODEL = "local/smollm2-135m"
CONDITION = Matters(compare="note", baseline=True)  # of the tools; claims separate runs by it


@dataclass(frozen=True)
class RoleModel:
    """The model of one part of an architecture."""

    name: str
    temperature: float


@dataclass(frozen=True)
class RunOptions:
    """The flags of `run`; None leaves the choice to the data set, the model or the architecture.

    Raises `UsageError` with the flag's name for a value out of range.
    """

    architectures: tuple[str, ...]
    dataset: str = "sample"
    split: str | None = None
    limit: Count | None = None
    ids: tuple[str, ...] = ()
    """Ids of the questions to ask; all by default."""
    question_types: tuple[str, ...] = ()
    """Types of the questions to ask; all by default."""
    failed_in: Path | None = None
    """Run whose failed questions are asked; a run records them under `ids`, too."""
    wrong_in: Path | None = None
    """The same for questions with a wrong answer."""
    seed: Annotated[Seed, Matters(baseline=True)] = 0
    trials: Annotated[Trials, Matters(compare="note", baseline=True, claims=True)] = 1
    model: str = DEFAULT_MODEL
    planner_model: str | None = None
    solver_model: str | None = None
    judge_model: Annotated[str | None, Matters(compare="refuse", claims=True)] = None
    embedding_model: Annotated[str | None, ANSWERS] = None
    """Model of the embeddings that external agents ask for."""
    api_base: Annotated[str | None, SESSION] = None
    llama_server: str | None = None
    threads: Annotated[Count | None, SESSION] = None
    temperature: Annotated[AmountOrNone, ANSWERS] = 0.0
    planner_temperature: Annotated[AmountOrNone | None, ANSWERS] = None
    solver_temperature: Annotated[AmountOrNone | None, ANSWERS] = None
    max_output_tokens: Annotated[Count, ANSWERS] = 512
    reasoning_effort: str | None = None
    prompt_cache: bool = False
    drop_params: tuple[str, ...] = ()
    extra_body: str | None = None
    """A JSON object."""
    style: Annotated[Literal["auto", "chat", "completion"], ANSWERS] = "auto"
    constrain: Annotated[Literal["auto", "grammar", "schema", "none"], ANSWERS] = "auto"
    corpus: Path | None = None
    tools: tuple[str, ...] = ()
    """Tools of every architecture that uses tools, or `none`; by default those of the data set, else its own."""
    mcp: tuple[str, ...] = ()
    """MCP servers, whose tools every architecture with tools gets."""
    mcp_timeout: Annotated[Amount, SESSION] = 60.0
    max_steps: Annotated[Count | None, Matters(compare="note", claims=True)] = None
    token_limit: Annotated[Count | None, ANSWERS] = None
    time_limit: Annotated[Amount | None, ANSWERS] = None
    cost_limit: Annotated[Amount | None, ANSWERS] = None
    price: Annotated[tuple[str, ...], Matters(compare="note")] = ()
    """Dollars per million tokens: `input=0.15,cached=0.075,output=0.6`, of another role's model after `planner:`."""
    prices: Annotated[tuple[str, ...], Matters(compare="note")] = ()
    """The same by price sheets: SHEET, or SHEET:MODEL."""
    max_total_tokens: Annotated[Count | None, SESSION] = None
    max_total_cost: Annotated[Amount | None, SESSION] = None
    concurrency: Annotated[Count | None, SESSION] = None
    max_connections: Annotated[Count | None, SESSION] = None
    max_retries: Annotated[CountOrNone, SESSION] = 5
    timeout: Annotated[Amount, SESSION] = 600.0
    fail_on_error: Annotated[AmountOrNone | None, SESSION] = None
    grace: Annotated[AmountOrNone, SESSION] = 15.0
    tool_failure_rate: Annotated[Share, CONDITION] = 0.0
    tool_failure_mode: Annotated[FaultMode, CONDITION] = "empty"
    tool_result_tokens: Annotated[Count | None, CONDITION] = None
    engine: Annotated[Literal["local", "ray"], UNSAVED] = "local"
    workers: Annotated[Count | None, UNSAVED] = None
    ray_address: Annotated[str | None, UNSAVED] = None
    worker_resources: Annotated[str | None, UNSAVED] = None
    """A JSON object of amounts, such as `{"GPU": 1}`."""
    out: Annotated[Path | None, UNSAVED] = None
    resume: Annotated[Path | None, UNSAVED] = None
    accept_loss: Annotated[bool, UNSAVED] = False
    """Whether recorded calls that are missing or damaged are asked again; without it such a run isn't resumed."""
    cache: Annotated[Path | None, UNSAVED] = None
    report: Annotated[bool, SESSION] = True
    """Whether the command writes report.html; a resumed run does what it began with."""
    otel: Annotated[str | None, UNSAVED] = None
    """File or OTLP endpoint for spans."""
    progress: Annotated[bool, UNSAVED] = True
    verbose: Annotated[bool, UNSAVED] = False
    """Whether progress has a line for each finished question."""

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def role_models(self) -> dict[str, RoleModel]:
        """Role -> its model and temperature; `""` for every other role."""
        planner = RoleModel(self.planner_model or self.model, _given(self.planner_temperature, self.temperature))
        solver = RoleModel(self.solver_model or self.model, _given(self.solver_temperature, self.temperature))
        roles = {"": RoleModel(self.model, self.temperature), "planner": planner, "solver": solver}
        if self.judge_model:
            roles["judge"] = RoleModel(self.judge_model, 0.0)
        if self.embedding_model:
            roles["embedding"] = RoleModel(self.embedding_model, 0.0)
        return {role: model for role, model in roles.items() if not role or model != roles[""]}

    def as_json(self) -> dict[str, Any]:
        """The options of a manifest, JSON-ready, without output paths."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return {name: value for name, value in values.items() if OPTIONS[name].saved}


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


OPTIONS: Mapping[str, Matters] = matters_of(RunOptions)
"""Option -> where two runs must have the same value."""


def options_that(matter: Callable[[Matters], object]) -> tuple[str, ...]:
    """Names of the options for which `matter` is true: `options_that(lambda matters: matters.baseline)`."""
    return tuple(name for name, matters in OPTIONS.items() if matter(matters))
