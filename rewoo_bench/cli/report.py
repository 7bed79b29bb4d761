"""`rewoo-bench report RUN …`: one HTML file with tables, figures and every trajectory."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.report.write import write_page
from rewoo_bench.system.files import is_stream
from rewoo_bench.text.escaping import terminal


# fmt: off
@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...",
                shell_complete=run_folders)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Where to write the page.  [default: report.html in the first run's folder]")
@click.option("--without-texts", is_flag=True,
              help="Leave out what data sets, tools and models said; numbers, ids and outcomes stay.")
@click.option("--with-prompts", is_flag=True, help="Add the prompt and the raw completion of every model call.")
@click.option("--no-figures", is_flag=True, help="Leave out the plots, which take most of the time.")
def report_command(
    runs: tuple[Path, ...], out: Path | None, without_texts: bool, with_prompts: bool, no_figures: bool
) -> None:
    """Write runs as one HTML file that needs no network: what was measured, and every question side by side."""
    if without_texts and with_prompts:
        raise UsageError("--with-prompts and --without-texts exclude each other")
    path = out or (runs[0] if runs[0].is_dir() else runs[0].parent) / "report.html"
    size = write_page(
        runs, path, texts=not without_texts, figures=not no_figures, prompts=with_prompts
    )
    # The page itself may be standard output.
    click.echo(terminal(f"{path} ({size / 1e6:.1f} MB)"), err=is_stream(path))
# fmt: on
