"""One table of a run: a row for each architecture, with intervals and failures.

Reads rows of questions.parquet and nothing else. Questions that the infrastructure failed, or that were answered
without a metered model call (runs/rows.py), are counted, and are in no mean: unfinished or unseen work is cheap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import OF_RARE, RARE, Interval, brackets, mean_of, proportion, quantile_interval
from rewoo_bench.analysis.stats.solved import LEAST_SOLVED, by_trials, flips, pass_hat, per_solved
from rewoo_bench.config.names import ORACLE_ACCURACY
from rewoo_bench.runs.rows import (
    UNMETERED,
    ColumnValues,
    failed,
    flagged,
    mean_over_questions,
    model_labels,
    oracle_rows,
    read_columns,
)
from rewoo_bench.text.tables import text_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


GROUP_KEYS = ("architecture", "dataset", "model")
_MEANS = ("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")
_NAMES = (
    *("example_id", "stop_reason", "exact_match", "f1", "judged_correct", "planner_model", "solver_model"),
    *("latency_s", "startup_s", "cost_usd", "usage_source", "routed_to", "loop_step", "loop_tokens"),
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval and the number of questions behind it; None where there are none."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    rare: bool = False
    """Whether a rare event may be missing (stats/paired.py)."""


NO_ESTIMATE = Estimate(None, None, None, 0)


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of the rows of one architecture, data set and model.

    Means are per question that didn't fail, NaN where all did.
    """

    architecture: str
    dataset: str
    model: str
    total: int
    answered: int
    """Rows that ended with an answer, right or wrong."""
    failed: int
    """Rows that the infrastructure failed: they are in no mean."""
    reasoning_truncated: int
    """Rows that ended because a reply was cut while the model was still thinking: no answer, and so wrong."""
    not_answered: dict[str, int]
    """Stop reason -> rows, of those that ended without an answer."""
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
    latency_p50_interval_s: tuple[float, float] | None
    latency_p95_interval_s: tuple[float, float] | None
    latency_n: int
    """Questions whose latency was measured in this run: a recalled answer has none. 0 for an oracle.

    Intervals are 95%. A quantile is None where too few latencies were measured for an interval (72 for p95).
    """
    cost_usd: float | None
    """Per question; None where any price isn't known."""
    usage_source: str
    tokens_per_solved: Estimate
    """Total tokens of all questions for each exact match; no mean and no upper bound where none was solved."""
    usd_per_solved: Estimate
    """The same of `cost_usd`; n is 0 where any price isn't known."""
    startup_s: float = math.nan
    """Per question, in no latency; NaN where it isn't known, as in a replay."""
    routed_to: dict[str, int] = field(default_factory=dict)
    """Chosen architecture -> rows, of a router."""
    loop_share: float = math.nan
    """Share of questions that ended in a loop (text/loops.py); NaN where it isn't known."""
    loop_token_share: float = math.nan
    """Share of all their tokens that are in loops."""
    unmetered: int = 0
    """Rows that were answered without a metered model call: they are in no mean."""
    oracle: bool = False
    """Whether an oracle answered, or a replay of one: accuracy means nothing, and there is no latency."""
    intervals: dict[str, Interval] = field(default_factory=dict)
    """Measure -> its mean with its 95% interval, of those above that are means of amounts; none of a single question.
    """
    objectives_right: Estimate = NO_ESTIMATE
    """Share of a task's questions that are answered right, where several questions are a task (`?objectives=`)."""
    questions: int = 0
    """Questions with a row that counts, scored or not."""
    recorded_hits: int | None = None
    """Tool calls that a recording answered (`--tools recorded:RUN`), of the questions that count; None without one."""
    recorded_misses: int | None = None
    """Tool calls that it doesn't have."""
    passes: dict[int, Estimate] = field(default_factory=dict)
    """k -> pass^k: the share of questions that k trials would all answer right (stats/solved.py); from 2 on."""
    flips: Estimate = NO_ESTIMATE
    """Share of questions that some trials answered right and others wrong."""
    models: str = ""
    """The model, with another one of the planner or solver behind it: `openai/a (planner openai/b)`."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; `note` has a caution about the figures."""
        known = {name: None if value != value else value for name, value in asdict(self).items()}  # NaN is no JSON
        return {**known, "note": ORACLE_ACCURACY if self.oracle else None}


def summaries_of(rows: pd.DataFrame | pa.Table) -> list[Summary]:
    """A summary for each architecture, data set and model, in the order in which they first occur."""
    optional = ("objectives_right", "recorded_hits", "recorded_misses")
    columns = read_columns(rows, [*GROUP_KEYS, *_NAMES, *_MEANS], optional)
    keys = np.stack([columns[name].values for name in GROUP_KEYS])
    _, first, group_of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    oracle, lost, unmetered = oracle_rows(rows), failed(rows), flagged(rows, UNMETERED)
    summaries = []
    for group in np.argsort(first):
        of_group = group_of == group
        own = {name: column.of(of_group) for name, column in columns.items()}
        masks = lost[of_group], unmetered[of_group]
        summaries.append(_summary(own, *masks, oracle=bool(oracle[of_group].any())))
    return summaries


def _summary(
    rows: Mapping[str, ColumnValues], lost: NDArray[np.bool_], unmetered: NDArray[np.bool_], *, oracle: bool
) -> Summary:
    metered = {name: column.of(~unmetered) for name, column in rows.items()}
    scored = {name: column.of(~(lost | unmetered)) for name, column in rows.items()}

    def total(column: str) -> int | None:
        known = _known(scored, column)[0] if column in scored else ()
        return int(sum(known)) if len(known) else None

    p50, p95 = (None if oracle else quantile_of(scored, "latency_s", share) for share in (0.5, 0.95))
    outcomes = by_trials(metered["exact_match"].values, metered["example_id"].values)
    has_trials = bool((outcomes.trials > 1).any())
    sources = rows["usage_source"].names_in_use
    stops, chosen = (Counter(rows[name].texts) for name in ("stop_reason", "routed_to"))
    costs = scored["cost_usd"].values
    priced = bool(sources) and len(costs) > 0 and not np.isnan(costs).any()
    amounts = {name: _amount(scored, name) for name in (*_MEANS, *(["cost_usd"] if priced else []))}
    loop_share = loop_token_share = math.nan
    known = ~np.isnan(scored["loop_tokens"].values)
    if known.any():
        looped, steps, tokens = (scored[name].values[known] for name in ("loop_tokens", "loop_step", "total_tokens"))
        loop_share = mean_over_questions((~np.isnan(steps)).astype(float), scored["example_id"].values[known])
        loop_token_share = float(looped.sum() / tokens.sum()) if tokens.any() else 0.0
    return Summary(
        architecture=rows["architecture"].names_in_use[0],
        dataset=rows["dataset"].names_in_use[0],
        model=rows["model"].names_in_use[0],
        total=len(lost),
        answered=stops["answered"],
        failed=int(lost.sum()),
        unmetered=int(unmetered.sum()),
        reasoning_truncated=stops["reasoning_truncated"],
        not_answered={reason: count for reason, count in stops.items() if reason not in ("answered", "")},
        exact_match=_estimate(metered, "exact_match", binary=True),
        f1=_estimate(metered, "f1"),
        judged_correct=_estimate(metered, "judged_correct", binary=True),
        llm_calls=amounts["llm_calls"].estimate,
        tool_calls=amounts["tool_calls"].estimate,
        input_tokens=amounts["input_tokens"].estimate,
        cached_input_tokens=amounts["cached_input_tokens"].estimate,
        output_tokens=amounts["output_tokens"].estimate,
        total_tokens=amounts["total_tokens"].estimate,
        latency_p50_s=p50.estimate if p50 else None,
        latency_p95_s=p95.estimate if p95 else None,
        latency_p50_interval_s=(p50.low, p50.high) if p50 else None,
        latency_p95_interval_s=(p95.low, p95.high) if p95 else None,
        latency_n=0 if oracle else len(np.unique(_known(scored, "latency_s")[1])),
        cost_usd=amounts["cost_usd"].estimate if priced else None,
        loop_share=loop_share,
        loop_token_share=loop_token_share,
        startup_s=_amount(scored, "startup_s").estimate,
        routed_to={name: count for name, count in chosen.items() if name},
        questions=len(np.unique(scored["example_id"].values)),
        recorded_hits=total("recorded_hits"),
        recorded_misses=total("recorded_misses"),
        tokens_per_solved=per_solved_estimate(scored, "total_tokens"),
        usd_per_solved=per_solved_estimate(scored, "cost_usd") if priced else NO_ESTIMATE,
        intervals=bounded(amounts),
        objectives_right=_estimate(metered, "objectives_right") if "objectives_right" in rows else NO_ESTIMATE,
        passes={k: _as_estimate(pass_hat(outcomes, k)) for k in range(2, min(8, outcomes.trials.max(initial=0)) + 1)},
        flips=_as_estimate(flips(outcomes)) if has_trials else NO_ESTIMATE,
        usage_source=_source_of(sources),
        oracle=oracle,
        models=" and ".join(model_labels(rows)),
    )


def score_estimate(rows: pd.DataFrame | pa.Table, column: str, *, binary: bool = False) -> Estimate:
    """Mean over questions of scores from 0 to 1, with its 95% interval; the trials of a question are one cluster.

    `stats.proportion` for yes-or-no columns, else `stats.mean_of`.
    """
    return _estimate(read_columns(rows, ["example_id", column]), column, binary=binary)


def _estimate(rows: Mapping[str, ColumnValues], column: str, *, binary: bool = False) -> Estimate:
    known, questions = _known(rows, column)
    if not len(known):
        return NO_ESTIMATE
    if binary:
        return _as_estimate(proportion(known, clusters=questions))
    return _as_estimate(mean_of(known, ends=(0.0, 1.0), clusters=questions))


def _as_estimate(interval: Interval) -> Estimate:
    return Estimate(interval.estimate, interval.low, interval.high, interval.n, interval.rare)


def _amount(rows: Mapping[str, ColumnValues], column: str) -> Interval:
    values, questions = _known(rows, column)
    return mean_of(values, clusters=questions)


def quantile_of(rows: Mapping[str, ColumnValues], column: str, share: float) -> Interval | None:
    """A quantile of a column with its 95% interval; None where too few questions have a value for an interval."""
    values, questions = _known(rows, column)
    found = quantile_interval(values, share, clusters=questions)
    return found if math.isfinite(found.high - found.low) else None


def bounded(means: Mapping[str, Interval]) -> dict[str, Interval]:
    """Those with an interval: the mean of fewer than two questions has none."""
    return {name: mean for name, mean in means.items() if math.isfinite(mean.high - mean.low)}


def _known(rows: Mapping[str, ColumnValues], column: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values that aren't missing, and the question of each."""
    known = ~np.isnan(rows[column].values)
    return rows[column].values[known], rows["example_id"].values[known]


def per_solved_estimate(rows: Mapping[str, ColumnValues], column: str) -> Estimate:
    """The sum of a column over the number of exact matches, with its 95% interval (analysis/stats/solved.py).

    Of few solved questions it has no interval, as a ratio of two has none.
    """
    amounts, solved, questions = (rows[name].values for name in (column, "exact_match", "example_id"))
    if not len(amounts) or np.isnan(amounts + solved).any():
        return NO_ESTIMATE
    found = per_solved(amounts, solved, clusters=questions)
    mean, high = (value if math.isfinite(value) else None for value in (found.estimate, found.high))
    few = 0 < solved.sum() / len(solved) * found.n < LEAST_SOLVED
    return Estimate(mean, None, None, found.n) if few else Estimate(mean, found.low, high, found.n, found.rare)


NO_PRICE = "no price"
"""What stands where dollars aren't known."""
NOT_SCORED = "not scored"
UNDER_SOLVED = f"under {LEAST_SOLVED} solved"
"""What stands in the place of an interval of what a solved question costs, where too few were solved for one."""


def number_text(value: float | None, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def mean_text(
    mean: float | None, interval: Interval | Estimate | None, form: str, *, times: int = 1, mark: str = ""
) -> str:
    """`1,234 [1,180, 1,290]?`, `?` where a rare event may be missing; the mean alone where it has no interval."""
    if mean is None or math.isnan(mean):
        return "-"
    text = format(times * mean, form)
    if interval and interval.low is not None and interval.high is not None:
        text += f" [{times * interval.low:{form}}, {times * interval.high:{form}}]"
        mark += RARE if interval.rare else ""
    return text + mark


def score_text(value: Estimate, mark: str = "") -> str:
    """`0.412 [0.330, 0.501]`, with the mark at its end."""
    return mean_text(value.mean, value, ".3f", mark=mark)


def dollars_text(cost_usd: float | None, interval: Interval | None) -> str:
    """Dollars of a thousand questions, as `mean_text`."""
    return NO_PRICE if cost_usd is None else mean_text(cost_usd, interval, ",.3f", times=1000)


def per_solved_text(value: Estimate, form: str, none: str = NOT_SCORED) -> str:
    """`4,012 [3,310, 5,120]`; an interval without an upper bound says so, and so does a lack of one."""
    if not value.n:
        return none
    if value.mean is None:
        return f"none solved {brackets(value.low or 0.0, math.inf, lambda bound: format(bound, form))}"
    if value.low is None:
        return f"{value.mean:{form}} [{UNDER_SOLVED}]"
    high = math.inf if value.high is None else value.high
    bounds = brackets(value.low, high, lambda bound: format(bound, form))
    return f"{value.mean:{form}} {bounds}{RARE if value.rare else ''}"


def usd_per_solved_text(summary: Summary) -> str:
    return per_solved_text(summary.usd_per_solved, ".3g", NO_PRICE if summary.cost_usd is None else NOT_SCORED)


def loops_text(summary: Summary) -> str:
    """`15.0% (19.4%)`: the shares of questions and of tokens."""
    known = not math.isnan(summary.loop_share)
    return f"{summary.loop_share:.1%} ({summary.loop_token_share:.1%})" if known else "-"


def recorded_text(summary: Summary) -> str:
    """`94.3% of 331`: the share of calls of recorded tools that the recording answered, and their number."""
    if summary.recorded_hits is None or summary.recorded_misses is None:
        return "-"
    calls = summary.recorded_hits + summary.recorded_misses
    return f"{summary.recorded_hits / calls:.1%} of {calls:,}" if calls else "no call"


def has_loops(group: Iterable[Summary]) -> bool:
    return any(summary.loop_share > 0 for summary in group)


def reasons(summaries: Iterable[Summary]) -> list[str]:
    """The stop reasons of questions that ended without an answer, in the order in which they first occur."""
    return list(dict.fromkeys(reason for summary in summaries for reason in summary.not_answered))


def cells_of(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Rows of a table as cells; the first row is the header."""
    return [list(rows[0]), *(list(row.values()) for row in rows)]


LOOPS = "in loops (of tokens)"
OF_OBJECTIVES = "questions of a task right"
FLIPS = "trials differ"


def repeated(group: Sequence[Summary]) -> int:
    """The largest k of which each of these has pass^k; 1 where one has no question with several trials."""
    return min((max(summary.passes, default=1) for summary in group if summary.exact_match.n), default=1)


FOUND = "calls that were recorded"


def _source_of(sources: Sequence[str]) -> str:
    """Who counted the tokens of rows with these sources."""
    if set(sources) == {"provider", "inconsistent"}:
        return "inconsistent"
    return sources[0] if len(sources) == 1 else "mixed" if sources else "none"


def summary_table(summaries: Sequence[Summary]) -> str:
    """The summaries as plain text: for each data set and model tables of accuracy, tokens, time and price.

    A solved question is an exact match. A column for each reason for which a question ended without an answer;
    `error` is a failure of the infrastructure. The shares of questions and of tokens in loops are shown where one is.
    """
    groups: dict[tuple[str, str], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.dataset, summary.models), []).append(summary)
    blocks = []
    for (dataset, models), group in groups.items():
        is_oracle = any(s.oracle for s in group)
        has_trials = any(s.total - s.failed - s.unmetered > (s.exact_match.n or s.questions) for s in group)
        notes = [f"{dataset}, {models}: means per question", "n = questions that count"]
        notes += ["rows = questions times trials"] if has_trials else []
        notes += ["tokens estimated"] if any(s.usage_source in ("estimated", "mixed") for s in group) else []
        notes += ["tokens in doubt: see usage_source"] if any(s.usage_source == "inconsistent" for s in group) else []
        notes += [ORACLE_ACCURACY] if is_oracle else []
        blocks.append("\n".join(["; ".join(notes), "", *text_table(cells_of(_accuracy(group, has_trials)))]))
        blocks += ["\n".join(text_table(cells_of(rows))) for rows in (_tokens(group), _time_and_price(group))]
        if not is_oracle:  # it is told the answers
            solved = [
                {
                    "per solved question": s.architecture,
                    "tokens [95% CI]": per_solved_text(s.tokens_per_solved, ",.0f"),
                    "$ [95% CI]": usd_per_solved_text(s),
                }
                for s in group
            ]
            blocks.append("\n".join(text_table(cells_of(solved))))
    return "\n\n".join([*blocks, *([OF_RARE] if any(f"]{RARE}" in block for block in blocks) else [])])


def _accuracy(group: Sequence[Summary], has_trials: bool) -> list[dict[str, str]]:
    is_judged, is_unmetered = any(s.judged_correct.n for s in group), any(s.unmetered for s in group)
    is_joined = any(s.objectives_right.n for s in group)
    k = repeated(group)
    return [
        {
            "architecture": s.architecture,
            "n": f"{s.exact_match.n or s.questions:,}",
            "EM [95% CI]": score_text(s.exact_match),
            **({f"pass^{k} [95% CI]": score_text(s.passes.get(k, NO_ESTIMATE))} if k > 1 else {}),
            **({f"{FLIPS} [95% CI]": score_text(s.flips)} if k > 1 else {}),
            "F1 [95% CI]": score_text(s.f1),
            **({f"{OF_OBJECTIVES} [95% CI]": score_text(s.objectives_right)} if is_joined else {}),
            **({"judged [95% CI]": score_text(s.judged_correct)} if is_judged else {}),
            **({"rows": f"{s.total:,}"} if has_trials else {}),
            "answered": f"{s.answered:,}",
            **({UNMETERED: f"{s.unmetered:,}"} if is_unmetered else {}),
            **{reason: f"{s.not_answered.get(reason, 0):,}" for reason in reasons(group)},
            **({LOOPS: loops_text(s)} if has_loops(group) else {}),
        }
        for s in group
    ]


def _tokens(group: Sequence[Summary]) -> list[dict[str, str]]:
    has_recorded = any(s.recorded_hits is not None for s in group)
    return [
        {
            "architecture": s.architecture,
            "LLM calls": number_text(s.llm_calls, ".2f"),
            "tool calls": number_text(s.tool_calls, ".2f"),
            **({FOUND: recorded_text(s)} if has_recorded else {}),
            "tokens in": number_text(s.input_tokens, ",.0f"),
            "cached": number_text(s.cached_input_tokens, ",.0f"),
            "out": number_text(s.output_tokens, ",.0f"),
            "total [95% CI]": mean_text(s.total_tokens, s.intervals.get("total_tokens"), ",.0f"),
        }
        for s in group
    ]


def _time_and_price(group: Sequence[Summary]) -> list[dict[str, str]]:
    def seconds(summary: Summary, value: float | None, bounds: tuple[float, float] | None) -> str:
        if value is None or bounds is None:
            return "-"
        shown, low, high = (f"{each:.{2 if each < 10 else 1 if each < 100 else 0}f}" for each in (value, *bounds))
        some = f" (n = {summary.latency_n:,})" if summary.latency_n < summary.questions else ""
        return f"{shown} [{low}, {high}]{some}"

    has_startup = any(s.startup_s >= 0.01 for s in group)  # seconds a question
    return [
        {
            "architecture": s.architecture,
            "p50 s [95% CI]": seconds(s, s.latency_p50_s, s.latency_p50_interval_s),
            "p95 s [95% CI]": seconds(s, s.latency_p95_s, s.latency_p95_interval_s),
            **({"start s": number_text(s.startup_s, ".2f")} if has_startup else {}),
            "$ / 1000 [95% CI]": dollars_text(s.cost_usd, s.intervals.get("cost_usd")),
        }
        for s in group
    ]
