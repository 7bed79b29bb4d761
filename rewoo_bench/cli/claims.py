"""`rewoo-bench claims RUN …`: published claims about ReWOO and ReAct, tested on these runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.cli.conventions import SETTINGS
from rewoo_bench.escaping import terminal

if TYPE_CHECKING:
    from rewoo_bench.claims.render import Format


# fmt: off
@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--claims", "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="File of your own claims and rules.  [default: the bundled ones, from the paper and others]")
@click.option("--all", "everything", is_flag=True,
              help="Show every claim. Without it those that none of the runs can test are one line of each data set.")
@click.option("--format", "form", type=click.Choice(["terminal", "markdown", "json"]), default="terminal",
              help="Form of the output.")
def claims(runs: tuple[str, ...], file: Path | None, everything: bool, form: Format) -> int:
    """Test published claims: the measured value with its interval, the verdict and its reason, by data set.

    RUN is a run's folder. Each model and each set of questions has its own verdict. For claims that none of the
    runs can test, it prints the command of a run that can. The file of the claims has the rules of the verdicts.
    """
    from rewoo_bench.claims import check, gather, read_claims
    from rewoo_bench.claims.render import render

    findings = check(read_claims(file) if file else read_claims(), gather(*runs))
    click.echo(terminal(render(findings, form, everything=everything)))
    return 0
# fmt: on
