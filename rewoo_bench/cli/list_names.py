"""`rewoo-bench list`: what can be named on the command line."""

from __future__ import annotations

from importlib.metadata import version
from textwrap import fill

import click

from rewoo_bench.config.named import Named, read_architecture, read_dataset
from rewoo_bench.config.names import ORACLE_MODEL, SCORERS, TOOLS, agents_folder, bundled_folder, bundled_names
from rewoo_bench.config.plugins import PluginKind, installed_plugins, packages_with
from rewoo_bench.config.price_sheets import bundled_sheets, read_sheet
from rewoo_bench.config.specs import FORM_WORDS
from rewoo_bench.models.local.catalogue import catalogue
from rewoo_bench.system.output import echo
from rewoo_bench.text.tables import terminal_width, text_table


@click.command(name="list")
@click.option("--agents", is_flag=True, help="Name the bundled agents of other frameworks, with the folder for --arch.")
@click.option("--prices", is_flag=True, help="Print the shipped price sheets, with their dates.")
def list_names(agents: bool, prices: bool) -> None:
    """Name the architectures, data sets, tools, scorers and models: bundled and of installed packages."""
    if prices:
        echo(sheet_list())
        return
    if agents:  # they aren't names: each installs a framework of its own
        click.echo("agents (--arch FOLDER)")
        for path in sorted(agents_folder().glob("*/architecture.toml")):
            folder = path.parent
            _line(folder.name, read_architecture(Named(folder.name, folder)).description)
            click.echo(f"  {'':18} {folder}")
        return
    click.echo("architectures (--arch)")
    for name in bundled_names("architectures"):
        spec = read_architecture(Named(name, bundled_folder("architectures") / name))
        _line(name, f"{spec.description} ({FORM_WORDS[spec.form]})" if spec.form else spec.description)
    _installed("architectures")
    click.echo("data sets (--dataset)")
    for name in bundled_names("datasets"):
        _line(name, read_dataset(Named(name, bundled_folder("datasets") / name)).description)
    _installed("datasets")
    click.echo("tools ([tools.NAME] in architecture.toml)")
    click.echo(f"  {', '.join(TOOLS)}")
    _installed("tools")
    click.echo("scorers (scoring in dataset.toml)")
    click.echo(f"  {', '.join(SCORERS)}")
    _installed("scorers")
    click.echo("local models (--model)")
    for name, entry in catalogue().items():
        _line(f"local/{name}", f"{entry.size_bytes / 1e6:,.0f} MB: {entry.note}")
    click.echo("other models (--model)")
    _line(ORACLE_MODEL, "perfect plans, turns and answers from the questions' gold, for costs alone")
    _installed("models")


def sheet_list() -> str:
    """The bundled price sheets as a table: a line for each model that has its price there."""
    cells = [["price", "in", "out", "cached", "written", "cache", "prefix"]]
    sheets = {name: read_sheet(path) for name, path in bundled_sheets().items()}
    for name, sheet in sheets.items():
        for model, prices in sheet.models.items():
            rule = sheet.cache[prices.cache] if prices.cache else None
            terms = (
                [rule.kind, f"{rule.minimum_prefix_tokens:,}" if rule.minimum_prefix_tokens else "-"]
                if rule
                else ["-", "-"]
            )
            amounts = (prices.input, prices.output, prices.cache_read, prices.cache_write)
            shown = ["-" if amount is None else f"{amount:g}" for amount in amounts]
            cells.append([f"{name}:{model}", *shown, *terms])
    of_table = ", ".join(name for name, sheet in sheets.items() if sheet.provider)
    others = f"Other models of {of_table} have the prices of litellm {version('litellm')}, such as openai:gpt-4.1."
    sources = [f"{name}: {sheet.source}, {sheet.as_of}" for name, sheet in sheets.items()]
    return "\n".join(
        [
            "Prices in USD per million tokens; the shortest prefix that a cache takes, in tokens.",
            "",
            *text_table(cells),
            "",
            others,
            "",
            "Sources:",
            *sources,
        ]
    )


def _line(name: str, text: str) -> None:
    """A name with a text; on a terminal the text's lines stand below each other."""
    start, width = f"  {name:18} ", max(terminal_width(), 40)
    lines = fill(text, width, initial_indent=start, subsequent_indent=" " * 21, break_long_words=False)
    click.echo((lines or start).rstrip())


def _installed(kind: PluginKind) -> None:
    """The entry points of a kind, and which packages have the same name."""
    for plugin in installed_plugins(kind):
        packages = packages_with(kind, plugin.name)
        clash = f"; can't be used, {len(packages)} packages have it: {', '.join(packages)}" if len(packages) > 1 else ""
        _line(plugin.name, f"{plugin.value} ({plugin.distribution}{clash})")
