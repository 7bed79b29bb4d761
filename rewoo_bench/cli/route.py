"""`rewoo-bench route RUN …`: what choosing an architecture for each question would buy, and a router that learns it."""

from __future__ import annotations

from pathlib import Path

import click

from rewoo_bench.analysis.routing_report import RoutingFormat, render_routing
from rewoo_bench.cli.command import warn_of_unfinished
from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.loaders.load import load_questions_of
from rewoo_bench.report.reading import route
from rewoo_bench.runs.folder import manifests
from rewoo_bench.runs.manifest import DatasetFacts
from rewoo_bench.text.escaping import terminal


# fmt: off
@click.command("route")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_folders)
@click.option("--parents", metavar="A,B",
              help="The two architectures to choose from.  [default: those of --router]")
@click.option("--router", default="router", metavar="NAME|FOLDER",
              help="Architecture whose rules are tried.")
@click.option("--dataset", metavar="NAME|FILE",
              help="Where the questions' texts are, for a published run, which has none.")
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.5,
              help="How sure the learned router has to be before it takes the dearer architecture: the least chance "
                   "that this one is right, where only one of the two is. A higher value saves more and may answer "
                   "fewer questions right.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the learned router there, fitted on all questions.")
@click.option("--format", "form", type=click.Choice(["terminal", "markdown", "json"]), default="terminal",
              help="Output format.")
def route_command(runs: tuple[str, ...], parents: str | None, router: str, dataset: str | None, threshold: float,
                  out: Path | None, form: RoutingFormat) -> None:
    """Estimate what a router would buy: a choice between two architectures for each question.

    RUN is a run's folder with both architectures. The output has accuracy and cost of each way to choose: by rules, by
    a learned router (fitted without the question that it chooses for), by a model where the run has one, always the one
    or the other; and bounds of the best possible choice. A learned router is used with
    --arch 'router?policy=learned&file=router.json'.
    """
    names = tuple(parents.split(",")) if parents else None
    if names is not None and (len(names) != 2 or not all(names)):
        raise UsageError(f"--parents: expected two architectures, as in rewoo,react; got {parents!r}")
    warn_of_unfinished(*runs)
    texts = {}
    if dataset:  # all questions of a file, else the sample that the run took
        facts = next((manifest.dataset for manifest in manifests(*runs).values()), DatasetFacts())
        texts = {example.id: example.question for example in load_questions_of(dataset, facts).examples}
    report = route(*runs, parents=names, router=router, texts=texts, threshold=threshold, out=out)
    click.echo(terminal(render_routing(report, form)))
    if out and form != "json":
        click.echo(terminal(f"\nwritten: {out}; use it with --arch 'router?policy=learned&file={out}'"), err=True)
# fmt: on
