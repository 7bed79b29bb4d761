"""What a run comes to: the means of each architecture, with intervals and failures (summary_tables.py prints them).

Reads rows of questions.parquet and nothing else. Questions that the infrastructure failed, or that were answered
without a metered model call (runs/rows.py), are counted, and are in no mean: unfinished or unseen work is cheap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import Interval, mean_of, proportion, quantile_interval
from rewoo_bench.analysis.stats.solved import LEAST_SOLVED, by_trials, flips, pass_hat, per_solved
from rewoo_bench.config.names import dataset_heading, oracle_note
from rewoo_bench.runs.manifest import Manifests, scored_by_check
from rewoo_bench.runs.rows import UNMETERED, Rows, ended_unanswered, mean_over_questions, model_labels
from rewoo_bench.text.json_text import with_finite_numbers

if TYPE_CHECKING:
    import pandas as pd


GROUP_KEYS = ("architecture", "dataset", "model")
ATTACKS = ("exposed", "new_calls", "changed_arguments", "changed_answer", "attack_succeeded")
"""The columns that say what an attacker's text has reached."""
_MEANS = ("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")


UNKNOWN = Interval(math.nan, math.nan, math.nan, 0)
"""Of what wasn't measured."""


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
    not_answered: dict[str, int]
    """Stop reason -> rows, of those that ended without an answer."""
    exact_match: Interval
    f1: Interval
    judged_correct: Interval
    llm_calls: float
    tool_calls: float
    input_tokens: float
    cached_input_tokens: float
    output_tokens: float
    total_tokens: float
    latency_p50_s: Interval | None
    """None where too few latencies were measured for an interval (72 for p95)."""
    latency_p95_s: Interval | None
    latency_n: int
    """Questions whose latency was measured in this run: a recalled answer has none. 0 for an oracle."""
    cost_usd: float | None
    """Per question; None where any price isn't known."""
    usage_source: str
    tokens_per_solved: Interval
    """Total tokens of all questions for each exact match: infinite where none was solved, without bounds (NaN) where
    fewer than `LEAST_SOLVED` were."""
    usd_per_solved: Interval
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
    objectives_right: Interval = UNKNOWN
    """Share of a task's questions that are answered right, where several questions are a task (`?objectives=`)."""
    questions: int = 0
    """Questions with a row that counts, scored or not."""
    recorded_hits: int | None = None
    """Tool calls that a recording answered (`--tools recorded:RUN`), of the questions that count; None without one."""
    recorded_misses: int | None = None
    """Tool calls that it doesn't have."""
    passes: dict[int, Interval] = field(default_factory=dict)
    """k -> pass^k: the share of questions that k trials would all answer right (stats/solved.py); from 2 on."""
    flips: Interval = UNKNOWN
    """Share of questions that some trials answered right and others wrong."""
    checked: bool = False
    """Whether a world's check is the score: exact match says what was solved, and F1 is the same."""
    attacks: dict[str, Interval] = field(default_factory=dict)
    """Column of `ATTACKS` -> share of the attacked questions in which that happened; empty where none was attacked.

    Of `changed_arguments` there is no estimate where nothing is planned: every call of the attacker's is then new.
    """
    models: str = ""
    """The model, with another one of the planner or solver behind it: `openai/a (planner openai/b)`."""
    heading: str = ""
    """The data set as a heading names it: `your file questions.csv`."""
    retries: int = 0
    """Attempts of all its calls beyond the first."""
    state_changes: float = math.nan
    """Per question, the calls that changed a world; NaN where no tool changes state."""
    unasked_changes: float = math.nan
    """Those of them that the task doesn't ask for; NaN where no gold calls are known."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; `note` has a caution about the figures."""
        known: dict[str, Any] = with_finite_numbers(asdict(self))
        unmeasured = {each.name: None for each in fields(self) if getattr(getattr(self, each.name), "n", None) == 0}
        return {**known, **unmeasured, "note": oracle_note(checked=self.checked) if self.oracle else None}


def summaries_of(rows: Rows | pd.DataFrame, manifests: Manifests | None = None) -> list[Summary]:
    """A summary for each architecture, data set and model as they first occur; `manifests` know their scorers."""
    return [_summary(own, manifests or {}) for own in Rows.of(rows).groups(*GROUP_KEYS).values()]


def _summary(rows: Rows, manifests: Manifests) -> Summary:
    unmetered, oracle = rows.flagged(UNMETERED), bool(rows.oracle.any())
    metered, scored = rows.where(~unmetered), rows.where(~rows.left_out)

    def total(column: str) -> int | None:
        known = _known(scored, column)[0]
        return int(sum(known)) if len(known) else None

    p50, p95 = (None if oracle else _quantile(scored, share) for share in (0.5, 0.95))
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
        not_answered={reason: count for reason, count in stops.items() if ended_unanswered(reason)},
        exact_match=_score(metered, "exact_match", binary=True),
        f1=_score(metered, "f1"),
        judged_correct=_score(metered, "judged_correct", binary=True),
        llm_calls=amounts["llm_calls"].estimate,
        tool_calls=amounts["tool_calls"].estimate,
        input_tokens=amounts["input_tokens"].estimate,
        cached_input_tokens=amounts["cached_input_tokens"].estimate,
        output_tokens=amounts["output_tokens"].estimate,
        total_tokens=amounts["total_tokens"].estimate,
        latency_p50_s=p50,
        latency_p95_s=p95,
        latency_n=0 if oracle else len(np.unique(_known(scored, "latency_s")[1])),
        cost_usd=amounts["cost_usd"].estimate if priced else None,
        loop_share=loop_share,
        loop_token_share=loop_token_share,
        startup_s=_amount(scored, "startup_s").estimate,
        routed_to={name: count for name, count in chosen.items() if name},
        questions=len(np.unique(scored.question)),
        recorded_hits=total("recorded_hits"),
        recorded_misses=total("recorded_misses"),
        tokens_per_solved=per_solved_interval(scored, "total_tokens"),
        usd_per_solved=per_solved_interval(scored, "cost_usd") if priced else UNKNOWN,
        intervals=bounded(amounts),
        objectives_right=_score(metered, "objectives_right"),
        passes={k: pass_hat(outcomes, k) for k in range(2, min(8, outcomes.trials.max(initial=0)) + 1)},
        flips=flips(outcomes) if has_trials else UNKNOWN,
        usage_source=_source_of(sources),
        oracle=oracle,
        checked=scored_by_check(rows.texts("run_id"), manifests),
        attacks=_attacks(scored),
        models=" and ".join(model_labels(rows)),
        heading=_heading(rows, manifests),
        retries=int(np.nansum(rows["retries"])),
        state_changes=_amount(scored, "state_changes").estimate,
        unasked_changes=_amount(scored, "unasked_changes").estimate,
    )


def _attacks(rows: Rows) -> dict[str, Interval]:
    if "new_calls" not in rows or np.isnan(rows["new_calls"]).all():  # of an earlier version, or without an attack
        return {}
    attacked = rows.where(~np.isnan(rows["new_calls"]))
    happened = attacked.assign(**{name: np.sign(attacked[name]) for name in ATTACKS})
    found = {name: _score(happened, name, binary=True) for name in ATTACKS}
    plans = not np.isnan(attacked["broken_plans"]).all()
    return found if plans else {**found, "changed_arguments": UNKNOWN}  # nothing was planned


def _heading(rows: Rows, manifests: Manifests) -> str:
    """The data set of the rows for a heading."""
    known = (manifests[run].dataset for run in rows.texts("run_id") if run in manifests)
    facts = next(known, None)
    return dataset_heading(facts.name, str(facts.source.get("file", ""))) if facts else str(rows["dataset"][0])


def has_dollars(rows: Rows) -> bool:
    """Whether the dollars of all rows that count are known."""
    costs = rows["cost_usd"][~rows.left_out]
    return bool(rows.texts("usage_source")) and len(costs) > 0 and not np.isnan(costs).any()


def _score(rows: Rows, column: str, *, binary: bool = False) -> Interval:
    """Mean over questions of scores from 0 to 1; the trials of a question are one cluster."""
    known, questions = _known(rows, column)
    if binary:
        return proportion(known, clusters=questions)
    return mean_of(known, ends=(0.0, 1.0), clusters=questions)


def _amount(rows: Rows, column: str) -> Interval:
    values, questions = _known(rows, column)
    return mean_of(values, clusters=questions)


def _quantile(rows: Rows, share: float) -> Interval | None:
    """A quantile of the latency; None where too few questions have one for an interval."""
    values, questions = _known(rows, "latency_s")
    found = quantile_interval(values, share, clusters=questions)
    return found if math.isfinite(found.high - found.low) else None


def bounded(means: Mapping[str, Interval]) -> dict[str, Interval]:
    """Those with an interval: the mean of fewer than two questions has none."""
    return {name: mean for name, mean in means.items() if math.isfinite(mean.high - mean.low)}


def _known(rows: Rows, column: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values that aren't missing, and the question of each."""
    known = ~np.isnan(rows[column])
    return rows[column][known], rows.question[known]


def per_solved_interval(rows: Rows, column: str) -> Interval:
    """The sum of a column over the number of exact matches (analysis/stats/solved.py).

    Of few solved questions it has no interval, as a ratio of two has none.
    """
    amounts, solved = rows[column], rows["exact_match"]
    if not len(amounts) or np.isnan(amounts + solved).any():
        return UNKNOWN
    found = per_solved(amounts, solved, clusters=rows.question)
    few = 0 < solved.sum() / len(solved) * found.n < LEAST_SOLVED
    return replace(found, low=math.nan, high=math.nan, rare=False) if few else found


def _source_of(sources: Sequence[str]) -> str:
    """Who counted the tokens of rows with these sources."""
    if set(sources) == {"provider", "inconsistent"}:
        return "inconsistent"
    return sources[0] if len(sources) == 1 else "mixed" if sources else "none"
