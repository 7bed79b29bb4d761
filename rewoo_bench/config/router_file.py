"""router.json, a learned router: a logistic regression over the words of a question, as plain JSON.

    router = read_router(Path("router.json"))
    router.chance("Who was born first, A or B?")     # 0.31: that the dearer parent alone is right
    router.choose("Who was born first, A or B?")     # "rewoo"

`rewoo-bench route RUN --out router.json` writes it. Reading it and choosing need nothing but Python.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from rewoo_bench.config.specs import validated
from rewoo_bench.errors import SpecError
from rewoo_bench.text.question_features import features_of

VERSION: Literal[1] = 1
TARGET = "the dearer parent alone is right, among questions that one parent alone has right"
_COMMAND = "rewoo-bench route RUN --out router.json"


class TrainingData(BaseModel):
    """The questions that a router was fitted on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    questions: int
    decided: int
    """Questions with different exact match of the two parents. The others have no weight."""
    ids_sha256: str
    """Hash of the questions' ids, sorted, one a line."""


class RouterFile(BaseModel):
    """The weights, and the facts about where they come from."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    version: Literal[1]
    """Version of this format."""
    rewoo_bench: str
    scikit_learn: str
    parents: tuple[str, str]
    cheaper: str
    """The parent with fewer tokens a question, which is chosen where the chance isn't above the threshold."""
    target: str = TARGET
    threshold: float = Field(ge=0, le=1)
    data: TrainingData
    intercept: float
    weights: dict[str, float]
    """By feature (`text.question_features`). A feature that isn't here has the weight 0."""

    @field_validator("cheaper")
    @classmethod
    def _is_a_parent(cls, cheaper: str, info: ValidationInfo) -> str:
        parents = info.data.get("parents", (cheaper,))
        if cheaper not in parents or parents[0] == parents[-1]:
            raise ValueError(f"expected one of two different parents, which are {list(parents)}")
        return cheaper

    @field_validator("target")
    @classmethod
    def _is_known(cls, target: str) -> str:
        if target != TARGET:
            raise ValueError(f"expected {TARGET!r}")
        return target

    @property
    def dearer(self) -> str:
        return next(name for name in self.parents if name != self.cheaper)

    def chance(self, question: str) -> float:
        """The chance that the dearer parent alone is right, where one alone is."""
        terms = (self.weights.get(name, 0.0) * value for name, value in features_of(question).items())
        return _logistic(math.fsum([self.intercept, *terms]))

    def choose(self, question: str) -> str:
        """The parent for a question."""
        return self.dearer if self.chance(question) > self.threshold else self.cheaper

    def written(self) -> str:
        """The file's text."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_router(path: Path) -> RouterFile:
    """The learned router in a file. Raises `SpecError` with one line that says what to do."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"no such router file: {str(path)!r}; {_COMMAND!r} writes one") from None
    except OSError as error:
        raise SpecError(f"router file {str(path)!r} can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"router file {str(path)!r} is not JSON: {str(error).splitlines()[0]}") from None
    where = f"router file {str(path)!r}"
    if not isinstance(found, dict) or "version" not in found:
        raise SpecError(f"{where} is no router: it has no version; {_COMMAND!r} writes one")
    if found["version"] != VERSION:
        shown = repr(found["version"])[:40]
        raise SpecError(
            f"{where} has version {shown}, and this rewoo_bench reads {VERSION}; write it again: {_COMMAND}"
        )
    return validated(RouterFile, found, where)


def _logistic(value: float) -> float:
    """1 / (1 + exp(-value)), without an overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))
