"""The options of a run: the one table of them.

Everything that there is to say about an option is said in its field of `RunOptions`. The flags and the help of
`rewoo-bench run`, the keywords of `evaluate` and `bench`, the keys of run.toml and run.json, and what resuming,
comparisons, baselines and claims do with it are made from that. A dataclass and no pydantic model, so that
`run --help` needs no pydantic; flat, since the names are unique and each option names its group.

    OPTIONS["trials"].flag, OPTIONS["trials"].role.claims       # "--trials", True
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_origin

from rewoo_bench.runs.option_types import (
    ANSWERS,
    PRICE_FORMS,
    SESSION,
    UNSAVED,
    Amount,
    Count,
    CountOrZero,
    NonNegative,
    Option,
    OptionRole,
    Seed,
    Share,
    Trials,
    check_options,
    option,
    options_of,
)
from rewoo_bench.text.argument_checks import as_path

# Without `from __future__ import annotations`: 60 types as texts would be compiled for each `run --help`.


DEFAULT_MODEL = "local/smollm2-135m"
CONDITION = OptionRole(compare="note", baseline=True)  # of the tools; claims separate runs by it
PRICED = OptionRole(addable=True, compare="note")

WHAT, MODEL, REQUESTS, TOOLS, OUTPUT = "What to run", "Model", "Requests to the model", "Tools", "Output"
QUESTION, RUN = "Limits of a question", "Limits of the run"


@dataclass(frozen=True)
class RoleModel:
    """The model of one part of an architecture."""

    name: str
    temperature: float


@dataclass(frozen=True)
class RunOptions:
    """The options of `run`; None leaves the choice to the data set, the model or the architecture.

    Raises `UsageError` with the flag's name for a value out of range.
    """

    # fmt: off
    architectures: tuple[str, ...] = option(
        group=WHAT, flags=("--arch",), metavar="NAME|FOLDER|CLASS", completion="architectures",
        help="Architectures to run; repeat the flag or separate names by commas. A name of `rewoo-bench list`, a "
        "folder with an architecture.toml, or package.module:Class. Options follow a question mark: "
        "'rewoo?slot_tokens=100&tools=Search+LLM'.",
    )
    dataset: str = option(
        "sample", group=WHAT, metavar="NAME|FILE|FOLDER|NAME=FILE", completion="datasets",
        help="A data set of `rewoo-bench list` (with options: 'chain?hops=3'), a file of questions, a folder with a "
        "dataset.toml, NAME=FILE for a file of that data set's questions (gsm8k=test.jsonl), or the folder of a run, "
        "whose tasks are asked with all that the recorded agent was told; RUN?system=no leaves out its instructions. "
        "With ?objectives=3 behind any but a run, three questions are one task; with ?inject=call a gold page of each "
        "has an attacker's line (or argument, answer, stop, all).",
    )
    split: str | None = option(None, group=WHAT, help="Split of a hub data set.  [default: validation]")
    questions: Count | None = option(
        None, group=WHAT, flags=("-n", "--questions"),
        help="Number of questions, counted after --ids, --type, --failed-in and --wrong-in.  "
        "[default: 8 of the sample with the embedded model, else all of it or a file; 100 of a hub set or a generated "
        "one]",
    )
    ids: tuple[str, ...] = option(
        (), group=WHAT, metavar="FILE", reader="IdsFile", help="Ask the questions with these ids, one a line.",
    )
    question_types: tuple[str, ...] = option(
        (), group=WHAT, flags=("--type",), metavar="TYPE",
        help="Ask questions of this type (question_type); repeat the flag for several.",
    )
    failed_in: Path | None = option(
        None, group=WHAT, metavar="RUN", completion="run_folders",
        help="Ask the questions of this earlier run in which a call or an external agent failed.",
    )
    wrong_in: Path | None = option(
        None, group=WHAT, metavar="RUN", completion="run_folders",
        help="Ask the questions of this earlier run with a wrong answer; with --failed-in, both.",
    )
    seed: Seed = option(
        0, group=WHAT, role=OptionRole(baseline=True),
        help="Seed for the choice of questions; also sent to the model, with another one in each later trial.",
    )
    trials: Trials = option(
        1, group=WHAT, role=OptionRole(compare="note", baseline=True, claims=True),
        help="Number of times that each question is asked.",
    )

    model: str = option(
        DEFAULT_MODEL, group=MODEL, metavar="NAME", completion="models",
        help="Any litellm name (openai/gpt-4o-mini), local/NAME, local/FILE.gguf, replay/DIR for the answers of a "
        "recorded run, or oracle. The oracle knows the answers and measures cost alone.",
    )
    planner_model: str | None = option(
        None, group=MODEL, metavar="NAME", completion="models", help="Model of the planner.  [default: --model]",
    )
    solver_model: str | None = option(
        None, group=MODEL, metavar="NAME", completion="models", help="Model of the solver.  [default: --model]",
    )
    judge_model: str | None = option(
        None, group=MODEL, role=OptionRole(compare="refuse", claims=True), metavar="NAME", completion="models",
        help="Model that judges each answer. Its tokens are counted apart.  [default: no judge]",
    )
    embedding_model: str | None = option(
        None, group=MODEL, role=ANSWERS, metavar="NAME", completion="models",
        help="Model of the embeddings that external agents ask for: any litellm name.  [default: they are refused]",
    )
    temperature: NonNegative = option(0.0, group=MODEL, role=ANSWERS, help="Sampling temperature.")
    reply_tokens: Count = option(
        512, group=MODEL, role=ANSWERS,
        help="Maximum number of tokens of a reply. Where the model is still reasoning at that point, the call is made "
        "once more with twice as many. External agents set their own limit.",
    )
    reasoning_effort: str | None = option(
        None, group=MODEL, metavar="LEVEL",
        help="Reasoning effort, in the provider's words: low, medium, high.  [default: not sent]",
    )
    prompt_form: Literal["auto", "chat", "completion"] = option(
        "auto", group=MODEL, role=ANSWERS, help="Send prompts as chat turns or as one text to continue.",
    )
    constrain: Literal["auto", "grammar", "schema", "none"] = option(
        "auto", group=MODEL, role=ANSWERS, help="Constrained decoding, where the model supports it.",
    )
    llama_server: str | None = option(
        None, group=MODEL, metavar="COMMAND",
        help="Serve local/ models with this llama-server, for example 'llama-server --n-gpu-layers 99'.  "
        "[default: the bundled llama.cpp]",
    )

    api_base: str | None = option(
        None, group=REQUESTS, role=SESSION, metavar="URL",
        help="Address of an OpenAI-compatible server, for --model and other roles' models of the same provider.  "
        "[default: the provider's]",
    )
    timeout: Amount = option(600.0, group=REQUESTS, role=SESSION, help="Seconds until a model call is given up.")
    max_retries: CountOrZero = option(
        5, group=REQUESTS, role=SESSION, help="Number of new attempts after a provider's failure.",
    )
    max_connections: Count | None = option(
        None, group=REQUESTS, role=SESSION,
        help="Maximum number of calls to a model at the same time.  [default: what the model can take]",
    )
    provider_cache: bool = option(
        False, group=REQUESTS,
        help="Mark the prefix of each prompt for Anthropic's prompt cache (cache_control). Leave it out for endpoints "
        "that refuse such marks.",
    )
    extra_body: str | None = option(
        None, group=REQUESTS, metavar="JSON",
        help="Fields to add to every request, as a JSON object: '{\"top_p\": 0.9}'; null leaves one out: "
        "'{\"stop\": null}' (temperature, stop, seed, system, …). A parameter that an endpoint names in its error is "
        "left out without this flag.",
    )
    answer_cache: Path | None = option(
        None, group=REQUESTS, role=UNSAVED, metavar="DIR",
        help="Keep model answers in this folder, and reuse them in runs that send the same request.  "
        "[default: no cache]",
    )
    price: tuple[str, ...] = option(
        (), group=REQUESTS, role=PRICED, metavar="[ROLE:]input=USD,cached=USD,output=USD",
        help="Dollars per million tokens of --model, for an endpoint without a known price; cache_write=USD for what "
        "is written to a cache. planner:, solver:, judge: or embedding: in front for that role's model. Repeat the "
        "flag.",
    )
    prices: tuple[str, ...] = option(
        (), group=REQUESTS, role=PRICED, metavar="[ROLE:]NAME|SHEET[:MODEL]",
        help=f"Dollars per million tokens from {PRICE_FORMS}. Without MODEL each model of the run has the price that "
        "the sheet gives for its name, or the sheet's only one.",
    )

    max_steps: Count | None = option(
        None, group=QUESTION, role=OptionRole(compare="note", claims=True),
        help="Maximum number of plan steps or ReAct turns.  [default: the setting of the architecture]",
    )
    question_tokens: Count | None = option(
        None, group=QUESTION, role=ANSWERS, help="Maximum number of tokens of a question.  [default: no limit]",
    )
    question_time: Amount | None = option(
        None, group=QUESTION, role=ANSWERS, help="Maximum number of seconds of a question.  [default: no limit]",
    )
    question_cost: Amount | None = option(
        None, group=QUESTION, role=ANSWERS, help="Maximum US dollars of a question.  [default: no limit]",
    )

    run_tokens: Count | None = option(
        None, group=RUN, role=SESSION, metavar="COUNT|none",
        help="Maximum number of billed tokens of the whole run; none drops the cap of a resumed run.  "
        "[default: no limit]",
    )
    run_cost: Amount | None = option(
        None, group=RUN, role=SESSION, metavar="USD|none",
        help="Maximum US dollars of the whole run; none drops the cap of a resumed run.  [default: no limit]",
    )
    fail_on_error: NonNegative | None = option(
        None, group=RUN, role=SESSION, metavar="COUNT|FRACTION",
        help="Number or fraction of failed answers to tolerate, each of one architecture to one question. One more "
        "stops the run.  [default: the run goes on to its last question, and any failure makes it incomplete]",
    )
    concurrency: Count | None = option(
        None, group=RUN, role=SESSION,
        help="Number of questions at the same time. A local model decodes them in one batch, so its answers may then "
        "vary.  [default: what the model can take; 1 for a local model; an --agent: one for each core]",
    )
    workers: Count | None = option(
        None, group=RUN, role=UNSAVED,
        help="Ask the questions on so many workers of a Ray cluster; each is a process.  [default: in this process]",
    )
    ray_address: str | None = option(
        None, group=RUN, role=UNSAVED, metavar="ADDRESS",
        help="Address of the Ray cluster (auto, or HOST:PORT).  [default: start Ray on this machine for --workers]",
    )
    worker_resources: str | None = option(
        None, group=RUN, role=UNSAVED, metavar="JSON",
        help="Resources of each worker, as a JSON object: '{\"GPU\": 1}'.  [default: none, so any node takes it]",
    )
    grace: NonNegative = option(
        15.0, group=RUN, role=SESSION, help="Seconds that open calls may take after an interruption.",
    )

    tools: tuple[str, ...] = option(
        (), group=TOOLS, metavar="NAME", reader="tool_names",
        help="Replace the tools of every architecture; LLM is added only to architectures that define it. "
        "my_tools.py stands for the public functions of that file. "
        "my_module:make_tool is a tool of your own, NAME=my_module:make_tool one of that name; it replaces one of the "
        "same name. recorded:RUN stands for all "
        "tools of a run, imported or your own: each call is answered as it was recorded in the same task, and a call "
        "that wasn't recorded fails. Repeat the flag or use commas. rewoo?tools=Search names them for one "
        "architecture; none leaves those of --mcp alone, and an agent its own.  [default: those of the data set, "
        "else of the architecture]",
    )
    world: str | None = option(
        None, group=TOOLS, metavar="FILE.py", role=OptionRole(compare="refuse", baseline=True),
        help="Ask each question in a world of its own: the public methods of the file's class are the tools, in the "
        "place of the architecture's own (LLM stays), and its method `solved` is the score. FILE.py:CLASS names one "
        "of several classes.",
    )
    mcp: tuple[str, ...] = option(
        (), group=TOOLS, metavar="COMMAND|URL",
        help="Give every architecture that uses tools the tools of this MCP server: 'uvx some-server', or https://…. "
        "NAME=$NAME in front of a command passes a variable, and in front of an address a header; the server gets no "
        "other key. Each question gets a server of its own, and {tmp} in the command is a new folder. '[prefix=fs "
        "only=read_file,list_directory shared] COMMAND' puts fs_ before the names of its tools, chooses two of them, "
        "and has all questions share one server. Repeat the flag for several.",
    )
    mcp_timeout: Amount = option(
        60.0, group=TOOLS, role=SESSION,
        help="Seconds until the start of an MCP server is given up, or a call of one of its tools, of a world's, or "
        "of a function of --tools FILE.py.",
    )
    corpus: Path | None = option(
        None, group=TOOLS, metavar="FILE",
        help="Passages for the search tool: {title, text} as jsonl, json or parquet, or a .txt file, whose paragraphs "
        "are the passages.  [default: the documents of each question]",
    )
    tool_failure_rate: Share = option(
        0.0, group=TOOLS, role=CONDITION,
        help="Share of tool calls that fail on purpose; the same calls for every architecture.",
    )
    tool_failure_mode: Literal["empty", "error", "timeout"] = option(
        "empty", group=TOOLS, role=CONDITION, help="What a tool call that fails on purpose returns.",
    )
    tool_result_tokens: Count | None = option(
        None, group=TOOLS, role=CONDITION,
        help="Maximum number of tokens of a tool's result, for every architecture and external agent; the rest is "
        "left out, and a note says how much.  [default: no limit, but for what an architecture cuts itself]",
    )

    out: Path | None = option(
        None, group=OUTPUT, role=UNSAVED, metavar="DIR",
        help="Folder of the run.  [default: results/local/<time>-<architectures>]",
    )
    resume: Path | None = option(
        None, group=OUTPUT, role=UNSAVED, metavar="DIR", completion="run_folders",
        help="Continue the run in this folder, with the settings it has.",
    )
    accept_loss: bool = option(
        False, group=OUTPUT, role=UNSAVED,
        help="With --resume: ask calls again that were recorded and paid for, and are missing or damaged. Without this "
        "flag such a run isn't resumed.",
    )
    progress: bool = option(
        True, group=OUTPUT, role=UNSAVED, flags=("--no-progress",), help="Print no progress on standard error.",
    )
    report: bool = option(True, group=OUTPUT, role=SESSION, help="Write report.html into the run's folder at its end.")
    # fmt: on

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def engine(self) -> Literal["local", "ray"]:
        """Whether this process asks the questions, or the workers of a Ray cluster."""
        return "local" if self.workers is None and self.ray_address is None else "ray"

    @property
    def role_models(self) -> dict[str, RoleModel]:
        """Role -> its model and temperature, of the roles that have one of their own; `""` for every other role."""
        roles = {"": RoleModel(self.model, self.temperature)}
        for role, name in (("planner", self.planner_model), ("solver", self.solver_model)):
            if name and name != self.model:
                roles[role] = RoleModel(name, self.temperature)
        for role, name in (("judge", self.judge_model), ("embedding", self.embedding_model)):
            if name and RoleModel(name, 0.0) != roles[""]:
                roles[role] = RoleModel(name, 0.0)
        return roles

    def as_json(self) -> dict[str, Any]:
        """The options of a manifest, JSON-ready, without output paths."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return {name: value for name, value in values.items() if OPTIONS[name].role.saved}


OPTIONS: Mapping[str, Option] = options_of(RunOptions)


def options_that(matter: Callable[[OptionRole], object]) -> tuple[str, ...]:
    """Names of the options for whose role `matter` is true: `options_that(lambda role: role.baseline)`."""
    return tuple(name for name, each in OPTIONS.items() if matter(each.role))


def as_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of options as JSON, TOML or a keyword has them: a text or a list stands for a path or a tuple."""
    read = dict(values)
    for name, value in values.items():
        if OPTIONS[name].type == Path | None and value is not None:
            read[name] = as_path(name, value)
        elif get_origin(OPTIONS[name].type) is tuple and isinstance(value, list | str):
            read[name] = (value,) if isinstance(value, str) else tuple(value)
    return read
