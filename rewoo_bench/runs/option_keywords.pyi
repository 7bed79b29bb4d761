# Written by scripts/option_keywords.py.
from pathlib import Path
from typing import Literal, TypedDict

class OptionKeywords(TypedDict, total=False):
    """`RunOptions` as keywords of `evaluate`."""

    split: str | None
    questions: int | None
    ids: str | list[str] | tuple[str, ...]
    question_types: str | list[str] | tuple[str, ...]
    failed_in: str | Path | None
    wrong_in: str | Path | None
    seed: int
    trials: int
    planner_model: str | None
    solver_model: str | None
    judge_model: str | None
    embedding_model: str | None
    temperature: float
    reply_tokens: int
    reasoning_effort: str | None
    prompt_form: Literal["auto", "chat", "completion"]
    constrain: Literal["auto", "grammar", "schema", "none"]
    llama_server: str | None
    api_base: str | None
    timeout: float
    max_retries: int
    max_connections: int | None
    provider_cache: bool
    extra_body: str | None
    answer_cache: str | Path | None
    price: str | list[str] | tuple[str, ...]
    prices: str | list[str] | tuple[str, ...]
    max_steps: int | None
    question_tokens: int | None
    question_time: float | None
    question_cost: float | None
    run_tokens: int | None
    run_cost: float | None
    fail_on_error: float | None
    concurrency: int | None
    workers: int | None
    ray_address: str | None
    worker_resources: str | None
    grace: float
    tools: str | list[str] | tuple[str, ...]
    world: str | None
    mcp: str | list[str] | tuple[str, ...]
    mcp_timeout: float
    corpus: str | Path | None
    tool_failure_rate: float
    tool_failure_mode: Literal["empty", "error", "timeout"]
    tool_result_tokens: int | None
    out: str | Path | None
    accept_loss: bool
    progress: bool
    report: bool
