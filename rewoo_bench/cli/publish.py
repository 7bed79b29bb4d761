"""`rewoo-bench publish`: a run without its texts, to share; `rescore`: the predictions of a run scored again."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.cli.command import DONE, FAILED
from rewoo_bench.cli.flag_types import FolderFlag, run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.imports.publish import publish_logs
from rewoo_bench.loaders.load import load_questions_of
from rewoo_bench.report.write import write_page
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.runs.publish import publish, rescore
from rewoo_bench.system.output import echo


# fmt: off
@click.command("publish")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option("--out", type=FolderFlag(), required=True, metavar="DIR",
              help="Folder of the copy.")
@click.option("--report/--no-report", default=True, help="Write report.html, without texts, into the copy.")
@click.option("--format", "form", type=click.Choice(["inspect"]),
              help="Write logs for `inspect view` instead, one for each architecture. `import` reads them again.")
@click.option("--texts", is_flag=True, help="With --format: write questions, answers, prompts, replies and results of "
                                            "tools, too. Check the data set's licence first.")
@click.option("--without", default="", show_default=False, metavar="NAME,NAME", help="Architectures to leave out.")
def publish_command(run: Path, out: Path, report: bool, form: str | None, texts: bool, without: str) -> None:
    """Copy a run without the texts of its data set. The copy has numbers, ids, predictions, run.json, and a page."""
    names = [name.strip() for name in without.split(",") if name.strip()]
    if form is not None:
        rows = publish_logs(run, out, texts=texts, without=names)
        what = "with" if texts else "without"
        echo(f"{out}: {rows} rows as {form}, {what} the texts of the data set")
        return
    if texts:
        raise UsageError("--texts: the copy of a run has none; it is for --format")
    rows = publish(run, out, without=names)
    if report and rows:
        write_page([out], out / "report.html", texts=False)
    echo(f"{out}: {rows} rows, without the texts of the data set")


@click.command("rescore")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option("--dataset", metavar="NAME|FILE",
              help="The data set of the run, for its gold answers.  [default: the run's own; for a published run their "
                   "hashes, which give exact match alone]")
def rescore_command(run: Path, dataset: str | None) -> int:
    """Score the predictions of a run again, and compare with the recorded exact match and F1.

    Each row whose recorded score differs is printed. Exit code 1 where there is one. A published run has hashes of its
    gold answers: --dataset takes the answers themselves.
    """
    if dataset is None:
        found = rescore(run)
    else:
        data = load_questions_of(dataset, read_manifest(run).dataset)
        found = rescore(run, {example.id: example.answers for example in data.examples}, data.scorer)
    for line in found.different:
        echo(f"different: {line}")
    what = "exact match and F1"
    if not found.with_f1:
        what = "exact match, by the hashes that came with the rows; --dataset checks these, too"
    total = found.equal + len(found.different)
    line = f"{run}: {total} rows scored again by {found.scorer!r} ({what}): "
    line += f"{found.equal} equal, {len(found.different)} different"
    if found.unscored:
        line += f"; {found.unscored} rows can't be scored: they failed, or have no answers"
    echo(line)
    return FAILED if found.different else DONE
# fmt: on
