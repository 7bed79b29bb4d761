"""The head of the page: what was run, the table, one sentence for each pair, caveats, claims and manifests."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.analysis.claims import check, gather, read_claims
from rewoo_bench.analysis.claims.check import also, ours, run_of, sources, verdict_shown
from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import Comparison, System
from rewoo_bench.analysis.prices import Pricing, of_dollars, sentence
from rewoo_bench.analysis.summary_tables import (
    FLIPS,
    IN_LOOPS,
    OF_ATTACKS,
    OF_OBJECTIVES,
    PASSES,
    REASONS,
    START,
    attack_sentences,
    attack_table,
    is_checked,
    table_of,
)
from rewoo_bench.analysis.trials import OF_TRIALS, trial_table
from rewoo_bench.analysis.verdict import in_one, verdict
from rewoo_bench.config.names import oracle_note
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.comparability import unfinished
from rewoo_bench.runs.manifest import Manifests, scored_by_check
from rewoo_bench.runs.rows import (
    FLAGS,
    Rows,
    common_error,
    estimated,
    failed,
    flag_lines,
    model_labels,
)

if TYPE_CHECKING:
    import pandas as pd


FEW_QUESTIONS = 100
_FIRST = ("n", "EM", "tokens", "$ / 1000", "LLM calls")
_ENDS = (PASSES, FLIPS, "F1", OF_OBJECTIVES, "answered", REASONS, IN_LOOPS, "failed", "tool calls")
_TIMES = ("p50 s", "p95 s", START)


def overview(
    rows: pd.DataFrame,
    manifests: Manifests,
    pricing: Pricing | None = None,
    *,
    texts: bool = True,
) -> dict[str, Any]:
    """JSON-ready; every text of it is shown as text. `pricing` has the prices of the sentences.

    `texts` False leaves out what agents said when they failed.
    """
    comparison, systems, sentences = None, tuple[System, ...](), []
    notes = list(_without_answers(rows, texts=texts))
    try:
        comparison = compare(rows, manifests=manifests, intersect=True, within_model=True, pricing=pricing)
    except UsageError as error:
        notes += [*unfinished(manifests), str(error)]
    else:
        systems = comparison.systems
        notes += comparison.warnings
        attacks = attack_sentences({system.label: system.summary for system in systems})
        sentences += [{"a": "", "b": "", "text": line} for line in attacks]
        several = len({system.summary.dataset for system in systems}) > 1
        for pair in comparison.pairs:
            is_one = sum(each.dataset == pair.dataset for each in comparison.pairs) == 1
            line = " ".join(verdict(pair, comparison.pricing)) if is_one else in_one(pair, comparison.pricing)
            text = f"{pair.dataset}: {line}" if several and line else line
            sentences.append({"a": pair.a, "b": pair.b, "text": text})
    *others, last = dict.fromkeys(rows["architecture"].astype(str))
    listed = f"{', '.join(others)} and {last}" if others else last
    return {
        "title": f"{listed} on {' and '.join(dict.fromkeys(rows['dataset'].astype(str)))}",
        "facts": list(_facts(rows, manifests)),
        **_tables(systems),
        "points": list(map(_point, systems)),
        "flags": FLAGS,
        "checked": scored_by_check(Rows(rows).texts("run_id"), manifests),
        "sentences": sentences,
        "notes": notes,
        "threats": list(_caveats(rows, manifests, comparison)),
        "manifests": [manifest.as_json() for manifest in manifests.values()],
    }


def _facts(rows: pd.DataFrame, manifests: Manifests) -> Iterator[tuple[str, str]]:
    yield "Model", ", ".join(model_labels(Rows(rows)))
    questions, trials = len(rows[["dataset", "example_id"]].drop_duplicates()), rows["trial"].nunique()
    planned = {each.dataset.name: each.dataset.examples or 0 for each in manifests.values()}
    of = f" of {sum(planned.values()):,}" if questions < sum(planned.values()) else ""  # a run that was stopped
    yield "Questions", f"{questions:,}{of}" + (f", {trials} trials each" if trials > 1 else "")
    for manifest in manifests.values():
        yield "Run", f"{manifest.run_id}, {manifest.status}" + (f": {manifest.reason}" if manifest.reason else "")
        yield "Started", str(manifest.started_at or "").replace("T", " ")
        if manifest.command:
            yield "Command", shlex.join(manifest.command)


def _tables(systems: Sequence[System]) -> dict[str, Any]:
    """The tables of `compare`: what a verdict rests on first, the other columns in those that are folded."""
    group, means = {each.label: each.summary for each in systems}, {each.label: each.means for each in systems}
    timed = {label: each for label, each in group.items() if each.latency_n}
    rows = [(each.label, row) for each in systems for row in each.trials]
    return {
        "table": _cells(table_of("system", _FIRST, group, means) if group else []),
        "ends": _cells(table_of("system", _ENDS, group, means) if group else []),
        "times": _cells(table_of("system", _TIMES, timed) if timed else []),
        "trials": _cells(trial_table("system", rows, checked=is_checked(group.values())), OF_TRIALS),
        "attacks": _cells(attack_table("system", group), OF_ATTACKS),
    }


def _cells(cells: Sequence[Sequence[str]], caption: str = "") -> dict[str, Any] | None:
    """A table of the page; None where it has no rows."""
    return {"caption": caption[:1].upper() + caption[1:], "head": cells[0], "rows": cells[1:]} if cells else None


def _point(system: System) -> dict[str, Any]:
    """A system's means, as the page's figures take them."""
    summary = system.summary
    score, cached = summary.exact_match, summary.cached_input_tokens
    values = {
        "n": score.n,
        **({} if summary.oracle else {"em": score.estimate, "low": score.low, "high": score.high}),
        **{"tokens": summary.total_tokens, "input": summary.input_tokens - (0 if math.isnan(cached) else cached)},
        **{"cached": cached, "output": summary.output_tokens, "cost": summary.cost_usd},
    }
    known = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    return {"label": system.label, **known}


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
        error = common_error(own) if texts else ""
        why = f"; most common error: {error}" if error else ""
        yield f"{name}{where} {did} ({ends}){why}"


def _caveats(rows: pd.DataFrame, manifests: Manifests, comparison: Comparison | None) -> Iterator[str]:
    """Reasons to doubt the figures, what a row is flagged for first; and what the sentences take for granted."""
    said = comparison.warnings if comparison else ()
    yield from (sentence(line) for line in flag_lines(Rows(rows)) if line not in said)
    questions = len(rows[["dataset", "example_id"]].drop_duplicates())  # those of two data sets may have the same ids
    if questions < FEW_QUESTIONS:
        yield f"Few questions ({questions}): intervals are wide, and rare tails may be missing."
    if estimated(rows):
        yield "Tokens are estimated with a tokenizer for some questions: their usage wasn't reported."
    of_oracle = Rows(rows).where(Rows(rows).oracle)
    for checked in sorted({scored_by_check([run], manifests) for run in of_oracle.texts("run_id")}):
        nothing = "An oracle knows the answers: its exact match means nothing, and it has no latency."
        yield f"* {sentence(oracle_note(checked=True)) if checked else nothing}"
    failures = int(failed(rows).sum())
    if failures:
        yield f"{failures:,} of {len(rows):,} rows failed (a provider's error, say): no figure has them."
    for manifest in manifests.values():
        if rate := manifest.options.get("tool_failure_rate"):
            yield f"{rate:.0%} of the tool calls of {manifest.run_id} failed on purpose."
    if comparison and (dollars := of_dollars(comparison.pricing)):
        yield sentence(dollars)


def claim_lines(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """The published claims that these runs can test: a line each, and what unfolds below it."""
    try:
        findings = check(read_claims(), gather(*folders))
    except (DataError, UsageError):
        return []
    tested = [finding for finding in findings if finding.verdict != "no data"]
    order = [finding.claim.about for finding in tested]
    return [
        {
            **{name: getattr(finding.claim, name) for name in ("id", "about", "says", "claimed", "note")},
            "source": sources(finding),
            "measured": ours(finding),
            "verdict": finding.verdict,
            "verdict_shown": verdict_shown(finding),
            "why": finding.reason,
            "run": run_of(finding),
            "also": also(finding),
            "cited": list(finding.claim.cited),
            "figures": [
                [", ".join(one.runs), one.group.model, f"{one.measured}, n = {one.interval.n:,}", one.verdict]
                for one in [*([finding.decided] if finding.decided else []), *finding.also]
            ],
        }
        for finding in sorted(tested, key=lambda finding: order.index(finding.claim.about))
    ]
