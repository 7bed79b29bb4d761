"""`rewoo-bench study`: many runs that one file declares."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import anyio
import click

from rewoo_bench.cli.command import DONE, INCOMPLETE
from rewoo_bench.cli.flag_types import FolderFlag, NumberFlag
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.past_runs import RESULTS
from rewoo_bench.study.declaration import Cell, Study, read_study
from rewoo_bench.study.rounds import SessionChoices, run_study
from rewoo_bench.study.status import status_text, study_status
from rewoo_bench.system.output import echo
from rewoo_bench.text.argument_checks import check_known

# fmt: off
_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
_OUT = click.option("--out", type=FolderFlag(), metavar="DIR",
                    help="Folder of the study's runs.  [default: results/local/<name of the file>]")
_SET = click.option("--set", "changes", multiple=True, metavar="TABLE.NAME.KEY=VALUE",
                    help="Replace a value of the file on this machine: where a data set lies, a model's address. "
                         "Repeatable.")
_MODELS = click.option("--models", metavar="NAME,…", help="Only runs of these models of the file.")
_DATASETS = click.option("--datasets", metavar="NAME,…", help="Only runs of these data sets of the file.")
_CELLS = click.option("--cells", metavar="NAME,…", help="Only these cells of the file.")
_questions = partial(click.option, "-n", "--questions", "n", type=click.IntRange(min=1), metavar="N")


@click.group()
def study() -> None:
    """Make, watch and publish the runs that one file declares."""


@study.command("run")
@_FILE
@_OUT
@_MODELS
@_DATASETS
@_CELLS
@_questions(help="Ask at most N questions in each run.")
@click.option("--block", type=click.IntRange(min=1), metavar="N",
              help="Questions that a run gets before it is the next one's turn.  [default: as many as its model "
                   "answers at the same time, 1 for a local model]")
@click.option("--study-cost", type=NumberFlag(min=0, min_open=True), metavar="USD",
              help="Maximum US dollars of all runs of FILE together, in all sessions. Local models are free. "
                   "Sessions at the same time don't count each other's dollars.  [default: no limit]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N",
              help="Ask the questions on so many workers of a Ray cluster.  [default: in this process]")
@click.option("--ray-address", metavar="ADDRESS", help="Address of a Ray cluster.  [default: start one here]")
@_SET
def run_study_command(file: Path, out: Path | None, models: str | None, datasets: str | None, cells: str | None,
                      n: int | None, block: int | None, study_cost: float | None,
                      workers: int | None, ray_address: str | None, changes: tuple[str, ...]) -> int:
    """Ask the questions that the runs of FILE lack.

    The next question is always of the run that has the fewest. Stop it whenever you like: it goes on from there. With a
    larger n in the file, finished runs get more questions.
    """
    declared, chosen, folder = _opened(file, out, changes, models=models, datasets=datasets, cells=cells)
    options: dict[str, Any] = {"workers": workers, "ray_address": ray_address}
    given = {name: value for name, value in options.items() if value is not None}
    session = SessionChoices(n, block, given, study_cost)
    end = anyio.run(run_study, declared, chosen, folder, session)
    echo(f"{folder}: {len(chosen) - len(end.unfinished)} of {len(chosen)} runs have their answers")
    for name, reason in end.unfinished.items():
        echo(f"unfinished: {name}: {reason}", err=True)
    return INCOMPLETE if end.unfinished else DONE


@study.command("status")
@_FILE
@_OUT
@_MODELS
@_DATASETS
@_CELLS
@_questions(help="What the rest will take if each run gets at most N questions.")
@_SET
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def status(file: Path, out: Path | None, models: str | None, datasets: str | None, cells: str | None, n: int | None,
           changes: tuple[str, ...], *, as_json: bool) -> None:
    """Say how far the runs of FILE are.

    What the rest will take in calls, hours and dollars, and which runs no longer fit the file.
    """
    declared, chosen, folder = _opened(file, out, changes, models=models, datasets=datasets, cells=cells)
    found = anyio.run(study_status, declared, chosen, folder, n)
    if as_json:
        rows = [{**asdict(each), "cell": each.cell.name} for each in found]
        click.echo(json.dumps(rows, indent=1))
    else:
        echo(status_text(found))


@study.command("publish")
@_FILE
@_OUT
@_SET
@click.option("--to", type=FolderFlag(), metavar="DIR",
              help="Folder of the page, tables, figures and copies of the runs; an earlier page in it is "
                   "replaced, unless that has more questions.  [default: that of FILE]")
@click.option("--without-runs", is_flag=True, help="Write no copies of the runs.")
def publish_command(file: Path, out: Path | None, changes: tuple[str, ...], to: Path | None, *,
                    without_runs: bool) -> None:
    """Write the page of FILE's study.

    It has the outcomes, tables and figures of the runs as they are.

    The page is page.md beside FILE with its places filled in, {{table outcomes}} for example; without one, or where one
    of its models was asked nothing or is another, it is made of all tables. Runs are copied without the texts
    of their data sets.
    """
    from rewoo_bench.study.publish import publish_study

    declared, _, folder = _opened(file, out, changes)
    for path in publish_study(declared, folder, to or file.parent, with_runs=not without_runs):
        echo(str(path))
# fmt: on


def _opened(
    file: Path, out: Path | None, changes: tuple[str, ...], **flags: str | None
) -> tuple[Study, list[Cell], Path]:
    """The study, its runs that the flags choose, and its folder. Raises `UsageError`."""
    declared = read_study(file, changes)
    chosen = list(declared.cells)
    for flag, text in flags.items():
        name_of = attrgetter({"models": "model", "datasets": "dataset", "cells": "cells"}[flag])
        wanted = [name.strip() for name in (text or "").split(",") if name.strip()]
        check_known("name", wanted, {name_of(cell) for cell in declared.cells}, f"--{flag}")
        chosen = [cell for cell in chosen if not wanted or name_of(cell) in wanted]
    if not chosen:
        raise UsageError(f"{', '.join(f'--{flag}' for flag in flags)}: no run of the study fits them all")
    return declared, chosen, out or RESULTS / file.stem
