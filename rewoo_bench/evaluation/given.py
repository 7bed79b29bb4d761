"""Python objects in the place of the names of a run: examples, architectures, a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from rewoo_bench.config.scorers import find_scorer
from rewoo_bench.errors import UsageError
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.model_names import LOCAL, REPLAY, is_oracle
from rewoo_bench.models.open import REPLAY_CONCURRENCY, OpenModel
from rewoo_bench.models.settings import ModelSettings
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.scoring import Scorer
from rewoo_bench.types import Example, GoldAware, Model

EXAMPLES = "examples"
"""The data set's name in a run over examples."""

PYTHON = "python"
"""Key of the manifest's facts about an object, which no command can make again."""


@dataclass(frozen=True)
class GivenObjects:
    """Objects that a run uses instead of the names in its options; None where the name counts."""

    examples: Sequence[Example] | None = None
    exemplars: str = "multihop"
    """Style of the exemplars for `examples`."""
    scoring: str | Scorer = "hotpotqa"
    """Metric for `examples`."""
    architectures: Sequence[str | Architecture] | None = None
    model: Model | None = None
    settings: ModelSettings | None = None
    loaded: Dataset | None = None
    """The data set, loaded and checked in another process."""

    def open_model(self) -> OpenModel:
        """The given model, as `open_model` gives one for a name."""
        model = cast(Model, self.model)
        name = model_name(model)
        facts = getattr(model, "manifest", None) or {"name": name, PYTHON: _import_path(model)}
        return OpenModel(model, name, REPLAY_CONCURRENCY, facts, wire_name=getattr(model, "wire_name", None))

    def dataset(self, limit: int | None, seed: int) -> Dataset:
        """The first `limit` of the examples. Raises `UsageError` for two of the same id."""
        every = tuple(self.examples or ())
        counts = Counter(example.id for example in every)
        if repeated := next((name for name, count in counts.items() if count > 1), None):
            raise UsageError(f"dataset: {counts[repeated]} examples have the id {repeated!r}")
        chosen = every[:limit]
        digest = ids_hash(example.id for example in chosen)
        facts = {
            "name": EXAMPLES,
            "source": {PYTHON: EXAMPLES, "sha256": sha256(repr(every).encode()).hexdigest()},
            "seed": seed,
            "limit": limit,
            "rows": len(every),
            "examples": len(chosen),
            "ids_hash": digest,
        }
        return Dataset(EXAMPLES, self.exemplars, find_scorer(self.scoring), "", chosen, digest, None, facts)


def model_name(model: Model) -> str:
    """The name that a model object has in a run; a name that means another kind of model gives way to its class's."""
    name = str(getattr(model, "name", "") or type(model).__name__)
    is_taken = name.startswith((LOCAL, REPLAY)) or (is_oracle(name) and not isinstance(model, GoldAware))
    return type(model).__name__ if is_taken else name


def _import_path(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"
