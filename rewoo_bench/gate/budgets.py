"""budgets.toml, and the checks of a run's rows, or of the schemas of tools (`[[tools]]`), against it.

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

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from rewoo_bench.analysis.pairs import PER_SOLVED
from rewoo_bench.analysis.stats.paired import brackets
from rewoo_bench.analysis.stats.solved import by_trials, flips, pass_hat
from rewoo_bench.analysis.summary import UNDER_SOLVED, Estimate, per_solved_estimate
from rewoo_bench.config.specs import read_spec
from rewoo_bench.errors import DataError, SpecError, UsageError, unknown
from rewoo_bench.gate.count_checks import ROUNDING, percent
from rewoo_bench.gate.verdict import (
    ENOUGH_QUESTIONS,
    NOTHING_CACHED,
    Check,
    Group,
    Status,
    Verdict,
    amount,
    too_many_failed,
)
from rewoo_bench.runs.rows import UNMETERED, flagged, left_out, mean_over_questions, oracle_rows, read_columns
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.tokens import TOKENIZER, ToolSize
from rewoo_bench.text.words import counted

_SCHEMAS = Group("tools", "schemas", TOKENIZER)
_ALL = "all tools"  # no function's name has a space


class _Table(BaseModel):
    """A table of budgets.toml: a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Most(_Table):
    """The largest number that is allowed."""

    max: int = Field(ge=0, strict=True)


class ToolBudget(_Table):
    """A `[[tools]]`: limits of the tools of one MCP server, or of all tools of the command."""

    server: str | None = None
    total_tokens: Most | None = None
    tokens_per_tool: Most | None = None
    number_of_tools: Most | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> ToolBudget:
        if self.total_tokens is self.tokens_per_tool is self.number_of_tools is None:
            raise ValueError("a budget of tools limits nothing")
        return self


def check_tools(
    sizes: Sequence[ToolSize], budgets: Sequence[ToolBudget], before: Sequence[ToolSize] | None, margin: float
) -> Verdict:
    """Tools, the largest first, against budgets and those `before`. Raises `UsageError` for an unknown server."""
    checks = []
    for budget in budgets:
        sources = dict.fromkeys(size.source for size in sizes)
        if budget.server is not None and budget.server not in sources:
            raise UsageError(f"[[tools]]: {unknown('server', budget.server, sources)}")
        own = [size for size in sizes if budget.server in (None, size.source)]
        schemas, names = [f"{size.name} {size.schema:,}" for size in own], ", ".join(size.name for size in own)
        per_tool = budget.tokens_per_tool.max if budget.tokens_per_tool else 0
        larger = ", ".join(schemas[: sum(size.schema > per_tool for size in own)])
        measures = {
            "total_tokens": (sum(size.schema for size in own), f"the largest: {', '.join(schemas[:5])}"),
            "tokens_per_tool": (max((size.schema for size in own), default=0), larger),
            "number_of_tools": (len(own), names),
        }
        for key, (measured, more) in measures.items():
            if (limit := getattr(budget, key)) is None:
                continue
            name = key + (f" of {budget.server}" if budget.server else "")
            over = measured > limit.max
            text = f"{name}: {measured:,} is {'over' if over else 'within'} the limit of {limit.max:,}"
            text += f" ({more})" if over else ""
            status: Status = "fail" if over else "pass"
            checks.append(Check("budget", status, _SCHEMAS, name, text, float(measured), float(limit.max)))
    if before is not None:
        checks.append(_tool_growth(sizes, before, margin))
    return Verdict(tuple(checks))


def _tool_growth(sizes: Sequence[ToolSize], before: Sequence[ToolSize], margin: float) -> Check:
    """The tokens of all schemas; what grew is named, new tools too."""
    old, new = ({size.name: size.schema for size in side} for side in (before, sizes))
    total, was = sum(new.values()), sum(old.values())
    share = f" ({total / was - 1:+,.1%})" if was else ""
    text = f"tokens of {counted(len(new), 'tool schema')} {was:,} -> {total:,}{share}"
    limit = was * (1 + margin)
    status: Status = "pass"
    if total > limit * (1 + ROUNDING):
        grown = sorted((old.get(name, 0) - tokens, name) for name, tokens in new.items() if tokens > old.get(name, 0))
        named = [
            f"{name} +{-less:,} ({f'{old[name]:,} -> {new[name]:,}' if name in old else 'new'})" for less, name in grown
        ]
        text, status = f"{text}, {percent(margin)} is allowed: {', '.join(named)}", "fail"
    return Check("growth", status, _SCHEMAS, "total_tokens", text, total, limit, float(was))


def tool_table(sizes: Sequence[ToolSize]) -> str:
    """A row for each tool, the largest first, and their sums; the server of each where there are several sources."""
    rows = [(size.name, f"{size.schema:,}", f"{size.line:,}", size.source) for size in sizes]
    sums = (f"{sum(size.schema for size in sizes):,}", f"{sum(size.line for size in sizes):,}")
    several = 4 if len({size.source for size in sizes}) > 1 else 3
    cells = [row[:several] for row in (("tool", "schema", "line of text", "of"), *rows, (_ALL, *sums, ""))]
    title = f"{counted(len(sizes), 'tool')}: tokens of each model call that is given them ({TOKENIZER})"
    return "\n".join([title, "", *text_table(cells)])


def tool_points(sizes: Sequence[ToolSize]) -> str:
    """Tokens of each schema, as github-action-benchmark takes them; `read_tool_points` reads them again."""
    total = ToolSize(_ALL, "", sum(size.schema for size in sizes), 0)
    points = [{"name": size.name, "unit": "tokens", "value": size.schema} for size in (*sizes, total)]
    return json.dumps(points, indent=2, ensure_ascii=False) + "\n"


class _Point(BaseModel):
    name: str
    value: int = Field(ge=0, strict=True)


def read_tool_points(path: Path) -> list[ToolSize]:
    """The tools of an earlier `gate --mcp … --json FILE`. Raises `DataError`."""
    try:
        points = TypeAdapter(list[_Point]).validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        cause = error.errors()[0]["msg"] if isinstance(error, ValidationError) else getattr(error, "strerror", error)
        raise DataError(
            f"{str(path)!r} is no count of tools: {cause}; write one with `gate --mcp … --json FILE`"
        ) from None
    return [ToolSize(point.name, "", point.value, 0) for point in points if point.name != _ALL]


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

    @property
    def limits(self) -> list[tuple[str, Literal["max", "mean", "p95"], float]]:
        """`("total_tokens", "mean", 2000.0)`, …"""
        kinds: tuple[Literal["max", "mean", "p95"], ...] = ("max", "mean", "p95")
        given = [(metric, kind, getattr(getattr(self, metric), kind, None)) for metric in BUDGETED for kind in kinds]
        return [(metric, kind, limit) for metric, kind, limit in given if limit is not None]

    @model_validator(mode="after")
    def _limits_something(self) -> Budget:
        if not any(self.model_dump(exclude=set(Group._fields), exclude_none=True).values()):
            raise ValueError(f"the budget of {str(self.group)!r} limits nothing")
        return self


class Budgets(_Table):
    """budgets.toml."""

    budget: tuple[Budget, ...] = ()
    tools: tuple[ToolBudget, ...] = ()


def read_tool_budgets(path: Path) -> tuple[ToolBudget, ...]:
    """The `[[tools]]` of a file, at least one. Raises `SpecError`."""
    if not (budgets := read_spec(path, Budgets).tools):
        raise SpecError(f"{path}: has no [[tools]], the budget of tool schemas")
    return budgets


def read_budgets(path: Path) -> tuple[Budget, ...]:
    """The `[[budget]]` of a file, at least one. Raises `SpecError`."""
    if not (budgets := read_spec(path, Budgets).budget):
        raise SpecError(f"{path}: has no [[budget]], the budget of a run")
    groups = [budget.group for budget in budgets]
    for group in groups:
        if groups.count(group) > 1:
            raise SpecError(f"{path}: {str(group)!r} has two budgets; write them as one")
    return budgets


def check_budgets(budgets: tuple[Budget, ...], rows: pd.DataFrame) -> Iterator[Check]:
    """A check of every limit on rows of questions.parquet. Raises `UsageError` where a budget matches no row."""
    keys = list(Group._fields)
    groups = {Group(*map(str, key)): group for key, group in rows.groupby(keys, sort=False, observed=True)}
    for budget in budgets:
        if budget.group not in groups:
            there_are = "; ".join(map(str, groups)) or "none"
            raise UsageError(f"the budget of {str(budget.group)!r} matches no row; the rows there are: {there_are}")
        every = groups[budget.group]
        scored = every[~left_out(every)]  # a failed question cost little
        yield from _left_out(budget.group, every, scored)
        if not len(scored):
            continue
        for metric, kind, limit in budget.limits:
            yield _limit(budget.group, scored, metric, kind, limit)
        yield from _cache(budget, scored)
        for name in PER_SOLVED:
            if most := getattr(budget, name, None):
                yield _per_solved(budget.group, scored, name, most.at_most)
        for metric, floor in (("exact_match", budget.exact_match), ("f1", budget.f1)):
            if floor:
                yield _floor(budget.group, scored, metric, floor)
        for metric in ("every_trial_right", "trials_differ"):
            if bound := getattr(budget, metric):
                yield _trials(budget.group, scored, metric, bound)


def _left_out(group: Group, every: pd.DataFrame, scored: pd.DataFrame) -> Iterator[Check]:
    """Failed questions, which no budget counts; and whether any question was answered at all."""
    n, failures = _questions(scored), len(every) - len(scored)
    unmetered = int(flagged(every, UNMETERED).sum())
    if not n:
        text = "nothing was measured: every question failed" + (" or is unmetered" if unmetered else "")
        yield Check("failed questions", "fail", group, "failed questions", text)
        return
    if failures:
        rows = f"{failures:,} of {counted(len(every), 'row')}"
        how = "failed in the infrastructure" + (f" or are unmetered ({unmetered:,})" if unmetered else "")
        text = f"{rows} {how}; the figures below are of the other {len(scored):,}"
        status: Status = "fail" if too_many_failed(failures, len(every)) else "warn"
        yield Check("failed questions", status, group, "failed questions", text, n=n)
    if not (scored["stop_reason"] == "answered").any():
        text = "no question was answered, and what isn't answered is cheap"
        yield Check("accuracy", "fail", group, "answered", text, 0.0, n=n)


def _questions(rows: pd.DataFrame) -> int:
    return int(rows["example_id"].nunique())


def _limit(group: Group, rows: pd.DataFrame, metric: str, kind: Literal["max", "mean", "p95"], limit: float) -> Check:
    values, n = rows[metric].dropna().astype("float64"), _questions(rows)
    name, is_latency = f"{metric} {kind}", metric == "latency_s"
    if is_latency and not len(values):
        text = f"{name}: no latency was measured, as in a replay"
        return Check("latency", "warn", group, name, text, limit=limit, n=n)
    if not is_latency and len(values) < len(rows):
        return _unknown_cost(group, name, f"{len(rows) - len(values)} of {len(rows)} rows is", limit, n)
    if kind == "mean":
        measured = _mean(rows, metric)
    else:
        measured = float(values.max() if kind == "max" else values.quantile(0.95))
    over = measured > limit * (1 + ROUNDING)
    text = f"{name}: {amount(metric, measured)} is {'over' if over else 'within'} the limit of {amount(metric, limit)}"
    status: Status = "pass" if not over else "warn" if is_latency else "fail"
    return Check("latency" if is_latency else "budget", status, group, name, text, measured, limit, n=n)


def _mean(rows: pd.DataFrame, column: str) -> float:
    return mean_over_questions(rows[column].astype("float64").to_numpy(), rows["example_id"].to_numpy(str))


def _unknown_cost(group: Group, name: str, rows: str, limit: float, n: int) -> Check:
    why = "none was recorded, and no price sheet tells it (`rewoo-bench list --prices`)"
    text = f"{name}: the cost of {rows} unknown, which is not 0: {why}"
    return Check("cost unknown", "fail", group, name, text, limit=limit, n=n)


def _per_solved(group: Group, rows: pd.DataFrame, name: str, limit: float) -> Check:
    """An amount of all questions for each exact match, as `compare` has it; of few questions its interval decides.

    Where too few were solved for an interval, the check is by the estimate alone and says so.
    """
    n, metric = _questions(rows), PER_SOLVED[name]
    if rows[metric].isna().any():
        return _unknown_cost(group, name, "some rows is", limit, n)
    if rows["exact_match"].isna().any():
        return Check("budget", "fail", group, name, f"{name}: some rows have no score", limit=limit, n=n)
    found = per_solved_estimate(read_columns(rows, ["example_id", "exact_match", metric]), metric)
    oracle, low = bool(oracle_rows(rows).any()), found.low
    over = found.mean is None or found.mean > limit * (1 + ROUNDING)
    text = f"{name}: {_per_solved_text(found, metric)} is {'over' if over else 'within'} the limit of "
    text += amount(metric, limit) + (", by the estimate alone" if low is None else "")
    status: Status = "fail" if over else "pass"
    if over and oracle:
        status, text = "warn", f"{text}; an oracle's means nothing"
    elif over and n < ENOUGH_QUESTIONS and (low is None or low <= limit):
        status, text = "warn", f"{text}; may be chance on {counted(n, 'question')}, {ENOUGH_QUESTIONS} are enough"
    return Check("budget", status, group, name, text, found.mean, limit, n=n, oracle=oracle)


def _per_solved_text(found: Estimate, metric: str) -> str:
    """`958.6 [497.9, 8,177.9]`, `958.6 [under 15 solved]`."""
    if found.mean is None:
        return f"none solved, so more than {amount(metric, found.low)}"
    if found.low is None:
        return f"{amount(metric, found.mean)} [{UNDER_SOLVED}]"
    bounds = brackets(found.low, math.inf if found.high is None else found.high, lambda bound: amount(metric, bound))
    return f"{amount(metric, found.mean)} {bounds}"


def _cache(budget: Budget, rows: pd.DataFrame) -> Iterator[Check]:
    """Input tokens read from the prefix cache: the mean of a question, and their share."""
    floor = budget.cached_input_tokens or CacheFloor()
    rows = rows[rows["cached_input_tokens"].notna()]
    cached = _mean(rows, "cached_input_tokens") if len(rows) else 0.0
    share = cached / max(_mean(rows, "input_tokens"), 1.0) if len(rows) else 0.0
    measures = {"mean": (cached, floor.mean_at_least, ",.1f"), "share": (share, floor.share_at_least, ".3f")}
    for kind, (measured, limit, form) in measures.items():
        if limit is not None:
            below, name = measured < limit * (1 - ROUNDING), f"cached_input_tokens {kind}"
            text = f"{name}: {measured:{form}} is {'below' if below else 'no less than'} {limit:{form}}"
            text += "" if cached else f"; {NOTHING_CACHED if len(rows) else 'no cached tokens were recorded'}"
            status: Status = "fail" if below else "pass"
            n = _questions(rows)
            yield Check("prefix cache", status, budget.group, name, text, measured, limit, n=n, least=True)


def _trials(group: Group, rows: pd.DataFrame, metric: str, bound: Floor | Ceiling) -> Check:
    """Whether the trials of questions agree, in a run of several trials."""
    outcomes = by_trials(rows["exact_match"].astype("float64").to_numpy(), rows["example_id"].to_numpy(str))
    trials = int(outcomes.trials.max(initial=0))
    is_floor = isinstance(bound, Floor)
    limit = round(bound.min - bound.margin if isinstance(bound, Floor) else bound.max + bound.margin, 9)
    name = f"{metric} {'min' if is_floor else 'max'}"
    if trials < 2:
        text = f"{name}: no question has several trials with a score (--trials)"
        return Check("accuracy", "fail", group, name, text, limit=limit)
    found = pass_hat(outcomes, trials) if is_floor else flips(outcomes)
    missed = found.estimate < limit if is_floor else found.estimate > limit
    relation = ("is below the minimum" if is_floor else "is above the maximum") if missed else "holds the limit"
    text = f"{name}: {found.estimate:.3f} of questions with {trials} trials {relation} of {limit:g}"
    return _of_accuracy(Check("accuracy", "fail" if missed else "pass", group, name, text, found.estimate, limit,
                              n=found.n, oracle=bool(oracle_rows(rows).any()), least=is_floor))  # fmt: skip


def _floor(group: Group, rows: pd.DataFrame, metric: str, floor: Floor) -> Check:
    scored = rows[["example_id", metric]].dropna()
    n, limit, name = _questions(scored), round(floor.min - floor.margin, 9), f"{metric} min"
    if not n:
        text = f"{name}: no question was scored{', every one failed' if rows.empty else ': the run has no ' + metric}"
        return Check("accuracy", "fail", group, name, text, limit=limit)
    measured, oracle = _mean(scored, metric), bool(oracle_rows(rows).any())
    margin = f" less the margin of {floor.margin:g}" if floor.margin else ""
    relation = "is below" if measured < limit else "holds"
    text = f"{name}: {measured:.3f} {relation} the minimum of {floor.min:g}{margin}"
    status: Status = "pass" if measured >= limit else "fail"
    return _of_accuracy(Check("accuracy", status, group, name, text, measured, limit, n=n, oracle=oracle, least=True))


def _of_accuracy(check: Check) -> Check:
    """The check, where it fails a warning for an oracle and for too few questions."""
    if check.status != "fail":
        return check
    if check.oracle:
        return replace(check, status="warn", text=f"{check.text}; an oracle's means nothing")
    if check.n < ENOUGH_QUESTIONS:
        few = f"too few to fail on: {counted(check.n, 'question')}, {ENOUGH_QUESTIONS} are enough"
        return replace(check, status="warn", text=f"{check.text}; {few}")
    return check
