"""`rewoo-bench show RUN QUESTION`: the trajectories of a question in the terminal."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rewoo_bench.cli.command import SETTINGS
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.report.terminal import ShownQuestions


# fmt: off
@click.command("show", context_settings=SETTINGS)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN", shell_complete=run_folders)
@click.argument("question", required=False)
@click.option("--arch", "systems", multiple=True, metavar="NAME",
              help="Show this architecture only; repeat the flag for several.  [default: all]")
@click.option("--failed", is_flag=True,
              help="Questions without an answer because of an error, or of an external agent that failed.")
@click.option("--only-right", metavar="NAME", help="Questions that this architecture alone has right.")
@click.option("--parts-at", type=click.IntRange(min=0), metavar="N",
              help="Questions in which the architectures shown part at look-up N: up to there they call the same tools "
                   "with the same arguments, in the same order. 0 is never.")
@click.option("--random", "sample", type=click.IntRange(min=1), metavar="N", help="N questions, chosen by chance.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=10, help="Print at most so many questions.")
def show_command(run: Path, question: str | None, systems: tuple[str, ...], failed: bool, only_right: str | None,
         parts_at: int | None, sample: int | None, limit: int) -> int:
    """Print a question with its gold answer and the steps of each architecture, the same look-ups in one row.

    QUESTION is an id, or a part of the question's text.
    """
    if question is None and not (failed or only_right or sample or parts_at is not None):
        said = "name a QUESTION (an id, or a part of its text), or use --failed, --only-right, --parts-at or --random"
        raise UsageError(said)
    shown = ShownQuestions(run, question, systems, failed=failed, only_right=only_right, parts_at=parts_at, limit=limit,
                           sample=sample)
    if not shown.ids:
        click.echo("no question fits", err=True)
    Console(highlight=False).print(shown, markup=False, highlight=False)
    return 0
# fmt: on
