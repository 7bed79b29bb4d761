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
from rewoo_bench.config.names import oracle_note, score_name
from rewoo_bench.runs.manifest import Manifests, scored_by_check
from rewoo_bench.runs.rows import UNMETERED, Rows, ended_unanswered, mean_over_questions, model_labels
from rewoo_bench.text.tables import text_table

if TYPE_CHECKING:
    import pandas as pd


GROUP_KEYS = ("architecture", "dataset", "model")
ATTACKS = ("exposed", "new_calls", "changed_arguments", "changed_answer", "attack_succeeded")
"""The columns that say what an attacker's text has reached."""
_MEANS = ("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")


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
    checked: bool = False
    """Whether a world's check is the score: exact match says what was solved, and F1 is the same."""
    attacks: dict[str, Estimate] = field(default_factory=dict)
    """Column of `ATTACKS` -> share of the attacked questions in which that happened; empty where none was attacked."""
    models: str = ""
    """The model, with another one of the planner or solver behind it: `openai/a (planner openai/b)`."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; `note` has a caution about the figures."""
        known = {name: None if value != value else value for name, value in asdict(self).items()}  # NaN is no JSON
        return {**known, "note": oracle_note(checked=self.checked) if self.oracle else None}


def summaries_of(rows: Rows | pd.DataFrame, manifests: Manifests | None = None) -> list[Summary]:
    """A summary for each architecture, data set and model as they first occur; `manifests` know their scorers."""
    return [_summary(own, manifests or {}) for own in Rows.of(rows).groups(*GROUP_KEYS).values()]


def _summary(rows: Rows, manifests: Manifests) -> Summary:
    unmetered, oracle = rows.flagged(UNMETERED), bool(rows.oracle.any())
    metered, scored = rows.where(~unmetered), rows.where(~rows.left_out)

    def total(column: str) -> int | None:
        known = _known(scored, column)[0]
        return int(sum(known)) if len(known) else None

    p50, p95 = (None if oracle else quantile_of(scored, "latency_s", share) for share in (0.5, 0.95))
    outcomes = by_trials(metered["exact_match"], metered.question)
    has_trials = bool((outcomes.trials > 1).any())
    sources = rows.texts("usage_source")
    stops, chosen = (Counter(rows[name]) for name in ("stop_reason", "routed_to"))
    priced = has_dollars(rows)
    amounts = {name: _amount(scored, name) for name in (*_MEANS, *(["cost_usd"] if priced else []))}
    loop_share = loop_token_share = math.nan
    known = scored.where(~np.isnan(scored["loop_tokens"]))
    if len(known):
        looped, steps, tokens = (known[name] for name in ("loop_tokens", "loop_step", "total_tokens"))
        loop_share = mean_over_questions((~np.isnan(steps)).astype(float), known.question)
        loop_token_share = float(looped.sum() / tokens.sum()) if tokens.any() else 0.0
    return Summary(
        architecture=rows["architecture"][0],
        dataset=rows["dataset"][0],
        model=rows["model"][0],
        total=len(rows),
        answered=stops["answered"],
        failed=int(rows.failed.sum()),
        unmetered=int(unmetered.sum()),
        reasoning_truncated=stops["reasoning_truncated"],
        not_answered={reason: count for reason, count in stops.items() if ended_unanswered(reason)},
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
        questions=len(np.unique(scored.question)),
        recorded_hits=total("recorded_hits"),
        recorded_misses=total("recorded_misses"),
        tokens_per_solved=per_solved_estimate(scored, "total_tokens"),
        usd_per_solved=per_solved_estimate(scored, "cost_usd") if priced else NO_ESTIMATE,
        intervals=bounded(amounts),
        objectives_right=_estimate(metered, "objectives_right"),
        passes={k: _as_estimate(pass_hat(outcomes, k)) for k in range(2, min(8, outcomes.trials.max(initial=0)) + 1)},
        flips=_as_estimate(flips(outcomes)) if has_trials else NO_ESTIMATE,
        usage_source=_source_of(sources),
        oracle=oracle,
        checked=scored_by_check(rows.texts("run_id"), manifests),
        attacks=_attacks(scored),
        models=" and ".join(model_labels(rows)),
    )


def _attacks(rows: Rows) -> dict[str, Estimate]:
    attacked = rows.where(~np.isnan(rows["new_calls"])) if "new_calls" in rows else rows.where(np.array([], int))
    happened = attacked.assign(**{name: np.sign(attacked[name]) for name in ATTACKS} if len(attacked) else {})
    return {name: _estimate(happened, name, binary=True) for name in ATTACKS} if len(attacked) else {}


def has_dollars(rows: Rows) -> bool:
    """Whether the dollars of all rows that count are known."""
    costs = rows["cost_usd"][~rows.left_out]
    return bool(rows.texts("usage_source")) and len(costs) > 0 and not np.isnan(costs).any()


def score_estimate(rows: pd.DataFrame, column: str, *, binary: bool = False) -> Estimate:
    """Mean over questions of scores from 0 to 1, with its 95% interval; the trials of a question are one cluster.

    `stats.proportion` for yes-or-no columns, else `stats.mean_of`.
    """
    return _estimate(Rows(rows), column, binary=binary)


def _estimate(rows: Rows, column: str, *, binary: bool = False) -> Estimate:
    known, questions = _known(rows, column)
    if not len(known):
        return NO_ESTIMATE
    if binary:
        return _as_estimate(proportion(known, clusters=questions))
    return _as_estimate(mean_of(known, ends=(0.0, 1.0), clusters=questions))


def _as_estimate(interval: Interval) -> Estimate:
    return Estimate(interval.estimate, interval.low, interval.high, interval.n, interval.rare)


def _amount(rows: Rows, column: str) -> Interval:
    values, questions = _known(rows, column)
    return mean_of(values, clusters=questions)


def quantile_of(rows: Rows, column: str, share: float) -> Interval | None:
    """A quantile of a column with its 95% interval; None where too few questions have a value for an interval."""
    values, questions = _known(rows, column)
    found = quantile_interval(values, share, clusters=questions)
    return found if math.isfinite(found.high - found.low) else None


def bounded(means: Mapping[str, Interval]) -> dict[str, Interval]:
    """Those with an interval: the mean of fewer than two questions has none."""
    return {name: mean for name, mean in means.items() if math.isfinite(mean.high - mean.low)}


def _known(rows: Rows, column: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values that aren't missing, and the question of each."""
    known = ~np.isnan(rows[column])
    return rows[column][known], rows.question[known]


def per_solved_estimate(rows: Rows, column: str) -> Estimate:
    """The sum of a column over the number of exact matches, with its 95% interval (analysis/stats/solved.py).

    Of few solved questions it has no interval, as a ratio of two has none.
    """
    amounts, solved = rows[column], rows["exact_match"]
    if not len(amounts) or np.isnan(amounts + solved).any():
        return NO_ESTIMATE
    found = per_solved(amounts, solved, clusters=rows.question)
    mean, high = (value if math.isfinite(value) else None for value in (found.estimate, found.high))
    few = 0 < solved.sum() / len(solved) * found.n < LEAST_SOLVED
    return Estimate(mean, None, None, found.n) if few else Estimate(mean, found.low, high, found.n, found.rare)


NO_PRICE = "no price"
"""What stands where dollars aren't known."""
NOT_SCORED = "not scored"
UNDER_SOLVED = f"under {LEAST_SOLVED} solved"
"""What stands in the place of an interval of what a solved question costs, where too few were solved for one."""


MEANINGLESS = "*"
"""Behind an oracle's accuracy."""


def legend(cells: Iterable[str], oracles: Iterable[bool]) -> list[str]:
    """What the marks behind figures mean, of those that are in some texts.

    `oracles`: of each system that an oracle answered, whether a world's check is the score.
    """
    of_oracles = [f"{MEANINGLESS} {oracle_note(checked=checked)}" for checked in sorted(set(oracles))]
    rare = any(f"]{mark}{RARE}" in cell for cell in cells for mark in ("", MEANINGLESS))
    return [*of_oracles, *([OF_RARE] if rare else [])]


def is_checked(group: Iterable[Summary]) -> bool:
    """Whether a world's check is the score of all these systems."""
    return {each.checked for each in group} == {True}


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
    """`4,012 [3,310, 5,120]`; an interval without an upper bound says so, and so does a lack of one.

    Where none was solved, the lower bound isn't shown: it is the lower the more the amounts vary, and so would rank the
    dearer system first.
    """
    if not value.n:
        return none
    if value.mean is None:
        return "none solved"
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
FOUND = "calls that were recorded"
PASSES = "pass^k"
"""Stands for `pass^3` in a list of columns, and `REASONS` for a column of each reason without an answer."""
REASONS = "reasons"
_WITH_INTERVAL = ("EM", FLIPS, "F1", OF_OBJECTIVES, "judged", "total", "p50 s", "p95 s", "$ / 1000")
_OPTIONAL = (FLIPS, OF_OBJECTIVES, "judged", LOOPS, FOUND, UNMETERED, "rows", "start s", "gold pages found", "router")
_NOTHING = {"", "-", "0", "0.00", "0.0% (0.0%)"}


def repeated(group: Sequence[Summary]) -> int:
    """The largest k of which each of these has pass^k; 1 where one has no question with several trials."""
    return min((max(summary.passes, default=1) for summary in group if summary.exact_match.n), default=1)


def _source_of(sources: Sequence[str]) -> str:
    """Who counted the tokens of rows with these sources."""
    if set(sources) == {"provider", "inconsistent"}:
        return "inconsistent"
    return sources[0] if len(sources) == 1 else "mixed" if sources else "none"


def _cells(of: Summary, k: int, means: Mapping[str, float | None], mark: str) -> dict[str, str]:
    """The figures of a summary as text, by the heads of their columns; an accuracy has the mark."""
    some = f" (n = {of.latency_n:,})" if of.latency_n < of.questions else ""  # some may be recalled

    def seconds(value: float | None, bounds: tuple[float, float] | None) -> str:
        low, high = bounds or (None, None)
        return "-" if value is None else mean_text(value, Estimate(value, low, high, 0), ".2f") + some

    parts = {"planner": "planner", "solver": "solver", "LLM tool": "tool_llm", "agent": "agent", "router": "router"}
    return {
        "n": f"{of.exact_match.n or of.questions:,}",
        "EM": score_text(of.exact_match, mark),
        f"pass^{k}": score_text(of.passes.get(k, NO_ESTIMATE), mark),
        FLIPS: score_text(of.flips, mark) if k > 1 else "-",
        "F1": score_text(of.f1, mark),
        OF_OBJECTIVES: score_text(of.objectives_right, mark),
        "judged": score_text(of.judged_correct, mark),
        "rows": f"{of.total:,}",
        "answered": f"{of.answered:,}",
        "failed": f"{of.failed:,}",
        UNMETERED: f"{of.unmetered:,}",
        LOOPS: loops_text(of),
        "gold pages found": number_text(means.get("gold_pages_found"), ".2f"),
        "LLM calls": number_text(of.llm_calls, ".2f"),
        "tool calls": number_text(of.tool_calls, ".2f"),
        FOUND: recorded_text(of),
        "tokens in": number_text(of.input_tokens, ",.0f"),
        "cached": number_text(of.cached_input_tokens, ",.0f"),
        "out": number_text(of.output_tokens, ",.0f"),
        "total": mean_text(of.total_tokens, of.intervals.get("total_tokens"), ",.0f"),
        **{name: number_text(means.get(f"{part}_tokens"), ",.0f") for name, part in parts.items()},
        "billed": number_text(means.get("billed_tokens"), ",.0f"),
        "p50 s": seconds(of.latency_p50_s, of.latency_p50_interval_s),
        "p95 s": seconds(of.latency_p95_s, of.latency_p95_interval_s),
        "start s": number_text(of.startup_s, ".2f"),
        "$ / 1000": dollars_text(of.cost_usd, of.intervals.get("cost_usd")),
        **{reason: f"{count:,}" for reason, count in of.not_answered.items()},
        **{f"routed to {name}": f"{count:,}" for name, count in of.routed_to.items()},
    }


def table_of(
    first: str,
    names: Sequence[str],
    group: Mapping[str, Summary],
    means: Mapping[str, Mapping[str, float | None]] | None = None,
    *,
    interval: str = "",
) -> list[list[str]]:
    """Columns of some systems by their labels, as cells; what no system has is left out.

    `first` is the head of the labels, `means` are what the summaries lack, and `interval` stands behind the head of
    each column with intervals. Where a world's check is the score, EM is called `solved`, and F1 is left out.
    """
    k = repeated([*group.values()])
    ends = [*dict.fromkeys(f"routed to {name}" for each in group.values() for name in each.routed_to)]
    more = {REASONS: [*ends, *reasons(group.values())], PASSES: [f"pass^{k}"] if k > 1 else []}
    more |= {"F1": []} if (checked := is_checked(group.values())) else {}
    heads = [head for name in names for head in more.get(name, [name])]
    rows = {
        label: _cells(each, k, (means or {}).get(label, {}), MEANINGLESS if each.oracle else "")
        for label, each in group.items()
    }
    heads = [head for head in heads if head not in _OPTIONAL or not all(row[head] in _NOTHING for row in rows.values())]
    with_interval = (*_WITH_INTERVAL, f"pass^{k}")
    called = {"EM": score_name(checked=checked)}
    shown = [f"{called.get(head, head)}{interval if head in with_interval else ''}" for head in heads]
    return [[first, *shown], *([label, *(row.get(head, "0") for head in heads)] for label, row in rows.items())]


def solved_table(first: str, group: Mapping[str, Summary], interval: str = "") -> list[list[str]]:
    """What a solved question costs, of systems that aren't an oracle's."""
    of_tokens = {label: per_solved_text(each.tokens_per_solved, ",.0f") for label, each in group.items()}
    rows = [[label, of_tokens[label], usd_per_solved_text(each)] for label, each in group.items() if not each.oracle]
    return [[first, f"tokens{interval}", f"${interval}"], *rows] if rows else []


def summary_table(summaries: Sequence[Summary]) -> str:
    """The summaries as plain text: for each data set and model tables of accuracy, tokens, time and price.

    A solved question is an exact match. A column for each reason for which a question ended without an answer;
    `error` is a failure of the infrastructure. The shares of questions and of tokens in loops are shown where one is.
    """
    groups: dict[tuple[str, str], dict[str, Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.dataset, summary.models), {})[summary.architecture] = summary
    blocks = []
    for (dataset, models), group in groups.items():
        each = group.values()
        has_trials = any(s.total - s.failed - s.unmetered > (s.exact_match.n or s.questions) for s in each)
        notes = [f"{dataset}, {models}: means per question", "n = questions that count"]
        notes += ["rows = questions times trials"] if has_trials else []
        notes += ["tokens estimated"] if any(s.usage_source in ("estimated", "mixed") for s in each) else []
        notes += ["tokens in doubt: see usage_source"] if any(s.usage_source == "inconsistent" for s in each) else []
        scores = ("n", "EM", PASSES, FLIPS, "F1", OF_OBJECTIVES, "judged", *(["rows"] if has_trials else []))
        tables = [
            table_of("architecture", names, group, interval=" [95% CI]")
            for names in (
                (*scores, "answered", UNMETERED, REASONS, LOOPS),
                ("LLM calls", "tool calls", FOUND, "tokens in", "cached", "out", "total"),
                ("p50 s", "p95 s", "start s", "$ / 1000"),
            )
        ]
        tables += filter(None, [solved_table("per solved question", group, " [95% CI]")])
        first, *others = ("\n".join(text_table(cells)) for cells in tables)
        blocks += ["\n".join(["; ".join(notes), "", first]), *others]
    marks = legend(blocks, (summary.checked for summary in summaries if summary.oracle))
    return "\n\n".join([*blocks, *(["\n".join(marks)] if marks else [])])
