"""`rewoo-bench runs`: past runs, the newest first."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from rewoo_bench.cli.flag_types import FolderFlag, run_folders
from rewoo_bench.config.names import ORACLE_ACCURACY
from rewoo_bench.runs.past_runs import find_runs
from rewoo_bench.system.output import echo
from rewoo_bench.text.tables import text_table

_MARK = "*"  # of an oracle's accuracy


@click.command()
@click.argument("folder", type=FolderFlag(), default=Path("results/local"),
                shell_complete=run_folders)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs(folder: Path, as_json: bool) -> None:
    """List past runs in FOLDER, the newest first: date, status, questions, exact match and tokens per question.

    FOLDER may also be a run.
    """
    past = find_runs(folder)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in past], indent=2))
        return
    if not past:
        example = "a first one: rewoo-bench run --arch rewoo,react --model oracle"
        echo(f"no runs in {folder}; {example}", err=True)
        return
    cells = [["folder", "started", "status", "n", "model", "data set", "EM and tokens"]]
    for run in past:  # a cell for each architecture: `react 0.75 1,234`, `react - 1,234` of one that wasn't scored
        shown = []
        for name in run.architectures:
            exact_match, tokens = run.exact_match.get(name), run.tokens.get(name)
            score = "-" if exact_match is None else f"{exact_match:.2f}{_MARK if run.is_meaningless else ''}"
            shown.append(name if tokens is None else f"{name} {score} {tokens:,.0f}")
        shown[:-1] = [f"{each}," for each in shown[:-1]]
        started = (run.started_at or "")[:16].replace("T", " ")
        n = "" if run.questions is None else f"{run.questions:,}"
        facts = [run.folder, started, run.status, n, run.model, run.dataset]
        cells.append([*facts, *([run.error] if run.error else shown)])
    columns = max(map(len, cells))
    full = [[*row, *[""] * (columns - len(row))] for row in cells]
    echo("\n".join(text_table(full, left=True)))
    if any(run.is_meaningless for run in past):
        echo(f"{_MARK} {ORACLE_ACCURACY}")
