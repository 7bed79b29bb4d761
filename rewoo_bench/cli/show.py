"""`rewoo-bench show RUN QUESTION`: the trajectories of a question in the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.console import Console

from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.report.rows import question_table
from rewoo_bench.report.terminal import ShownQuestions
from rewoo_bench.runs.folder import load
from rewoo_bench.text.model_output import excerpt

_SHOWN = 3  # questions in a message


# fmt: off
@click.command("show")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN", shell_complete=run_folders)
@click.argument("question", required=False)
@click.option("--arch", "systems", multiple=True, metavar="NAME",
              help="Show these architectures only: names, joined by commas.  [default: all]")
@click.option("--unanswered", is_flag=True,
              help="Questions that ended without an answer: at a limit, without a sound plan, by an error.")
@click.option("--only-right", metavar="NAME", help="Questions that this architecture alone has right.")
@click.option("--random", "sample", type=click.IntRange(min=1), metavar="N", help="N questions, chosen by chance.")
@click.option("-n", "nth", type=click.IntRange(min=1), metavar="N",
              help="The N-th question of the run, or of those that --unanswered or --only-right choose.")
@click.option("--limit", type=click.IntRange(min=1), default=10, help="Print at most so many questions.")
def show_command(run: Path, question: str | None, systems: tuple[str, ...], unanswered: bool, only_right: str | None,
         sample: int | None, nth: int | None, limit: int) -> None:
    """Print a question with its gold answer and the steps of each architecture, the same look-ups in one row.

    QUESTION is an id, one of the ids that a task of several questions has, or a part of the question's text.
    """
    if question is None and not (unanswered or only_right or sample or nth):
        said = "name a QUESTION (an id, or a part of its text), or use -n 1, --unanswered, --only-right or --random"
        raise UsageError(f"{said}; for example:\n{_examples(run)}")
    systems = tuple(name for each in systems for name in each.split(","))
    shown = ShownQuestions(run, question, systems, unanswered=unanswered, only_right=only_right, limit=limit,
                           sample=sample, nth=nth)
    if not shown.ids:
        click.echo("no question fits", err=True)
    Console(highlight=False).print(shown, markup=False, highlight=False)
# fmt: on


def _examples(run: Path) -> str:
    """Commands that show the first questions of a run, each with its text."""
    columns = question_table(load(run)).columns
    texts = dict(zip(columns["ids"], columns["questions"], strict=True))  # trials have the same
    first = list(texts.items())[:_SHOWN]
    commands = ((f"  rewoo-bench show {shlex.quote(str(run))} {shlex.quote(id_)}", text) for id_, text in first)
    return "\n".join(
        f"{command}   # {excerpt(' '.join(text.split()))}" if text else command for command, text in commands
    )
