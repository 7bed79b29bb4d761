"""`rewoo-bench run`: the benchmark itself."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rewoo_bench.cli.conventions import DONE, FAILED, INCOMPLETE, SETTINGS
from rewoo_bench.cli.option_groups import GroupedCommand, flag_for, under
from rewoo_bench.cli.run_file import RUN_FILE, read_run_file
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.options import OPTIONS, OUTPUT, WHAT, RunOptions


def _with_options(command: Callable[..., int]) -> Callable[..., int]:
    """The command with a flag for each option of a run, in the order of the table."""
    for each in reversed(list(OPTIONS.values())):
        command = flag_for(each)(command)
    return command


@click.command(cls=GroupedCommand, context_settings=SETTINGS)
@under(WHAT)(
    "--from",
    "from_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    is_eager=True,
    callback=read_run_file,
    expose_value=False,
    help="Read flags from a run.toml (model = 'oracle') or from the run.json of a run. Flags of the command replace "
    "those of the file.",
)
@_with_options
@under(WHAT)(
    "--agent",
    "agents",
    multiple=True,
    metavar="[NAME=]COMMAND",
    help="Run this program as an architecture: 'python my_agent.py', or with a name and variables "
    "'cold=TEMPERATURE=0 KEY=$KEY python my_agent.py'. It gets the question on standard input and in "
    "REWOO_BENCH_QUESTION, asks the model at OPENAI_BASE_URL or ANTHROPIC_BASE_URL, and prints its answer. "
    "Repeat the flag for several.",
)
@under(OUTPUT)(
    "--trust",
    is_flag=True,
    help="With --resume or --from run.json: take it as it stands, whoever wrote it: run its commands, "
    "contact its addresses and ask its models with your key.",
)
@under(OUTPUT)(
    "--dry-run", is_flag=True, help="Estimate calls, tokens and cost. No model is called, nothing is written."
)
@under(OUTPUT)("--quiet", is_flag=True, help="Print the run's folder and errors, nothing else.")
@under(OUTPUT)("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def run(context: click.Context, /, as_json: bool, dry_run: bool, quiet: bool, **flags: Any) -> int:
    """Ask questions of architectures and record every call, token, second and answer."""
    import anyio

    from rewoo_bench.cli.run_output import show_estimates, show_failed_agents, show_outcome, write_page
    from rewoo_bench.evaluation.run import dry_run as estimated
    from rewoo_bench.evaluation.run import run as run_benchmark

    if quiet and (flags["verbose"] or as_json):
        raise click.UsageError("--quiet: leave out --verbose and --json", context)
    options = _options(context, {**flags, "progress": flags["progress"] and not quiet})
    sys.path.append(str(Path.cwd()))  # for a user's own code, after everything that is installed
    if dry_run:
        show_estimates(anyio.run(estimated, options), as_json)
        return DONE
    with _other_signals_as_interrupt(), _warnings_hidden(quiet):
        outcome = anyio.run(run_benchmark, options)
    page = write_page(outcome) if options.report else None
    show_outcome(outcome, as_json=as_json, quiet=quiet, page=page)
    failed = show_failed_agents(outcome)
    return INCOMPLETE if outcome.status != "done" else FAILED if failed else DONE


def _options(context: click.Context, flags: dict[str, Any]) -> RunOptions:
    """The options of a new run, or of a resumed one, for which only flags of the command itself count."""
    from rewoo_bench.evaluation.resume import resumed
    from rewoo_bench.evaluation.trust import check_trusted

    agents = [f"agent:{command}" for command in flags.pop("agents")]
    trust = flags.pop("trust")
    names = tuple(name for value in flags["architectures"] for name in _split(value)) + tuple(agents)
    named = click.core.ParameterSource.COMMANDLINE
    if flags["resume"] is None:
        file, manifest = context.meta.get(RUN_FILE, (None, {}))
        if trust and not manifest:
            raise UsageError("--trust: give it with --resume, or with --from and the run.json of a run")
        given_now = {name for name in flags if context.get_parameter_source(name) is named}
        check_trusted(manifest, given_now, f"--from {file}", trust=trust)
        if not flags["architectures"] and not agents:
            raise click.UsageError("Missing option '--arch' (names are in `rewoo-bench list`).", context)
        if not names:
            raise UsageError("--arch: no architecture given")
        return RunOptions(**{**flags, "architectures": names})
    if context.get_parameter_source("from_file") is named:
        raise UsageError("--from: leave it out with --resume; a run keeps its own flags")
    flags = {**flags, "architectures": names}
    given = {name: value for name, value in flags.items() if context.get_parameter_source(name) is named}
    if agents:
        given["architectures"] = names
    given["progress"] = flags["progress"]  # --quiet is none of the options
    return resumed(flags["resume"], given, trust=trust)


def _split(names: str) -> list[str]:
    """Names separated by commas; an agent's command from a run.json may have commas of its own."""
    return [names] if names.startswith("agent:") else [name.strip() for name in names.split(",") if name.strip()]


@contextmanager
def _warnings_hidden(hidden: bool) -> Iterator[None]:
    import logging

    logger = logging.getLogger("rewoo_bench")
    before = logger.level
    logger.setLevel(logging.ERROR if hidden else before)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _other_signals_as_interrupt() -> Iterator[None]:
    """SIGTERM (CI, schedulers) and SIGHUP (a closed terminal) have the effect of Ctrl-C: what was finished is kept."""
    from rewoo_bench.calls.shutdown import signals_heard

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
