"""The `[settings]` table of the router, and its rules.

policy = "rule"
parents = ["rewoo", "react"]

[[rules]]                  # the first rule that fits a question chooses its architecture
choose = "react"
min_words = 25
first_words = ["who", "what"]
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from rewoo_bench.text.question_features import contains, count_names, words_of

PolicyName = Literal["rule", "model", "learned"]


class Rule(BaseModel):
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
    def _has_conditions(self) -> Rule:
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

    policy: PolicyName = "rule"
    parents: tuple[str, str] = ("rewoo", "react")
    """The two architectures to choose from. The first is taken where no rule fits, or a model's reply names neither."""
    rules: tuple[Rule, ...] = ()
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


def rule_for(rules: tuple[Rule, ...], question: str) -> int | None:
    """The position of the first rule that fits; None where none does."""
    return next((number for number, rule in enumerate(rules) if rule.fits(question)), None)
