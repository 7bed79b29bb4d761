"""Each trial of a run by itself, and the mean and the spread of an architecture's trials.

rows = trial_rows(Rows(rewoo_bench.load("results/local/mine")))
rows[0].kind, rows[0].trial, rows[0].right      # "trial", 0, 7
rows[-1].kind, rows[-1].exact_match             # "spread", 0.058
"""

from __future__ import annotations

import math
from collections import Counter
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
    cells_of,
    mean_text,
)
from rewoo_bench.config.names import score_name
from rewoo_bench.runs.rows import Rows, exact_mean, mean_over_questions

OF_TRIALS = "each trial by itself, means per question; spread: standard deviation"
_FIGURES = ("exact_match", "total_tokens", "llm_calls", "cost_usd", "latency_s")
_UNKNOWN = {NO_PRICE, SIMULATED, NOT_TIMED, ONE_TRIAL}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial of an architecture, or the mean or the spread of its trials.

    Figures are means per question that counts, as in a summary; None where one isn't known. `mean` and `spread`
    (standard deviation, n - 1) are of the trials that have the figure.
    """

    architecture: str
    dataset: str
    model: str
    kind: Literal["trial", "mean", "spread"]
    oracle: bool
    """Whether an oracle answered: accuracy means nothing, and there is no latency."""
    trial: int | None = None
    """From 0; None but for a trial, as the four counts are."""
    questions: int | None = None
    """Those that count."""
    scored: int | None = None
    """Those of them with an exact match, right or wrong."""
    right: int | None = None
    timed: int | None = None
    """Those of them whose latency was measured: a recalled answer has none."""
    exact_match: float | None = None
    total_tokens: float | None = None
    llm_calls: float | None = None
    cost_usd: float | None = None
    latency_s: float | None = None


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
    found, values = list[TrialRow](), dict[str, list[float]]()
    for number in numbers:
        own = scored.where(scored["trial"] == number)
        means = {name: mean_over_questions(own[name], own.question) for name in shown}
        known: dict[str, Any] = {name: mean for name, mean in means.items() if not math.isnan(mean)}
        for name, mean in known.items():
            values.setdefault(name, []).append(mean)
        counts: dict[str, Any] = {
            "questions": len(own),
            "scored": int(np.isfinite(own["exact_match"]).sum()),
            "right": int(np.nansum(own["exact_match"])),
            "timed": int(np.isfinite(own["latency_s"]).sum()) if "latency_s" in shown else 0,
        }
        found.append(TrialRow(**same, kind="trial", trial=int(number), **counts, **known))
    over: dict[str, Any] = {name: exact_mean(np.array(each)) for name, each in values.items()}
    spreads: dict[str, Any] = {name: stdev(each) for name, each in values.items() if len(each) > 1}
    return [*found, TrialRow(**same, kind="mean", **over), TrialRow(**same, kind="spread", **spreads)]


def trial_table(first: str, rows: Sequence[tuple[str, TrialRow]], *, checked: bool = False) -> list[list[str]]:
    """Rows and the labels of their systems, as cells; [] where there are none, and no column of unknown dollars or
    seconds. `checked`: where a world's check is the score.

    A row's name is in one cell with its system's: a narrow terminal repeats the first column alone.
    """
    trials = Counter(label for label, row in rows if row.kind == "trial")
    cells = []
    for label, row in rows:
        some = f" (n = {row.timed:,})" if row.timed and row.timed != row.questions else ""
        right = f"{row.right:,} of {row.scored:,}" if row.scored else NOT_SCORED
        cells.append(
            {
                first: f"{label}, {row.kind if row.trial is None else f'trial {row.trial}'}",
                "right": f"{trials[label]} trials" if row.trial is None else right,
                score_name(checked=checked): _text(
                    row, row.exact_match, ".3f", NOT_SCORED, mark=MEANINGLESS if row.oracle else ""
                ),
                "tokens": _text(row, row.total_tokens, ",.0f", NOT_COUNTED),
                "model calls": _text(row, row.llm_calls, ".2f", NOT_COUNTED),
                "$ / 1000": _text(row, row.cost_usd, ",.3f", NO_PRICE, times=1000),
                "seconds": _text(row, row.latency_s, ".2f", SIMULATED if row.oracle else NOT_TIMED) + some,
            }
        )
    for head in ("$ / 1000", "seconds"):
        if {each[head] for each in cells} <= _UNKNOWN:
            cells = [{name: cell for name, cell in each.items() if name != head} for each in cells]
    return cells_of(cells) if cells else []


def _text(row: TrialRow, value: float | None, form: str, none: str, *, times: int = 1, mark: str = "") -> str:
    """A figure of a row; the spread of one trial is no spread."""
    return mean_text(value, None, form, times=times, mark=mark, none=ONE_TRIAL if row.kind == "spread" else none)
