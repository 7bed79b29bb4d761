"""When a claim counts as reproduced: small rules, chosen by name in claims.toml with their parameters.

    rule = { name = "near", relative = 0.2, null = 1 }      # the claimed number, give or take a fifth

Each sees our 95% interval, never the estimate alone:

    reproduced        all of the interval lies where the claim says
    contradicted      all of it lies on the other side
    not reproduced    all of it lies farther out than was claimed
    undecided         it reaches over the border: more questions are needed
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.stats.paired import Interval

Verdict = Literal[
    "reproduced", "not reproduced", "contradicted", "undecided", "by construction", "not testable here", "no data"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Show = Callable[[float], str]


class Rule(BaseModel):
    """What all rules share."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    needs_number: ClassVar[bool] = False
    """Whether the claim has to give its number."""

    def judge(self, found: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        """The verdict and its reason. `show` writes a number in the measure's unit."""
        raise NotImplementedError

    def said(self, show: Show) -> str:
        """The direction or the band; nothing where the claim's number says it."""
        return ""


class Above(Rule):
    """The claim gives a direction: more than `null`."""

    null: float

    def judge(self, found: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        if found.low > self.null:
            return "reproduced", f"all of the interval is above {self.null:g}"
        if found.high < self.null:
            return "contradicted", f"all of the interval is below {self.null:g}"
        return "undecided", f"the interval holds {self.null:g}"

    def said(self, show: Show) -> str:
        return f"above {self.null:g}"


class Below(Rule):
    """The claim gives a direction: less than `null`."""

    null: float

    def judge(self, found: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        if found.high < self.null:
            return "reproduced", f"all of the interval is below {self.null:g}"
        if found.low > self.null:
            return "contradicted", f"all of the interval is above {self.null:g}"
        return "undecided", f"the interval holds {self.null:g}"

    def said(self, show: Show) -> str:
        return f"below {self.null:g}"


class Within(Rule):
    """The claim gives a band, `low` to `high`.

    `null` is where there would be no effect: an interval between it and the band, or past it,
    contradicts; one on the far side of the band shows more than was claimed, and contradicts nothing.
    Without `null` any interval outside the band contradicts.
    """

    low: float
    high: float
    null: float | None = None

    @model_validator(mode="after")
    def _band(self) -> Within:
        if self.low >= self.high:
            raise ValueError(f"expected low < high, and low is {self.low}, high {self.high}")
        if self.null is not None and self.low <= self.null <= self.high:
            raise ValueError(f"the band {self.low} to {self.high} holds null {self.null}; leave null out")
        return self

    def judge(self, found: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        band = self.said(show)
        if self.low <= found.low and found.high <= self.high:
            return "reproduced", f"all of the interval is within {band}"
        side = "below" if found.high < self.low else "above" if found.low > self.high else ""
        if not side:
            return "undecided", f"the interval reaches out of {band}{self._wanted(found)}"
        if self.null is not None and (self.null < self.low) != (side == "below"):
            return "not reproduced", f"all of the interval is {side} {band}: more than claimed"
        return "contradicted", f"all of the interval is {side} {band}"

    def _wanted(self, found: Interval) -> str:
        """How many questions an interval takes that fits into the band: its width falls with the root of n."""
        share = (found.high - found.low) / (self.high - self.low)
        if share <= 1 or not math.isfinite(share):
            return ""
        return f" and is wider: one that fits takes some {round_up(found.n * share**2):,} questions"

    def said(self, show: Show) -> str:
        return f"{show(self.low)} to {show(self.high)}"


class Near(Rule):
    """The claim gives a number; the band is `relative` of it, or `absolute`, to either side. `null` as in `Within`."""

    needs_number: ClassVar[bool] = True

    relative: float | None = Field(default=None, gt=0, lt=1)
    absolute: float | None = Field(default=None, gt=0)
    null: float | None = None

    @model_validator(mode="after")
    def _one_width(self) -> Near:
        if (self.relative is None) == (self.absolute is None):
            raise ValueError("expected one of relative and absolute")
        return self

    def band(self, claimed: float) -> Within:
        """The band as a rule of its own."""
        width = self.absolute if self.relative is None else self.relative * abs(claimed)
        assert width is not None  # one of them is given
        return Within(low=claimed - width, high=claimed + width, null=self.null)

    def judge(self, found: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        assert claimed is not None  # the reader of claims.toml sees to it
        return self.band(claimed).judge(found, claimed, show)


def round_up(number: float) -> int:
    """To two digits, upwards: 1,240 -> 1,300."""
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit) * unit


RULES: dict[str, type[Rule]] = {"above": Above, "below": Below, "within": Within, "near": Near}
