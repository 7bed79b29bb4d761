"""`rewoo-bench claims RUN …`: what has been claimed of ReWOO and ReAct, and what these runs say to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.escaping import terminal

if TYPE_CHECKING:
    from rewoo_bench.claims.render import Format


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--claims", "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Your own claims and rules.  [default: those of the paper and others, bundled]")
@click.option("--format", "form", type=click.Choice(["terminal", "markdown", "json"]), default="terminal",
              help="How it is printed.")
def claims(runs: tuple[str, ...], file: Path | None, form: Format) -> int:
    """Put the published claims to the test: measured, on what, with its interval, the verdict and why.

    RUN is a run's folder. Each model and each set of questions has its own verdict; what none of the
    runs can test says what to run. The rules of the verdicts are in the file of the claims.
    """
    from rewoo_bench.claims import check, gather, read_claims
    from rewoo_bench.claims.render import render

    found = check(read_claims(file) if file else read_claims(), gather(*runs))
    click.echo(terminal(render(found, form)))
    return 0
# fmt: on
