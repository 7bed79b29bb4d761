"""One table of a run: a row an architecture, an interval beside each estimate, failures in it.

Reads rows of questions.parquet and nothing else. Failed questions (infrastructure) have no
exact match and are left out of that mean only; their tokens and seconds count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rewoo_bench.names import is_oracle

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
ORACLE_ACCURACY = "an oracle is told the answers: its accuracy means nothing"
KEYS = ("architecture", "dataset", "model")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval and the number of questions behind it; None where there are none."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What the rows of one architecture, data set and model add up to; means are per question."""

    architecture: str
    dataset: str
    model: str
    total: int
    answered: int
    """Rows that ended with an answer, right or wrong."""
    failed: int
    """Rows that the infrastructure failed: no exact match."""
    exact_match: Estimate
    f1: Estimate
    judged_correct: Estimate
    llm_calls: float
    tool_calls: float
    input_tokens: float
    cached_input_tokens: float
    output_tokens: float
    total_tokens: float
    latency_p50_s: float | None
    latency_p95_s: float | None
    """None where no latency was measured: in a replay."""
    cost_usd: float | None
    """Per question; None where any price isn't known."""
    usage_source: str

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; `note` says what the figures don't show."""
        return {**asdict(self), "note": ORACLE_ACCURACY if is_oracle(self.model) else None}


def summarise(rows: pd.DataFrame) -> list[Summary]:
    """A summary for each architecture, data set and model, in the order in which they first occur."""
    groups = rows.groupby(list(KEYS), sort=False, observed=True)
    return [_summary(dict(zip(KEYS, map(str, key), strict=True)), group) for key, group in groups]


def _summary(key: dict[str, str], rows: pd.DataFrame) -> Summary:
    def mean(column: str) -> float:
        return float(rows[column].mean())

    latency = rows["latency_s"].dropna().astype("float64")
    sources = rows["usage_source"].dropna().unique().tolist()
    return Summary(
        **key,
        total=len(rows),
        answered=int((rows["stop_reason"] == "answered").sum()),
        failed=int(rows["exact_match"].isna().sum()),
        exact_match=estimate(rows, "exact_match", binary=True),
        f1=estimate(rows, "f1"),
        judged_correct=estimate(rows, "judged_correct", binary=True),
        llm_calls=mean("llm_calls"),
        tool_calls=mean("tool_calls"),
        input_tokens=mean("input_tokens"),
        cached_input_tokens=mean("cached_input_tokens"),
        output_tokens=mean("output_tokens"),
        total_tokens=mean("total_tokens"),
        latency_p50_s=float(latency.quantile(0.5)) if len(latency) else None,
        latency_p95_s=float(latency.quantile(0.95)) if len(latency) else None,
        cost_usd=None if rows["cost_usd"].isna().any() or not sources else mean("cost_usd"),
        usage_source=sources[0] if len(sources) == 1 else "mixed" if sources else "none",
    )


def estimate(rows: pd.DataFrame, column: str, *, binary: bool = False) -> Estimate:
    """Mean over questions with its 95% interval; the trials of a question are one cluster.

    Wilson's interval for yes-or-no columns with one trial, else Student's over the questions' means.
    """
    values = rows[["example_id", column]].dropna()
    by_question = values.groupby("example_id", sort=False)[column].agg(["mean", "size"]).astype("float64")
    n = len(by_question)
    if not n:
        return Estimate(None, None, None, 0)
    mean = float(by_question["mean"].mean())
    if binary and (by_question["size"] == 1).all():
        from scipy.stats import binomtest

        interval = binomtest(round(mean * n), n).proportion_ci(CONFIDENCE, method="wilson")
        return Estimate(mean, float(interval.low), float(interval.high), n)
    if n == 1:
        return Estimate(mean, None, None, 1)
    from scipy.stats import sem, t

    means = by_question["mean"].to_numpy(dtype=float)
    half = float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) * float(sem(means))
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), n)


def _interval(value: Estimate) -> str:
    if value.mean is None:
        return "-"
    if value.low is None or value.high is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _cost(summary: Summary) -> str:
    return "unknown" if summary.cost_usd is None else f"{1000 * summary.cost_usd:.3f}"


_COLUMNS: tuple[tuple[str, Callable[[Summary], str]], ...] = (
    ("architecture", lambda s: s.architecture),
    ("EM [95% CI]", lambda s: _interval(s.exact_match)),
    ("F1 [95% CI]", lambda s: _interval(s.f1)),
    ("judged [95% CI]", lambda s: _interval(s.judged_correct)),
    ("LLM calls", lambda s: f"{s.llm_calls:.2f}"),
    ("tool calls", lambda s: f"{s.tool_calls:.2f}"),
    ("tokens in", lambda s: f"{s.input_tokens:,.0f}"),
    ("cached", lambda s: f"{s.cached_input_tokens:,.0f}"),
    ("out", lambda s: f"{s.output_tokens:,.0f}"),
    ("p50 s", lambda s: _seconds(s.latency_p50_s)),
    ("p95 s", lambda s: _seconds(s.latency_p95_s)),
    ("$ / 1000", _cost),
    ("answered / failed / total", lambda s: f"{s.answered} / {s.failed} / {s.total}"),
)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def table(summaries: Sequence[Summary]) -> str:
    """The summaries as aligned plain text, a heading for each data set and model."""
    judged = any(summary.judged_correct.n for summary in summaries)
    columns = [column for column in _COLUMNS if judged or not column[0].startswith("judged")]
    blocks = []
    for (dataset, model), group in _grouped(summaries):
        cells = [[name for name, _ in columns], *([show(summary) for _, show in columns] for summary in group)]
        note = "; tokens estimated" if any(s.usage_source in ("estimated", "mixed") for s in group) else ""
        if is_oracle(model):
            note += f"; {ORACLE_ACCURACY}"
        heading = f"{dataset}, {model}: n = {group[0].exact_match.n} questions, means per question{note}"
        blocks.append("\n".join([heading, "", *aligned(cells)]))
    return "\n\n".join(blocks)


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(_pad(cell, width, i) for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in cells
    ]


def _grouped(summaries: Sequence[Summary]) -> Iterator[tuple[tuple[str, str], list[Summary]]]:
    groups: dict[tuple[str, str], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.dataset, summary.model), []).append(summary)
    yield from groups.items()


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)
