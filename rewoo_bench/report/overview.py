"""The head of the page: what was run, the table, one sentence for each pair, what to doubt, claims and manifests."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median as _median
from typing import TYPE_CHECKING, Any

from rewoo_bench.analysis.claims import check, gather, read_claims
from rewoo_bench.analysis.claims.render import also, ours, run_of, sources
from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import Comparison, System
from rewoo_bench.analysis.pairs import OUTCOME, SAVING, Pricing, dollars_at, verdict
from rewoo_bench.analysis.summary import LOOPS, has_loops, loops_text, reasons
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import FLAGS, flag_lines, left_out, oracle_rows
from rewoo_bench.runs.table_columns import MODELS, model_labels, read_columns

if TYPE_CHECKING:
    import pandas as pd


FEW_QUESTIONS = 100
_LONGEST = 300  # characters of an error
_SECONDS = {"p50 s": "latency_s", "working s": "working_s", "start-up s": "startup_s"}


def overview(
    rows: pd.DataFrame,
    manifests: Manifests,
    folders: Sequence[Path],
    pricing: Pricing | None = None,
    *,
    texts: bool = True,
) -> dict[str, Any]:
    """JSON-ready; every text of it is shown as text. `pricing` has the prices of the sentences.

    `texts` False leaves out what agents said when they failed.
    """
    try:
        comparison: Comparison | None = compare(
            rows, manifests=manifests, intersect=True, within_model=True, pricing=pricing
        )
        refused = ""
    except UsageError as error:
        comparison, refused = None, str(error)
    *others, last = dict.fromkeys(rows["architecture"].astype(str))
    listed = f"{', '.join(others)} and {last}" if others else last
    return {
        "title": f"{listed} on {' and '.join(dict.fromkeys(rows['dataset'].astype(str)))}",
        "facts": list(_facts(rows, manifests)),
        "table": _table(comparison) if comparison else None,
        "times": _seconds(comparison, rows) if comparison else None,
        "points": [_point(system) for system in comparison.systems] if comparison else [],
        "flags": FLAGS,
        "sentences": _sentences(comparison) if comparison else [],
        "notes": [
            *_without_answers(rows, texts=texts),
            *(comparison.warnings if comparison else ()),
            *([refused] if refused else []),
        ],
        "threats": [*_threats(rows, manifests, folders), *(_of_prices(comparison, manifests) if comparison else ())],
        "claims": claim_lines(folders),
        "manifests": [manifest.as_json() for manifest in manifests.values()],
    }


def _facts(rows: pd.DataFrame, manifests: Manifests) -> Iterator[tuple[str, str]]:
    yield "Model", ", ".join(model_labels(read_columns(rows, (), MODELS)))
    questions, trials = len(rows[["dataset", "example_id"]].drop_duplicates()), rows["trial"].nunique()
    planned = {each.dataset.name: each.dataset.examples or 0 for each in manifests.values()}
    of = f" of {sum(planned.values()):,}" if questions < sum(planned.values()) else ""  # a run that was stopped
    yield "Questions", f"{questions:,}{of}" + (f", {trials} trials each" if trials > 1 else "")
    for manifest in manifests.values():
        yield "Run", f"{manifest.run_id}, {manifest.status}" + (f": {manifest.reason}" if manifest.reason else "")
        yield "Started", str(manifest.started_at or "").replace("T", " ")
        if manifest.command:
            yield "Command", shlex.join(manifest.command)


def _table(comparison: Comparison) -> dict[str, Any]:
    """Means of each system, and how its questions ended: a column for each reason, as in the terminal."""
    ends = [reason for reason in reasons(system.summary for system in comparison.systems) if reason != "error"]
    loops = has_loops(system.summary for system in comparison.systems)
    shares = [LOOPS] if loops else []
    head = ["system", "n", "exact match", "F1", "answered", *ends, *shares, "failed", "tokens", "$ / 1000"]
    rows = []
    for system in comparison.systems:
        summary = system.summary
        rows.append(
            [
                system.label,
                f"{summary.exact_match.n:,}",
                _score(summary.exact_match, system.oracle),
                _score(summary.f1, system.oracle),
                f"{summary.answered:,}",
                *(f"{summary.not_answered.get(reason, 0):,}" for reason in ends),
                *([loops_text(summary)] if loops else []),
                f"{summary.failed:,}",
                "-" if math.isnan(summary.total_tokens) else f"{summary.total_tokens:,.0f}",
                "unknown" if summary.cost_usd is None else f"{1000 * summary.cost_usd:,.3f}",
                *("-" if math.isnan(n) else f"{n:.2f}" for n in (summary.llm_calls, summary.tool_calls)),
            ]
        )
    return {"head": [*head, "model calls", "tool calls"], "rows": rows}


def _score(estimate: Any, oracle: bool) -> str:
    if not estimate.n:
        return "-"
    mark = "*" if oracle else ""
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]{mark}"


def _seconds(comparison: Comparison, rows: pd.DataFrame) -> dict[str, Any] | None:
    """Median seconds, each with its own number of rows; None where nothing was timed."""
    shown = []
    for system in comparison.systems:
        own = rows[(rows["run_id"] == system.run_id) & (rows["architecture"] == system.summary.architecture)]
        own = own[(own["dataset"] == system.summary.dataset) & (own["model"] == system.summary.model)]
        own = own[~left_out(own)]
        columns = {name: own[column].dropna().tolist() if column in own else [] for name, column in _SECONDS.items()}
        if system.oracle or not columns["p50 s"]:
            continue
        bounds = system.summary.latency_p50_interval_s
        median = f"{_median(columns['p50 s']):.2f}" + (f" [{bounds[0]:.2f}, {bounds[1]:.2f}]" if bounds else "")
        others = [f"{_median(values):.2f}" if values else "-" for values in list(columns.values())[1:]]
        shown.append([system.label, f"{len(columns['p50 s']):,}", median, *others])
    return {"head": ["system", "n", *_SECONDS], "rows": shown} if shown else None


def _point(system: System) -> dict[str, Any]:
    """A system's means, as the page's figures take them."""
    summary = system.summary
    score = summary.exact_match
    values = {
        "n": score.n,
        **({} if system.oracle else {"em": score.mean, "low": score.low, "high": score.high}),
        **{"tokens": summary.total_tokens, "input": summary.input_tokens - summary.cached_input_tokens},
        **{"cached": summary.cached_input_tokens, "output": summary.output_tokens, "cost": summary.cost_usd},
    }
    known = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    return {"label": system.label, **known}


def _sentences(comparison: Comparison) -> list[dict[str, str]]:
    """What each pair comes to, in words, with its data set where there are several."""
    several = len({system.summary.dataset for system in comparison.systems}) > 1
    told = [(pair, verdict(pair, comparison.pricing)) for pair in comparison.pairs]
    return [
        {"a": pair.a, "b": pair.b, "text": f"{pair.dataset}: {line}" if several and line else line}
        for pair, line in told
    ]


def _without_answers(rows: pd.DataFrame, *, texts: bool) -> Iterator[str]:
    """A line for each system that answered no question, with the reason and the most common error."""
    for (run, name), own in rows.groupby(["run_id", "architecture"], sort=False, observed=True):
        stops = own["stop_reason"].astype(str)
        if (stops == "answered").any():
            continue
        ends = ", ".join(f"{count:,} {reason}" for reason, count in stops.value_counts().items())
        where = f" in the run {run}" if rows["run_id"].nunique() > 1 else ""
        all_of = "its only question" if len(own) == 1 else f"all of its {len(own):,} questions"
        did = f"failed on {all_of}" if set(stops) <= {"agent_failed", "error"} else f"ended {all_of} without an answer"
        errors = own["error"].dropna().astype(str)
        why = f"; most common error: {errors.value_counts().index[0][:_LONGEST]}" if texts and len(errors) else ""
        yield f"{name}{where} {did} ({ends}){why}"


def _of_prices(comparison: Comparison, manifests: Manifests) -> Iterator[str]:
    """What has to be known of the sentences."""
    if comparison.pairs:
        yield f"{SAVING[0].upper()}{SAVING[1:]}."
        if any(pair.both_answered for pair in comparison.pairs):
            yield f"{OUTCOME[0].upper()}{OUTCOME[1:]}."
        if comparison.pricing and (note := comparison.pricing.note):
            yield f"Dollars: {note}." if comparison.pricing.under else f"{note[0].upper()}{note[1:]}."
    elif any(system.summary.cost_usd is not None for system in comparison.systems):
        yield f"Dollars are at {dollars_at(manifests)}."


def _threats(rows: pd.DataFrame, manifests: Manifests, folders: Sequence[Path]) -> Iterator[str]:
    """Reasons to doubt the figures above; what a row is flagged for is first."""
    for line in flag_lines(rows, folders):
        yield f"{line}."
    questions = len(rows[["dataset", "example_id"]].drop_duplicates())  # those of two data sets may have the same ids
    if questions < FEW_QUESTIONS:
        yield f"Few questions ({questions}): intervals are wide, and rare tails may be missing."
    if (rows["usage_source"].astype(str) == "estimated").any():
        yield "Tokens are estimated with a tokenizer for some questions: the endpoint gave no usage."
    if oracle_rows(rows).any():
        yield "* An oracle knows the answers: its exact match means nothing, and it has no latency."
    failures = int(rows["exact_match"].isna().sum())
    if failures:
        yield f"{failures:,} of {len(rows):,} questions failed (a provider's error, say): no figure has them."
    for manifest in manifests.values():
        if manifest.status != "done":
            why = f": {manifest.reason}" if manifest.reason else ""
            yield f"The run {manifest.run_id} is {manifest.status or 'unfinished'}{why}."
        if rate := manifest.options.get("tool_failure_rate"):
            yield f"{rate:.0%} of the tool calls of {manifest.run_id} failed on purpose."


def claim_lines(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """The published claims that these runs can test: a line each, and what unfolds below it."""
    try:
        findings = check(read_claims(), gather(*folders))
    except (DataError, UsageError):
        return []
    tested = [finding for finding in findings if finding.verdict not in ("no data", "not testable here")]
    order = [finding.claim.about for finding in tested]
    return [
        {
            **{name: getattr(finding.claim, name) for name in ("id", "about", "says", "claimed", "note")},
            "source": sources(finding),
            "measured": ours(finding),
            "verdict": finding.verdict,
            "why": finding.reason,
            "run": run_of(finding),
            "also": also(finding),
            "cited": list(finding.claim.cited),
            "figures": [
                [", ".join(one.runs), one.model, f"{one.measured}, n = {one.interval.n:,}", one.verdict]
                for one in [*([finding.decided] if finding.decided else []), *finding.also]
            ],
        }
        for finding in sorted(tested, key=lambda finding: order.index(finding.claim.about))
    ]
