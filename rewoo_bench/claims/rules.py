"""The rules of verdicts: chosen by name in claims.toml, with their parameters.

    rule = { name = "near", relative = 0.2, null = 1 }      # within a fifth of the claimed number

A rule reads the 95% interval of the measure, never the estimate alone:

    reproduced        the whole interval is where the claim says
    contradicted      the whole interval is on the other side
    not reproduced    the whole interval is beyond the claimed band, away from no effect
    undecided         the interval crosses the border: more questions are needed
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.stats.paired import Interval
from rewoo_bench.text.counts import round_up

Verdict = Literal[
    "reproduced", "not reproduced", "contradicted", "undecided", "by construction", "not testable here", "no data"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Show = Callable[[float], str]


class Rule(BaseModel):
    """Base class of the rules."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    needs_number: ClassVar[bool] = False
    """Whether the rule needs the claim's number."""

    def judge(self, interval: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        """The verdict and its reason. `show` formats a number in the measure's unit."""
        raise NotImplementedError

    def expected(self, show: Show) -> str:
        """The direction or the band as text; empty where the claim's number says it."""
        return ""


class Above(Rule):
    """The claim is a direction: more than `null`."""

    null: float

    def judge(self, interval: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        if interval.low > self.null:
            return "reproduced", f"the whole interval is above {self.null:g}"
        if interval.high < self.null:
            return "contradicted", f"the whole interval is below {self.null:g}"
        return "undecided", f"the interval includes {self.null:g}"

    def expected(self, show: Show) -> str:
        return f"above {self.null:g}"


class Below(Rule):
    """The claim is a direction: less than `null`."""

    null: float

    def judge(self, interval: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        if interval.high < self.null:
            return "reproduced", f"the whole interval is below {self.null:g}"
        if interval.low > self.null:
            return "contradicted", f"the whole interval is above {self.null:g}"
        return "undecided", f"the interval includes {self.null:g}"

    def expected(self, show: Show) -> str:
        return f"below {self.null:g}"


class Within(Rule):
    """The claim is a band, `low` to `high`.

    `null` is the value of no effect. An interval outside the band contradicts the claim, except on the side away from
    `null`: there the effect is larger than claimed. Without `null` any interval outside the band contradicts.
    """

    low: float
    high: float
    null: float | None = None

    @model_validator(mode="after")
    def _band(self) -> Within:
        if self.low >= self.high:
            raise ValueError(f"expected low < high, and low is {self.low}, high {self.high}")
        if self.null is not None and self.low <= self.null <= self.high:
            raise ValueError(f"the band {self.low} to {self.high} includes null {self.null}; leave null out")
        return self

    def judge(self, interval: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        band = self.expected(show)
        if self.low <= interval.low and interval.high <= self.high:
            return "reproduced", f"the whole interval is within {band}"
        side = "below" if interval.high < self.low else "above" if interval.low > self.high else ""
        if not side:
            return "undecided", f"the interval is partly outside {band}{self._wanted(interval)}"
        if self.null is not None and (self.null < self.low) != (side == "below"):
            return "not reproduced", f"the whole interval is {side} {band}: a larger effect than claimed"
        return "contradicted", f"the whole interval is {side} {band}"

    def _wanted(self, interval: Interval) -> str:
        """Number of questions for an interval that fits into the band: its width falls with the root of n."""
        share = (interval.high - interval.low) / (self.high - self.low)
        if share <= 1 or not math.isfinite(share):
            return ""
        return f", and wider; about {round_up(interval.n * share**2):,} questions give an interval that fits"

    def expected(self, show: Show) -> str:
        return f"{show(self.low)} to {show(self.high)}"


class Near(Rule):
    """The claim is a number; the band is `relative` of it, or `absolute`, to either side. `null` as in `Within`."""

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
        """The band around the claimed number."""
        width = self.absolute if self.relative is None else self.relative * abs(claimed)
        assert width is not None  # one of them is given
        return Within(low=claimed - width, high=claimed + width, null=self.null)

    def judge(self, interval: Interval, claimed: float | None, show: Show) -> tuple[Verdict, str]:
        assert claimed is not None  # `read_claims` checks it
        return self.band(claimed).judge(interval, claimed, show)


RULES: dict[str, type[Rule]] = {"above": Above, "below": Below, "within": Within, "near": Near}
