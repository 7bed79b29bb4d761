"""`rewoo-bench plannable RUN`: which results of a recorded loop a model had to read, and what a plan would cost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import click

from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.cli.command import DONE
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.cli.import_run import tell
from rewoo_bench.imports.documents import are_traces
from rewoo_bench.imports.write import import_run
from rewoo_bench.runs.option_types import PRICE_FORMS
from rewoo_bench.system.files import replaced
from rewoo_bench.system.output import echo
from rewoo_bench.text.tables import csv_text


# fmt: off
@click.command("plannable")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders, metavar="RUN|TRACES")
@click.option("--prices", multiple=True, metavar="NAME|SHEET:MODEL",
              help=f"Prices and cache rule to count dollars with: {PRICE_FORMS}. Repeatable.  "
                   "[default: the prices of the run's model, where a sheet has them, and none, openai, anthropic-5m]")
@click.option("--format", "form", type=click.Choice(["terminal", "csv", "json"]), default="terminal",
              help="Output format: tables, or ratios as rows.")
@click.option("--calls", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a row for each tool call here (CSV): kinds of its values, its choice, what it copies from.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png|svg",
              help="Draw a figure here: dollars of a plan, divided by the loop's, under each price.")
def plannable_command(run: Path, prices: tuple[str, ...], form: str, calls: Path | None, plot: Path | None) -> int:
    """Which results of a run's loops a model had to read, and what a plan would have cost, by the law of plan and loop.

    No model is asked. Where a planner of the run answered the same questions, what it took is shown instead.

    RUN is a run of loops, such as an imported one; files of traces are imported for this command alone. Each value of a
    tool call is known when the user has spoken, copied from an earlier result, a constant, or derived by the model. A
    whole result can be passed on; a part of one, or a derived value, has to be read out of a result by a model before
    the call can be written. From that follow the model calls of a plan, of a lean plan, whose solver sees no result
    that a step has read, and of a program.

    Where an attacker had a text in the results (AgentDojo), the first sentence says by which way attacks succeeded, and
    how many of them a plan made beforehand would have stopped.
    """
    code = DONE
    with TemporaryDirectory(prefix="rewoo-bench-") as folder:
        if are_traces(run):
            imported = anyio.run(partial(import_run, [run], Path(folder, run.name)))
            run, code = imported.folder, tell(imported, str(run), err=True)
        found = plannable(run, prices)
    if calls is not None:
        with replaced(calls) as file:
            file.write(f"{csv_text(found.calls)}\n".encode())
    if plot is not None:
        from rewoo_bench.report.plots.planned import save_planned  # matplotlib

        save_planned(found, plot)
    if form == "terminal":
        echo(tables.text(found))
        return code
    rows = tables.as_rows(found)
    click.echo(rows.to_json(orient="records", double_precision=15, indent=1) if form == "json" else csv_text(rows))
    return code
# fmt: on
