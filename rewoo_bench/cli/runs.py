"""`rewoo-bench runs`: past runs, the newest first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.cli.conventions import DONE, SETTINGS
from rewoo_bench.escaping import one_line, terminal

if TYPE_CHECKING:
    from rewoo_bench.runs.past_runs import PastRun

_MARK = "*"  # of an oracle's accuracy


@click.command(context_settings=SETTINGS)
@click.argument(
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results/local"),
    shell_complete=run_folders,
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs(folder: Path, as_json: bool) -> int:
    """List past runs in FOLDER, the newest first: date, status, questions, exact match and tokens per question.

    FOLDER may also be a run.
    """
    import json
    from dataclasses import asdict

    from rewoo_bench.runs.past_runs import find_runs

    past = find_runs(folder)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in past], indent=2))
        return DONE
    if not past:
        click.echo(terminal(f"no runs in {folder}"), err=True)
        return DONE
    head = ["folder", "started", "status", "n", "model", "data set", "EM and tokens of each architecture"]
    click.echo(terminal("\n".join(_aligned([head, *map(_cells, past)]))))
    if any(run.oracle for run in past):
        from rewoo_bench.analysis.summary import ORACLE_ACCURACY

        click.echo(terminal(f"{_MARK} {ORACLE_ACCURACY}"))
    return DONE


def _cells(run: PastRun) -> list[str]:
    started = (run.started_at or "")[:16].replace("T", " ")
    n = "" if run.questions is None else f"{run.questions:,}"
    last = one_line(run.error) if run.error else ", ".join(one_line(_figures(run, name)) for name in run.architectures)
    return [run.folder, started, run.status, n, one_line(run.model), one_line(run.dataset), last]


def _figures(run: PastRun, architecture: str) -> str:
    """`react 0.75 1,234`; the name alone without an answered question."""
    exact_match, tokens = run.exact_match.get(architecture), run.tokens.get(architecture)
    if exact_match is None or tokens is None:
        return architecture
    return f"{architecture} {exact_match:.2f}{_MARK if run.oracle else ''} {tokens:,.0f}"


def _aligned(rows: list[list[str]]) -> list[str]:
    """Lines with every column to the left: these are texts."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
