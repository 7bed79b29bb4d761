"""Dollars of two architectures, had every prompt begun with the same tokens: where a cache begins to hold prompts.

What is varied is the tokens of a context (instructions, tools, a document) at the beginning of all prompts of both
architectures: each call's input and each prefix that it shares grow by as much. The context was sent before the run,
its end is marked, and it is in time. What the model writes and how often it is called stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import calls_of, priced
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.price_sheets import RULES, Tariff, named_tariff

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ContextPrices:
    """Dollars of each price that ships (`RULES`): contexts x the two architectures x their shared questions."""

    rows: pd.DataFrame
    """The rows of the second architecture, in the order of the dollars."""
    usd: dict[str, Floats]

    def ratios(self, price: str, some: NDArray[np.bool_] | slice = slice(None), of: int = 1) -> Floats:
        """The first architecture's mean dollars by the second's, over all or `some` questions: of each context.

        With `of` above 1 it is of each so many contexts together.
        """
        first, second = self.usd[price][:, :, some].mean(axis=2).reshape(-1, of, 2).mean(axis=1).T
        found: Floats = first / second
        return found


def context_prices(
    rows: pd.DataFrame, calls: pd.DataFrame, pair: tuple[str, str], contexts: Sequence[float]
) -> ContextPrices:
    """The dollars of a pair on the questions that both have. NaN where it isn't known what prompts share."""
    key = ["example_id", "trial"]
    sides = [rows[rows["architecture"] == name] for name in pair]
    shared = sides[0][key].merge(sides[1][key])
    sides = [side.merge(shared).sort_values(key, ignore_index=True) for side in sides]
    both = [calls_of(calls, side) for side in sides]

    def dollars(tariff: Tariff) -> Floats:
        return np.array([[own.of_rows(priced(own, {"": tariff}, context=at).usd) for own in both] for at in contexts])

    usd = {name: dollars(named_tariff(name)) for name in RULES}
    return ContextPrices(sides[1], usd)
