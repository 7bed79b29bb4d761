"""Where a question's input tokens went, in the terms of Xu et al. 2023 (arXiv 2305.18323, section 2.2).

    ReAct   k |Q| + k |C| + k |S| + sum over j < k of (k - j) (|T_j| + |A_j| + |O_j|)     grows with k squared
    ReWOO   2 |Q| + 2 |C| + |S| + sum over j of (|P_j| + |E_j|)                           grows with k

Input tokens of one question in k steps: question Q, context C, exemplars S, and of each step thought T,
action A and observation O, or plan P and evidence E. Every term is measured on the question's own
prompts (`context_tokens` and its neighbours in calls.parquet), with the pinned tokenizer throughout.

This is an account and no test: for ReAct the terms are differences of the prompts that they add up to, so the
formula always holds. What a short run predicts of a long one, below, can be wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rewoo_bench.analysis.stats.paired import Interval, ratio_of_means
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import PARTS
from rewoo_bench.runs.rows import left_out

LawName = Literal["ReAct", "ReWOO"]
_QUESTION = ["architecture", "example_id", "trial"]


def cost_law(calls: pd.DataFrame) -> pd.DataFrame:
    """A row for each question that one of the two formulas covers; `calls` is calls.parquet.

    `k` counts model calls. `formula` is the formula's value, `prompts` the tokens of those prompts. The formula leaves
    out the solver's own exemplars, a question that occurs more than twice, and a second plan (`rest`). An LLM tool's
    prompts come on top: `prompts` + `tool_prompts` is all input of the question.
    """
    asked = calls[(calls["kind"] == "model") & (calls["role"] != "judge") & (calls["status"] == "ok")]
    asked = asked.sort_values("call_index")
    groups: dict[Any, Any] = asked.groupby(_QUESTION, sort=False, observed=True).indices
    all_roles, places = (asked[name].to_numpy(dtype=object) for name in ("role", "place"))
    all_parts = asked[PARTS].fillna(0).to_numpy(dtype=int)
    rows = []
    for key, where in groups.items():
        roles, parts = all_roles[where], all_parts[where]
        is_tool, found, exemplars = roles == "tool", set(roles), 0
        prompts, tool_prompts = int(parts[~is_tool].sum()), int(parts[is_tool].sum())
        if found == {"agent"} and all(str(place).startswith(("turn", "partial")) for place in places[where]):
            law: LawName = "ReAct"
            trace = parts[:, 3] + parts[:, 4]
            steps = trace[1:] - trace[:-1]  # T + A + O of steps 1 to k - 1
            formula = len(parts) * parts[0, :3].sum() + (np.arange(len(steps), 0, -1) * steps).sum()
        elif {"planner", "solver"} <= found <= {"planner", "solver", "tool"}:
            law = "ReWOO"  # of the first prompt of the planner and the last one of the solver
            planner = dict(zip(PARTS, parts[roles == "planner"][0], strict=True))
            solver = dict(zip(PARTS, parts[roles == "solver"][-1], strict=True))
            formula = 2 * planner["question_tokens"] + planner["context_tokens"] + planner["exemplar_tokens"]
            formula += solver["context_tokens"] + solver["found_tokens"]
            exemplars = int(solver["exemplar_tokens"])
        else:
            continue
        rest = prompts - int(formula) - exemplars
        rows.append((*key, law, int((~is_tool).sum()), int(formula), exemplars, rest, prompts, tool_prompts))
    columns = [*_QUESTION, "law", "k", "formula", "solver_exemplars", "rest", "prompts", "tool_prompts"]
    return pd.DataFrame(rows, columns=columns)


def scaled_parts(calls: pd.DataFrame) -> pd.DataFrame | None:
    """The parts of each prompt, scaled to add up to its `input_tokens`; None where no prompt has parts.

    Parts are counted with the pinned tokenizer, `input_tokens` by the model's. So the shares are those of the
    pinned tokenizer, and the sums are those of the tables. A row a call; one that has no prompt is all zeros.
    """
    if not calls[PARTS].notna().all(axis=1).any():
        return None
    parts = calls[PARTS].astype("float64").fillna(0.0)
    whole = parts.sum(axis=1)
    return parts.mul(calls["input_tokens"].astype("float64").fillna(0.0) / whole.where(whole > 0), axis=0).fillna(0.0)


# How input tokens grow with the look-ups that a question needs (hops), whatever the run did.
#
#     ReAct   (h + 1) fixed + h (h + 1) / 2 step     a model call for each look-up and one that answers, each with
#                                                    all earlier observations
#     ReWOO   fixed + h step                         the planner and the solver once, evidence for each look-up
#
# These are the shapes of Xu et al. 2023 (section 2.2) for a question of h look-ups. The two numbers of a law are fitted
# by least squares on the questions of 1 to 4 look-ups; longer ones take no part in the fit: they test the law. Both are
# laws of an agent without detours, as the oracle is: that of ReAct is off by 289% on average on 39 long chains that
# SmolLM2-135M answered (tests/golden/models/chain-smollm2-135m).


FITTED_UP_TO = 4
"""Look-ups of the longest questions that a law is fitted on."""
CUT_OFF = ("step_limit", "repeated", "token_limit", "time_limit", "cost_limit", "invalid_plan")
"""Stop reasons of questions that ended before their look-ups were done: their tokens are those of a part."""
_KEY = ["run_id", "example_id", "trial"]


@dataclass(frozen=True, slots=True)
class FittedLine:
    """Input tokens of a question as a function of its look-ups."""

    name: LawName
    fixed: float
    """Tokens of every model call (ReAct), or of the question once (ReWOO)."""
    step: float
    """Tokens that each look-up adds: to every later prompt (ReAct), or once (ReWOO)."""

    def input_tokens(self, look_ups: ArrayLike) -> NDArray[np.float64]:
        """Predicted input tokens, an array of the same shape."""
        calls, seen = _shape(self.name, look_ups)
        predicted: NDArray[np.float64] = calls * self.fixed + seen * self.step
        return predicted


@dataclass(frozen=True, slots=True)
class Prediction:
    """A law, and how far it was off on questions that it wasn't fitted on."""

    law: FittedLine
    fitted: int
    """Rows that it was fitted on."""
    held_out: int
    """Rows that it was tested on."""
    error: float
    """Mean absolute error over the held-out rows, as a share of the measured tokens; NaN where there are none."""
    largest: float
    """The largest of these errors."""


def fit_line(name: LawName, look_ups: ArrayLike, tokens: ArrayLike) -> FittedLine:
    """The law by least squares. Needs two different numbers of look-ups."""
    (fixed, step), *_ = np.linalg.lstsq(np.column_stack(_shape(name, look_ups)), np.asarray(tokens, float), rcond=None)
    return FittedLine(name, float(fixed), float(step))


def predict(rows: pd.DataFrame) -> Prediction | None:
    """The law of an architecture and its error; None where no law covers it, or there are too few rows to fit one.

    Questions that the infrastructure failed or that a limit cut off are in neither part.
    """
    name, (short, long) = law_of(rows), _parted(rows)
    if name is None or look_ups(short).nunique() < 2:
        return None
    law = fit_line(name, look_ups(short), short["input_tokens"])
    measured = long["input_tokens"].to_numpy(float)
    errors = np.abs(law.input_tokens(look_ups(long)) / measured - 1)
    mean, most = (float(errors.mean()), float(errors.max())) if len(errors) else (math.nan, math.nan)
    return Prediction(law, len(short), len(long), mean, most)


def look_ups(rows: pd.DataFrame) -> pd.Series[float]:
    """How many look-ups each question needs; NaN where that isn't known.

    Where no row has `hops`, a question of `chain` has them in its type.
    """
    if "hops" in rows.columns and rows["hops"].notna().any():
        return rows["hops"].astype("float64")
    shape = rows["question_type"].astype(str).str.extract(r"^chain-(?P<hops>\d+)x(?P<width>\d+)").astype("float64")
    return shape["hops"] * shape["width"]


def law_of(rows: pd.DataFrame) -> LawName | None:
    """The law that covers an architecture, by the roles that took tokens."""
    planned, solved, acted = (_above_zero(rows, f"{role}_tokens") for role in ("planner", "solver", "agent"))
    if planned.any() and solved.any() and not acted.any():
        return "ReWOO"
    alone = acted.any() and not planned.any() and not solved.any()
    return "ReAct" if alone and _above_zero(rows, "tool_calls").any() else None


def cut_off(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """A mask: True where a limit ended the question, or no plan for it was sound."""
    mask: NDArray[np.bool_] = rows["stop_reason"].isin(CUT_OFF).to_numpy(bool)
    return mask


def _parted(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to fit a law on, and rows to test it on."""
    counted = rows[~left_out(rows) & ~cut_off(rows) & _above_zero(rows, "input_tokens")]
    needed = look_ups(counted)
    return counted[(needed <= FITTED_UP_TO).to_numpy(bool)], counted[(needed > FITTED_UP_TO).to_numpy(bool)]


def _above_zero(rows: pd.DataFrame, column: str) -> NDArray[np.bool_]:
    above: NDArray[np.bool_] = np.nan_to_num(rows[column].to_numpy(dtype=np.float64, na_value=math.nan)) > 0
    return above


def _shape(name: LawName, look_ups: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many times the fixed tokens are paid, and those of a look-up."""
    needed = np.asarray(look_ups, dtype=np.float64)
    return (needed + 1, needed * (needed + 1) / 2) if name == "ReAct" else (np.ones_like(needed), needed)


# Where one architecture becomes cheaper than another, by the price of cached input and the number of tool calls.
#
# All prices are relative to that of plain input: of cached input from 0 (free) to 1 (no discount). `paid` is the cost
# of everything but reads from a cache. Questions are grouped by the tool calls of the second architecture: its cost
# grows with them.


PRICES = tuple(step / 20 for step in range(21))
_QUESTION_KEY = ["example_id", "trial"]
_SIZES = ["input_tokens", "cached_input_tokens", "paid"]
_LEAST = 1e-9  # a fitted line may fall below zero


@dataclass(frozen=True, slots=True)
class BreakEvenRow:
    """Questions with the same number of tool calls: the ratio of dollars at each of `PRICES`."""

    tool_calls: int
    ratios: tuple[Interval, ...]

    @property
    def n(self) -> int:
        return self.ratios[0].n

    @property
    def price(self) -> float:
        """The price of cached input at which both cost the same; NaN where they do at none from 0 to 1."""
        return _crossing(np.log([ratio.estimate for ratio in self.ratios]))

    def is_sure(self, position: int) -> bool:
        """Whether the interval at a price is on one side of 1, and no rare event may be missing."""
        ratio = self.ratios[position]
        return not ratio.rare and not ratio.low <= 1 <= ratio.high


@dataclass(frozen=True, slots=True)
class Side:
    """The cost of an architecture as a function of the tool calls, in units of the price of an input token.

    All input follows the paper's formula (above), which knows no detours. What isn't read from a
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
        return _crossing(np.log(self.react.cost(tool_calls, prices) / self.rewoo.cost(tool_calls, prices)))


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The map of a pair."""

    pair: tuple[str, str]
    rows: tuple[BreakEvenRow, ...]
    left_out: int
    """Questions of the first architecture that the second one lacks, or has no tool call in."""
    predicted: Formula | None
    """None where the formulas don't cover the pair, or there are too few different questions to fit them."""


def break_even(questions: pd.DataFrame, pair: tuple[str, str]) -> BreakEven:
    """The map of some priced rows: tokens by kind, and `paid`, in units of the price of input. Raises `DataError`."""
    columns = [*_QUESTION_KEY, "tool_calls", *_SIZES]
    first, second = (questions.loc[(questions["architecture"] == name).to_numpy(bool), columns] for name in pair)
    both = first.merge(second, on=_QUESTION_KEY, suffixes=("_a", "_b"))
    both = both[both["tool_calls_b"] > 0]
    if not len(both):
        raise DataError(f"no question of {pair[1]!r} with tool calls that {pair[0]!r} answered too")
    counts, ids = both["tool_calls_b"].to_numpy(np.int64), both["example_id"].to_numpy(dtype=object)
    whole, cached, paid = {}, {}, {}  # of each question the input, what is read from a cache, and the cost of the rest
    for side in "ab":
        whole[side], cached[side], paid[side] = (both[f"{size}_{side}"].to_numpy(np.float64) for size in _SIZES)
    rows = []
    for count in np.unique(counts).tolist():
        some = counts == count
        a, b = ((paid[side][some], cached[side][some]) for side in "ab")
        labels = np.unique(ids[some], return_inverse=True)[1]
        ratios = (ratio_of_means(a[0] + price * a[1], b[0] + price * b[1], clusters=labels) for price in PRICES)
        rows.append(BreakEvenRow(count, tuple(ratios)))
    predicted = None
    if pair == ("rewoo", "react") and len(rows) > 1:
        calls = counts.astype(np.float64)
        sides: list[Side] = []
        names: tuple[LawName, LawName] = ("ReWOO", "ReAct")
        for name, side in zip(names, "ab", strict=True):
            fitted = (np.polyfit(calls, values, 1).tolist() for values in (whole[side] - cached[side], paid[side]))
            sides.append(Side(fit_line(name, calls, whole[side]), *map(tuple, fitted)))
        predicted = Formula(*sides)
    asked = int((questions["architecture"] == pair[0]).sum())
    return BreakEven(pair, tuple(rows), asked - len(both), predicted)


def _crossing(logs: NDArray[np.float64]) -> float:
    """The price at which a line through these values, one for each of `PRICES`, is first zero; NaN where it isn't."""
    for (left, before), (right, after) in pairwise(zip(PRICES, logs.tolist(), strict=True)):
        if before == 0:
            return left
        if before * after < 0:
            return float(left + (right - left) * before / (before - after))
    return PRICES[-1] if logs[-1] == 0 else math.nan
