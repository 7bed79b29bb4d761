"""`rewoo-bench compare RUN RUN …`: cost and accuracy of each architecture, and the differences."""

from __future__ import annotations

import click

from rewoo_bench.analysis.compare import compare as compare_rows
from rewoo_bench.analysis.comparison_tables import ComparisonFormat, render_comparison
from rewoo_bench.analysis.prices import pricings_of
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.runs.option_types import PRICE_FORMS
from rewoo_bench.system.output import echo


# fmt: off
@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--baseline", metavar="NAME",
              help="Architecture to compare the others with.  [default: the first that plans ahead, else the first; "
                   "of two runs with the same architectures each is compared with itself in the other run]")
@click.option("--all-pairs", is_flag=True, help="Compare each with each.")
@click.option("--intersect", is_flag=True,
              help="Compare runs of different questions of a data set on their shared questions; the output says so. "
                   "Each data set is always a table of its own.")
@click.option("--prices", multiple=True, metavar="[ROLE:]NAME|SHEET[:MODEL],…|all",
              help="Count dollars, and cached tokens, at this price: "
                   f"{PRICE_FORMS}. Of a sheet without a model it is the one of its short name, else its first. Of "
                   "several, as in openai,anthropic-5m, or all short names, the first is that of every table, and two "
                   "tables have the dollars and ratios under each, and where two architectures break even. Where the "
                   "planner or solver has a model of its own, repeat the flag for its price: planner:SHEET:MODEL.  "
                   "[default: what the runs paid, else the prices of their models, else openai]")
@click.option("--price", multiple=True, metavar="[ROLE:|MODEL:]input=USD,cached=USD,output=USD",
              help="Count dollars at this price of a million tokens, for a model that no sheet has: what the runs "
                   "would have recorded with --price. Repeat the flag for each of several models.")
@click.option("--format", "form", type=click.Choice(["terminal", "markdown", "csv", "latex", "json"]),
              default="terminal", help="Output format.")
def compare(runs: tuple[str, ...], baseline: str | None, all_pairs: bool, intersect: bool,
            prices: tuple[str, ...], price: tuple[str, ...], form: ComparisonFormat) -> None:
    """Compare the architectures of one run or several: accuracy, tokens, cost and latency, with intervals.

    RUN is a run's folder or a questions.parquet; the output calls it by its folder's name. Differences are paired by
    question; the trials of a question count as one observation. The first lines say what it comes to.
    """
    rows, read = load(*runs), manifests(*runs)
    first, *more = pricings_of(runs, rows, read, prices, price)
    comparison = compare_rows(rows, manifests=read, baseline=baseline, all_pairs=all_pairs, intersect=intersect,
                              pricing=first, under=[first, *more] if more else ())
    for warning in comparison.warnings if form in ("csv", "json") else ():
        echo(f"WARNING: {warning}", err=True)
    echo(render_comparison(comparison, form))
# fmt: on
