"""claims.toml -> claims, each with its source, its measure, its runs and the rule of its verdict.

    [[claim]]
    id = "hotpotqa-tokens"
    says = "ReAct takes 4.93 times the tokens of ReWOO"
    source = "Xu et al. 2023, arXiv 2305.18323, Table 2"
    number = 4.93
    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }
    on = { data = ["hotpotqa"] }
    rule = { name = "near", relative = 0.2, null = 1 }

or, in place of the last three, the reason why it can't be tested: `untestable = "…"`. A misspelt key is an
error that names the key and the nearest right one.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.claims.averages import AVERAGES
from rewoo_bench.claims.data_sets import Data, title
from rewoo_bench.claims.measures import MEASURES, Measure
from rewoo_bench.claims.rules import RULES, Rule
from rewoo_bench.claims.run_groups import RunGroup
from rewoo_bench.config.specs import validated
from rewoo_bench.errors import SpecError, unknown

BUNDLED = Path(__file__).parent / "claims.toml"
TOPICS = ("cost", "scaling", "accuracy", "failures", "latency")
Part = TypeVar("Part", bound=BaseModel)


class RunFilter(BaseModel):
    """Which runs a claim is tested on, and which of their questions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: tuple[Data, ...] = ()
    """Data sets; any, where none is named."""
    failure_rate: float = Field(default=0.0, ge=0, le=1)
    """Share of the tool calls that the run made fail."""
    failure_mode: Literal["empty", "error", "timeout"] = "empty"
    least_steps: int | None = Field(default=None, ge=1)
    most_steps: int | None = Field(default=None, ge=1)
    """Look-ups that a question of the chain data set needs."""
    unforeseen: bool | None = None
    """Only questions of the chain data set with, or without, look-ups that no plan can foresee."""
    question_type: str = ""
    """Only questions of this type: a value of the column `question_type`, such as HotpotQA's `comparison`."""

    def part(self, group: RunGroup) -> RunGroup | None:
        """The part of the run group that the claim is about, if any."""
        if (self.data and group.data not in self.data) or group.failure_rate != self.failure_rate:
            return None
        if self.failure_rate and group.failure_mode != self.failure_mode:
            return None
        part = group.of_type(self.question_type) if self.question_type else group
        return part and part.only(self.least_steps, self.most_steps, self.unforeseen)


class _Written(BaseModel):
    """A `[[claim]]` table; measure, on and rule are validated later, by the kind that their name gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern="^[a-z0-9-]+$")
    topic: Literal["cost", "scaling", "accuracy", "failures", "latency"]
    says: str = Field(min_length=1)
    """The claim in our words."""
    source: str = Field(min_length=1)
    """Author and place."""
    number: float | None = None
    """The claimed number, in the measure's unit: 0.044 for 4.4 points."""
    measure: dict[str, Any] | None = None
    on: dict[str, Any] = {}
    rule: dict[str, Any] | None = None
    note: str = ""
    """What a reader has to know with the verdict."""
    by_construction: bool = False
    """Whether the design of the architecture or of the measure makes it true: it tests the harness, not the claim."""
    untestable: str = ""
    """Why it can't be tested here."""

    @model_validator(mode="after")
    def _test_or_reason(self) -> _Written:
        if self.untestable and (self.measure or self.rule or self.on):
            raise ValueError("a claim is untestable or has a measure and a rule, not both")
        if not self.untestable and not (self.measure and self.rule):
            raise ValueError("expected a measure and a rule, or untestable with the reason")
        return self


@dataclass(frozen=True, slots=True)
class ClaimTest:
    """The measure of a claim, the runs that it is tested on, and the rule of its verdict."""

    measure: Measure
    on: RunFilter
    rule: Rule


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its source and its test; one without a test has the reason in `untestable`."""

    id: str
    topic: str
    says: str
    source: str
    number: float | None
    note: str
    by_construction: bool
    untestable: str
    test: ClaimTest | None

    @property
    def about(self) -> str:
        """The data that it is about, as the title of a group of claims."""
        if self.test is None:
            return "Not testable here"
        if self.test.measure.data_sets():
            return "Averages over data sets"
        on = self.test.on
        if on.least_steps or on.most_steps or on.unforeseen is not None:
            return title("chain")
        return " and ".join(map(title, on.data)) or "Any data set"

    @property
    def claimed(self) -> str:
        """The claimed number, in the measure's unit, and the direction or band that is tested."""
        if self.test is None:
            return ""
        measure = self.test.measure
        expected = self.test.rule.expected(measure.show)
        if self.number is not None:
            tested = f" (tested: {expected})" if expected else ""
            return f"{measure.show(self.number)}{measure.suffix}{tested}"
        return expected


def read_claims(path: Path = BUNDLED) -> tuple[Claim, ...]:
    """The claims of a file, in its order. Raises `SpecError`."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"there is no {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not valid TOML: {error}") from None
    written = values.pop("claim", [])
    if values:
        raise SpecError(f"{path}: {unknown('key', next(iter(values)), ['claim'])}")
    if not isinstance(written, list) or not written or not all(isinstance(each, dict) for each in written):
        raise SpecError(f"{path} has no claim; expected [[claim]] tables")
    claims = tuple(_claim(each, f"{path}: claim {each.get('id', f'no. {i}')!r}") for i, each in enumerate(written, 1))
    for name, times in Counter(claim.id for claim in claims).items():
        if times > 1:
            raise SpecError(f"{path}: {times} claims have the id {name!r}; expected one")
    return claims


def _claim(values: dict[str, Any], where: str) -> Claim:
    written = validated(_Written, values, where)
    texts = written.model_dump(exclude={"measure", "on", "rule"})
    return Claim(**texts, test=_claim_test(written, where))


def _claim_test(written: _Written, where: str) -> ClaimTest | None:
    if written.measure is None or written.rule is None:
        return None
    rule = _named("rule", written.rule, RULES, where)
    if rule.needs_number and written.number is None:
        raise SpecError(
            f"{where}: the rule {written.rule['name']!r} needs the claim's number; expected the key 'number'"
        )
    measure = _named("measure", written.measure, {**MEASURES, **AVERAGES}, where)
    return ClaimTest(measure, validated(RunFilter, written.on, f"{where}: on"), rule)


def _named(what: str, values: dict[str, Any], kinds: Mapping[str, type[Part]], where: str) -> Part:
    """The measure or rule of that name, with its parameters. Raises `SpecError`."""
    name = str(values.get("name"))
    if name not in kinds:
        raise SpecError(f"{where}: {unknown(what, name, kinds)}")
    parameters = {key: value for key, value in values.items() if key != "name"}
    return validated(kinds[name], parameters, f"{where}: {what} {name!r}")
