"""The settings of a router: two architectures, and rules about a question's text that choose one of them."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def count_names(question: str) -> int:
    """The number of names: runs of words that begin with a capital letter.

    The first word alone is no name, since every sentence begins with a capital letter.
    """
    capital: list[bool] = [word[0].isupper() for word in _WORD.findall(question)]
    runs = sum(is_capital for is_capital, _ in groupby(capital))
    return runs - (capital[:2] in ([True], [True, False]))


class RoutingRule(BaseModel):
    """A rule about a question's text. It fits where all of its conditions hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    choose: str
    """The architecture for questions that the rule fits: one of the two parents."""
    min_names: int | None = Field(default=None, ge=1)
    """Names are runs of words that begin with a capital letter, but for the first word alone."""
    max_names: int | None = Field(default=None, ge=0)
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

    @model_validator(mode="after")
    def _has_conditions(self) -> RoutingRule:
        if self.model_fields_set <= {"choose"}:
            raise ValueError("a rule needs a condition; without one it fits every question")
        return self

    def fits(self, question: str) -> bool:
        """Whether every condition holds for a question."""
        names = count_names(question)
        any_word = rf"\b(?:{'|'.join(map(re.escape, self.words))})\b"
        patterns = [pattern for pattern in (any_word if self.words else "", self.pattern) if pattern]
        return (
            (self.min_names is None or names >= self.min_names)
            and (self.max_names is None or names <= self.max_names)
            and all(re.search(pattern, question, re.IGNORECASE) for pattern in patterns)
        )


class RouterSettings(BaseModel):
    """The `[settings]` table of the router."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: Literal["rule", "model"] = "rule"
    parents: tuple[str, str] = ("rewoo", "react")
    """The two architectures to choose from. The first is taken where no rule fits, or a model's reply names neither."""
    rules: tuple[RoutingRule, ...] = ()

    @field_validator("parents", mode="before")
    @classmethod
    def _are_two(cls, parents: Any) -> Any:
        """Two names: a list, or `parents=cot+direct` of a name's options, where a "+" is a space."""
        names = parents.split() if isinstance(parents, str) else parents
        if isinstance(names, list | tuple) and (len(names) != 2 or names[0] == names[1]):
            raise ValueError("expected two different architectures, as in rewoo+react")
        return tuple(names) if isinstance(names, list) else names


def rule_for(rules: tuple[RoutingRule, ...], question: str) -> int | None:
    """The position of the first rule that fits; None where none does."""
    return next((number for number, rule in enumerate(rules) if rule.fits(question)), None)
