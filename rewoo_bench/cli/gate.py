"""`rewoo-bench gate`: a run compared with budgets, a baseline, or both."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from rewoo_bench.cli.flag_types import as_share, run_folders
from rewoo_bench.gate.check import ComparisonTerms, check_run, open_baseline
from rewoo_bench.gate.verdict import verdict_markdown, verdict_text
from rewoo_bench.runs.manifest import MANIFEST, no_run
from rewoo_bench.system.files import is_stream, replaced
from rewoo_bench.system.output import echo
from rewoo_bench.text.words import counted

_SUMMARY = "GITHUB_STEP_SUMMARY"


# fmt: off
@click.command("gate")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option("--budgets", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Limits for each architecture, data set and model (budgets.toml).")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="RUN|FILE",
              help="Compare with this, question by question: a run folder, or a file of --update.")
@click.option("--update", is_flag=True,
              help="Judge nothing: write the numbers and ids of RUN to the file of --baseline, or replace it. The same "
                   "run gives the same bytes.")
@click.option("--max-increase", callback=as_share, metavar="SHARE",
              help="Allowed growth of a mean against the baseline.  [default: 2% exact, 5% live]")
@click.option("--exact/--live", "exact", default=None,
              help="Compare counts exactly, or with an interval.  [default: exact where every model of both runs is "
                   "the oracle or a replay]")
@click.option("--accept-prompts", is_flag=True,
              help="Allow prompts, settings and tools that differ from the baseline's; only counts decide.")
@click.option("--strict", is_flag=True,
              help="Fail where a live comparison has too few questions to catch a growth of --max-increase.")
@click.option("--allow-incomplete", is_flag=True,
              help="Judge the rows of an incomplete run that has ended. It still fails where more than a tenth of an "
                   "architecture's rows failed or are missing.")
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help=f"Write Markdown here.  [default: appended to ${_SUMMARY} where that is set]")
def gate_command(run: Path, budgets: Path | None, baseline: Path | None, update: bool,
                 max_increase: float | None, exact: bool | None, accept_prompts: bool, strict: bool,
                 allow_incomplete: bool, markdown: Path | None) -> int:
    """Fail where a run costs more than its budget, or more than its baseline.

    Exit codes: 0 passed, 1 failed, 2 the command or a file is wrong, 3 the run is incomplete, 70 a fault of
    rewoo-bench. Only a failed check exits with 1.
    """
    # fmt: on
    if update:
        if baseline is None:
            raise click.UsageError("--update writes the numbers of a run to a file: give --baseline FILE")
        if budgets or markdown or max_increase is not None or accept_prompts or strict or allow_incomplete:
            raise click.UsageError("--update judges nothing: give it --baseline, and --exact or --live, alone")
        _update(run, baseline, exact)
        return 0
    held = ComparisonTerms({True: "exact", False: "live", None: None}[exact], max_increase, accept_prompts, strict)
    verdict = check_run(run, budgets=budgets, baseline=baseline, terms=held, allow_incomplete=allow_incomplete)
    echo(verdict_text(verdict))
    if markdown is not None:
        with replaced(markdown) as written:
            written.write(verdict_markdown(verdict).encode())
    elif os.environ.get(_SUMMARY):
        with Path(os.environ[_SUMMARY]).open("a", encoding="utf-8") as summary:
            summary.write(verdict_markdown(verdict))
    return verdict.code


def _update(run: Path, file: Path, exact: bool | None) -> None:
    """Writes a run's counts as a small file to commit, and says whether that changed it."""
    if not run.is_dir():
        raise no_run(run, MANIFEST)
    content = open_baseline(run, deterministic=exact)
    text, before = content.text(), None
    with suppress(OSError):  # an unreadable file can be replaced
        before = file.read_text(encoding="utf-8", errors="replace") if not is_stream(file) else None
    with replaced(file) as written:
        written.write(text.encode())
    changed = "unchanged" if before == text else "written" if before is None else "updated"
    lines = counted(sum(map(len, content.questions.values())), "row")
    costs = f"; of costs alone, since no answer of {' and '.join(content.unscored)} was scored" * bool(content.unscored)
    message = f"{file}: {changed}, {lines} of {', '.join(content.questions)}{costs}"
    echo(message, err=is_stream(file))  # the file itself may be standard output
