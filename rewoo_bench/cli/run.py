"""`rewoo-bench run`: the benchmark itself."""

from __future__ import annotations

import json
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import click

from rewoo_bench.calls.caps import signals_heard
from rewoo_bench.cli.command import DONE, FAILED, INCOMPLETE
from rewoo_bench.cli.options import GroupedCommand, flag_for, under
from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.runs.options import OPTIONS, OUTPUT, WHAT, RunOptions
from rewoo_bench.text.redaction import HIDDEN

RUN_FILE = "rewoo_bench.run_file"
"""In a context's `meta`: the run.json that the flags come from, and its content."""


def read_run_file(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Makes the flags in a run.toml, or in the run.json of an earlier run, the command's defaults. Raises `UsageError`.

        arch = ["rewoo", "react"]       # names of flags or keywords of `evaluate`, with underscores or dashes
        max-steps = 6

    Flags of the command replace those of the file.
    """
    if file is None or context.resilient_parsing:
        return file
    is_json, where = file.suffix == ".json", f"--from {file}"
    try:
        text = file.read_text(encoding="utf-8")
        values = json.loads(text) if is_json else tomllib.loads(text)
    except ValueError as error:  # of both formats, and of text that isn't UTF-8
        raise UsageError(f"{where}: not valid {'JSON' if is_json else 'TOML'}: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{where}: expected an object with the options of a run")
    if is_json:
        context.meta[RUN_FILE] = (file, values)
        values = values.get("options")
        if not isinstance(values, dict) or not values.get("architectures"):
            raise UsageError(f"{where}: expected the run.json of a run, with its options")
        if f"{HIDDEN}@" in str(values.get("api_base")):
            values = {**values, "api_base": None}  # its password isn't kept; the model says what is missing
        if values.get("ids"):
            values = {**values, "failed_in": None, "wrong_in": None}  # their questions are in `ids`
    options = [option for option in context.command.params if isinstance(option, click.Option)]
    flags = {name.lstrip("-"): option for option in options for name in (*option.opts, *option.secondary_opts)}
    keywords = {option.name: option for option in options if option.name in OPTIONS.keys() - {"resume"}}
    for name in ("from", "resume", "trust", "help"):
        flags.pop(name, None)
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        if is_json:
            # No run keeps where its spans, its cache and its cluster were; somebody who writes them in leads this run
            # astray.
            if key not in OPTIONS or not OPTIONS[key].role.saved:
                continue
            key = OPTIONS[key].flag.lstrip("-")
        option = flags.get(key.replace("_", "-")) or keywords.get(key.replace("-", "_"))
        if option is None:
            raise UsageError(f"{where}: {unknown('flag', key, flags)}")
        if value is not None:
            defaults[str(option.name)] = _value(option, key, value)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def _value(option: click.Option, key: str, value: Any) -> Any:
    """A value in the form of the command's, which click checks."""
    if option.is_flag and isinstance(value, bool):
        return value != key.startswith(("no-", "no_"))
    if option.multiple:
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]
    if option.name == "ids" and isinstance(value, list):
        return value
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _with_options(command: Callable[..., int]) -> Callable[..., int]:
    """The command with a flag for each option of a run, in the order of the table."""
    for each in reversed(list(OPTIONS.values())):
        command = flag_for(each)(command)
    return command


EVERYDAY = (
    *("architectures", "agents", "dataset", "corpus", "questions", "trials", "model", "api_base", "price", "max_steps"),
    *("run_tokens", "run_cost", "concurrency", "tools", "world", "out", "resume", "dry_run"),
)
"""Flags that `run --help` shows."""


# fmt: off
@click.command("run", cls=GroupedCommand, everyday=EVERYDAY)
@under(WHAT)("--from", "from_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", is_eager=True,
             callback=read_run_file, expose_value=False,
             help="Read flags from a run.toml (model = 'oracle') or from the run.json of a run. Flags of the command "
                  "replace those of the file.")
@_with_options
@under(WHAT)("--agent", "agents", multiple=True, metavar="[NAME=]COMMAND",
             help="Run this program as an architecture: 'python my_agent.py', or with a name and variables "
                  "'cold=TEMPERATURE=0 KEY=$KEY python my_agent.py'. It gets the question on standard input and in "
                  "REWOO_BENCH_QUESTION, asks the model at OPENAI_BASE_URL or ANTHROPIC_BASE_URL, and prints its "
                  "answer. Repeat the flag for several.")
@under(OUTPUT)("--trust", is_flag=True,
               help="With --resume or --from run.json: take it as it stands, whoever wrote it: run its commands, "
                    "contact its addresses and ask its models with your key.")
@under(OUTPUT)("--dry-run", is_flag=True,
               help="Estimate calls, tokens and cost. No model is called, nothing is written.")
@under(OUTPUT)("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def run_command(context: click.Context, /, as_json: bool, dry_run: bool, **flags: Any) -> int:
    """Ask questions of architectures and record every call, token, second and answer."""
    # fmt: on
    # What runs the benchmark takes half a second, which `--help` and a wrong flag needn't.
    from rewoo_bench.cli.run_output import show_estimates, show_outcome, write_page_of
    from rewoo_bench.evaluation import run as evaluation

    options = _options(context, flags)
    if dry_run:
        estimates = anyio.run(evaluation.dry_run, options)
        show_estimates(estimates, {role: model.name for role, model in options.role_models.items()}, as_json)
        return DONE
    with _other_signals_as_interrupt():
        outcome = anyio.run(evaluation.run, options)
    page = write_page_of(outcome) if options.report else None
    failed = show_outcome(outcome, as_json=as_json, page=page)
    return INCOMPLETE if outcome.status != "done" else FAILED if failed else DONE


def _options(context: click.Context, flags: dict[str, Any]) -> RunOptions:
    """The options of a new run, or of a resumed one, for which only flags of the command itself count."""
    from rewoo_bench.evaluation.resume import resumed  # as above
    from rewoo_bench.evaluation.trust import check_trusted, check_whole

    agents = tuple(f"agent:{command}" for command in flags.pop("agents"))
    trust = flags.pop("trust")
    named = click.core.ParameterSource.COMMANDLINE
    given = {name for name in flags if context.get_parameter_source(name) is named}
    names: list[str] = []
    for value in flags["architectures"]:  # an agent's command from a run.json may have commas of its own
        names += [value] if value.startswith("agent:") else filter(None, map(str.strip, value.split(",")))
    is_any_named = bool(flags["architectures"] or agents)
    flags["architectures"] = (*names, *agents)
    if flags["resume"] is not None:
        if context.get_parameter_source("from_file") is named:
            raise UsageError("--from: leave it out with --resume; a run keeps its own flags")
        given |= {"architectures"} if agents else set()
        return resumed(flags["resume"], {name: flags[name] for name in flags if name in given}, trust=trust)
    file, manifest = context.meta.get(RUN_FILE, (None, {}))
    if trust and not manifest:
        raise UsageError("--trust: give it with --resume, or with --from and the run.json of a run")
    check_trusted(manifest, {name: flags[name] for name in given if name in flags}, f"--from {file}", trust=trust)
    if manifest:
        check_whole(flags, given, f"--from {file}")
    if not is_any_named:
        raise click.UsageError("Missing option '--arch' (names are in `rewoo-bench list`).", context)
    if not flags["architectures"]:
        raise UsageError("--arch: no architecture given")
    return RunOptions(**flags)


@contextmanager
def _other_signals_as_interrupt() -> Iterator[None]:
    """SIGTERM (CI, schedulers) and SIGHUP (a closed terminal) have the effect of Ctrl-C: what was finished is kept."""

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
