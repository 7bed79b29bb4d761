"""`rewoo-bench gate`: a run compared with budgets, a baseline, or both."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.cli.conventions import SETTINGS
from rewoo_bench.cli.flag_types import share
from rewoo_bench.escaping import terminal

if TYPE_CHECKING:
    from rewoo_bench.gate.verdict import Verdict

_SUMMARY = "GITHUB_STEP_SUMMARY"


# fmt: off
@click.command(context_settings=SETTINGS)
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option("--budgets", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Limits for each architecture, data set and model (budgets.toml).")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="RUN|FILE",
              help="Compare with this, question by question: a run folder, or a file of `baseline update`.")
@click.option("--max-increase", callback=share, metavar="SHARE",
              help="Allowed growth of a mean against the baseline.  [default: 2% exact, 5% live]")
@click.option("--exact/--live", "exact", default=None,
              help="Compare counts exactly, or with an interval.  [default: exact where every model of both runs is "
                   "the oracle or a replay]")
@click.option("--accept-prompts", is_flag=True,
              help="Allow prompts, settings and tools that differ from the baseline's; only counts decide.")
@click.option("--strict", is_flag=True,
              help="Fail where a live comparison has too few questions to catch a growth of --max-increase.")
@click.option("--allow-incomplete", is_flag=True,
              help="Judge the rows of an incomplete run. It still fails where more than a tenth of an architecture's "
                   "rows failed or are missing.")
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help=f"Write Markdown here.  [default: appended to ${_SUMMARY} where that is set]")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write JUnit XML here, a test case for each check.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write means per question here, for github-action-benchmark (customSmallerIsBetter).")
def gate(run: Path, budgets: Path | None, baseline: Path | None, max_increase: float | None, exact: bool | None,
         accept_prompts: bool, strict: bool, allow_incomplete: bool, markdown: Path | None, junit_file: Path | None,
         json_file: Path | None) -> int:
    """Fail where a run costs more than its budget, or more than its baseline.

    Exit codes: 0 passed, 1 failed, 2 the command or a file is wrong, 3 the run is incomplete, 70 a fault of
    rewoo-bench. Only a failed check exits with 1.
    """
    # fmt: on
    from rewoo_bench.gate.check import ComparisonTerms, check_run
    from rewoo_bench.gate.render import text

    terms = ComparisonTerms({True: "exact", False: "live", None: None}[exact], max_increase, accept_prompts, strict)
    verdict = check_run(run, budgets=budgets, baseline=baseline, terms=terms, allow_incomplete=allow_incomplete)
    click.echo(terminal(text(verdict)))
    _write(verdict, run, markdown, junit_file, json_file)
    return verdict.code


def _write(verdict: Verdict, run: Path, markdown: Path | None, junit_file: Path | None, json_file: Path | None) -> None:
    """Writes the requested reports, and on GitHub the job's summary."""
    from rewoo_bench.gate import render, reports
    from rewoo_bench.runs.folder import load

    shown = render.markdown(verdict)
    if markdown is not None:
        reports.write_report(markdown, shown, "--markdown")
    elif os.environ.get(_SUMMARY):
        reports.append_report(Path(os.environ[_SUMMARY]), shown, f"${_SUMMARY}")
    if junit_file is not None:
        reports.write_report(junit_file, reports.junit(verdict), "--junit")
    if json_file is not None:
        reports.write_report(json_file, reports.tracked(load(run)), "--json")
