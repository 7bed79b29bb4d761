"""`rewoo-bench import FILE …`: the trajectories of other programs as a run."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import anyio
import click
from tqdm import tqdm

from rewoo_bench.cli.command import DONE, INCOMPLETE
from rewoo_bench.cli.flag_types import FolderFlag
from rewoo_bench.config.price_sheets import price_of
from rewoo_bench.imports.documents import local_files, name_of
from rewoo_bench.imports.formats import Fields
from rewoo_bench.imports.lacks import MISSING, NOT_JSON, said_of
from rewoo_bench.imports.write import ImportChoices, Imported, import_run
from rewoo_bench.system.output import echo
from rewoo_bench.text.words import counted

_SHOWN_FAULTS = 5
_SHOWN_FIELDS = 5


# fmt: off
@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER|-...")
@click.option("--out", type=FolderFlag(), metavar="DIR",
              help="Folder of the new run.  [default: results/local/NAME-OF-THE-FILE]")
@click.option("--format", "form", metavar="NAME",
              help="Format of the files: messages, claude-code, otel, langfuse, inspect, atif, agentdojo.  "
                   "[default: by what they hold]")
@click.option("--dataset", metavar="NAME",
              help="Name of the tasks in tables. Two runs can be compared where it is the same.  [default: the file's]")
@click.option("--agent", metavar="NAME", help="Name of the agent in tables.  [default: the recorded one, or 'agent']")
@click.option("--model", metavar="NAME",
              help="Name of the model of calls that don't say theirs, so that its own prices are found: gpt-4o")
@click.option("--task", metavar="FIELD",
              help="Field of a record that identifies its task, so that trials of one task are seen as such: info.id")
@click.option("--solved", metavar="FIELD",
              help="Field of a record that says whether the task was solved: true or false, or a score, where 1 is "
                   "solved.")
@click.option("--progress/--no-progress", default=True, help="Count on standard error what was read.")
def import_command(files: tuple[str, ...], out: Path | None, form: str | None, dataset: str | None,
                   agent: str | None, model: str | None, task: str | None, solved: str | None,
                   progress: bool) -> int:
    """Read trajectories that other programs recorded, and write them as a run, which every reading command takes.

    Formats: conversations in the messages of OpenAI (chat and Responses), Anthropic, Gemini or the AI SDK (one JSON
    document, a list, a conversation a line, or a message a line), those of tau-bench and tau2-bench among them, and
    requests that a proxy logged one by one, which are put together; sessions of Claude Code with sub-agents
    (`~/.claude/projects`); spans of OpenTelemetry (OTLP in JSON, as a collector writes it);
    exports of Langfuse; logs of inspect_ai (`pip install 'rewoo-bench[inspect]'`); ATIF of Harbor, with sub-agents;
    logs of AgentDojo with its attacks. A folder is searched for such files; "-" is standard input.

    What a file lacks stays unknown, and a note says what follows from that; another counts the texts in fields that
    aren't read. Tokens that weren't recorded are counted with a tokenizer. A damaged file is an error with its line.
    A record of no known format, or with a value that its format doesn't have, is a line on standard error, and the exit
    code is then 3.
    """
    folder = out or Path("results/local", name_of(files[0]).partition(".")[0] or "imported")
    choices = ImportChoices(form, dataset, agent, model, Fields(task, solved))
    shown = progress and sys.stderr.isatty()
    with local_files(files) as paths, tqdm(unit=" traces", disable=not shown, leave=False) as bar:
        done = anyio.run(partial(import_run, paths, folder, choices, bar.update))
    return tell(done, str(folder))
# fmt: on


def tell(done: Imported, name: str, *, err: bool = False) -> int:
    """Says what was read, what wasn't, and what follows from that; `err`: on standard error. Returns the exit code."""
    for fault in done.faults[:_SHOWN_FAULTS]:
        echo(f"not read: {fault}", err=True)
    if (more := done.unreadable - _SHOWN_FAULTS) > 0:
        click.echo(f"not read: {counted(more, 'record')} more", err=True)
    formats = ", ".join(f"{name} ({count:,})" for name, count in done.formats.items())
    echo(f"{name}: {counted(done.rows, 'trace')}, read as {formats}", err=err)
    for lack in MISSING:
        if count := done.lacks[lack]:
            of = "" if count == done.rows else f" (in {count:,} of {done.rows:,})"
            click.echo(f"note: {said_of(lack, is_all_read=not done.unread)}{of}", err=err)
    if raw := done.lacks[NOT_JSON]:
        of = f"{counted(raw, 'call')} {'has' if raw == 1 else 'have'}"
        click.echo(f"note: {of} arguments that aren't JSON: they are kept as one text", err=err)
    if done.unread:
        places = ", ".join(name for name, _ in done.unread.most_common(_SHOWN_FIELDS))
        rest = ", …" if len(done.unread) > _SHOWN_FIELDS else ""
        echo(f"note: {counted(done.unread.total(), 'text')} not read, in these fields: {places}{rest}", err=err)
    unpriced = [name for name in done.models if price_of(name) is None]
    if "unknown" in unpriced:
        click.echo("note: no model is named: prices are an example's; import --model NAME names it", err=err)
    if named := [name for name in unpriced if name != "unknown"]:
        echo(f"note: no price is known of {', '.join(named[:3])}: prices are an example's", err=err)
    if done.copies:
        click.echo(f"note: {counted(done.copies, 'trace')} of another file, too, left out as copies", err=err)
    return INCOMPLETE if done.unreadable else DONE
