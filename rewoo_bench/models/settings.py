"""The settings of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How to ask a model.

    "auto" is what the catalogue says for a model of ours, and for another's file what fits its
    size; a hosted model gets turns ("chat") and a JSON schema where its provider has that.
    `n_parallel` is for local models: how many requests are decoded in one batch. Only with 1 are
    answers the same every time; more was no faster on two cores with the embedded server, and up to
    twice as fast with one built for the CPU. `llama_server` is the command of
    a llama-server of one's own that serves them. `threads` of a local model are one for each physical
    core by default. `n_caches` is the number of architectures: each gets a prefix cache of its own, in a
    server of its own, so that none finds the prompts of another. They share one cache where several
    requests are decoded in one batch, and in a llama-server of one's own, whose memory may be a GPU's.
    """

    api_base: str | None = None
    temperature: float = 0.0
    max_output_tokens: int = 512
    reasoning_effort: str | None = None
    prompt_cache: bool = False
    drop_params: tuple[str, ...] = ()
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 600.0
    seed: int | None = None
    style: Literal["auto", "chat", "completion"] = "auto"
    constrain: Literal["auto", "grammar", "schema", "none"] = "auto"
    n_parallel: int = 1
    threads: int | None = None
    n_caches: int = 1
    llama_server: str | None = None
