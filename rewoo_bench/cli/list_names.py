"""`rewoo-bench list`: what can be named on the command line."""

from __future__ import annotations

import click

from rewoo_bench.cli.conventions import DONE, SETTINGS


@click.command(name="list", context_settings=SETTINGS)
def list_names() -> int:
    """Name the bundled architectures, data sets and local models."""
    from rewoo_bench.config.specs import ArchitectureSpec, DatasetSpec, read_spec
    from rewoo_bench.model_names import ORACLE
    from rewoo_bench.models.local.catalogue import catalogue
    from rewoo_bench.paths import bundled_folder, bundled_names

    click.echo("architectures (--arch)")
    for name in bundled_names("architectures", "architecture.toml"):
        spec = read_spec(bundled_folder("architectures") / name / "architecture.toml", ArchitectureSpec)
        click.echo(f"  {name:14} {spec.description}")
    click.echo("data sets (--dataset)")
    for name in bundled_names("datasets", "dataset.toml"):
        data = read_spec(bundled_folder("datasets") / name / "dataset.toml", DatasetSpec)
        click.echo(f"  {name:14} {data.description}")
    click.echo("local models (--model)")
    for name, entry in catalogue().items():
        click.echo(f"  local/{name:14} {entry.size_bytes / 1e6:6,.0f} MB  {entry.note}")
    click.echo("no model (--model)")
    click.echo(f"  {ORACLE:14} perfect plans, turns and answers from the questions' gold, for costs alone")
    return DONE
