"""`rewoo-bench baseline update`: a run's counts as a small file to commit, for `gate --baseline`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from rewoo_bench.cli.completion import run_folders
from rewoo_bench.cli.conventions import SETTINGS
from rewoo_bench.escaping import terminal
from rewoo_bench.text.counts import counted


@click.group(context_settings=SETTINGS)
def baseline() -> None:
    """Write a baseline for `gate`."""


@baseline.command(context_settings=SETTINGS)
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE", help="File to write."
)
@click.option(
    "--exact/--live",
    "exact",
    default=None,
    help="Whether its counts are the same every time.  [default: exact for the oracle and replays]",
)
def update(run: Path, out: Path, exact: bool | None) -> int:
    """Write the numbers and ids of a run as a baseline; the same run gives the same bytes."""
    from rewoo_bench.gate.check import open_baseline
    from rewoo_bench.gate.reports import write_report
    from rewoo_bench.output_file import is_stream
    from rewoo_bench.runs.manifest import MANIFEST, no_run

    if not run.is_dir():
        raise no_run(run, MANIFEST)
    content = open_baseline(run, deterministic=exact)
    text, before = content.text(), None
    with suppress(OSError):  # an unreadable file can be replaced
        before = out.read_text(encoding="utf-8", errors="replace") if not is_stream(out) else None
    write_report(out, text, "--out")
    changed = "unchanged" if before == text else "written" if before is None else "updated"
    lines = counted(sum(map(len, content.questions.values())), "row")
    message = f"{out}: {changed}, {lines} of {', '.join(content.questions)}"
    click.echo(terminal(message), err=is_stream(out))  # the file itself may be standard output
    return 0
