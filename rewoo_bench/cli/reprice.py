"""`rewoo-bench reprice RUN`: what a finished run would have cost under other prices."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.cli.command import warn_of_unfinished
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.report.repricing import PriceTableFormat, render_prices, reprice, sheet_list
from rewoo_bench.runs.option_types import PRICE_FORMS
from rewoo_bench.system.files import replaced
from rewoo_bench.text.escaping import terminal


def _print_list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(terminal(sheet_list()))
        context.exit()


# fmt: off
@click.command("reprice")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option("--prices", multiple=True, metavar="[ROLE:]NAME|SHEET[:MODEL]",
              help=f"The price to count with: {PRICE_FORMS}. A sheet without a model gives a table for each of its "
                   "models. Repeat the flag for more tables. A planner or solver with a model of its own has the "
                   "sheet's price of that model, or the one of planner:SHEET:MODEL.  "
                   "[default: the prices of the run's models, with and without the cache, else none, openai, "
                   "anthropic-5m]")
@click.option("--model", "models", multiple=True, metavar="NAME",
              help="Only this model of the sheets. Repeatable.  [default: all of them]")
@click.option("--baseline", metavar="NAME",
              help="Architecture to compare the others with.  [default: the run's first]")
@click.option("--batch", is_flag=True,
              help="Prices of the provider's batch interface: each round of model calls is one batch, without a cache.")
@click.option("--recorded-cache", is_flag=True,
              help="Count the cached tokens that the provider reported, not those that follow from its rule.")
@click.option("--format", "form", type=click.Choice(["terminal", "markdown", "csv", "json"]), default="terminal",
              help="Output format.")
@click.option("--rows", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a row for each question, architecture and model here (parquet).")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_print_list,
              help="Print the shipped price sheets, with their dates, and exit.")
def reprice_command(run: Path, prices: tuple[str, ...], models: tuple[str, ...], baseline: str | None, batch: bool,
                    recorded_cache: bool, form: PriceTableFormat, rows: Path | None) -> None:
    """What a finished run would have cost under other prices, in dollars per 1,000 questions.

    Which tokens a provider would have cached follows from what each prompt shares with earlier ones. calls.parquet has
    that without the texts, so published runs can be priced, too.
    """
    repriced = reprice(run, prices=prices, models=models, baseline=baseline, batch=batch,
                       recorded_cache=recorded_cache)
    if form == "csv":  # the others have notes
        warn_of_unfinished(run)
    click.echo(terminal(render_prices(repriced, form)))
    if rows is not None:
        try:
            with replaced(rows) as file:
                repriced.questions().to_parquet(file, index=False)
        except OSError as error:
            raise UsageError(f"--rows: can't write to {str(rows)!r}: {error.strerror or error}") from None
# fmt: on
