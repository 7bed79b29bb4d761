"""The options of a run, as the command's flags and the manifest have them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rewoo_bench.evaluation.option_types import Amount, AmountOrNone, Count, CountOrNone, Share, check_options
from rewoo_bench.models.open import ModelSettings
from rewoo_bench.tools.faults import FaultMode

DEFAULT_MODEL = "local/smollm2-135m"


@dataclass(frozen=True)
class RoleModel:
    """The model of one part of an architecture."""

    name: str
    temperature: float


@dataclass(frozen=True)
class RunOptions:
    """The flags of `run`; None leaves the choice to the data set, the model or the architecture.

    Raises `UsageError` for a value that is out of its range, in the words that the command has for it.
    """

    architectures: tuple[str, ...]
    dataset: str = "sample"
    split: str | None = None
    limit: Count | None = None
    seed: int = 0
    trials: Count = 1
    model: str = DEFAULT_MODEL
    planner_model: str | None = None
    solver_model: str | None = None
    judge_model: str | None = None
    api_base: str | None = None
    llama_server: str | None = None
    threads: Count | None = None
    temperature: AmountOrNone = 0.0
    planner_temperature: AmountOrNone | None = None
    solver_temperature: AmountOrNone | None = None
    max_output_tokens: Count = 512
    reasoning_effort: str | None = None
    prompt_cache: bool = False
    drop_params: tuple[str, ...] = ()
    extra_body: str | None = None
    """A JSON object."""
    style: Literal["auto", "chat", "completion"] = "auto"
    constrain: Literal["auto", "grammar", "schema", "none"] = "auto"
    corpus: Path | None = None
    max_steps: Count | None = None
    token_limit: Count | None = None
    time_limit: Amount | None = None
    cost_limit: Amount | None = None
    max_total_tokens: Count | None = None
    max_total_cost: Amount | None = None
    concurrency: Count | None = None
    max_connections: Count | None = None
    max_retries: CountOrNone = 5
    timeout: Amount = 600.0
    fail_on_error: AmountOrNone | None = None
    grace: AmountOrNone = 15.0
    tool_failure_rate: Share = 0.0
    tool_failure_mode: FaultMode = "empty"
    out: Path | None = None
    resume: Path | None = None
    cache: Path | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def role_models(self) -> dict[str, RoleModel]:
        """Role -> its model and temperature; `""` is every other role."""
        planner = RoleModel(self.planner_model or self.model, _given(self.planner_temperature, self.temperature))
        solver = RoleModel(self.solver_model or self.model, _given(self.solver_temperature, self.temperature))
        roles = {"": RoleModel(self.model, self.temperature), "planner": planner, "solver": solver}
        if self.judge_model:
            roles["judge"] = RoleModel(self.judge_model, 0.0)
        return {role: model for role, model in roles.items() if not role or model != roles[""]}

    @property
    def model_settings(self) -> ModelSettings:
        return ModelSettings(
            api_base=self.api_base,
            llama_server=self.llama_server,
            temperature=self.temperature,
            max_output_tokens=self.max_output_tokens,
            reasoning_effort=self.reasoning_effort,
            prompt_cache=self.prompt_cache,
            drop_params=self.drop_params,
            extra_body=json.loads(self.extra_body) if self.extra_body else {},
            timeout=self.timeout,
            seed=self.seed,
            style=self.style,
            constrain=self.constrain,
            n_parallel=self.concurrency or 1,
            threads=self.threads,
            n_caches=len(self.architectures),
        )


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
