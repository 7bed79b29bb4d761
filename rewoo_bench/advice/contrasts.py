"""Two architectures, paired by question: accuracy, cost, and the tests that a recommendation reads.

contrasts = contrasted(runs, ["rewoo", "react"], 0.05, priced=True)
contrasts["rewoo", "react"].p_holm      # exact McNemar, adjusted for all pairs of these architectures
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import TYPE_CHECKING

from rewoo_bench.advice.candidates import questions_of
from rewoo_bench.analysis.pairs import column
from rewoo_bench.runs.failed_rows import pairs_left_out
from rewoo_bench.stats.paired import (
    Interval,
    difference_of_proportions,
    effective_pairs,
    not_worse_p,
    ratio_of_means,
)
from rewoo_bench.stats.tests import holm, mcnemar_exact

if TYPE_CHECKING:
    import pandas as pd

    from rewoo_bench.advice.run_sets import RunSet


@dataclass(frozen=True, slots=True)
class Contrast:
    """`one` against `other`, on the questions that neither failed."""

    one: str
    other: str
    accuracy: Interval
    """The accuracy of `one` minus that of `other`."""
    only_one: int
    """Rows that only `one` got right."""
    only_other: int
    p: float
    """Exact McNemar."""
    p_holm: float
    """Adjusted for the pairs of all architectures that may be recommended."""
    cost: Interval
    """The mean cost of `one` / that of `other`."""
    not_worse_p: float
    """That `one` isn't below `other` by the margin or more; unadjusted, two-sided."""
    rows: int
    pairs: float
    """Independent pairs that the rows are worth."""
    left_out: int

    @property
    def discordant_share(self) -> float:
        """The share of rows that one of the two alone got right; never zero, since a larger sample may have some."""
        return (self.only_one + self.only_other + 0.5) / (self.rows + 1)


Contrasts = Mapping[tuple[str, str], Contrast]
"""By (one, other): each pair in both directions."""


def contrasted(
    runs: RunSet, architectures: Sequence[str], margin: float, *, priced: bool
) -> dict[tuple[str, str], Contrast]:
    """Each of the architectures against each other one, with Holm's adjustment for all of these pairs."""
    found = {
        (one, other): _contrast((one, runs.rows[one]), (other, runs.rows[other]), margin, priced=priced)
        for one, other in permutations(architectures, 2)
    }
    pairs = list(combinations(architectures, 2))
    for (one, other), p_holm in zip(pairs, holm([found[pair].p for pair in pairs]) if pairs else [], strict=True):
        for pair in ((one, other), (other, one)):
            found[pair] = replace(found[pair], p_holm=p_holm)
    return found


def _contrast(
    one: tuple[str, pd.DataFrame], other: tuple[str, pd.DataFrame], margin: float, *, priced: bool
) -> Contrast:
    (first, rows), (second, against) = one, other
    compared = ~pairs_left_out(rows, against)
    left_out = len(rows) - int(compared.sum())
    rows, against = rows[compared], against[compared]
    clusters = questions_of(rows)
    b, a = column(rows, "exact_match"), column(against, "exact_match")
    test = mcnemar_exact(a, b, clusters)
    cost = "cost_usd" if priced else "total_tokens"
    return Contrast(
        one=first,
        other=second,
        accuracy=difference_of_proportions(a, b, clusters=clusters),
        only_one=test.only_b,
        only_other=test.only_a,
        p=test.p,
        p_holm=test.p,
        cost=ratio_of_means(column(against, cost), column(rows, cost), clusters=clusters),
        not_worse_p=not_worse_p(a, b, margin, clusters=clusters),
        rows=len(rows),
        pairs=effective_pairs(a, b, clusters),
        left_out=left_out,
    )
