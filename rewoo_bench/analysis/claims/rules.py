"""The rule of a verdict: a band that the whole 95% interval of the measure has to be in.

rule = { above = 1 }                  # more than 1
rule = { above = 0.3, below = 0.5 }   # from 0.3 to 0.5
rule = { relative = 0.2 }             # the claimed number, and a fifth of it to either side
rule = { absolute = 0.044 }           # the claimed number, and 4.4 points to either side

reproduced      the whole interval is in the band
contradicted    the whole interval is outside the band
undecided       the interval crosses a border of the band

Whether a difference of shares, such as exact match, is above or below 0 is decided by exact McNemar, as in `compare`:
of few discordant questions its p is above 0.05 beside some intervals that leave 0 out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.analysis.pairs import ALPHA
from rewoo_bench.analysis.stats.paired import Interval
from rewoo_bench.text.words import round_up

ClaimVerdict = Literal[
    "reproduced",
    "contradicted",
    "undecided",
    "by construction",
    "not tested at this scale",
    "not testable here",
    "no data",
]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
Show = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Tested(Interval):
    """A difference of shares with the exact test of it."""

    p: float = math.nan
    """Exact McNemar: p of no difference."""


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
