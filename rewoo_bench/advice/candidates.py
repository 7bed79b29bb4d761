"""An architecture that may be recommended: its accuracy, cost and latency, and whether it is within the limits.

candidate = measured("rewoo", rows, priced=True, terms=Terms(max_cost=0.004))
candidate.cost                  # Interval(estimate=0.0031, low=0.0027, high=0.0036, n=300)
candidate.limits[0].state       # "within": the whole interval is at or below the limit
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.advice.terms import ALPHA, Terms
from rewoo_bench.analysis.pairs import column
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.failed_rows import left_out
from rewoo_bench.stats.bootstrap import normal_quantile
from rewoo_bench.stats.paired import Interval, mean_of, proportion
from rewoo_bench.stats.power import quantiles
from rewoo_bench.stats.quantiles import quantile_interval

if TYPE_CHECKING:
    import pandas as pd

    from rewoo_bench.advice.run_sets import RunSet

State = Literal["within", "may be within", "above", "not measured"]
LATENCY_SHARE = 0.95
ENOUGH_FOR_P95 = 72  # questions; of fewer the 95th percentile has no interval (stats/quantiles.py)
_LIMITS_OF_A_QUESTION = ("step_limit", "token_limit", "time_limit", "cost_limit")


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """One limit, held against the interval of what it limits."""

    what: Literal["cost", "latency"]
    limit: float
    interval: Interval
    state: State
    questions: float
    """Questions that decide it with power 0.8, if the estimate is the truth; of interest where it `may be within`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An architecture with its figures; those of failed and unmetered rows are in none (runs/failed_rows.py)."""

    architecture: str
    run_id: str
    questions: int
    rows: int
    failed: int
    """Rows that the infrastructure failed, or that were answered without a metered model call."""
    unanswered: dict[str, int]
    """Stop reason -> rows that it ended and that are wrong; `answered` and `error` are not among them."""
    accuracy: Interval
    cost: Interval
    """Per question: US dollars where all prices are known (`priced`), else tokens."""
    priced: bool
    has_called: bool
    """Whether it made a model call in any question that counts; one that crashes at its start makes none."""
    latency: Interval | None
    """The 95th percentile in seconds; None where no latency was measured."""
    limits: tuple[LimitCheck, ...]

    @property
    def state(self) -> State:
        """The worst state of its limits; within where there is none. `not measured`: no row counts, or no call."""
        if not self.accuracy.n or not self.has_called:
            return "not measured"
        states = [check.state for check in self.limits]
        return "above" if "above" in states else "may be within" if "may be within" in states else "within"

    @property
    def cut_off(self) -> dict[str, int]:
        """Rows that a limit of the question ended, by limit."""
        return {reason: n for reason, n in self.unanswered.items() if reason in _LIMITS_OF_A_QUESTION}


def candidates(runs: RunSet, terms: Terms) -> list[Candidate]:
    """The architectures of a set. Raises `UsageError` for a limit of something that wasn't measured."""
    priced = all(_priced(rows) for rows in runs.rows.values())
    if terms.max_cost is not None and not priced:
        unknown = [name for name, rows in runs.rows.items() if not _priced(rows)]
        raise UsageError(
            f"--max-cost {terms.max_cost:g}: the dollars of {', '.join(map(repr, unknown))} aren't known "
            f"({runs.model} on {runs.dataset} has no price); `rewoo-bench reprice` computes them for other prices; "
            "without --max-cost, tokens are compared"
        )
    return [_measured(name, rows, priced=priced, terms=terms) for name, rows in runs.rows.items()]


def _measured(name: str, rows: pd.DataFrame, *, priced: bool, terms: Terms) -> Candidate:
    there = rows[~left_out(rows)]
    clusters = questions_of(there)
    is_wrong = column(there, "exact_match") != 1  # with `answer_at_limit` a question may be right at the step limit
    stops = there["stop_reason"].astype(str)[is_wrong].value_counts()
    cost = mean_of(column(there, "cost_usd" if priced else "total_tokens"), clusters=clusters)
    has_called = "llm_calls" not in there or bool(np.any(column(there, "llm_calls")))
    seconds = _seconds(there, clusters)
    if terms.max_latency is not None and seconds is None and len(there):
        raise UsageError(f"--max-latency {terms.max_latency:g}: {name!r} has no latency, as in a replay or an oracle")
    return Candidate(
        architecture=name,
        run_id=str(rows["run_id"].iloc[0]),
        questions=rows["example_id"].nunique(),
        rows=len(rows),
        failed=len(rows) - len(there),
        unanswered={str(reason): int(n) for reason, n in stops.items() if n and reason != "answered"},
        accuracy=proportion(column(there, "exact_match"), clusters=clusters),
        cost=cost,
        priced=priced,
        has_called=has_called,
        latency=seconds,
        limits=tuple(_checks(terms, cost, seconds) if len(there) and has_called else ()),
    )


def questions_of(rows: pd.DataFrame) -> NDArray[Any] | None:
    """A number for the question of each row, where a question has several trials."""
    numbers: NDArray[Any] = np.unique(rows["example_id"].to_numpy(dtype=object), return_inverse=True)[1]
    return numbers if len(numbers) and numbers.max() + 1 < len(numbers) else None


def _priced(rows: pd.DataFrame) -> bool:
    return not np.isnan(column(rows[~left_out(rows)], "cost_usd")).any()


def _seconds(rows: pd.DataFrame, clusters: NDArray[Any] | None) -> Interval | None:
    values = column(rows, "latency_s")
    known = ~np.isnan(values)
    if not known.any():
        return None
    return quantile_interval(values[known], LATENCY_SHARE, clusters=None if clusters is None else clusters[known])


def _checks(terms: Terms, cost: Interval, seconds: Interval | None) -> Iterator[LimitCheck]:
    if terms.max_cost is not None:
        yield LimitCheck("cost", terms.max_cost, cost, *_held(cost, terms.max_cost))
    if terms.max_latency is not None and seconds is not None:
        yield LimitCheck("latency", terms.max_latency, seconds, *_held(seconds, terms.max_latency))


def _held(interval: Interval, limit: float) -> tuple[State, float]:
    """The state, and the questions that decide it: an interval's width falls with the root of their number."""
    if interval.high <= limit:
        return "within", interval.n
    if interval.low > limit:
        return "above", interval.n
    bound = interval.high if interval.estimate <= limit else interval.low
    gap, width = abs(limit - interval.estimate), abs(bound - interval.estimate)
    if not math.isfinite(width) or not gap:
        return "may be within", math.inf if not gap else ENOUGH_FOR_P95
    standard_error = width / normal_quantile(1 - ALPHA / 2)
    return "may be within", interval.n * (quantiles(ALPHA) * standard_error / gap) ** 2
