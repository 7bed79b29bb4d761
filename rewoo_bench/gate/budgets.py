"""budgets.toml, and the checks of a run's rows against it.

    [[budget]]
    architecture = "rewoo"
    dataset = "sample"
    model = "oracle"
    llm_calls = { max = 6, mean = 2.5 }
    total_tokens = { mean = 2000, p95 = 2600 }
    cached_input_tokens = { share_at_least = 0.6 }  # of all input tokens
    tokens_per_solved = { at_most = 6000 }          # total tokens of all questions for each exact match
    exact_match = { min = 0.30, margin = 0.02 }     # fails below 0.28; `margin` is optional
    every_trial_right = { min = 0.20 }              # pass^k, where k is the number of trials
    trials_differ = { max = 0.25 }                  # questions that some trials answered right and others wrong
    latency_s = { p95 = 20 }

Limits are per question, and means are those of `compare`: a question counts once, whatever its number of trials; p95
and max are of rows. Questions that the infrastructure failed are in no figure; more than a tenth of them fail the
gate. Latency only warns; so does accuracy of fewer than 200 questions, and an oracle's always. What a solved question
costs depends on accuracy: of fewer than 200 questions it fails only where its whole interval is over the limit. Where
fewer than 15 were solved, it has none. An unknown cost is a failure, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.analysis.pairs import PER_SOLVED
from rewoo_bench.analysis.stats.solved import by_trials, flips, pass_hat
from rewoo_bench.analysis.summary import per_solved_interval
from rewoo_bench.analysis.summary_tables import per_solved_text
from rewoo_bench.config.specs import read_spec
from rewoo_bench.errors import UsageError
from rewoo_bench.gate.count_checks import ROUNDING
from rewoo_bench.gate.verdict import (
    ENOUGH_QUESTIONS,
    NOTHING_CACHED,
    Check,
    CheckKind,
    Group,
    Status,
    amount,
    too_many_failed,
)
from rewoo_bench.runs.rows import UNMETERED, Rows, mean_over_questions
from rewoo_bench.text.words import counted


class _Table(BaseModel):
    """A table of budgets.toml: a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


BUDGETED = ("llm_calls", "tool_calls", "total_tokens", "input_tokens", "output_tokens", "cost_usd", "latency_s")

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]  # no text, no truth value
_Share = Annotated[float, Field(ge=0, le=1)]


class Limit(_Table):
    """The most that a question may use."""

    max: _Amount | None = None
    """Of every question."""
    mean: _Amount | None = None
    p95: _Amount | None = None
    """The 95th percentile."""


class PerSolved(_Table):
    """The most for each solved question (an exact match)."""

    at_most: _Amount


class CacheFloor(_Table):
    """The fewest input tokens that the model reads from its prefix cache."""

    mean_at_least: _Amount | None = None
    """Of a question."""
    share_at_least: _Share | None = None
    """Of all input tokens, from 0 to 1."""


class Floor(_Table):
    """The least accuracy; a check fails below `min - margin`."""

    min: _Share
    """Accuracy that the architecture is expected to have, from 0 to 1."""
    margin: _Share = 0.0
    """How far a run may be below `min`, since accuracy differs from run to run."""


class Ceiling(_Table):
    """The largest share of questions; a check fails above `max + margin`."""

    max: _Share
    margin: _Share = 0.0


class Budget(_Table):
    """A `[[budget]]` of one architecture on one data set with one model."""

    architecture: str
    dataset: str
    model: str
    llm_calls: Limit | None = None
    tool_calls: Limit | None = None
    total_tokens: Limit | None = None
    input_tokens: Limit | None = None
    output_tokens: Limit | None = None
    cached_input_tokens: CacheFloor | None = None
    cost_usd: Limit | None = None
    latency_s: Limit | None = None
    tokens_per_solved: PerSolved | None = None
    usd_per_solved: PerSolved | None = None
    exact_match: Floor | None = None
    f1: Floor | None = None
    every_trial_right: Floor | None = None
    trials_differ: Ceiling | None = None

    @property
    def group(self) -> Group:
        return Group(self.architecture, self.dataset, self.model)


class Budgets(_Table):
    """budgets.toml."""

    budget: tuple[Budget, ...] = Field(min_length=1)


def read_budgets(path: Path) -> tuple[Budget, ...]:
    """The `[[budget]]` of a file, at least one. Raises `SpecError`."""
    return read_spec(path, Budgets).budget


def check_budgets(budgets: Sequence[Budget], rows: Rows) -> Iterator[Check]:
    """A check of every limit on rows of questions.parquet. Raises `UsageError` where a budget matches no row."""
    groups = {Group(*key): group for key, group in rows.groups(*Group._fields).items()}
    for budget in budgets:
        if budget.group not in groups:
            there_are = "; ".join(map(str, groups)) or "none"
            raise UsageError(f"the budget of {str(budget.group)!r} matches no row; the rows there are: {there_are}")
        every = groups[budget.group]
        checks = _Checks(budget, every.where(~every.left_out))  # a failed question cost little
        yield from checks.left_out(every)
        if checks.n:
            yield from checks.of_limits()


class _Checks:
    """The checks of one budget on the rows that count."""

    def __init__(self, budget: Budget, rows: Rows) -> None:
        self._budget, self._rows = budget, rows
        self.n = len(np.unique(rows.question))
        self._oracle = bool(rows.oracle.any())

    def left_out(self, every: Rows) -> Iterator[Check]:
        """Failed questions, which no budget counts; and whether any question was answered at all."""
        failures, unmetered = len(every) - len(self._rows), int(every.flagged(UNMETERED).sum())
        if not self.n:
            text = "nothing was measured: every question failed" + (" or is unmetered" if unmetered else "")
            yield self._check("failed questions", "fail", "failed questions", text)
            return
        if failures:
            of = f"{failures:,} of {counted(len(every), 'row')}"
            how = "failed in the infrastructure" + (f" or are unmetered ({unmetered:,})" if unmetered else "")
            text = f"{of} {how}; the figures below are of the other {len(self._rows):,}"
            status: Status = "fail" if too_many_failed(failures, len(every)) else "warn"
            yield self._check("failed questions", status, "failed questions", text)
        if not (self._rows["stop_reason"] == "answered").any():
            text = "no question was answered, and what isn't answered is cheap"
            yield self._check("accuracy", "fail", "answered", text, 0.0)

    def of_limits(self) -> Iterator[Check]:
        budget = self._budget
        for metric in BUDGETED:
            limits: Limit = getattr(budget, metric) or Limit()
            for kind in Limit.model_fields:
                if (limit := getattr(limits, kind)) is not None:
                    yield self._limit(metric, kind, limit)
        if budget.cached_input_tokens:
            yield from self._cache(budget.cached_input_tokens)
        for name in PER_SOLVED:
            if most := getattr(budget, name):
                yield self._per_solved(name, most.at_most)
        for metric in ("exact_match", "f1"):
            if floor := getattr(budget, metric):
                yield self._accuracy(f"{metric} min", self._mean(metric), "", floor, self.n)
        for metric in ("every_trial_right", "trials_differ"):
            if bound := getattr(budget, metric):
                yield self._trials(metric, bound)

    def _check(
        self, kind: CheckKind, status: Status, name: str, text: str,
        measured: float | None = None, limit: float | None = None, *, least: bool = False,
    ) -> Check:  # fmt: skip
        oracle = self._oracle and kind == "accuracy"
        return Check(kind, status, self._budget.group, name, text, measured, limit, n=self.n, oracle=oracle,
                     least=least)  # fmt: skip

    def _bounded(
        self, kind: CheckKind, name: str, measured: float, limit: float, shown: str, at: str, *, least: bool = False
    ) -> Check:
        """A check that fails beyond a limit; `shown` and `at` are the two as text."""
        missed = measured < limit * (1 - ROUNDING) if least else measured > limit * (1 + ROUNDING)
        relation = "within" if not missed else "below" if least else "over"
        text = f"{name}: {shown} is {relation} the limit of at {'least' if least else 'most'} {at}"
        return self._check(kind, "fail" if missed else "pass", name, text, measured, limit, least=least)

    def _mean(self, column: str) -> float:
        return mean_over_questions(self._rows[column], self._rows.question)

    def _unknown(self, name: str, column: str, limit: float) -> Check:
        unknown = counted(int(np.isnan(self._rows[column]).sum()), "row")
        why = "none was recorded, and no price sheet tells it (`rewoo-bench list --prices`)"
        text = f"{name}: the cost of {unknown} isn't known, which is not 0: {why}"
        return self._check("cost unknown", "fail", name, text, None, limit)

    def _limit(self, metric: str, kind: str, limit: float) -> Check:
        values, name, is_latency = self._rows[metric], f"{metric} {kind}", metric == "latency_s"
        known = values[~np.isnan(values)]
        if is_latency and not len(known):
            return self._check("latency", "warn", name, f"{name}: no latency was measured, as in a replay", None, limit)
        if not is_latency and len(known) < len(values):
            return self._unknown(name, metric, limit)
        of_kind = {"mean": self._mean(metric), "max": float(known.max()), "p95": float(np.quantile(known, 0.95))}
        measured = of_kind[kind]
        of_check: CheckKind = "latency" if is_latency else "budget"
        check = self._bounded(of_check, name, measured, limit, amount(metric, measured), amount(metric, limit))
        return replace(check, status="warn") if is_latency and check.status == "fail" else check

    def _cache(self, floor: CacheFloor) -> Iterator[Check]:
        """Input tokens read from the prefix cache: the mean of a question, and their share."""
        known = self._rows.where(~np.isnan(self._rows["cached_input_tokens"]))
        cached, given = (
            mean_over_questions(known[name], known.question) if len(known) else 0.0
            for name in ("cached_input_tokens", "input_tokens")
        )
        share = cached / max(given, 1.0)
        measures = {"mean": (cached, floor.mean_at_least, ",.1f"), "share": (share, floor.share_at_least, ".3f")}
        for kind, (measured, limit, form) in measures.items():
            if limit is not None:
                shown = f"{measured:{form}}", f"{limit:{form}}"
                check = self._bounded(
                    "prefix cache", f"cached_input_tokens {kind}", measured, limit, *shown, least=True
                )
                yield check if cached else replace(check, text=f"{check.text}; {NOTHING_CACHED}")

    def _per_solved(self, name: str, limit: float) -> Check:
        """An amount of all questions for each exact match, as `compare` has it; of few questions its interval decides.

        Where too few were solved for an interval, the check is by the estimate alone and says so.
        """
        metric = PER_SOLVED[name]
        if np.isnan(self._rows[metric]).any():
            return self._unknown(name, metric, limit)
        if np.isnan(self._rows["exact_match"]).any():
            return self._check("budget", "fail", name, f"{name}: some rows have no score", None, limit)
        found = per_solved_interval(self._rows, metric)
        at = amount(metric, limit) + (", by the estimate alone" if math.isnan(found.low) else "")
        shown = per_solved_text(found, ",.1f" if "tokens" in metric else ".3g")
        check = self._bounded("budget", name, found.estimate, limit, shown, at)
        measured = found.estimate if math.isfinite(found.estimate) else None
        check = replace(check, measured=measured, oracle=self._oracle)
        if not self._oracle and found.low > limit:
            return check
        return _if_sure(check, f"may be chance on {counted(self.n, 'question')}, {ENOUGH_QUESTIONS} are enough")

    def _trials(self, metric: str, bound: Floor | Ceiling) -> Check:
        """Whether the trials of questions agree, in a run of several trials."""
        outcomes = by_trials(self._rows["exact_match"], self._rows.question)
        trials, is_floor = int(outcomes.trials.max(initial=0)), isinstance(bound, Floor)
        name = f"{metric} {'min' if is_floor else 'max'}"
        if trials < 2:
            text = f"{name}: no question has several trials with a score (--trials)"
            return self._check("accuracy", "fail", name, text, least=is_floor)
        found = pass_hat(outcomes, trials) if is_floor else flips(outcomes)
        return self._accuracy(name, found.estimate, f" of questions with {trials} trials", bound, found.n)

    def _accuracy(self, name: str, measured: float, of: str, bound: Floor | Ceiling, n: int) -> Check:
        is_floor = isinstance(bound, Floor)
        limit = bound.min - bound.margin if isinstance(bound, Floor) else bound.max + bound.margin
        if math.isnan(measured):
            return self._check("accuracy", "fail", name, f"{name}: no question was scored", None, limit, least=is_floor)
        check = self._bounded("accuracy", name, measured, limit, f"{measured:.3f}{of}", f"{limit:g}", least=is_floor)
        few = f"too few to fail on: {counted(self.n, 'question')}, {ENOUGH_QUESTIONS} are enough"
        return replace(_if_sure(check, few), n=n)


def _if_sure(check: Check, few: str) -> Check:
    """The check; where it fails for an oracle or on too few questions, a warning that says so."""
    if check.status != "fail" or (not check.oracle and check.n >= ENOUGH_QUESTIONS):
        return check
    why = "an oracle's means nothing" if check.oracle else few
    return replace(check, status="warn", text=f"{check.text}; {why}")
