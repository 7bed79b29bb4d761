"""`rewoo-bench baseline update`: the baseline of a gate, as a small file to commit."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.escaping import terminal

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(context_settings=_SETTINGS)
def baseline() -> None:
    """Write the baseline of a gate."""


@baseline.command(context_settings=_SETTINGS)
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="File of the baseline.",
)
@click.option(
    "--exact/--live",
    "exact",
    default=None,
    help="Whether its counts are the same in every run.  [default: exact for the oracle and replays]",
)
def update(run: Path, out: Path, exact: bool | None) -> int:
    """Write the numbers and ids of a run as a baseline; the same run gives the same bytes."""
    from rewoo_bench.gate.check import open_baseline
    from rewoo_bench.gate.reports import write_report

    if not run.is_dir():
        raise click.BadParameter(f"{str(run)!r} is no run folder", param_hint="RUN")
    written = open_baseline(run, deterministic=exact)
    before = out.read_bytes() if out.is_file() else None
    write_report(out, written.text(), "--out")
    changed = "unchanged" if before == out.read_bytes() else "written" if before is None else "updated"
    count = sum(map(len, written.questions.values()))
    click.echo(terminal(f"{out}: {changed}, {count} questions of {', '.join(written.questions)}"))
    return 0
