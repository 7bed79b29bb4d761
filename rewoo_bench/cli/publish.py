"""`rewoo-bench publish RUN --out DIR`: a run without its texts, to commit or to share."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.cli.conventions import SETTINGS
from rewoo_bench.escaping import terminal


@click.command(context_settings=SETTINGS)
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="Folder of the copy."
)
@click.option("--report/--no-report", default=True, help="Write report.html, without texts, into the copy.")
@click.option("--without", default="", show_default=False, metavar="NAME,NAME", help="Architectures to leave out.")
def publish(run: Path, out: Path, report: bool, without: str) -> int:
    """Copy a run without the data set's texts: numbers, ids, predictions, the manifest, and a page of these."""
    from rewoo_bench.report.write import write_report
    from rewoo_bench.runs.publish import publish as copy

    rows = copy(run, out, without=[name.strip() for name in without.split(",") if name.strip()])
    if report and rows:
        write_report([out], out / "report.html", texts=False)
    click.echo(terminal(f"{out}: {rows} rows, without the texts of the data set"))
    return 0
