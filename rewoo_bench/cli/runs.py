"""`rewoo-bench runs`: past runs, the newest first."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from rewoo_bench.cli.command import DONE, SETTINGS
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.runs.past_runs import PastRun, find_runs
from rewoo_bench.text.escaping import terminal, text_table

_MARK = "*"  # of an oracle's accuracy
_HEAD = ["folder", "started", "status", "n", "model", "data set", "EM and tokens"]


@click.command(context_settings=SETTINGS)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("results/local"),
                shell_complete=run_folders)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs(folder: Path, as_json: bool) -> int:
    """List past runs in FOLDER, the newest first: date, status, questions, exact match and tokens per question.

    FOLDER may also be a run.
    """
    past = find_runs(folder)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in past], indent=2))
        return DONE
    if not past:
        example = "a first one: rewoo-bench run --arch rewoo,react --model oracle"
        click.echo(terminal(f"no runs in {folder}; {example}"), err=True)
        return DONE
    cells = [_HEAD, *map(_cells, past)]
    columns = max(map(len, cells))
    full = [[*row, *[""] * (columns - len(row))] for row in cells]
    click.echo(terminal("\n".join(text_table(full, left=True))))
    if any(run.oracle for run in past):
        from rewoo_bench.analysis.summary import ORACLE_ACCURACY  # 0.2 s of numpy and pyarrow

        click.echo(terminal(f"{_MARK} {ORACLE_ACCURACY}"))
    return DONE


def _cells(run: PastRun) -> list[str]:
    """What it is, and a cell for each architecture: `react 0.75 1,234`, its name alone without an answered question."""
    figures = []
    for name in run.architectures:
        exact_match, tokens = run.exact_match.get(name), run.tokens.get(name)
        if exact_match is None or tokens is None:
            figures.append(name)
        else:
            figures.append(f"{name} {exact_match:.2f}{_MARK if run.oracle else ''} {tokens:,.0f}")
    shown = [f"{each}," for each in figures[:-1]] + figures[-1:]
    started = (run.started_at or "")[:16].replace("T", " ")
    n = "" if run.questions is None else f"{run.questions:,}"
    return [run.folder, started, run.status, n, run.model, run.dataset, *([run.error] if run.error else shown)]
