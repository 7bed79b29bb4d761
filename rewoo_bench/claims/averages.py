"""Measures over several data sets at once: every one of them counts alike, and none may be missing.

    measure = { name = "average_saving", column = "total_tokens", of = "rewoo", to = "react", data = ["gsm8k", …] }

They need runs of one model with the same settings on each of these data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from rewoo_bench.claims.data_sets import Data
from rewoo_bench.claims.measures import Measure, difference_of
from rewoo_bench.claims.pairing import pairs
from rewoo_bench.claims.run_groups import RunGroup
from rewoo_bench.stats.paired import Interval
from rewoo_bench.stats.strata import mean_of_differences, ratio_of_summed_means


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
