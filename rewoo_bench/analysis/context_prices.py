"""Dollars of two architectures, had every prompt begun with the same tokens: where a cache begins to hold prompts.

    found = context_prices(rows, calls, ("react", "rewoo"), contexts=(0, 1024))
    found.usd["openai"][1]          # of ReAct and of ReWOO, the dollars of each question with 1,024 tokens more
    found.ratios("openai")          # ReAct's mean dollars as a multiple of ReWOO's, with each context

What is varied is one thing: tokens of a context (instructions, tools, a document) at the beginning of all prompts of
both architectures. So each call's input and each prefix that it shares grow by as much. The context was sent before the
run, its end is marked, and it is in time. What the model writes and how often it is called stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.call_prices import calls_of, priced
from rewoo_bench.config.price_sheets import RULES, Tariff, named_tariff

if TYPE_CHECKING:
    import pandas as pd

KEY = ["example_id", "trial"]


@dataclass(frozen=True, slots=True)
class ContextPrices:
    """Dollars of each price that ships (`RULES`): contexts x the two architectures x their shared questions."""

    rows: pd.DataFrame
    """The rows of the second architecture, in the order of the dollars."""
    usd: dict[str, NDArray[np.float64]]
    stands_in: bool
    """Whether what llama.cpp reported stands in for what prompts share (`call_prices.STAND_IN`)."""

    def ratios(self, price: str, some: NDArray[np.bool_] | slice = slice(None), of: int = 1) -> NDArray[np.float64]:
        """The first architecture's mean dollars by the second's, over all or `some` questions: of each context.

        With `of` above 1 it is of each so many contexts together.
        """
        first, second = self.usd[price][:, :, some].mean(axis=2).reshape(-1, of, 2).mean(axis=1).T
        found: NDArray[np.float64] = first / second
        return found


def context_prices(
    rows: pd.DataFrame, calls: pd.DataFrame, pair: tuple[str, str], contexts: Sequence[float]
) -> ContextPrices:
    """The dollars of a pair on the questions that both have. NaN where it isn't known what prompts share."""
    import pandas as pd

    sides = [rows[rows["architecture"] == name] for name in pair]
    shared = sides[0][KEY].merge(sides[1][KEY])
    sides = [side.merge(shared).sort_values(KEY, ignore_index=True) for side in sides]
    both = pd.concat(sides, ignore_index=True)
    own = calls_of(calls, both)

    def dollars(tariff: Tariff) -> NDArray[np.float64]:
        found = [own.of_rows(priced(own, {"": tariff}, context=context).usd) for context in contexts]
        return np.reshape(found, (len(contexts), 2, len(shared)))

    return ContextPrices(sides[1], {name: dollars(named_tariff(name)) for name in RULES}, own.stands_in)
