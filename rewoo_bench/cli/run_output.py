"""The output of `rewoo-bench run`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
import pyarrow as pa

from rewoo_bench.analysis.pairs import dollars_at, verdicts_of_run
from rewoo_bench.analysis.prices import pricing_of
from rewoo_bench.analysis.summary import Summary, summarise
from rewoo_bench.analysis.summary import table as summary_table
from rewoo_bench.calls.caps import higher_cap
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.evaluation.dry_run import RunEstimate, table
from rewoo_bench.evaluation.results import Outcome
from rewoo_bench.evaluation.resume import resume_command
from rewoo_bench.runs.comparability import wait
from rewoo_bench.runs.folder import load_table, manifests
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.runs.rows import UNMETERED, flag_lines, flagged
from rewoo_bench.text.escaping import terminal

MOST_ROWS = 20_000  # of a run whose page is written at its end


def show_estimates(estimates: Sequence[RunEstimate], as_json: bool) -> None:
    """Prints the estimates of a dry run."""
    if as_json:
        click.echo(json.dumps({"estimate": [asdict(estimate) for estimate in estimates]}, indent=2))
        return
    click.echo(terminal(table(estimates)))
    click.echo(
        terminal("an estimate, with as many steps as the exemplars have, no prefix cache and no failed calls"), err=True
    )


def write_page_of(outcome: Outcome) -> Path | None:
    """Writes report.html into the run's folder, without figures, which take longer than the rest; None where it can't
    be written, or where the run has so many rows that it would take minutes."""
    from rewoo_bench.report.write import write_report  # a run without a page needn't import it

    if len(outcome.keys) > MOST_ROWS:
        note = f"no report.html for more than {MOST_ROWS:,} rows; write it with: rewoo-bench report {outcome.folder}"
        click.echo(terminal(note), err=True)
        return None
    page = outcome.folder / "report.html"
    try:
        write_report([outcome.folder], page, figures=False, at_any_price=True)
    except DataError:  # no row yet
        return None
    except UsageError as error:
        click.echo(terminal(str(error)), err=True)
        return None
    return page


def show_outcome(outcome: Outcome, *, as_json: bool, quiet: bool = False, page: Path | None = None) -> None:
    """Prints the table, what it comes to, the report's page and the folder of a run; failures go to standard error.

    With `quiet` only the folder.
    """
    rows = load_table(outcome.folder)
    summaries = summarise(rows)
    if as_json:
        shown = {"folder": str(outcome.folder), "status": outcome.status, "reason": outcome.reason}
        click.echo(json.dumps({**shown, "summary": [summary.as_dict() for summary in summaries]}, indent=2))
        return
    if summaries and not quiet:
        click.echo(terminal(f"\n{summary_table(summaries)}\n"))
        read = manifests(outcome.folder)
        if len(summaries) > 1:  # what each architecture comes to beside the first
            for line in verdicts_of_run(rows, pricing_of([outcome.folder], rows, read)):
                click.echo(terminal(line))
        elif summaries[0].cost_usd is not None:
            click.echo(terminal(f"dollars are at {dollars_at(read)}"))
    if (note := wait(read_manifest(outcome.folder))) and not quiet:
        click.echo(terminal(note), err=True)
    if page is not None and not quiet:
        click.echo(terminal(f"every question side by side: {page.resolve().as_uri()}"))
    click.echo(terminal(str(outcome.folder)))
    crashed = [error for _, stop, error in _ends(rows) if stop == "agent_failed"]
    some_crashed = bool(crashed) and not _failed_agents(outcome.folder, rows)  # those have lines of their own
    notes = (
        *flag_lines(rows, [outcome.folder]),
        *(
            f"{each.architecture} chose {', '.join(f'{name} for {n}' for name, n in each.routed_to.items())} "
            f"of {each.total} rows"
            for each in summaries
            if each.routed_to
        ),
        *_not_answered(summaries),
        *_not_judged(outcome, rows),
        *([f"most common error of an agent: {_most_common(crashed)}"] if some_crashed else []),
    )
    for line in () if quiet else notes:
        click.echo(terminal(line), err=True)
    scores, errors = (rows[name].to_pylist() for name in ("exact_match", "error"))
    failures = Counter(error for score, error in zip(scores, errors, strict=True) if score is None)
    for line in _failures(outcome, failures, len(scores)):
        click.echo(terminal(line), err=True)


def show_failed_agents(outcome: Outcome) -> bool:
    """Prints a line for each external agent that answered no question, and one where no answer of the run counts.

    Whether it printed one.
    """
    rows = load_table(outcome.folder)
    failed, unseen = _failed_agents(outcome.folder, rows), len(rows) > 0 and bool(flagged(rows, UNMETERED).all())
    if unseen:
        click.echo("nothing was measured: every question was answered without a metered model call", err=True)
    for name, errors in failed.items():
        questions = "its only question" if len(errors) == 1 else f"all of its {len(errors)} questions"
        line = f"the agent {name!r} failed on {questions}; most common error: {_most_common(errors)}"
        click.echo(terminal(line), err=True)
    return bool(failed) or unseen


def _failed_agents(folder: Path, rows: pa.Table) -> dict[str, list[str]]:
    """The errors of each external agent that answered no question, though its provider did."""
    agents = {each.name for each in read_manifest(folder).architectures if each.runner == "agent"}
    ended: dict[str, list[tuple[str, str]]] = {}
    for architecture, stop, error in _ends(rows):
        ended.setdefault(architecture, []).append((stop, error))
    return {
        name: [error for _, error in each]
        for name, each in ended.items()
        if name in agents and all(stop not in ("answered", "error") for stop, _ in each)
    }


def _ends(rows: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Architecture, stop reason and error of each row."""
    columns = (rows[name].to_pylist() for name in ("architecture", "stop_reason", "error"))
    return zip(*columns, strict=True)


def _most_common(errors: Sequence[str]) -> str:
    return Counter(errors).most_common(1)[0][0]


def _failures(outcome: Outcome, failures: Counter[str | None], rows: int) -> Iterator[str]:
    """Why questions failed, why the run is incomplete, and how to continue; each error once."""
    reason = outcome.reason or ""
    if failures:
        error = failures.most_common(1)[0][0] or "unknown"
        if error not in reason:
            yield f"{failures.total()} of {rows} questions failed; most common error: {error}"
    if not reason:
        return
    yield f"incomplete: {reason}"
    if not outcome.is_resumable:
        yield (
            "--resume would fail in the same way: correct the architecture, its tools or the model, "
            "then start a new run"
        )
        return
    included = ", failed ones included" if failures else ""
    finished = rows - failures.total()
    cap = higher_cap(reason, done=max(finished, 1) / max(len(outcome.keys), 1))
    changed = f" with {'no' if cap.endswith('none') else 'a higher'} cap" if cap else ""
    yield f"{finished} of {len(outcome.keys)} answers finished; continue with the rest{included}{changed}:"
    yield f"{resume_command(outcome.folder)}{f' {cap}' if cap else ''}"


def _not_judged(outcome: Outcome, rows: pa.Table) -> Iterator[str]:
    """How many answers the judge gave no verdict on, if any."""
    judge = read_manifest(outcome.folder).options.get("judge_model")
    if judge and (missing := rows["judged_correct"].null_count):
        yield f"the judge {judge} gave no verdict on {missing} of {len(rows)} answers: no reply says yes or no"


def _not_answered(summaries: Sequence[Summary]) -> list[str]:
    """Reasons for questions without an answer, if any."""
    lines = [
        f"{summary.architecture}: {', '.join(f'{count} {reason}' for reason, count in summary.not_answered.items())}"
        for summary in summaries
        if summary.not_answered
    ]
    notes = [f"ended without an answer: {'; '.join(lines)}"] if lines else []
    if cut := sum(summary.reasoning_truncated for summary in summaries):
        notes.append(f"{cut} were cut while the model was thinking: raise --reply-tokens")
    return notes
