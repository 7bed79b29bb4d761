"""The small table of a recommendation: a row for each architecture.

architecture    n           EM [95% CI]     tokens [95% CI]  p95 s [95% CI]  no answer  failed
rewoo         300  8.7% [6.0%, 12.4%]  1,433 [1,381, 1,502]               -          0       0
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rewoo_bench.advice.candidates import Candidate
from rewoo_bench.advice.part import Part
from rewoo_bench.advice.wording import number_of_seconds, share, tokens, with_bounds
from rewoo_bench.text.tables import text_table


def table(part: Part) -> list[str]:
    """Accuracy, cost, 95th percentile of latency, rows without an answer, failed rows; and the state of the limits."""
    oracle, priced = part.decision.kind == "oracle", part.candidates[0].priced
    columns: list[tuple[str, Callable[[Candidate], str]]] = [
        ("architecture", lambda own: own.architecture),
        ("n", lambda own: f"{own.accuracy.n:,}"),
        ("EM [95% CI]", lambda own: "-" if oracle or not own.accuracy.n else share(own.accuracy)),
        ("$ / 1000 [95% CI]" if priced else "tokens [95% CI]", _cost),
        ("p95 s [95% CI]", lambda own: "-" if oracle else _latency(own)),
        ("no answer", lambda own: f"{sum(own.unanswered.values()):,}"),
        ("failed", lambda own: f"{own.failed:,}"),
    ]
    if part.limited:
        columns.append(("limits", lambda own: own.state))
    return text_table([[name for name, _ in columns], *([show(own) for _, show in columns] for own in part.candidates)])


def _cost(own: Candidate) -> str:
    if not own.cost.n:
        return "-"
    return with_bounds(own.cost, (lambda dollars: f"{1000 * dollars:,.3f}") if own.priced else tokens)


def _latency(own: Candidate) -> str:
    if own.latency is None or not math.isfinite(own.latency.high):
        return "-"
    return with_bounds(own.latency, number_of_seconds)
