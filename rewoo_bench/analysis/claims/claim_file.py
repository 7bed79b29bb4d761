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

`each` makes a claim of each of its lines, `hotpotqa-tokens-react-rewoo` first. A misspelt key is an error that names
the key and the nearest right one. How a rule decides comes first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rewoo_bench.analysis.claims.measures import Measure, Tested
from rewoo_bench.analysis.claims.run_groups import Data, RunGroup, chain_shape
from rewoo_bench.analysis.pairs import ALPHA
from rewoo_bench.analysis.stats.paired import Interval
from rewoo_bench.config.specs import read_values, validated
from rewoo_bench.errors import SpecError
from rewoo_bench.text.words import round_up

# The rule of a verdict: a band that the whole 95% interval of the measure has to be in; claims.toml explains it.
#
# Whether a difference of shares, such as exact match, is above or below 0 is decided by exact McNemar, as in `compare`:
# of few discordant questions its p is above 0.05 beside some intervals that leave 0 out.

ClaimVerdict = Literal[
    "reproduced",
    "contradicted",
    "undecided",
    "by construction",
    "not tested at this scale",
    "no data",
]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
Show = Callable[[float], str]


class Band(BaseModel):
    """A band: from `above` to `below`, one of them alone, or around the claimed number."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    above: float | None = None
    below: float | None = None
    relative: float | None = Field(default=None, gt=0, lt=1)
    absolute: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_band(self) -> Band:
        ends = self.above is not None or self.below is not None
        if [ends, self.relative is not None, self.absolute is not None].count(True) != 1:
            raise ValueError("expected above or below or both, or relative, or absolute")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise ValueError(f"expected above < below, got above = {self.above} and below = {self.below}")
        return self

    @property
    def needs_number(self) -> bool:
        """Whether the band is around the claim's number."""
        return self.relative is not None or self.absolute is not None

    def band(self, claimed: float | None) -> tuple[float, float]:
        """The ends of the band; an end that isn't given is infinite."""
        if not self.needs_number:
            return (-math.inf if self.above is None else self.above, math.inf if self.below is None else self.below)
        assert claimed is not None  # `read_claims` checks it
        width = self.absolute if self.relative is None else self.relative * abs(claimed)
        assert width is not None
        return claimed - width, claimed + width

    def judge(self, interval: Interval, claimed: float | None, show: Show) -> tuple[ClaimVerdict, str]:
        """The verdict and its reason. `show` formats a number in the measure's unit."""
        low, high = self.band(claimed)
        band = self.expected(claimed, show)
        if isinstance(interval, Tested) and sorted((abs(low), abs(high))) == [0, math.inf]:
            if interval.p >= ALPHA:
                return "undecided", f"the claim is {band}, exact McNemar leaves it open (p = {interval.p:.3f})"
            verdict: ClaimVerdict = "reproduced" if low < interval.estimate < high else "contradicted"
            return verdict, f"the claim is {band}, exact McNemar's p is below {ALPHA:g}"
        if low < interval.low and interval.high < high:
            return "reproduced", f"the whole interval is {band}"
        if interval.high < low:
            return "contradicted", f"the claim is {band}, the whole interval is below {show(low)}"
        if interval.low > high:
            return "contradicted", f"the claim is {band}, the whole interval is above {show(high)}"
        crossed = " and ".join(show(each) for each in (low, high) if interval.low <= each <= interval.high)
        reason = f"the claim is {band}, the interval crosses {crossed}"
        share = (interval.high - interval.low) / (high - low)
        if 1 < share < math.inf:  # an interval's width falls with the root of its questions
            reason += f", and is wider than the band; about {round_up(interval.n * share**2):,} questions would fit it"
        return "undecided", reason

    def expected(self, claimed: float | None, show: Show) -> str:
        """The band as text: `above 1`, `from 3.94 to 5.92`."""
        low, high = self.band(claimed)
        if math.isinf(high):
            return f"above {low:g}"
        if math.isinf(low):
            return f"below {high:g}"
        return f"from {show(low)} to {show(high)}"


# The claims of the file.

BUNDLED_CLAIMS = Path(__file__).parent / "claims.toml"
_TITLES: dict[Data, str] = {
    "hotpotqa": "HotpotQA",
    "triviaqa": "TriviaQA",
    "chain": "Generated chains of look-ups",
    "attacked": "Tasks with an attacker's text",
}


class RunFilter(BaseModel):
    """Which runs a claim is tested on, and which of their questions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: tuple[Data, ...] = ()
    """Data sets; any but attacked ones, where none is named."""
    joined: bool = False
    """Tasks of several questions each, `?objectives=3`; without it only questions that are asked alone."""
    failing: bool = False
    """Runs that had every tool call come back empty; without it only runs that made no call fail."""
    exemplars: dict[str, int] = {}
    """Exemplars in the prompt of an architecture, where the claim is about a prompt with, or without, them.

    `direct?max_exemplars=6` stands in for `direct` where six are wanted.
    """
    least_steps: int | None = Field(default=None, ge=1)
    """Look-ups that a question of the chain data set needs."""

    def part(self, group: RunGroup) -> RunGroup | None:
        """The part of the run group that the claim is about, if any."""
        wanted = group.data in self.data if self.data or group.data == "attacked" else True
        if not wanted or group.joined != self.joined:
            return None
        if (group.failure_rate, group.failure_mode) != ((1.0, "empty") if self.failing else (0.0, "")):
            return None
        for name, count in self.exemplars.items():
            own = group.architectures.get(f"{name}?max_exemplars={count}") or group.architectures.get(name)
            if own and own.exemplars != count:
                return None
            if own:
                group = replace(group, architectures={**group.architectures, name: own})
        return group.only(self._fits) if "chain" in self.data and group.data == "chain" else group

    def _fits(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """Chains with enough look-ups, all of which a plan can foresee."""
        steps, unforeseen = chain_shape(rows)
        return (steps >= (self.least_steps or 0)) & ~unforeseen


class Claim(BaseModel):
    """A claim with its sources, its measure, the runs that it is tested on, and the rule of its verdict."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern="^[a-z0-9-]+$")
    says: str = Field(min_length=1)
    """The claim in our words."""
    source: tuple[str, ...] = Field(min_length=1)
    """Who says it and where; behind a colon the numbers that stand there: `Xu 2023, Table 2: 9795.1 / 1986.2`."""
    cited: tuple[str, ...] = ()
    """The same in full, which `read_claims` writes: `Xu et al. 2023, arXiv 2305.18323, Table 2: 9795.1 / 1986.2`."""
    number: float | None = None
    """The claimed number, in the measure's unit: 0.044 for 4.4 points."""
    measure: Measure
    on: RunFilter = RunFilter()
    rule: Band
    note: str = ""
    """What a reader has to know with the verdict."""
    by_construction: bool = False
    """Whether our own design makes it true or false: it tests the harness, not the claim."""

    @field_validator("source", mode="before")
    @classmethod
    def _one_or_several(cls, source: Any) -> Any:
        return (source,) if isinstance(source, str) else source

    @model_validator(mode="after")
    def _has_its_number(self) -> Claim:
        if self.rule.needs_number and self.number is None:
            raise ValueError("its rule is a band around the claim's number; expected the key 'number'")
        return self

    @property
    def about(self) -> str:
        """The data that it is about, as the title of a group of claims."""
        title = " and ".join(_TITLES.get(each, each) for each in self.on.data) or "Any data set"
        return f"{title}, several questions a task" if self.on.joined else title

    @property
    def claimed(self) -> str:
        """The claimed number, in the measure's unit, and the direction or band that is tested."""
        if self.number is None:
            return self.tested
        number = f"{self.measure.show(self.number)}{self.measure.suffix}"
        return number if self.by_construction else f"{number} (tested: {self.tested})"

    @property
    def tested(self) -> str:
        """The band that reproduces it: `from 3.94 to 5.92`, `above 0`."""
        return self.rule.expected(self.number, self.measure.show)


class _File(BaseModel):
    """The file: `sources` has short names of papers and pages, and what they are in full."""

    model_config = ConfigDict(extra="forbid")

    claim: list[dict[str, Any]] = Field(min_length=1)
    sources: dict[str, str] = {}


def read_claims(path: Path = BUNDLED_CLAIMS) -> tuple[Claim, ...]:
    """The claims of a file, in its order. Raises `SpecError`."""
    file = validated(_File, read_values(path), str(path))
    claims = []
    for position, table in enumerate(file.claim, 1):
        for each in _expanded(table):
            claim = validated(Claim, each, f"{path}: claim {each.get('id', f'no. {position}')!r}")
            # the short name of a paper or page, where the file has it in full
            short = [next((name for name in file.sources if source.startswith(name)), "") for source in claim.source]
            cited = [
                file.sources.get(name, "") + source.removeprefix(name)
                for name, source in zip(short, claim.source, strict=True)
            ]
            claims.append(claim.model_copy(update={"cited": tuple(cited)}))
    for name, times in Counter(claim.id for claim in claims).items():
        if times > 1:
            raise SpecError(f"{path}: {times} claims have the id {name!r}; expected one")
    return tuple(claims)


def _expanded(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The claims of a table: one for each line of `each`, whose keys come before those of the table."""
    lines, of_all = table.pop("each", None), table.get("on", {})
    if lines is None:
        yield table
        return
    for line in lines:
        data = line.pop("data", "")
        on = {**of_all, "data": [data]} if isinstance(of_all, dict) else of_all
        yield {**table, "on": on, **line, "id": f"{data}-{table.get('id', '')}"}
