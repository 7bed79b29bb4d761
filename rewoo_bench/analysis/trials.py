"""Each trial of a run by itself, and the mean and the spread of an architecture's trials.

rows = trial_rows(Rows(rewoo_bench.load("results/local/mine")))
rows[0].kind, rows[0].trial, rows[0].right      # "trial", 0, 7
rows[-1].kind, rows[-1].exact_match             # "spread", 0.058
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Any, Literal

import numpy as np

from rewoo_bench.analysis.summary import GROUP_KEYS, has_dollars
from rewoo_bench.analysis.summary_tables import (
    MEANINGLESS,
    NO_PRICE,
    NOT_COUNTED,
    NOT_SCORED,
    NOT_TIMED,
    ONE_TRIAL,
    SIMULATED,
    mean_text,
)
from rewoo_bench.config.names import score_name
from rewoo_bench.runs.rows import Rows, exact_mean, mean_over_questions

OF_TRIALS = "each trial by itself, means per question; spread: standard deviation"
_COUNTS = ("trial", "questions", "scored", "right", "timed")
_FIGURES = ("exact_match", "total_tokens", "llm_calls", "cost_usd", "latency_s")
_OPTIONAL = ("$ / 1000", "seconds")
_UNKNOWN = {NO_PRICE, SIMULATED, NOT_TIMED, ONE_TRIAL}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial of an architecture, or the mean or the spread of its trials.

    Figures are means per question that counts, as in a summary; None where one isn't known.
    """

    architecture: str
    dataset: str
    model: str
    kind: Literal["trial", "mean", "spread"]
    """`mean` and `spread` (standard deviation, n - 1) are of the trials that have the figure."""
    trial: int | None
    """From 0; None but for a trial, as the four counts are."""
    questions: int | None
    """Those that count."""
    scored: int | None
    """Those of them with an exact match, right or wrong."""
    right: int | None
    timed: int | None
    """Those of them whose latency was measured: a recalled answer has none."""
    exact_match: float | None
    total_tokens: float | None
    llm_calls: float | None
    cost_usd: float | None
    latency_s: float | None
    oracle: bool
    """Whether an oracle answered: accuracy means nothing, and there is no latency."""


def trial_rows(rows: Rows) -> list[TrialRow]:
    """The trials of each architecture, data set and model that has several, their mean and their spread."""
    return [row for own in rows.groups(*GROUP_KEYS).values() for row in _rows_of_one(own)]


def _rows_of_one(rows: Rows) -> list[TrialRow]:
    numbers = np.unique(rows["trial"])
    if len(numbers) == 1:
        return []
    same: dict[str, Any] = {name: rows[name][0] for name in GROUP_KEYS}
    scored, same["oracle"] = rows.where(~rows.left_out), bool(rows.oracle.any())
    lacking = {*(() if has_dollars(rows) else ("cost_usd",)), *(("latency_s",) if same["oracle"] else ())}
    shown = [name for name in _FIGURES if name not in lacking]
    nothing = dict.fromkeys((*_COUNTS, *_FIGURES))
    found: list[dict[str, Any]] = []
    for number in numbers:
        own = scored.where(scored["trial"] == number)
        means = {name: mean_over_questions(own[name], own.question) for name in shown}
        found.append(
            {
                **nothing,
                "kind": "trial",
                "trial": int(number),
                "questions": len(own),
                "scored": int(np.isfinite(own["exact_match"]).sum()),
                "right": int(np.nansum(own["exact_match"])),
                "timed": int(np.isfinite(own["latency_s"]).sum()) if "latency_s" in shown else 0,
                **{name: mean for name, mean in means.items() if not math.isnan(mean)},
            }
        )
    of_trials = {name: [each[name] for each in found if each[name] is not None] for name in shown}
    over = {name: exact_mean(np.array(values)) for name, values in of_trials.items() if values}
    spreads = {name: stdev(values) for name, values in of_trials.items() if len(values) > 1}
    found += [{**nothing, "kind": "mean", **over}, {**nothing, "kind": "spread", **spreads}]
    return [TrialRow(**same, **each) for each in found]


def trial_table(first: str, rows: Sequence[tuple[str, TrialRow]], *, checked: bool = False) -> list[list[str]]:
    """Rows and the labels of their systems, as cells; [] where there are none, and no column of unknown dollars or
    seconds. `checked`: where a world's check is the score.

    A row's name is in one cell with its system's: a narrow terminal repeats the first column alone.
    """
    every = [row for _, row in rows]
    trials = {label: sum(name == label and row.kind == "trial" for name, row in rows) for label, _ in rows}
    columns = {
        first: [f"{label}, {_name(row)}" for label, row in rows],
        "right": [
            f"{trials[label]} trials" if row.trial is None else _right(row.right, row.scored) for label, row in rows
        ],
        score_name(checked=checked): [
            _text(row, row.exact_match, ".3f", NOT_SCORED, mark=MEANINGLESS if row.oracle else "") for row in every
        ],
        "tokens": [_text(row, row.total_tokens, ",.0f", NOT_COUNTED) for row in every],
        "model calls": [_text(row, row.llm_calls, ".2f", NOT_COUNTED) for row in every],
        "$ / 1000": [_text(row, row.cost_usd, ",.3f", NO_PRICE, times=1000) for row in every],
        "seconds": [_seconds(row) for row in every],
    }
    shown = {head: cells for head, cells in columns.items() if head not in _OPTIONAL or not set(cells) <= _UNKNOWN}
    return [list(shown), *map(list, zip(*shown.values(), strict=True))] if rows else []


def _text(row: TrialRow, value: float | None, form: str, none: str, *, times: int = 1, mark: str = "") -> str:
    """A figure of a row; the spread of one trial is no spread."""
    return mean_text(value, None, form, times=times, mark=mark, none=ONE_TRIAL if row.kind == "spread" else none)


def _right(right: int | None, scored: int | None) -> str:
    return f"{right:,} of {scored:,}" if scored else NOT_SCORED


def _name(row: TrialRow) -> str:
    return row.kind if row.trial is None else f"trial {row.trial}"


def _seconds(row: TrialRow) -> str:
    some = f" (n = {row.timed:,})" if row.timed and row.timed != row.questions else ""
    return _text(row, row.latency_s, ".2f", SIMULATED if row.oracle else NOT_TIMED) + some
