"""`rewoo-bench advise RUN …`: which of these architectures to use, in words."""

from __future__ import annotations

import click

from rewoo_bench.cli.flag_types import NumberFlag, as_share, run_folders
from rewoo_bench.report.reading import advise
from rewoo_bench.text.escaping import terminal


# fmt: off
@click.command("advise")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--max-cost", type=NumberFlag(min=0, min_open=True), metavar="USD",
              help="Limit of the mean cost of one question, in US dollars.")
@click.option("--max-latency", type=NumberFlag(min=0, min_open=True), metavar="SECONDS",
              help="Limit of the 95th percentile of a question's latency, in seconds.")
@click.option("--margin", callback=as_share, default="5%", metavar="SHARE",
              help="How much less accurate a cheaper architecture may be: 5% or 0.05 is 5 points of exact match.")
@click.option("--intersect", is_flag=True,
              help="Compare runs of different questions on their shared questions; the output says so.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def advise_command(runs: tuple[str, ...], max_cost: float | None, max_latency: float | None, margin: float,
                   intersect: bool, as_json: bool) -> None:
    """Recommend an architecture and say how sure that is; where none can be, say what to run to decide it.

    RUN is a run's folder; give one with several architectures, or several runs of the same questions, model and
    settings. An architecture is within a limit where its whole 95% interval is. Of those within, the most accurate one
    is recommended; where none is shown to be that, the cheapest one that is shown not to be worse by --margin.

    Of a run with one loop alone, such as an imported one, it says what planning ahead could have saved at most, and the
    command that measures it.
    """
    advice = advise(*runs, max_cost=max_cost, max_latency=max_latency, margin=margin, intersect=intersect)
    click.echo(terminal(advice.as_json() if as_json else str(advice)))
# fmt: on
