"""Names of models that no provider has, known to whoever reads tables as to whoever opens models."""

from __future__ import annotations

from collections.abc import Iterable

LOCAL = "local/"
REPLAY = "replay/"
ORACLE = "oracle"


def is_oracle(model: str) -> bool:
    """Whether a model's name means the oracle, perfect (`oracle`) or not (`oracle?extra_steps=2`)."""
    return model == ORACLE or model.startswith(f"{ORACLE}?")


def is_deterministic(models: Iterable[str]) -> bool:
    """Whether the same questions give the same counts: every model is the oracle or a replay."""
    return all(is_oracle(model) or model.startswith(REPLAY) for model in models)
