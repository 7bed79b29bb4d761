"""`rewoo-bench claims RUN …`: published claims about ReWOO and ReAct, tested on these runs."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.analysis.claims import check, gather, read_claims
from rewoo_bench.analysis.claims.check import ClaimsFormat, render_claims
from rewoo_bench.cli.command import warn_of_unfinished
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.system.output import echo


# fmt: off
@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--claims", "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="File of your own claims and rules.  [default: the bundled ones, from the paper and others]")
@click.option("--claims-model", "model", metavar="NAME",
              help="Part of the name of the model that decides.  [default: any with 1B parameters or more]")
@click.option("--details", is_flag=True,
              help="Below the table of verdicts, show what each claim says, which run decided and why.")
@click.option("--all", "everything", is_flag=True,
              help="Like --details, with each claim that no given run can test; without --all those of a data set "
                   "are one line.")
@click.option("--format", "form", type=click.Choice(["terminal", "markdown", "json"]), default="terminal",
              help="Form of the output.")
def claims(runs: tuple[str, ...], file: Path | None, model: str | None, details: bool, everything: bool,
           form: ClaimsFormat) -> None:
    """Test published claims: one verdict for each, with the measured value and its interval, by data set.

    RUN is a run's folder. Of the runs of models with 1B parameters or more the one with the most questions decides;
    --details counts the others under "also", and for claims that no given run can test prints the command of a run that
    can. The file of the claims has the rules of the verdicts; --format json has the figures of every run.
    """
    warn_of_unfinished(*runs)
    findings = check(read_claims(file) if file else read_claims(), gather(*runs), model)
    echo(render_claims(findings, form, everything=everything, details=details or everything))
# fmt: on
