"""The output of `rewoo-bench run`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mode
from typing import Any

import click
import numpy as np

from rewoo_bench.analysis.compare import compare_run
from rewoo_bench.analysis.prices import Pricing, expected_dollars, pricing_of
from rewoo_bench.analysis.summary import Summary, summaries_of
from rewoo_bench.analysis.summary_tables import attack_sentences, is_checked, summary_table
from rewoo_bench.analysis.trials import OF_TRIALS, TrialRow, trial_rows, trial_table
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.evaluation.dry_run import RunEstimate, estimate_table
from rewoo_bench.evaluation.folder import Outcome
from rewoo_bench.runs.comparability import of_unused_tools, unpaid, wait
from rewoo_bench.runs.folder import TRACES_FILE, load_table
from rewoo_bench.runs.manifest import Manifest, read_manifest, resume_command
from rewoo_bench.runs.rows import UNMETERED, Rows, flag_lines
from rewoo_bench.system.output import echo
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.words import counted

_OF_ROLES = "tokens_of_roles"
MOST_ROWS = 20_000  # of a run whose page is written at its end


def show_estimates(estimates: Sequence[RunEstimate], models: Mapping[str, str], as_json: bool) -> None:
    """Prints the estimates of a dry run; dollars that aren't known are at the prices that the run's table would have.

    `models` has the name of each role's model, `""` of every other.
    """
    if as_json:  # no dollars at an example's price for a program
        shown = [{name: value for name, value in asdict(each).items() if name != _OF_ROLES} for each in estimates]
        click.echo(json.dumps({"estimate": shown}, indent=2))
        return
    known = [each.cost_usd for each in estimates if each.cost_usd is not None]
    if len(known) == len(estimates):
        echo(estimate_table(estimates, known))
    else:
        expected = [expected_dollars(each.tokens_of_roles, models) for each in estimates]
        echo(estimate_table(estimates, [usd for usd, _ in expected]))
        names = dict.fromkeys(name for _, of_architecture in expected for name in of_architecture)
        echo(f"Dollars are at {' and '.join(names)}.")
    click.echo(
        "an estimate, by the gold chain or, where there is none, by exemplars; no mistakes, no prefix cache",
        err=True,
    )


def write_page_of(outcome: Outcome) -> Path | None:
    """Writes report.html into the run's folder, without figures, which take longer than the rest; None where it can't
    be written, or where the run has so many rows that it would take minutes."""
    from rewoo_bench.report.write import write_page  # a run without a page needn't import it

    if len(outcome.keys) > MOST_ROWS:
        note = f"no report.html for more than {MOST_ROWS:,} rows; write it with: rewoo-bench report {outcome.folder}"
        echo(note, err=True)
        return None
    page = outcome.folder / "report.html"
    try:
        write_page([outcome.folder], page, figures=False)
    except DataError:  # no row yet
        return None
    except (UsageError, OSError) as error:
        echo(f"no report.html: {error}", err=True)
        return None
    return page


def show_outcome(outcome: Outcome, *, as_json: bool, page: Path | None) -> bool:
    """Prints the table, what it comes to, the report's page and the folder of a run; failures go to standard error.

    Returns whether an external agent answered no question, or no answer counts.
    """
    rows, manifest = Rows(load_table(outcome.folder)), read_manifest(outcome.folder)
    pricing = pricing_of([outcome.folder], rows, {manifest.run_id: manifest})
    counted_rows = rows if as_json else pricing.of(rows)  # for a program no dollars at an example's price
    summaries, trials = summaries_of(counted_rows, {manifest.run_id: manifest}), trial_rows(counted_rows)
    ends = list(zip(*(rows[name] for name in ("architecture", "stop_reason", "error")), strict=True))
    # the errors of each external agent that answered no question, though its provider did
    agents = {each.name for each in manifest.architectures if each.runner == "agent"}
    agents -= {name for name, stop, _ in ends if stop in ("answered", "error")}
    failed_agents: dict[str, list[str]] = {}
    for name, _, error in ends:
        if name in agents:
            failed_agents.setdefault(name, []).append(error)
    if as_json:
        shown: dict[str, Any] = {"folder": str(outcome.folder), "status": outcome.status, "reason": outcome.reason}
        shown["summary"] = [summary.as_dict() for summary in summaries]
        if trials:
            shown["trials"] = [asdict(row) for row in trials]
        click.echo(json.dumps(shown, indent=2))
    else:
        _show_figures(rows, manifest, summaries, trials, pricing)
        if page is not None:
            echo(f"every question side by side: {page.resolve().as_uri()}")
        echo(str(outcome.folder))
        crashed = [error for _, stop, error in ends if stop == "agent_failed"]
        notes = list(_notes(outcome, rows, manifest, summaries))
        if crashed and not failed_agents:  # those have lines of their own
            notes.append(f"most common error of an agent: {mode(crashed)}")
        errors = [error for _, stop, error in ends if stop == "error"]
        for line in (*notes, *_failures(outcome, errors, len(rows))):
            echo(line, err=True)
    unseen = len(rows) > 0 and bool(rows.flagged(UNMETERED).all())
    if unseen:
        click.echo("nothing was measured: every question was answered without a metered model call", err=True)
    for name, errors in failed_agents.items():
        questions = "its only question" if len(errors) == 1 else f"all of its {len(errors)} questions"
        line = f"the agent {name!r} failed on {questions}; most common error: {mode(errors)}"
        echo(line, err=True)
    return bool(failed_agents) or unseen


def _show_figures(
    rows: Rows, manifest: Manifest, summaries: Sequence[Summary], trials: Sequence[TrialRow], pricing: Pricing
) -> None:
    """What it comes to in at most three sentences, and the tables; of one architecture at which prices dollars are."""
    if summaries:
        compared = compare_run(rows, pricing, {manifest.run_id: manifest}) if len(summaries) > 1 else None
        group = {each.architecture: each for each in summaries}
        lines = compared.verdicts if compared else attack_sentences(group)
        told = pricing.name and not any(pricing.name in line for line in lines)
        lines = [*lines, *([f"Dollars are at {pricing.name}."] if told else [])]
        echo("\n".join(["", *lines, *([""] if lines else []), summary_table(summaries), ""]))
        if trials:
            named = [(row.architecture, row) for row in trials]
            table = trial_table("architecture", named, checked=is_checked(summaries))
            echo("\n".join([OF_TRIALS, "", *text_table(table), ""]))
    for note in filter(None, (wait(manifest), unpaid(manifest), *of_unused_tools({manifest.run_id: manifest}))):
        echo(note, err=True)


def _notes(outcome: Outcome, rows: Rows, manifest: Manifest, summaries: Sequence[Summary]) -> Iterator[str]:
    """What is to be known of the answers."""
    yield from flag_lines(rows)
    for each in summaries:
        if each.routed_to:
            chosen = ", ".join(f"{name} for {n}" for name, n in each.routed_to.items())
            yield f"{each.architecture} chose {chosen} of {each.total} rows"
    reasons = [
        f"{each.architecture}: {', '.join(f'{count} {reason}' for reason, count in each.not_answered.items())}"
        for each in summaries
        if each.not_answered
    ]
    if reasons:
        listed = f"rewoo-bench show {shlex.quote(str(outcome.folder))} --unanswered lists them"
        yield f"ended without an answer: {'; '.join(reasons)}; {listed}"
    if cut := sum(each.not_answered.get("reasoning_truncated", 0) for each in summaries):
        yield f"{cut} were cut while the model was thinking: raise --reply-tokens"
    verdicts = rows["judged_correct"][rows["stop_reason"] != "error"]  # a question that failed isn't judged
    judge = manifest.options.get("judge_model")
    if judge and (missing := int(np.isnan(verdicts).sum())):
        errors = _judge_errors(outcome.folder)
        why = f"most common error: {mode(errors)}" if errors else "no reply says yes or no"
        yield f"the judge {judge} gave no verdict on {missing} of {len(verdicts)} answers: {why}"


def _judge_errors(folder: Path) -> list[str]:
    """Why the judge failed, of each answer where it did."""
    with (folder / TRACES_FILE).open(encoding="utf-8") as lines:
        traces = (json.loads(line) for line in lines if '"judge_error"' in line)
        return [trace["judge_error"] for trace in traces if "judge_error" in trace]


def _failures(outcome: Outcome, errors: Sequence[str | None], rows: int) -> Iterator[str]:
    """Why answers failed, why the run is incomplete, and how to continue; each error once."""
    reason = outcome.reason or ""
    if errors and (error := mode(errors) or "unknown") not in reason:
        yield f"{len(errors):,} of {counted(rows, 'answer')} failed; most common error: {error}"
    if not reason:
        return
    yield f"incomplete: {reason}"
    if (spent := outcome.unfinished).tokens:
        dollars = f" ({spent.cost_usd:.2g} USD)" if spent.cost_usd and not spent.unpriced else ""
        yield f"unfinished questions have spent {spent.tokens:,} tokens{dollars}, which the tables leave out"
    if not outcome.is_resumable:
        yield (
            "--resume would fail in the same way: correct the architecture, its tools, the world or the model, "
            "then start a new run"
        )
        return
    finished = outcome.finished
    included = ", failed ones included" if finished < rows else ""
    cap = outcome.cap.higher if outcome.cap else ""
    changed = " with another cap" if cap else ""
    yield f"{finished} of {len(outcome.keys)} answers finished; continue with the rest{included}{changed}:"
    yield f"{resume_command(outcome.folder)}{f' {cap}' if cap else ''}"
