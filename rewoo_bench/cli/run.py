"""`rewoo-bench run`: the benchmark itself."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rewoo_bench.cli import completion
from rewoo_bench.cli.conventions import DONE, FAILED, INCOMPLETE, PRICE_FORMS, SETTINGS
from rewoo_bench.cli.flag_types import Amount, Count, IdsFile, Number, Whole, dropped_names, extra_fields, tool_names
from rewoo_bench.cli.option_groups import GroupedCommand, under
from rewoo_bench.cli.run_file import RUN_FILE, read_run_file
from rewoo_bench.errors import UsageError

WHAT, MODEL, REQUEST = under("What to run"), under("Model"), under("Requests to the model")
QUESTION, RUN, OUTPUT = under("Limits of a question"), under("Limits of the run"), under("Output")
POSITIVE, NOT_NEGATIVE, COUNT = Number(min=0, min_open=True), Number(min=0), Whole(min=1)
FOLDER = click.Path(path_type=Path, file_okay=False)


# fmt: off
@click.command(cls=GroupedCommand, context_settings=SETTINGS)
@WHAT("--from", "from_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", is_eager=True,
      callback=read_run_file, expose_value=False,
      help="Read flags from a run.toml (model = 'oracle') or from the run.json of a run. Flags of the command replace "
           "those of the file.")
@WHAT("--arch", "architectures", multiple=True, metavar="NAME|FOLDER|CLASS", shell_complete=completion.architectures,
      help="Architectures to run; repeat the flag or separate names by commas. A name of `rewoo-bench list`, a folder "
           "with an architecture.toml, or package.module:Class. Options follow a question mark: "
           "'rewoo?slot_tokens=100&tools=Search+LLM'.")
@WHAT("--agent", "agents", multiple=True, metavar="[NAME=]COMMAND",
      help="Run this program as an architecture: 'python my_agent.py', or with a name and variables "
           "'cold=TEMPERATURE=0 KEY=$KEY python my_agent.py'. It gets the question on standard input and in "
           "REWOO_BENCH_QUESTION, asks the model at OPENAI_BASE_URL or ANTHROPIC_BASE_URL, and prints its answer. "
           "Repeat the flag for several.")
@WHAT("--dataset", default="sample", metavar="NAME|FILE|FOLDER|NAME=FILE", shell_complete=completion.datasets,
      help="A data set of `rewoo-bench list` (with options: 'chain?hops=3'), a file of questions, a folder with a "
           "dataset.toml, or NAME=FILE for a file of that data set's questions: gsm8k=test.jsonl.")
@WHAT("--split", help="Split of a hub data set.  [default: validation]")
@WHAT("-n", "--limit", type=COUNT,
      help="Number of questions, counted after --ids, --type, --failed-in and --wrong-in.  "
           "[default: all of the sample or a file; 100 of a hub set or a generated one]")
@WHAT("--ids", type=IdsFile(), default=(), show_default=False, metavar="FILE",
      help="Ask the questions with these ids, one a line.")
@WHAT("--type", "question_types", multiple=True, metavar="TYPE",
      help="Ask questions of this type (question_type); repeat the flag for several.")
@WHAT("--failed-in", type=FOLDER, metavar="RUN", shell_complete=completion.run_folders,
      help="Ask the questions in which a call or an external agent failed in this run.")
@WHAT("--wrong-in", type=FOLDER, metavar="RUN", shell_complete=completion.run_folders,
      help="Ask the questions with a wrong answer in this run; with --failed-in, both.")
@WHAT("--seed", default=0, help="Seed for the choice of questions; also sent to the model.")
@WHAT("--trials", type=COUNT, default=1, help="Number of times that each question is asked.")
@WHAT("--corpus", type=click.Path(path_type=Path), metavar="FILE",
      help="Passages for the search tool: {title, text} as jsonl, json or parquet, or a .txt file, whose paragraphs "
           "are the passages.  [default: the documents of each question]")
@WHAT("--tools", multiple=True, metavar="NAME", callback=tool_names,
      help="Give every architecture that uses tools these, as far as it can use them: LLM only where it has that of "
           "its own. my_module:make_tool is a tool of your own. Repeat the flag or use commas. rewoo?tools=Search "
           "names them for one architecture; none gives none to any, for agents with tools of their own.  "
           "[default: those of the data set, else of the architecture]")
@WHAT("--mcp", multiple=True, metavar="COMMAND|URL",
      help="Give every architecture that uses tools the tools of this MCP server: 'uvx some-server', or https://…. "
           "NAME=$NAME in front of a command passes a variable, and in front of an address a header; the server gets "
           "no other key. Each question gets a server of its own, and {tmp} in the command is a new folder. "
           "'[prefix=fs only=read_file,list_directory shared] COMMAND' puts fs_ before the names of its tools, chooses "
           "two of them, and has all questions share one server. Repeat the flag for several.")
@WHAT("--mcp-timeout", type=POSITIVE, default=60.0,
      help="Seconds until the start of an MCP server is given up, or a call of one of its tools.")
@WHAT("--max-steps", type=COUNT,
      help="Most steps of a plan, and most turns of ReAct.  [default: the setting of the architecture]")
@WHAT("--tool-failure-rate", type=Number(0, 1), default=0.0,
      help="Share of tool calls that fail on purpose; the same calls for every architecture.")
@WHAT("--tool-failure-mode", type=click.Choice(["empty", "error", "timeout"]), default="empty",
      help="What a tool call that fails on purpose returns.")
@WHAT("--tool-result-tokens", type=COUNT,
      help="Most tokens of a tool's result, for every architecture and external agent; the rest is left out, and a "
           "note says how much.  [default: no limit, but for what an architecture cuts itself]")
@MODEL("--model", default="local/smollm2-135m", metavar="NAME", shell_complete=completion.models,
       help="Any litellm name (openai/gpt-4o-mini), local/NAME, local/FILE.gguf, replay/DIR for the answers of a "
            "recorded run, or oracle. The oracle knows the answers and measures cost alone.")
@MODEL("--planner-model", metavar="NAME", shell_complete=completion.models,
       help="Model of the planner.  [default: --model]")
@MODEL("--solver-model", metavar="NAME", shell_complete=completion.models,
       help="Model of the solver.  [default: --model]")
@MODEL("--judge-model", metavar="NAME", shell_complete=completion.models,
       help="Model that judges each answer. Its tokens are counted apart.  [default: no judge]")
@MODEL("--embedding-model", metavar="NAME", shell_complete=completion.models,
       help="Model of the embeddings that external agents ask for: any litellm name.  [default: they are refused]")
@MODEL("--temperature", type=NOT_NEGATIVE, default=0.0, help="Sampling temperature.")
@MODEL("--planner-temperature", type=NOT_NEGATIVE, help="Temperature of the planner.  [default: --temperature]")
@MODEL("--solver-temperature", type=NOT_NEGATIVE, help="Temperature of the solver.  [default: --temperature]")
@MODEL("--max-output-tokens", type=COUNT, default=512,
       help="Most tokens of a reply. Where the model is still reasoning at that point, the call is made once more with "
            "twice as many. External agents set their own limit.")
@MODEL("--reasoning-effort", metavar="LEVEL",
       help="Reasoning effort, in the provider's words: low, medium, high.  [default: not sent]")
@MODEL("--style", type=click.Choice(["auto", "chat", "completion"]), default="auto",
       help="Send prompts as chat turns or as one text to continue.")
@MODEL("--constrain", type=click.Choice(["auto", "grammar", "schema", "none"]), default="auto",
       help="Constrained decoding, where the model supports it.")
@MODEL("--llama-server", metavar="COMMAND",
       help="Serve local/ models with this llama-server, for example 'llama-server --n-gpu-layers 99'.  "
            "[default: the bundled llama.cpp]")
@MODEL("--threads", type=COUNT, help="Threads of a local model.  [default: one for each core that is free]")
@REQUEST("--api-base", metavar="URL", help="Address of an OpenAI-compatible server.  [default: the provider's]")
@REQUEST("--timeout", type=POSITIVE, default=600.0, help="Seconds until a model call is given up.")
@REQUEST("--max-retries", type=Whole(min=0), default=5, help="Number of new attempts after a provider's failure.")
@REQUEST("--max-connections", type=COUNT,
         help="Most calls to a model at the same time.  [default: what the model can take]")
@REQUEST("--prompt-cache", is_flag=True,
         help="Mark the prefix of each prompt for Anthropic's prompt cache (cache_control). Leave it out for endpoints "
              "that refuse such marks.")
@REQUEST("--drop-param", "drop_params", multiple=True, metavar="NAME", callback=dropped_names,
         help="Never send this parameter (temperature, stop, seed, system, …); repeat the flag or use commas. A "
              "parameter that an endpoint names in its error is left out without this flag.")
@REQUEST("--extra-body", metavar="JSON", callback=extra_fields,
         help="Fields to add to every request, as a JSON object: '{\"top_p\": 0.9}'.")
@REQUEST("--cache", type=FOLDER, metavar="DIR",
         help="Keep model answers in this folder, and reuse them in runs that send the same request.  "
              "[default: no cache]")
@REQUEST("--price", multiple=True, metavar="[ROLE:]input=USD,cached=USD,output=USD",
         help="Dollars per million tokens of --model, for an endpoint without a known price; cache_write=USD for what "
              "is written to a cache. planner:, solver:, judge: or embedding: in front for that role's model. Repeat "
              "the flag.")
@REQUEST("--prices", multiple=True, metavar="[ROLE:]NAME|SHEET[:MODEL]",
         help=f"The same from {PRICE_FORMS}. Without MODEL each model of the run has its own price of the sheet, by "
              "its name, or the only one.")
@QUESTION("--token-limit", type=COUNT, help="Most tokens of one question.  [default: no limit]")
@QUESTION("--time-limit", type=POSITIVE, help="Most seconds of one question.  [default: no limit]")
@QUESTION("--cost-limit", type=POSITIVE, help="Most US dollars of one question.  [default: no limit]")
@RUN("--max-total-tokens", type=Count(min=1), metavar="COUNT|none",
     help="Most billed tokens of the whole run; none drops the cap of a resumed run.  [default: no limit]")
@RUN("--max-total-cost", type=Amount(min=0, min_open=True), metavar="USD|none",
     help="Most US dollars of the whole run; none drops the cap of a resumed run.  [default: no limit]")
@RUN("--fail-on-error", type=float, metavar="COUNT|FRACTION",
     help="Number or fraction of failed questions to tolerate. One more stops the run.  [default: the run goes on to "
          "its last question, and any failure makes it incomplete]")
@RUN("--concurrency", type=COUNT,
     help="Number of questions at the same time. A local model decodes them in one batch, so its answers may then "
          "vary.  [default: what the model can take; 1 for a local model]")
@RUN("--engine", type=click.Choice(["local", "ray"]), default="local",
     help="Ask the questions in this process, or on the workers of a Ray cluster.")
@RUN("--workers", type=COUNT, help="Number of Ray workers; each is a process.  [default: 1]")
@RUN("--ray-address", metavar="ADDRESS",
     help="Address of a Ray cluster (auto, or HOST:PORT).  [default: start Ray on this machine]")
@RUN("--worker-resources", metavar="JSON",
     help="Resources of each worker, as a JSON object: '{\"GPU\": 1}'.  [default: none, so any node takes it]")
@RUN("--grace", type=NOT_NEGATIVE, default=15.0,
     help="Seconds that open calls may take after an interruption.")
@OUTPUT("--out", type=FOLDER, metavar="DIR",
        help="Folder of the run.  [default: results/local/<time>-<architectures>]")
@OUTPUT("--resume", type=FOLDER, metavar="DIR", shell_complete=completion.run_folders,
        help="Continue the run in this folder, with the settings it has.")
@OUTPUT("--accept-loss", is_flag=True,
        help="With --resume: ask calls again that were recorded and paid for, and are missing or damaged. Without this "
             "flag such a run isn't resumed.")
@OUTPUT("--trust", is_flag=True,
        help="With --resume or --from run.json: take it as it stands, whoever wrote it: run its commands, "
             "contact its addresses and ask its models with your key.")
@OUTPUT("--dry-run", is_flag=True, help="Estimate calls, tokens and cost. No model is called, nothing is written.")
@OUTPUT("--no-progress", "progress", flag_value=False, default=True, show_default=False,
        help="Print no progress on standard error.")
@OUTPUT("-v", "--verbose", is_flag=True, help="Print a line for each finished question, on standard error.")
@OUTPUT("--quiet", is_flag=True, help="Print the run's folder and errors, nothing else.")
@OUTPUT("--report/--no-report", default=True, help="Write report.html into the run's folder at its end.",
        show_default=True)
@OUTPUT("--otel", metavar="FILE|URL",
        help="Export finished questions as OpenTelemetry spans to this OTLP endpoint (http://localhost:4318), or "
             "append them to this file as JSON.")
@OUTPUT("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
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
# fmt: on


def _options(context: click.Context, flags: dict[str, Any]) -> Any:
    """The options of a new run, or of a resumed one, for which only flags of the command itself count."""
    from rewoo_bench.evaluation.resume import resumed
    from rewoo_bench.evaluation.trust import check_trusted
    from rewoo_bench.runs.options import RunOptions

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
