"""router.json, a learned router: a logistic regression over the words of a question, as plain JSON.

    router = read_router(Path("router.json"))
    router.chance("Who was born first, A or B?")     # 0.31: that the dearer parent alone is right
    router.choose("Who was born first, A or B?")     # "rewoo"

`rewoo-bench route RUN --out router.json` writes it. Reading it and choosing need nothing but Python.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from rewoo_bench.config.specs import validated
from rewoo_bench.errors import SpecError

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_PER_WORD, _PER_NAME = 0.1, 1 / 3  # so that most lengths and numbers of names are between 0 and about 3, as words are
_LONGEST_WORD = 40  # characters; a longer word is no word
NUMBERS = ("length", "names")
"""Names of the features that aren't words."""


def words_of(question: str) -> list[str]:
    """The words of a question in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(question)]


def count_names(question: str) -> int:
    """The number of names: runs of words that begin with a capital letter.

    The first word alone is no name, since every sentence begins with a capital letter.
    """
    capital: list[bool] = [word[0].isupper() for word in _WORD.findall(question)]
    runs = sum(is_capital for is_capital, _ in groupby(capital))
    return runs - (capital[:2] in ([True], [True, False]))


def contains(words: Sequence[str], phrase: str) -> bool:
    """Whether the words of a phrase follow each other in `words`."""
    wanted = words_of(phrase)
    starts = range(len(words) - len(wanted) + 1)
    return any(list(words[start : start + len(wanted)]) == wanted for start in starts)


def features_of(question: str) -> dict[str, float]:
    """The features of a learned router: length, number of names, the first word, and each word that occurs."""
    words = words_of(question)
    features = {"length": _PER_WORD * len(words), "names": _PER_NAME * count_names(question)}
    if words and len(words[0]) <= _LONGEST_WORD:
        features[f"first={words[0]}"] = 1.0
    features |= {f"word={word}": 1.0 for word in words if len(word) <= _LONGEST_WORD}
    return features


ROUTER_VERSION: Literal[1] = 1
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
    """By feature (`features_of`). A feature that isn't here has the weight 0."""

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
        value = math.fsum([self.intercept, *terms])
        odds = math.exp(-abs(value))  # without an overflow
        return 1 / (1 + odds) if value >= 0 else odds / (1 + odds)

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
    if found["version"] != ROUTER_VERSION:
        shown = repr(found["version"])[:40]
        raise SpecError(
            f"{where} has version {shown}, and this rewoo_bench reads {ROUTER_VERSION}; write it again: {_COMMAND}"
        )
    return validated(RouterFile, found, where)


class RoutingRule(BaseModel):
    """A rule about a question's text. It fits where all of its conditions hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    choose: str
    """The architecture for questions that the rule fits: one of the two parents."""
    min_words: int | None = Field(default=None, ge=1)
    max_words: int | None = Field(default=None, ge=1)
    min_names: int | None = Field(default=None, ge=1)
    """Names are runs of words that begin with a capital letter, but for the first word alone."""
    max_names: int | None = Field(default=None, ge=0)
    first_words: tuple[str, ...] = ()
    """The question begins with one of these words or phrases."""
    words: tuple[str, ...] = ()
    """The question has one of these words or phrases, in upper or lower case."""
    pattern: str = ""
    """A regular expression that is found in the question, in upper or lower case."""

    @field_validator("pattern")
    @classmethod
    def _is_regular(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern

    @field_validator("first_words", "words")
    @classmethod
    def _have_words(cls, phrases: tuple[str, ...]) -> tuple[str, ...]:
        if empty := next((phrase for phrase in phrases if not words_of(phrase)), None):
            raise ValueError(f"{empty!r} has no word")
        return phrases

    @model_validator(mode="after")
    def _has_conditions(self) -> RoutingRule:
        if self.model_fields_set <= {"choose"}:
            raise ValueError("a rule needs a condition; without one it fits every question")
        return self

    def fits(self, question: str) -> bool:
        """Whether every condition holds for a question."""
        words = words_of(question)
        names = count_names(question)
        first = [phrase for phrase in self.first_words if words[: len(words_of(phrase))] == words_of(phrase)]
        return (
            (self.min_words is None or len(words) >= self.min_words)
            and (self.max_words is None or len(words) <= self.max_words)
            and (self.min_names is None or names >= self.min_names)
            and (self.max_names is None or names <= self.max_names)
            and (not self.first_words or bool(first))
            and (not self.words or any(contains(words, phrase) for phrase in self.words))
            and (not self.pattern or re.search(self.pattern, question, re.IGNORECASE) is not None)
        )


class RouterSettings(BaseModel):
    """The `[settings]` table of the router."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: Literal["rule", "model", "learned"] = "rule"
    parents: tuple[str, str] = ("rewoo", "react")
    """The two architectures to choose from. The first is taken where no rule fits, or a model's reply names neither."""
    rules: tuple[RoutingRule, ...] = ()
    file: str | None = Field(default=None, validate_default=True)
    """The file of a learned router, in the working folder or in that of the architecture."""

    @field_validator("parents", mode="before")
    @classmethod
    def _are_two(cls, parents: Any) -> Any:
        """Two names: a list, or `parents=cot+direct` of a name's options, where a "+" is a space."""
        names = parents.split() if isinstance(parents, str) else parents
        if isinstance(names, list | tuple) and (len(names) != 2 or names[0] == names[1]):
            raise ValueError("expected two different architectures, as in rewoo+react")
        return tuple(names) if isinstance(names, list) else names

    @field_validator("file")
    @classmethod
    def _belongs_to_the_policy(cls, file: str | None, info: ValidationInfo) -> str | None:
        policy = info.data.get("policy")
        if policy == "learned" and not file:
            raise ValueError("policy 'learned' needs one; 'rewoo-bench route RUN --out router.json' writes it")
        if policy in ("rule", "model") and file:
            raise ValueError(f"it is for policy 'learned', and the policy is {policy!r}")
        return file


def rule_for(rules: tuple[RoutingRule, ...], question: str) -> int | None:
    """The position of the first rule that fits; None where none does."""
    return next((number for number, rule in enumerate(rules) if rule.fits(question)), None)
