"""What `rewoo-bench run` prints at its end."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from rewoo_bench.escaping import terminal

if TYPE_CHECKING:
    from rewoo_bench.analysis.summary import Summary
    from rewoo_bench.evaluation.dry_run import Estimate
    from rewoo_bench.evaluation.run import Outcome


def show_estimates(estimates: Sequence[Estimate], as_json: bool) -> None:
    """The estimates of a dry run."""
    from rewoo_bench.evaluation.dry_run import table

    if as_json:
        click.echo(json.dumps({"estimate": [asdict(estimate) for estimate in estimates]}, indent=2))
        return
    click.echo(terminal(table(estimates)))
    click.echo(terminal("an estimate: as many steps as the exemplars take, no prefix cache, no failed calls"), err=True)


def show_outcome(outcome: Outcome, as_json: bool) -> None:
    """The table of a run, its folder, and on standard error what there is to know about it."""
    from rewoo_bench.analysis.summary import summarise, table
    from rewoo_bench.runs.comparability import wait
    from rewoo_bench.runs.folder import load_table
    from rewoo_bench.runs.manifest import read_manifest

    rows = load_table(outcome.folder)
    summaries = summarise(rows)
    if as_json:
        shown = {"folder": str(outcome.folder), "status": outcome.status, "reason": outcome.reason}
        click.echo(json.dumps({**shown, "summary": [summary.as_dict() for summary in summaries]}, indent=2))
        return
    if summaries:
        click.echo(terminal(f"\n{table(summaries)}\n"))
    if said := wait(read_manifest(outcome.folder)):
        click.echo(terminal(said), err=True)
    click.echo(terminal(str(outcome.folder)))
    for line in _not_answered(summaries):
        click.echo(terminal(line), err=True)
    scores, errors = (rows[name].to_pylist() for name in ("exact_match", "error"))
    failures = Counter(error for score, error in zip(scores, errors, strict=True) if score is None)
    if failures:
        often = failures.most_common(1)[0][0]
        click.echo(
            terminal(f"{failures.total()} of {len(scores)} questions failed; most common error: {often}"), err=True
        )
    if outcome.reason:
        finished = len(scores) - failures.total()
        tried_again = ", the failed ones included" if failures else ""
        click.echo(terminal(f"incomplete: {outcome.reason}"), err=True)
        click.echo(
            terminal(f"{finished} of {outcome.tasks} finished; this goes on with the rest{tried_again}:"), err=True
        )
        click.echo(terminal(f"rewoo-bench run --resume {shlex.quote(str(outcome.folder))}"), err=True)


def _not_answered(summaries: Sequence[Summary]) -> list[str]:
    """Why questions ended without an answer, where any did."""
    lines = [
        f"{summary.architecture}: {', '.join(f'{count} {reason}' for reason, count in summary.not_answered.items())}"
        for summary in summaries
        if summary.not_answered
    ]
    said = [f"ended without an answer: {'; '.join(lines)}"] if lines else []
    if cut := sum(summary.reasoning_truncated for summary in summaries):
        said.append(f"{cut} were cut while the model was thinking: raise --max-output-tokens")
    return said
