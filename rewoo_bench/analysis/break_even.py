"""Where one architecture becomes cheaper than another, by the price of cached input and the number of tool calls.

    table = break_even(questions, ("rewoo", "react"), output=4.0)
    table.cells[2]["0.5"]               # react's dollars per dollar of rewoo at half price, of questions with 2 calls
    table.predicted.price(3.0)          # the price at which the paper's formula has both equal

All prices are relative to that of plain input: of cached input from 0 (free) to 1 (no discount), of output and of
written input as given. Questions are grouped by the tool calls of the second architecture, whose cost grows with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.scaling import FittedLine, Name, fit
from rewoo_bench.errors import DataError
from rewoo_bench.stats.paired import Interval, ratio_of_means

if TYPE_CHECKING:
    import pandas as pd

PRICES = tuple(step / 20 for step in range(21))
_QUESTION_KEY = ["example_id", "trial"]
_SIZES = ["input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"]
_LEAST = 1e-9  # a fitted line may fall below zero


@dataclass(frozen=True, slots=True)
class Row:
    """Questions with the same number of tool calls: the ratio of dollars at each of `PRICES`."""

    tool_calls: int
    ratios: tuple[Interval, ...]

    @property
    def n(self) -> int:
        return self.ratios[0].n

    @property
    def price(self) -> float:
        """The price of cached input at which both cost the same; NaN where they do at none from 0 to 1."""
        logs = np.log([ratio.estimate for ratio in self.ratios])
        return _crossing(np.array(PRICES), logs)

    def is_sure(self, position: int) -> bool:
        """Whether the interval at a price is on one side of 1, and no rare event may be missing."""
        ratio = self.ratios[position]
        return not ratio.rare and not ratio.low <= 1 <= ratio.high


@dataclass(frozen=True, slots=True)
class Side:
    """The cost of an architecture as a function of the tool calls, in units of the price of an input token.

    All input follows the paper's formula (`analysis.scaling`), which knows no detours. What isn't read from a
    cache grows by the same amount with each tool call.
    """

    input_tokens: FittedLine
    new: tuple[float, float]
    """Input tokens that aren't read from a cache: of each tool call, and of a question."""
    paid: tuple[float, float]
    """Cost of everything else than reads from a cache, in the same form."""

    def cost(self, tool_calls: float, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """At each price of cached input."""
        cached = max(0.0, float(self.input_tokens.input_tokens(tool_calls)) - float(np.polyval(self.new, tool_calls)))
        cost: NDArray[np.float64] = np.polyval(self.paid, tool_calls) + prices * cached
        return np.maximum(cost, _LEAST)


@dataclass(frozen=True, slots=True)
class Formula:
    """The two architectures by the paper's formulas, whose terms are fitted on the run's questions."""

    rewoo: Side
    react: Side

    def price(self, tool_calls: float) -> float:
        """The price of cached input at which both cost the same; NaN where they do at none from 0 to 1."""
        prices = np.array(PRICES)
        return _crossing(prices, np.log(self.react.cost(tool_calls, prices) / self.rewoo.cost(tool_calls, prices)))


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The map of a pair."""

    pair: tuple[str, str]
    rows: tuple[Row, ...]
    left_out: int
    """Questions without tool calls of the second architecture, or that failed in either."""
    predicted: Formula | None
    """None where the formulas don't cover the pair, or there are too few different questions to fit them."""


def break_even(questions: pd.DataFrame, pair: tuple[str, str], *, output: float, written: float = 1.0) -> BreakEven:
    """The map of a repriced run: `questions` are its rows with one model. Raises `DataError`."""
    both = _both(questions, pair)
    some = both[both["tool_calls_b"] > 0]
    if not len(some):
        raise DataError(f"no question of {pair[1]!r} with tool calls that {pair[0]!r} answered too")
    counts = some["tool_calls_b"].to_numpy(np.int64)
    rows = tuple(_break_even_row(calls, some[counts == calls], output, written) for calls in np.unique(counts).tolist())
    asked = int((questions["architecture"] == pair[0]).sum())
    covered = pair == ("rewoo", "react") and len(rows) > 1
    return BreakEven(pair, rows, asked - len(some), _fitted(some, output, written) if covered else None)


def _both(questions: pd.DataFrame, pair: tuple[str, str]) -> pd.DataFrame:
    kept = questions[~questions["failed"].to_numpy(bool)]
    columns = [*_QUESTION_KEY, "tool_calls", *_SIZES]
    first, second = (kept.loc[(kept["architecture"] == name).to_numpy(bool), columns] for name in pair)
    return first.merge(second, on=_QUESTION_KEY, suffixes=("_a", "_b"))


def _break_even_row(tool_calls: int, both: pd.DataFrame, output: float, written: float) -> Row:
    labels = np.unique(both["example_id"].to_numpy(dtype=object), return_inverse=True)[1]
    (paid_a, cached_a), (paid_b, cached_b) = (_costs(both, side, output, written) for side in "ab")
    ratios = (ratio_of_means(paid_a + price * cached_a, paid_b + price * cached_b, clusters=labels) for price in PRICES)
    return Row(tool_calls, tuple(ratios))


def _costs(
    both: pd.DataFrame, side: str, output: float, written: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each question the cost without reads from a cache, and the tokens of these."""
    whole, cached, wrote, out = (both[f"{size}_{side}"].to_numpy(np.float64) for size in _SIZES)
    return whole - cached + wrote * (written - 1) + out * output, cached


def _fitted(both: pd.DataFrame, output: float, written: float) -> Formula:
    """The formulas, fitted on the tool calls of the second architecture: those that the questions need."""
    calls = both["tool_calls_b"].to_numpy(np.float64)

    def side(name: Name, letter: str) -> Side:
        paid, cached = _costs(both, letter, output, written)
        whole = both[f"input_tokens_{letter}"].to_numpy(np.float64)
        return Side(fit(name, calls, whole), _line(calls, whole - cached), _line(calls, paid))

    return Formula(side("ReWOO", "a"), side("ReAct", "b"))


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    slope, fixed = np.polyfit(x, y, 1)
    return float(slope), float(fixed)


def _crossing(prices: NDArray[np.float64], logs: Sequence[float] | NDArray[Any]) -> float:
    """Where a line through points is first zero; NaN where it isn't."""
    for left in range(len(prices) - 1):
        before, after = float(logs[left]), float(logs[left + 1])
        if before == 0:
            return float(prices[left])
        if before * after < 0:
            return float(prices[left] + (prices[left + 1] - prices[left]) * before / (before - after))
    return float(prices[-1]) if len(logs) and logs[-1] == 0 else math.nan
