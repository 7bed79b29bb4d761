"""The head of the page: what was run, the table, one sentence for each pair, what to doubt, claims and manifests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_render import Comparison
from rewoo_bench.analysis.pairs import Pair
from rewoo_bench.analysis.summary import Summary
from rewoo_bench.claims import check, gather, read_claims
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.manifest import Manifest, Manifests
from rewoo_bench.runs.oracle_rows import oracle_rows

if TYPE_CHECKING:
    import pandas as pd

    from rewoo_bench.stats.paired import Interval

FEW_QUESTIONS = 100
_HEAD = ("system", "n", "exact match", "F1", "answered", "failed", "tokens", "model calls", "tool calls", "p50 s")


def overview(rows: pd.DataFrame, manifests: Manifests, folders: Sequence[Path]) -> dict[str, Any]:
    """JSON-ready; every text of it is shown as text."""
    try:
        comparison: Comparison | None = compare(rows, manifests=manifests, intersect=True)
        refused = ""
    except UsageError as error:
        comparison, refused = None, str(error)
    return {
        "title": _title(rows),
        "facts": list(_facts(rows, manifests)),
        "table": _table(comparison) if comparison else None,
        "sentences": [_sentence(pair) for pair in comparison.pairs] if comparison else [],
        "notes": [*(comparison.warnings if comparison else ()), *([refused] if refused else [])],
        "threats": list(_threats(rows, manifests)),
        "claims": _claims(folders),
        "manifests": [manifest.as_json() for manifest in manifests.values()],
    }


def _title(rows: pd.DataFrame) -> str:
    names = list(dict.fromkeys(rows["architecture"].astype(str)))
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{listed} on {' and '.join(dict.fromkeys(rows['dataset'].astype(str)))}"


def _facts(rows: pd.DataFrame, manifests: Manifests) -> Iterator[tuple[str, str]]:
    yield "Model", ", ".join(dict.fromkeys(rows["model"].astype(str)))
    questions, trials = rows["example_id"].nunique(), rows["trial"].nunique()
    yield "Questions", f"{questions:,}" + (f", {trials} trials each" if trials > 1 else "")
    for manifest in manifests.values():
        yield "Run", f"{manifest.run_id}, {manifest.status}" + (f": {manifest.reason}" if manifest.reason else "")
        yield "Started", str(manifest.started_at or "").replace("T", " ")
        if manifest.command:
            yield "Command", shlex.join(manifest.command)


def _table(comparison: Comparison) -> dict[str, Any]:
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
                f"{summary.failed:,}",
                f"{summary.total_tokens:,.0f}",
                f"{summary.llm_calls:.2f}",
                f"{summary.tool_calls:.2f}",
                _seconds(summary, system.oracle),
            ]
        )
    return {"head": _HEAD, "rows": rows}


def _score(estimate: Any, oracle: bool) -> str:
    if not estimate.n:
        return "-"
    mark = "*" if oracle else ""
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]{mark}"


def _seconds(summary: Summary, oracle: bool) -> str:
    if oracle or summary.latency_p50_s is None or summary.latency_p50_interval_s is None:
        return "-"
    low, high = summary.latency_p50_interval_s
    return f"{summary.latency_p50_s:.2f} [{low:.2f}, {high:.2f}]"


def _sentence(pair: Pair) -> dict[str, str]:
    """What a pair comes to, in words: tokens, then exact match."""
    parts = []
    measures = {figure.measure: figure for figure in pair.figures}
    if tokens := measures.get("total_tokens"):
        tokens_of_a = f"{pair.a}'s tokens"
        parts.append(f"{pair.b} used {_times(tokens.interval, tokens_of_a)}")
    if (score := measures.get("exact_match")) and not pair.oracle:
        parts.append(_points(score.interval, score.p_holm))
    if cost := measures.get("cost_usd"):
        parts.append(_times(cost.interval, "its cost"))
    n = tokens.interval.n if tokens else pair.questions
    return {"a": pair.a, "b": pair.b, "text": f"{'; '.join(parts)} (n = {n:,})." if parts else ""}


def _times(interval: Interval, of: str) -> str:
    return f"{interval.estimate:.2f} times {of} [{interval.low:.2f}, {interval.high:.2f}]"


def _points(interval: Interval, p: float) -> str:
    middle, low, high = (round(100 * value) for value in (interval.estimate, interval.low, interval.high))
    significant = "significant" if p < 0.05 else "not significant"
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    unit = "point" if abs(middle) == 1 else "points"
    return f"its exact match differs by {middle:+d} {unit} [{low:+d}, {high:+d}], {significant} after Holm ({shown})"


def _threats(rows: pd.DataFrame, manifests: Manifests) -> Iterator[str]:
    """Reasons to doubt the figures above."""
    questions = int(rows["example_id"].nunique())
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
            yield f"The run {manifest.run_id} is {manifest.status or 'unfinished'}" + _because(manifest)
        if rate := manifest.options.get("tool_failure_rate"):
            yield f"{rate:.0%} of the tool calls of {manifest.run_id} failed on purpose."


def _because(manifest: Manifest) -> str:
    return f": {manifest.reason}." if manifest.reason else "."


def _claims(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Verdicts on the published claims that these runs can test."""
    try:
        findings = check(read_claims(), gather(*folders))
    except (DataError, UsageError):
        return []
    return [
        {
            "id": finding.claim.id,
            "says": finding.claim.says,
            "source": finding.claim.source,
            "verdict": finding.verdict,
            "why": finding.reason,
        }
        for finding in findings
        if finding.verdict not in ("no data", "not testable here")
    ]
