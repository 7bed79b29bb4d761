"""The settings of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of a model's requests, and of the server of a local model.

    "auto" means the catalogue's value for a model of the catalogue, and a value by size for a user's file; a hosted
    model gets turns ("chat") and a JSON schema where its provider supports one. For local models: `n_parallel`
    requests are decoded in one batch. Only with 1 are answers the same every time; more was no faster on two
    cores with the embedded server, and up to twice as fast with one built for the CPU. `llama_server` is the
    command of a user's llama-server. `threads` is one per physical core by default. `n_caches` is the number of
    architectures: each gets a prefix cache of its own, in a server of its own, so that none finds the prompts of
    another. They share one cache with `n_parallel` above 1, and in a user's llama-server, since its memory
    may be a GPU's. `prices` are dollars per million tokens (`input`, `cached_input`, `cache_write`, `output`), in the
    place of litellm's.
    """

    api_base: str | None = None
    temperature: float = 0.0
    reply_tokens: int = 512
    reasoning_effort: str | None = None
    provider_cache: bool = False
    drop_params: tuple[str, ...] = ()
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 600.0
    seed: int | None = None
    prompt_form: Literal["auto", "chat", "completion"] = "auto"
    constrain: Literal["auto", "grammar", "schema", "none"] = "auto"
    n_parallel: int = 1
    threads: int | None = None
    n_caches: int = 1
    llama_server: str | None = None
    prices: Mapping[str, float] | None = None
