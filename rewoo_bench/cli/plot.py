"""`rewoo-bench plot RUN RUN …`: figures of runs as PNG and SVG, with captions."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.cli.command import warn_of_unfinished
from rewoo_bench.cli.flag_types import FolderFlag, run_folders
from rewoo_bench.errors import NothingToDraw, UsageError
from rewoo_bench.report.plots.data import read
from rewoo_bench.report.plots.draw import FIGURES, PICTURE_FORMATS, draw, save_figures
from rewoo_bench.system.output import announce, echo
from rewoo_bench.text.argument_checks import check_known

_COMMANDLINE = click.core.ParameterSource.COMMANDLINE


# fmt: off
@click.command("plot")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--out", type=FolderFlag(), metavar="DIR",
              help="Folder of the figures.  [default: plots in the first run's folder]")
@click.option("--only", metavar="NAME,NAME",
              help="Only these figures: ratio, steps, parts, pareto, latency, reach, failure, paper.")
@click.option("--format", "formats", default="png,svg", metavar="png,svg", help="File formats.")
@click.option("--pair", default="react,rewoo", metavar="NAME,NAME",
              help="Architectures of `ratio`, the more expensive one first.")
@click.pass_context
def plot_command(context: click.Context, runs: tuple[str, ...], out: Path | None, only: str | None, formats: str,
                 pair: str) -> None:
    """Draw one run or several: tokens, accuracy, latency, failing tools, and a comparison with the paper.

    RUN is a run's folder or a questions.parquet. A figure without data is left out, with a line that says what it
    needs; captions.md describes each figure.
    """
    # fmt: on
    lists = (formats, only or "", pair)
    listed = (dict.fromkeys(name.strip() for name in text.split(",") if name.strip()) for text in lists)
    kinds, figures, compared = map(list, listed)
    check_known("format", kinds, PICTURE_FORMATS)
    check_known("figure", figures, FIGURES)
    warn_of_unfinished(*runs)
    announce("reading the runs and drawing their figures")
    data = read(runs)
    if len(compared) != 2:
        raise UsageError(f"--pair {pair!r}: expected two architectures, as in react,rewoo")
    if context.get_parameter_source("pair") is _COMMANDLINE:
        check_known("architecture", compared, data.architectures)
    folder = out or (Path(runs[0]) if Path(runs[0]).is_dir() else Path(runs[0]).parent) / "plots"
    if out is None and folder.is_symlink():  # a run's folder may be somebody else's, and lead out of it
        folder.unlink()

    def skip(name: str, reason: str) -> None:
        echo(f"{name}: not drawn: {reason}", err=True)

    paths = list(save_figures(draw(data, only=figures, pair=(compared[0], compared[1]), on_skip=skip), folder, kinds))
    for path in paths:
        echo(str(path))
    if not paths:
        raise NothingToDraw(f"no figure could be drawn for {', '.join(map(repr, runs))}")
