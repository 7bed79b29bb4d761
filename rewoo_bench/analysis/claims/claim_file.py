"""claims.toml -> claims, each with its sources, its measure, its runs and the rule of its verdict.

    [sources]
    "Xu 2023" = "Xu et al. 2023, arXiv 2305.18323"

    [[claim]]
    id = "tokens-react-rewoo"
    says = "ReAct's tokens, times ReWOO's"
    measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }
    rule = { relative = 0.2 }
    each = [
        { data = "hotpotqa", number = 4.93, source = ["Xu 2023, Table 2: 9795.1 / 1986.2", "Xu 2023, abstract: 5"] },
        { data = "triviaqa", number = 3.14, source = ["Xu 2023, Table 2: 4212.9 / 1340.9"] },
    ]

`each` makes a claim of each of its lines, `hotpotqa-tokens-react-rewoo` first. A claim that can't be tested has
`untestable = "the reason"` in the place of measure and rule. A misspelt key is an error that names the key and the
nearest right one.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.analysis.claims.measures import MEASURES, Measure, difference_of, pairs
from rewoo_bench.analysis.claims.rules import Rule
from rewoo_bench.analysis.claims.run_groups import Data, RunGroup, chain_shape, title
from rewoo_bench.analysis.stats.paired import Interval, mean_of_differences, ratio_of_summed_means
from rewoo_bench.config.specs import validated
from rewoo_bench.errors import SpecError, unknown

# Measures over several data sets at once: every one of them counts alike, and none may be missing.
#
#     measure = { name = "average_saving", column = "total_tokens", of = "rewoo", to = "react", data = ["gsm8k", …] }
#
# They need runs of one model with the same settings on each of these data sets.


class Average(Measure):
    """What both measures share."""

    data: tuple[Data, ...] = Field(min_length=2)
    """The data sets, in any order."""

    def data_sets(self) -> tuple[Data, ...]:
        return self.data

    def groups_used(self, group: RunGroup, groups: Sequence[RunGroup]) -> list[RunGroup]:
        """A group for each data set, the one with the most questions; none unless `group` is that of the first."""
        used = []
        for data in self.data:
            fitting = [each for each in groups if each.data == data and self._serves(each, group)]
            if not fitting:
                return []
            used.append(max(fitting, key=_questions))
        return used if used[0].runs() == group.runs() else []

    def _serves(self, other: RunGroup, group: RunGroup) -> bool:
        """Whether a group has the same model, settings and condition of the tools, and these architectures."""
        same = (other.settings, other.failure_rate) == (group.settings, group.failure_rate)
        return same and set(self.architectures()) <= set(other.architectures)


class AverageSaving(Average):
    """1 - the sum of the means of `of` / that of `to`: the share by which `of` takes less over all data sets."""

    unit: ClassVar[str] = "share"

    to: str

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        used = self.groups_used(group, groups)
        both = [pairs((each, self.to, self.column), (each, self.of, self.column)) for each in used]
        strata = [(each.columns[0], each.columns[1], each.clusters) for each in both if each is not None]
        if not strata or len(strata) < len(used):
            return None
        ratio = ratio_of_summed_means(strata)
        return replace(ratio, estimate=1 - ratio.estimate, low=1 - ratio.high, high=1 - ratio.low)


class AverageDifference(Average):
    """The mean over the data sets of mean(column of `of`) - mean(column of `minus`)."""

    minus: str

    def measure(self, group: RunGroup, groups: Sequence[RunGroup]) -> Interval | None:
        used = self.groups_used(group, groups)
        both = [pairs((each, self.minus, self.column), (each, self.of, self.column)) for each in used]
        strata = [difference_of(each, self.column) for each in both if each is not None]
        return mean_of_differences(strata) if strata and len(strata) == len(used) else None


AVERAGES: dict[str, type[Measure]] = {"average_saving": AverageSaving, "average_difference": AverageDifference}


def _questions(group: RunGroup) -> int:
    return min(len(own.rows) for own in group.architectures.values())


BUNDLED = Path(__file__).parent / "claims.toml"


class RunFilter(BaseModel):
    """Which runs a claim is tested on, and which of their questions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: tuple[Data, ...] = ()
    """Data sets; any, where none is named."""
    failure_rate: float = Field(default=0.0, ge=0, le=1)
    """Share of the tool calls that the run made fail."""
    failure_mode: Literal["empty", "error", "timeout"] = "empty"
    exemplars: dict[str, int] = {}
    """Exemplars in the prompt of an architecture, where the claim is about a prompt with, or without, them.

    `direct?max_exemplars=6` stands in for `direct` where six are wanted.
    """
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
        for name, count in self.exemplars.items():
            own = group.architectures.get(f"{name}?max_exemplars={count}") or group.architectures.get(name)
            if own and own.exemplars != count:
                return None
            if own:
                group = replace(group, architectures={**group.architectures, name: own})
        if self.is_of_chains and group.data != "chain":
            return None
        return group.only(self._fits) if self.question_type or self.is_of_chains else group

    @property
    def is_of_chains(self) -> bool:
        """Whether it chooses questions by their look-ups, which those of the chain data set alone have."""
        return not (self.least_steps is self.most_steps is self.unforeseen is None)

    def _fits(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """The questions that the claim is about."""
        types = rows["question_type"].astype(str)
        fits = (types == self.question_type) if self.question_type else types.notna()
        if self.is_of_chains:
            steps, unforeseen = chain_shape(rows)
            fits &= (steps >= (self.least_steps or 0)) & (steps <= (self.most_steps or steps.max()))
            fits &= self.unforeseen is None or unforeseen == self.unforeseen
        return fits


class _Written(BaseModel):
    """A `[[claim]]` table; measure and on are validated later, by the kind that their name gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern="^[a-z0-9-]+$")
    says: str = Field(min_length=1)
    """The claim in our words."""
    source: tuple[str, ...] = Field(min_length=1)
    """Who says it and where; behind a colon the numbers that stand there."""
    number: float | None = None
    """The claimed number, in the measure's unit: 0.044 for 4.4 points."""
    measure: dict[str, Any] | None = None
    on: dict[str, Any] = {}
    rule: dict[str, Any] | None = None
    note: str = ""
    """What a reader has to know with the verdict."""
    by_construction: bool = False
    """Whether our own design makes it true or false: it tests the harness, not the claim."""
    untestable: str = ""
    """Why it can't be tested here; what the measure says, if there is one, is shown without a verdict."""

    @model_validator(mode="after")
    def _test_or_reason(self) -> _Written:
        if bool(self.measure) != bool(self.rule) or not (self.measure or self.untestable):
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
    """A claim with its sources and its test; one that can't be tested has the reason in `untestable`."""

    id: str
    about: str
    """The data that it is about, as the title of a group of claims."""
    says: str
    source: tuple[str, ...]
    """`Xu 2023, Table 2: 9795.1 / 1986.2`."""
    cited: tuple[str, ...]
    """The same in full: `Xu et al. 2023, arXiv 2305.18323, Table 2: 9795.1 / 1986.2`."""
    number: float | None
    note: str
    by_construction: bool
    untestable: str
    test: ClaimTest | None

    @property
    def claimed(self) -> str:
        """The claimed number, in the measure's unit, and the direction or band that is tested."""
        if self.test is None:
            return ""
        if self.number is None:
            return self.tested
        number = f"{self.test.measure.show(self.number)}{self.test.measure.suffix}"
        return number if self.by_construction else f"{number} (tested: {self.tested})"

    @property
    def tested(self) -> str:
        """The band that reproduces it: `from 3.94 to 5.92`, `above 0`."""
        return self.test.rule.expected(self.number, self.test.measure.show) if self.test else ""


def read_claims(path: Path = BUNDLED) -> tuple[Claim, ...]:
    """The claims of a file, in its order. Raises `SpecError`."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"there is no {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not valid TOML: {error}") from None
    written, names = values.pop("claim", []), values.pop("sources", {})
    if values:
        raise SpecError(f"{path}: {unknown('key', next(iter(values)), ['claim', 'sources'])}")
    if not isinstance(written, list) or not written or not all(isinstance(each, dict) for each in written):
        raise SpecError(f"{path} has no claim; expected [[claim]] tables")
    claims = tuple(
        _claim(each, names, f"{path}: claim {each.get('id', f'no. {i}')!r}")
        for i, table in enumerate(written, 1)
        for each in _expanded(table)
    )
    for name, times in Counter(claim.id for claim in claims).items():
        if times > 1:
            raise SpecError(f"{path}: {times} claims have the id {name!r}; expected one")
    return claims


def _expanded(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The claims of a table: one for each line of `each`, whose keys come before those of the table."""
    lines = table.pop("each", None)
    if not isinstance(lines, list):
        yield table
        return
    for line in lines:
        data = line.pop("data", "")
        on = {**table.get("on", {}), "data": [data]}
        yield {**table, "on": on, **line, "id": f"{data}-{table.get('id', '')}"}


def _claim(values: dict[str, Any], names: Mapping[str, str], where: str) -> Claim:
    if isinstance(values.get("source"), str):
        values = {**values, "source": [values["source"]]}
    written = validated(_Written, values, where)
    on = validated(RunFilter, written.on, f"{where}: on")
    test = _claim_test(written, on, where)
    return Claim(
        **written.model_dump(exclude={"measure", "on", "rule"}),
        about="Not testable here" if test is None or written.untestable else _about(test, on),
        cited=tuple(_cited(each, names) for each in written.source),
        test=test,
    )


def _claim_test(written: _Written, on: RunFilter, where: str) -> ClaimTest | None:
    if written.measure is None or written.rule is None:
        return None
    rule = validated(Rule, written.rule, f"{where}: rule")
    if rule.needs_number and written.number is None:
        raise SpecError(f"{where}: its rule is a band around the claim's number; expected the key 'number'")
    name = str(written.measure.get("name"))
    kinds = {**MEASURES, **AVERAGES}
    if name not in kinds:
        raise SpecError(f"{where}: {unknown('measure', name, kinds)}")
    parameters = {key: value for key, value in written.measure.items() if key != "name"}
    return ClaimTest(validated(kinds[name], parameters, f"{where}: measure {name!r}"), on, rule)


def _about(test: ClaimTest, on: RunFilter) -> str:
    if test.measure.data_sets():
        return "Averages over data sets"
    if on.is_of_chains:
        return title("chain")
    return " and ".join(map(title, on.data)) or "Any data set"


def _cited(source: str, names: Mapping[str, str]) -> str:
    """The source with the paper's or page's full name in the place of the short one, where the file has it."""
    name = next((name for name in names if source.startswith(name)), "")
    return f"{names[name]}{source.removeprefix(name)}" if name else source
