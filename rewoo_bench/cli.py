"""The commands: `rewoo-bench run`, `rewoo-bench list`, and those of commands/.

Exit codes: 0 done, 1 a gate failed, 2 the command is wrong, 3 incomplete (a cap, failed questions, interrupted),
70 a fault of ours, with its traceback.
What does the work is imported when a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rewoo_bench.commands.baseline import baseline
from rewoo_bench.commands.checks import Number, Whole, dropped_names, extra_fields
from rewoo_bench.commands.claims import claims
from rewoo_bench.commands.compare import compare
from rewoo_bench.commands.gate import gate
from rewoo_bench.commands.plot import plot
from rewoo_bench.commands.publish import publish
from rewoo_bench.errors import RewooBenchError, UsageError
from rewoo_bench.escaping import terminal
from rewoo_bench.redaction import redact

DONE, WRONG, INCOMPLETE, BROKEN = 0, 2, 3, 70  # BROKEN: EX_SOFTWARE of sysexits.h
_INTERRUPTED = "interrupted before the first question, or after the last"
_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}


@click.group(context_settings=_SETTINGS)
@click.version_option(package_name="rewoo-bench")
def group() -> None:
    """Measure what an agent architecture costs and what it buys."""


# fmt: off
@group.command(context_settings=_SETTINGS)
@click.option("--arch", "architectures", multiple=True, metavar="NAME|FOLDER|CLASS",
              help="Architecture(s) to run, repeated or with commas: a name of `rewoo-bench list`, a folder, or "
                   "package.module:Class; with other settings or tools: 'rewoo?slot_tokens=100&tools=Search+LLM'.")
@click.option("--dataset", default="sample", metavar="NAME|FILE",
              help="A bundled data set (with options: 'chain?hops=3'), or a file of questions.")
@click.option("--split", help="Split of a hub data set.  [default: validation]")
@click.option("-n", "--limit", type=Whole(min=1),
              help="So many questions.  [default: all of the sample or a file, 100 of a hub set or a generated one]")
@click.option("--seed", default=0, help="Which questions are taken; also sent to the model.")
@click.option("--trials", type=Whole(min=1), default=1, help="Times each question is put.")
@click.option("--model", default="local/smollm2-135m",
              help="Any litellm name, local/NAME, local/FILE.gguf, replay/DIR for the answers of a recorded run, or "
                   "oracle, which is told the way to each answer, to measure cost alone.")
@click.option("--planner-model", help="Another model for the planner.")
@click.option("--solver-model", help="Another model for the solver.")
@click.option("--judge-model", help="A model that judges the answers; its tokens are kept apart.")
@click.option("--api-base", metavar="URL", help="Address of an OpenAI-compatible server.")
@click.option("--llama-server", metavar="COMMAND",
              help="Serve local/ models with a llama-server of your own, with arguments or without: "
                   "'llama-server --n-gpu-layers 99'.")
@click.option("--threads", type=Whole(min=1),
              help="Threads of a local model.  [default: one for each physical core]")
@click.option("--temperature", type=Number(min=0), default=0.0, help="Sampling temperature.")
@click.option("--planner-temperature", type=Number(min=0), help="Temperature of planners.")
@click.option("--solver-temperature", type=Number(min=0), help="Temperature of solvers.")
@click.option("--max-output-tokens", type=Whole(min=1), default=512,
              help="Output limit of a model call, for its visible text; a reply that is cut while the model is "
                   "thinking is asked for once more with twice as much.")
@click.option("--reasoning-effort", metavar="LEVEL",
              help="How much a reasoning model thinks, as its provider calls it: low, medium, high, …")
@click.option("--prompt-cache", is_flag=True,
              help="Mark the prefixes of prompts that Anthropic's models can cache (cache_control); not for endpoints "
                   "that take no such marks.")
@click.option("--drop-param", "drop_params", multiple=True, metavar="NAME", callback=dropped_names,
              help="Never send this parameter (temperature, stop, seed, system, …), repeated or with commas. What an "
                   "endpoint refuses by name is left out without it.")
@click.option("--extra-body", metavar="JSON", callback=extra_fields,
              help="Fields that are added to every request, as a JSON object: '{\"top_p\": 0.9}'.")
@click.option("--style", type=click.Choice(["auto", "chat", "completion"]), default="auto",
              help="Prompts as turns, or as one transcript to go on with.")
@click.option("--constrain", type=click.Choice(["auto", "grammar", "schema", "none"]), default="auto",
              help="What the model's decoding is held to, where it can be.")
@click.option("--corpus", type=click.Path(path_type=Path), metavar="FILE",
              help="Passages for the search tool instead of the questions' own documents.")
@click.option("--max-steps", type=Whole(min=1), help="Steps of a plan, turns of ReAct.")
@click.option("--token-limit", type=Whole(min=1), help="Tokens of one question.")
@click.option("--time-limit", type=Number(min=0, min_open=True), help="Seconds of one question.")
@click.option("--cost-limit", type=Number(min=0, min_open=True), help="Dollars of one question.")
@click.option("--max-total-tokens", type=Whole(min=1), help="Tokens of the whole run, as billed.")
@click.option("--max-total-cost", type=Number(min=0, min_open=True), help="Dollars of the whole run.")
@click.option(
    "--concurrency",
    type=Whole(min=1),
    help="Questions at once; a local model decodes so many in one batch, where an answer is no longer the same "
    "every time.  [default: what the model can do, 1 for a local one]",
)
@click.option("--max-connections", type=Whole(min=1),
              help="Model calls at once.  [default: what the model can do]")
@click.option("--max-retries", type=Whole(min=0), default=5, help="New attempts after a provider's failure.")
@click.option("--timeout", type=Number(min=0, min_open=True), default=600.0, help="Seconds of a model call.")
@click.option("--fail-on-error", type=float, metavar="COUNT|FRACTION",
              help="Failed questions that are tolerated, a count or a fraction: one more ends the run.  [default: none "
                   "is tolerated, but the run goes on to its last question, and is incomplete then]")
@click.option("--tool-failure-rate", type=Number(0, 1), default=0.0,
              help="Share of tool calls that fail on purpose, the same ones for every architecture.")
@click.option("--tool-failure-mode", type=click.Choice(["empty", "error", "timeout"]), default="empty",
              help="How they fail.")
@click.option("--grace", type=Number(min=0), default=15.0,
              help="Seconds that calls in flight get to end, once the run is interrupted.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Where it goes.  [default: results/local/<time>-<arch>]")
@click.option("--resume", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Go on with the run in this folder, with its own settings.")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep model answers here, for runs that ask the same of the same model.")
@click.option("--dry-run", is_flag=True, help="Only estimate calls, tokens and cost; ask no model, write nothing.")
@click.option("--no-progress", "progress", flag_value=False, default=True, show_default=False,
              help="No progress on standard error.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def run(context: click.Context, /, as_json: bool, dry_run: bool, **flags: Any) -> int:
    """Put questions to architectures and record every call, token, second and answer."""
    import anyio

    from rewoo_bench import run as running
    from rewoo_bench.commands.run_output import show_estimates, show_outcome

    options = _options(context, flags)
    sys.path.append(str(Path.cwd()))  # where code of one's own is looked for, after all that is installed
    if dry_run:
        show_estimates(anyio.run(running.dry_run, options), as_json)
        return DONE
    with _terminated_as_interrupted():
        outcome = anyio.run(running.run, options)
    show_outcome(outcome, as_json)
    return DONE if outcome.status == "done" else INCOMPLETE
# fmt: on


def _options(context: click.Context, flags: dict[str, Any]) -> Any:
    """The options of a new run, or of one that goes on; for that, only what was named in the command counts."""
    from rewoo_bench.options import RunOptions
    from rewoo_bench.resume import resumed

    names = tuple(name.strip() for value in flags["architectures"] for name in value.split(",") if name.strip())
    if flags["resume"] is None:
        if not flags["architectures"]:
            raise click.UsageError("Missing option '--arch'.", context)
        if not names:
            raise UsageError("--arch: no architecture given")
        return RunOptions(**{**flags, "architectures": names})
    flags = {**flags, "architectures": names}
    named = click.core.ParameterSource.COMMANDLINE
    given = {name: value for name, value in flags.items() if context.get_parameter_source(name) is named}
    return resumed(flags["resume"], given)


@group.command(name="list", context_settings=_SETTINGS)
def list_names() -> int:
    """Name the bundled architectures, data sets and local models."""
    from rewoo_bench.config.specs import ArchitectureSpec, DatasetSpec, read_spec
    from rewoo_bench.model_names import ORACLE
    from rewoo_bench.models.catalogue import catalogue
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


group.add_command(gate)
group.add_command(baseline)
group.add_command(compare)
group.add_command(claims)
group.add_command(plot)
group.add_command(publish)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM, by which CI and schedulers end a job, and SIGHUP of a terminal that is closed are taken as Ctrl-C:
    what was finished is kept."""

    from rewoo_bench.brake import signals_heard

    def interrupt(*_: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    heard = [each for each in signals_heard() if each is not signal.SIGINT]
    before = {each: signal.signal(each, interrupt) for each in heard}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its code; an error of ours is one line."""
    try:
        code = group.main(list(arguments) if arguments is not None else None, "rewoo-bench", standalone_mode=False)
    except click.exceptions.Abort:
        code = _fail(_INTERRUPTED, INCOMPLETE)
    except click.ClickException as error:
        error.show()
        code = WRONG
    except UsageError as error:
        code = _fail(str(error), WRONG)
    except RewooBenchError as error:
        code = _fail(str(error), INCOMPLETE)
    except KeyboardInterrupt:
        code = _fail(_INTERRUPTED, INCOMPLETE)
    except Exception:  # a fault of ours; never exit code 1, which says that a gate failed
        click.echo(terminal(redact(traceback.format_exc())), err=True, nl=False)
        code = BROKEN
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    click.echo(terminal(f"rewoo-bench: {redact(message)}"), err=True)
    return code
