"""Names of models that no provider has, known to whoever reads tables as to whoever opens models."""

REPLAY = "replay/"
ORACLE = "oracle"


def is_oracle(model: str) -> bool:
    """Whether a model's name means the oracle, perfect (`oracle`) or not (`oracle?extra_steps=2`)."""
    return model == ORACLE or model.startswith(f"{ORACLE}?")
